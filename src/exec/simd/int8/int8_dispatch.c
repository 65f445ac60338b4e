/* SPDX-License-Identifier: Apache-2.0 */
/* The integer loops of each instruction set. */
#include "exec/simd/int8/simd_int8.h"
#include "exec/simd/isa.h"

extern const oct_int8 oct_int8_base, oct_int8_reference;
#if defined(__x86_64__)
extern const oct_int8 oct_int8_avx512_vnni, oct_int8_avx512, oct_int8_avx2_vnni, oct_int8_avx2;
#endif

static const oct_int8 *const loops[OCT_ISA_COUNT] = {
#if defined(__x86_64__)
    [OCT_ISA_AVX512_VNNI] = &oct_int8_avx512_vnni,
    [OCT_ISA_AVX512] = &oct_int8_avx512,
    [OCT_ISA_AVX2_VNNI] = &oct_int8_avx2_vnni,
    [OCT_ISA_AVX2] = &oct_int8_avx2,
#endif
    [OCT_ISA_BASE] = &oct_int8_base,
};

const oct_int8 *oct_int8_at(int i)
{
    oct_isa sets[OCT_ISA_COUNT];
    const int n = oct_isa_list(oct_isa_cpu(), oct_isa_word(), sets);

    if (i < 0 || i > n) return NULL;
    return i < n ? loops[sets[i]] : &oct_int8_reference; /* after all others */
}

const oct_int8 *oct_int8_get(void)
{
    return oct_int8_at(0);
}
