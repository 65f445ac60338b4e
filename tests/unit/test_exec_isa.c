/* SPDX-License-Identifier: Apache-2.0 */
/* Which instruction sets are used: every kind of CPU with every word, whatever CPU runs the test.
 */
#include "tests/test.h"

#include "exec/simd/int8/simd_int8.h"
#include "exec/simd/isa.h"
#include "exec/simd/simd.h"

enum {
    AVX2 = OCT_CPU_AVX2 | OCT_CPU_FMA | OCT_CPU_F16C,
    AVX512 = AVX2 | OCT_CPU_AVX512F | OCT_CPU_AVX512BW | OCT_CPU_AVX512VL | OCT_CPU_AVX512DQ,
};

/* W: avx512_vnni, Z: avx512, V: avx2_vnni, Y: avx2, B: base */
static const char letters[OCT_ISA_COUNT] = {'W', 'Z', 'V', 'Y', 'B'};

enum { FREE, SSE41, TO_AVX2, TO_AVX2_VNNI, MIC, CORE, CORE_VNNI, N_LIMITS };

static const struct {
    const char *word;
    int limit;
} words[] = {
    {NULL, FREE},
    {"", FREE},
    {"ALL", FREE},
    {"default", FREE},
    {"AVX512_CORE_AMX", FREE},
    {"AVX1024", FREE},
    {"AVX2 ", FREE},
    {"SSE41", SSE41},
    {"sse41", SSE41},
    {"AVX", SSE41},
    {"AVX2", TO_AVX2},
    {"avx2", TO_AVX2},
    {"AVX2_VNNI", TO_AVX2_VNNI},
    {"AVX512_MIC", MIC},
    {"AVX512_MIC_4OPS", MIC},
    {"AVX512_CORE", CORE},
    {"avx512_core", CORE},
    {"AVX512_CORE_VNNI", CORE_VNNI},
    {"AVX512_CORE_BF16", CORE_VNNI},
};

static const struct {
    const char *name;
    unsigned cpu;
    const char *want[N_LIMITS];
} cpus[] = {
    {"baseline", 0, {"B", "B", "B", "B", "B", "B", "B"}},
    {"AVX2 without FMA", OCT_CPU_AVX2 | OCT_CPU_F16C, {"B", "B", "B", "B", "B", "B", "B"}},
    {"Haswell", AVX2, {"YB", "B", "YB", "YB", "YB", "YB", "YB"}},
    {"Zen 3", AVX2, {"YB", "B", "YB", "YB", "YB", "YB", "YB"}},
    {"Alder Lake", AVX2 | OCT_CPU_AVX_VNNI, {"VYB", "B", "YB", "VYB", "YB", "YB", "YB"}},
    {"Knights Landing", AVX2 | OCT_CPU_AVX512F, {"YB", "B", "YB", "YB", "YB", "YB", "YB"}},
    {"Skylake-X", AVX512, {"ZYB", "B", "YB", "YB", "YB", "ZYB", "ZYB"}},
    {"Zen 4", AVX512 | OCT_CPU_AVX512_VNNI, {"WZYB", "B", "YB", "YB", "YB", "ZYB", "WZYB"}},
    {"Sapphire Rapids",
     AVX512 | OCT_CPU_AVX512_VNNI | OCT_CPU_AVX_VNNI,
     {"WZVYB", "B", "YB", "VYB", "YB", "ZYB", "WZYB"}},
};

static void every_cpu_with_every_word(void **state)
{
    (void)state;
    for (size_t c = 0; c < OCT_COUNT(cpus); c++)
        for (size_t w = 0; w < OCT_COUNT(words); w++) {
            const char *want = cpus[c].want[words[w].limit];
            char got[OCT_ISA_COUNT + 1] = "";
            oct_isa list[OCT_ISA_COUNT];
            const int n = oct_isa_list(cpus[c].cpu, words[w].word, list);

            for (int i = 0; i < n; i++)
                got[i] = letters[list[i]];
            if (strcmp(got, want) != 0)
                fail_msg("%s with %s: %s, want %s", cpus[c].name,
                         words[w].word ? words[w].word : "nothing", got, want);
        }
}

/* What the loops are called, in the order of the list; the float ones have none with VNNI. */
static void check_loops(void)
{
    oct_isa list[OCT_ISA_COUNT];
    const int n = oct_isa_list(oct_isa_cpu(), oct_isa_word(), list);
    int k = 0;

    for (int i = 0; i < n; i++) {
        assert_string_equal(oct_int8_at(i)->name, oct_isa_name(list[i]));
        if (list[i] == OCT_ISA_AVX512_VNNI || list[i] == OCT_ISA_AVX2_VNNI) continue;
        assert_string_equal(oct_simd_at(k++)->name, oct_isa_name(list[i]));
    }
    assert_string_equal(oct_int8_at(n)->name, "plain");
    assert_null(oct_int8_at(n + 1));
    assert_null(oct_int8_at(-1));
    assert_null(oct_simd_at(k));
    assert_null(oct_simd_at(-1));
}

static void floats_and_integers_obey_the_same_word(void **state)
{
    (void)state;
    for (size_t i = 0; i < OCT_COUNT(words); i++) {
        if (words[i].word)
            setenv("ONEDNN_MAX_CPU_ISA", words[i].word, 1);
        else
            unsetenv("ONEDNN_MAX_CPU_ISA");
        check_loops();
    }
    setenv("ONEDNN_MAX_CPU_ISA", "", 1); /* as if it was not there: the older name counts */
    setenv("DNNL_MAX_CPU_ISA", "SSE41", 1);
    assert_string_equal(oct_isa_word(), "SSE41");
    assert_string_equal(oct_int8_get()->name, "base");
    assert_string_equal(oct_simd_get()->name, "base");
    setenv("ONEDNN_MAX_CPU_ISA", "ALL", 1);
    assert_string_equal(oct_isa_word(), "ALL");
    unsetenv("ONEDNN_MAX_CPU_ISA");
    unsetenv("DNNL_MAX_CPU_ISA");
    assert_null(oct_isa_word());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cpu_with_every_word),
        cmocka_unit_test(floats_and_integers_obey_the_same_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
