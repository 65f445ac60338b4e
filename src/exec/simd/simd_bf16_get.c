/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of the best instruction set: see simd_bf16.h. */
#include "exec/simd/isa.h"
#include "exec/simd/simd_bf16.h"

extern const oct_bf16_simd oct_bf16_simd_base;
#if defined(__x86_64__)
extern const oct_bf16_simd oct_bf16_simd_avx512, oct_bf16_simd_avx2;
#endif

static const oct_bf16_simd *const loops[OCT_ISA_COUNT] = {
#if defined(__x86_64__)
    [OCT_ISA_AVX512] = &oct_bf16_simd_avx512,
    [OCT_ISA_AVX2] = &oct_bf16_simd_avx2,
#endif
    [OCT_ISA_BASE] = &oct_bf16_simd_base,
};

const oct_bf16_simd *oct_bf16_simd_get(void)
{
    oct_isa sets[OCT_ISA_COUNT];
    const int n = oct_isa_list(oct_isa_cpu(), oct_isa_word(), sets);

    for (int i = 0; i < n; i++)
        if (loops[sets[i]]) return loops[sets[i]];
    return &oct_bf16_simd_base;
}
