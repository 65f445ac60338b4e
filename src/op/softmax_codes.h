/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax of 8-bit codes by a table of powers, to the last bit as ONNX Runtime's QLinearSoftmax,
 * except where that overflows (few elements, a fine scale).
 */
#ifndef OCT_OP_SOFTMAX_CODES_H
#define OCT_OP_SOFTMAX_CODES_H

#include "tensor/dtype.h"

typedef struct oct_softmax_codes {
    float power[256]; /* of codes that lie so far below the largest of their row */
    float steps;      /* codes from 0 to 1: a whole number, as ONNX Runtime has it */
    int32_t zero, low, high;
    int flip; /* converts the order of codes into that of values */
} oct_softmax_codes;

/* For rows of n codes, u8 or s8; scales are above zero. */
void oct_softmax_codes_init(oct_softmax_codes *s, oct_dtype dtype, int64_t n, float x_scale,
                            float y_scale, int32_t y_zero);

/* One row of n codes that lie `step` apart; y may be x. */
void oct_softmax_codes_row(const oct_softmax_codes *s, const uint8_t *x, uint8_t *y, int64_t n,
                           int64_t step);

#endif
