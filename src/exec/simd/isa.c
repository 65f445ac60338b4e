/* SPDX-License-Identifier: Apache-2.0 */
/* Which instruction sets the CPU and the user allow. */
#include "exec/simd/isa.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum {
    NEEDS_AVX2 = OCT_CPU_AVX2 | OCT_CPU_FMA | OCT_CPU_F16C,
    NEEDS_AVX512 =
        NEEDS_AVX2 | OCT_CPU_AVX512F | OCT_CPU_AVX512BW | OCT_CPU_AVX512VL | OCT_CPU_AVX512DQ,
};

/* What the compiler was allowed to use in each set's loops (meson.build). */
static const struct {
    const char *name;
    unsigned needs;
} sets[OCT_ISA_COUNT] = {
    [OCT_ISA_AVX512_VNNI] = {"avx512_vnni", NEEDS_AVX512 | OCT_CPU_AVX512_VNNI},
    [OCT_ISA_AVX512] = {"avx512", NEEDS_AVX512},
    [OCT_ISA_AVX2_VNNI] = {"avx2_vnni", NEEDS_AVX2 | OCT_CPU_AVX_VNNI},
    [OCT_ISA_AVX2] = {"avx2", NEEDS_AVX2},
    [OCT_ISA_BASE] = {"base", 0},
};

enum {
    ALLOW_BASE = 1u << OCT_ISA_BASE,
    ALLOW_AVX2 = ALLOW_BASE | 1u << OCT_ISA_AVX2,
    ALLOW_AVX2_VNNI = ALLOW_AVX2 | 1u << OCT_ISA_AVX2_VNNI,
    ALLOW_AVX512 = ALLOW_AVX2 | 1u << OCT_ISA_AVX512,
    ALLOW_AVX512_VNNI = ALLOW_AVX512 | 1u << OCT_ISA_AVX512_VNNI,
    ALLOW_ALL = ALLOW_AVX512_VNNI | ALLOW_AVX2_VNNI,
};

/* The values that limit, with what each includes in oneDNN. */
static unsigned allowed(const char *word)
{
    static const struct {
        const char *word;
        unsigned sets;
    } words[] = {{"SSE41", ALLOW_BASE},
                 {"AVX", ALLOW_BASE},
                 {"AVX2", ALLOW_AVX2},
                 {"AVX2_VNNI", ALLOW_AVX2_VNNI},
                 {"AVX2_VNNI_2", ALLOW_AVX2_VNNI},
                 {"AVX512_MIC", ALLOW_AVX2}, /* has no BW, VL and DQ */
                 {"AVX512_MIC_4OPS", ALLOW_AVX2},
                 {"AVX512_CORE", ALLOW_AVX512},
                 {"AVX512_CORE_VNNI", ALLOW_AVX512_VNNI},
                 {"AVX512_CORE_BF16", ALLOW_AVX512_VNNI}};

    for (size_t i = 0; word && i < OCT_COUNT(words); i++)
        if (!strcasecmp(word, words[i].word)) return words[i].sets;
    return ALLOW_ALL;
}

int oct_isa_list(unsigned cpu, const char *word, oct_isa list[OCT_ISA_COUNT])
{
    const unsigned may = allowed(word);
    int n = 0;

    for (int i = 0; i < OCT_ISA_COUNT; i++)
        if ((may & 1u << i) && (cpu & sets[i].needs) == sets[i].needs) list[n++] = (oct_isa)i;
    return n;
}

const char *oct_isa_name(oct_isa i)
{
    return sets[i].name;
}

/* oneDNN reads the same variables in the same order: one switch lowers both. */
const char *oct_isa_word(void)
{
    static const char *const names[] = {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"};

    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        const char *s = getenv(names[i]);

        if (s && *s) return s;
    }
    return NULL;
}

static unsigned ask_cpu(void)
{
    unsigned cpu = 0;
#if defined(__x86_64__)
    unsigned a, b, c, d;

    if (__builtin_cpu_supports("avx2")) cpu |= OCT_CPU_AVX2;
    if (__builtin_cpu_supports("fma")) cpu |= OCT_CPU_FMA;
    if (__builtin_cpu_supports("avx512f")) cpu |= OCT_CPU_AVX512F;
    if (__builtin_cpu_supports("avx512bw")) cpu |= OCT_CPU_AVX512BW;
    if (__builtin_cpu_supports("avx512vl")) cpu |= OCT_CPU_AVX512VL;
    if (__builtin_cpu_supports("avx512dq")) cpu |= OCT_CPU_AVX512DQ;
    if (__builtin_cpu_supports("avx512vnni")) cpu |= OCT_CPU_AVX512_VNNI;
    /* gcc 12 and clang 14 have no common name for these; AVX2 above says that the system saves
     * the registers they use. */
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C)) cpu |= OCT_CPU_F16C;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4)) cpu |= OCT_CPU_AVX_VNNI;
#endif
    return cpu;
}

unsigned oct_isa_cpu(void)
{
    /* Cached: in a virtual machine CPUID is slow, and the answer never changes. */
    static const unsigned asked = 1u << 31;
    static _Atomic unsigned known;
    unsigned cpu = atomic_load_explicit(&known, memory_order_relaxed);

    if (!cpu) {
        cpu = ask_cpu() | asked;
        atomic_store_explicit(&known, cpu, memory_order_relaxed);
    }
    return cpu & ~asked;
}
