/* SPDX-License-Identifier: Apache-2.0 */
/* Which instruction set this CPU, and the user, allow. */
#include "exec/simd/simd.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

extern const oct_simd oct_simd_avx512, oct_simd_avx2, oct_simd_base;

static bool has_avx512(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#else
    return false;
#endif
}

static bool has_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

/* oneDNN reads the same variable: one switch lowers both. */
static int allowed(void)
{
    const char *s = getenv("ONEDNN_MAX_CPU_ISA");

    if (!s) s = getenv("DNNL_MAX_CPU_ISA");
    if (!s || !strncasecmp(s, "AVX512", 6) || !strcasecmp(s, "ALL") || !strcasecmp(s, "DEFAULT"))
        return 2;
    return !strncasecmp(s, "AVX2", 4) ? 1 : 0;
}

const oct_simd *oct_simd_at(int i)
{
    const oct_simd *all[3];
    int n = 0;

    if (has_avx512() && allowed() >= 2) all[n++] = &oct_simd_avx512;
    if (has_avx2() && allowed() >= 1) all[n++] = &oct_simd_avx2;
    all[n++] = &oct_simd_base;
    return i >= 0 && i < n ? all[i] : NULL;
}

const oct_simd *oct_simd_get(void)
{
    return oct_simd_at(0);
}
