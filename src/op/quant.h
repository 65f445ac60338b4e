/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What quantization operators share: scales and zero points as operands, and requantization:
 * multiply in float, round half to even, add the zero point, saturate.
 */
#ifndef OCT_OP_QUANT_H
#define OCT_OP_QUANT_H

#include "op/op.h"

enum {
    OCT_SET_8BIT = OCT_SET(OCT_DTYPE_U8) | OCT_SET(OCT_DTYPE_I8),
    OCT_SET_SCALE = OCT_SET(OCT_DTYPE_F32) | OCT_SET(OCT_DTYPE_F16) | OCT_SET(OCT_DTYPE_BF16),
};

/* Smallest and largest integer of a type of at most 32 bits. */
void oct_quant_limits(oct_dtype t, int32_t *low, int32_t *high);

/*
 * Checks of operand i in shape functions; a zero point may be absent. `n` is how many elements a
 * list must have if it is not a single number; -1: not known, 0: only a single number will do.
 */
oct_status oct_quant_check_scale(const oct_infer *q, int i, int64_t n);
oct_status oct_quant_check_zero(const oct_infer *q, int i, oct_dtype like, int64_t n);

/* `n` numbers (a single one repeated) as scratch memory; an absent operand gives `fallback`. */
oct_status oct_quant_scales(const oct_args *a, int i, int64_t n, float fallback, float **out);
oct_status oct_quant_zeros(const oct_args *a, int i, int64_t n, int32_t **out);

/* A single number. */
float oct_quant_scale(const oct_args *a, int i);
int32_t oct_quant_zero(const oct_args *a, int i); /* 0 if absent */

/* Round half to even for |x| < 2^22, in a way compilers vectorise. */
static inline float oct_round_even(float x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: no bits are left for a fraction */

    return (x + magic) - magic;
}

/* x as an integer code in [low, high]; not a number gives low. */
static inline int32_t oct_quant_code(float x, int32_t zero, int32_t low, int32_t high)
{
    const float lo = (float)(low - zero), hi = (float)(high - zero);

    x = x > lo ? x : lo;
    x = x < hi ? x : hi;
    return (int32_t)oct_round_even(x) + zero;
}

/* n codes of 8 or 16 bits: y = code(x * scale) and y = code(x / scale). */
void oct_requantize(const int32_t *x, int64_t n, float scale, int32_t zero, oct_dtype t, void *y);
void oct_quantize_codes(const float *x, int64_t n, float scale, int32_t zero, oct_dtype t, void *y);

/* What each of the 256 codes of one 8-bit type becomes in another, by a function of the value. */
typedef struct oct_quant_table {
    uint8_t code[256];
} oct_quant_table;

void oct_quant_table_init(oct_quant_table *t, oct_dtype in, float in_scale, int32_t in_zero,
                          oct_dtype out, float out_scale, int32_t out_zero,
                          float (*fn)(const void *p, float x), const void *p);

#endif
