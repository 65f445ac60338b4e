/* SPDX-License-Identifier: Apache-2.0 */
/* The float loops of each instruction set. */
#include "exec/simd/simd.h"

#include "exec/simd/isa.h"

extern const oct_simd oct_simd_base;
#if defined(__x86_64__)
extern const oct_simd oct_simd_avx512, oct_simd_avx2;
#endif

/* 8-bit products are of no use here: sets that differ only in those have no float loops of their
 * own. */
static const oct_simd *const loops[OCT_ISA_COUNT] = {
#if defined(__x86_64__)
    [OCT_ISA_AVX512] = &oct_simd_avx512,
    [OCT_ISA_AVX2] = &oct_simd_avx2,
#endif
    [OCT_ISA_BASE] = &oct_simd_base,
};

const oct_simd *oct_simd_at(int i)
{
    oct_isa sets[OCT_ISA_COUNT];
    const int n = oct_isa_list(oct_isa_cpu(), oct_isa_word(), sets);

    for (int k = 0; k < n; k++)
        if (loops[sets[k]] && i-- == 0) return loops[sets[k]];
    return NULL;
}

const oct_simd *oct_simd_get(void)
{
    return oct_simd_at(0);
}
