/* SPDX-License-Identifier: Apache-2.0 */
/* Between float32 and bfloat16, compiled once for each instruction set: see simd_bf16.h. */
#include "exec/simd/simd_bf16.h"

#include <string.h>

/* The upper half of a float, rounded. A NaN stays one: its lower bits may be all it is made of. */
static inline uint32_t upper(uint32_t bits)
{
    const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1);
    const uint32_t is_nan = (bits & 0x7fffffffu) > 0x7f800000u ? 0xffffffffu : 0;

    return ((rounded & ~is_nan) | ((bits | 0x400000u) & is_nan)) >> 16;
}

static void narrow(const float *restrict x, uint16_t *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, x + i, sizeof(bits));
        y[i] = (uint16_t)upper(bits);
    }
}

static void widen(const uint16_t *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)x[i] << 16;

        memcpy(y + i, &bits, sizeof(bits));
    }
}

static void round_all(const float *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, x + i, sizeof(bits));
        bits = upper(bits) << 16;
        memcpy(y + i, &bits, sizeof(bits));
    }
}

extern const oct_bf16_simd OCT_SIMD_BF16;
const oct_bf16_simd OCT_SIMD_BF16 = {OCT_SIMD_TEXT, narrow, widen, round_all};
