/* SPDX-License-Identifier: Apache-2.0 */
/* Which integer loops this CPU, and the user, allow. */
#include <stdlib.h>
#include <strings.h>

#include "exec/simd/int8.h"

extern const oct_int8 oct_int8_base, oct_int8_plain;
#if defined(__x86_64__)
extern const oct_int8 oct_int8_avx512_vnni, oct_int8_avx512, oct_int8_avx2_vnni, oct_int8_avx2;

/* Bits of CPUID leaf 7 that gcc 12 and clang 14 have no common name for. */
#include <cpuid.h>

static bool has_avx_vnni(void)
{
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}
#endif

/* From the least to the most; oneDNN reads the same variable: one switch lowers both. */
enum { BASE, AVX2, AVX2_VNNI, AVX512, AVX512_VNNI };

static int allowed(void)
{
    static const struct {
        const char *name;
        int level;
    } names[] = {{"SSE41", BASE},          {"AVX", BASE},           {"AVX2", AVX2},
                 {"AVX2_VNNI", AVX2_VNNI}, {"AVX512_CORE", AVX512}, {"AVX512_MIC", AVX2}};
    const char *s = getenv("ONEDNN_MAX_CPU_ISA");

    if (!s) s = getenv("DNNL_MAX_CPU_ISA");
    for (size_t i = 0; s && i < OCT_COUNT(names); i++)
        if (!strcasecmp(s, names[i].name)) return names[i].level;
    return AVX512_VNNI;
}

const oct_int8 *oct_int8_at(int i)
{
    const oct_int8 *all[6];
    int n = 0;
#if defined(__x86_64__)
    const int level = allowed();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512dq");

    if (level >= AVX512_VNNI && avx512 && __builtin_cpu_supports("avx512vnni"))
        all[n++] = &oct_int8_avx512_vnni;
    if (level >= AVX512 && avx512) all[n++] = &oct_int8_avx512;
    if (level >= AVX2_VNNI && avx2 && has_avx_vnni()) all[n++] = &oct_int8_avx2_vnni;
    if (level >= AVX2 && avx2) all[n++] = &oct_int8_avx2;
#endif
    all[n++] = &oct_int8_base;
    all[n++] = &oct_int8_plain;
    return i >= 0 && i < n ? all[i] : NULL;
}

const oct_int8 *oct_int8_get(void)
{
    return oct_int8_at(0);
}
