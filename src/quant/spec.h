/* SPDX-License-Identifier: Apache-2.0 */
/* An integer type with its rounding: a value is scale * (code - zero). */
#ifndef OCT_QUANT_SPEC_H
#define OCT_QUANT_SPEC_H

#include "tensor/tensor.h"

typedef enum oct_qround {
    OCT_QROUND_HALF_EVEN, /* as ONNX, ONNX Runtime, OpenVINO */
    OCT_QROUND_HALF_AWAY, /* as C's round() */
    OCT_QROUND_HALF_UP,   /* floor(x + 0.5): many NPUs */
    OCT_QROUND_COUNT
} oct_qround;

enum { OCT_QSPEC_PER_TENSOR = -1 };

typedef struct oct_qspec {
    int bits; /* 2 to 8, 16; 32 only for biases */
    bool is_signed;
    bool is_symmetric; /* zero is 0 (or the middle of an unsigned type) */
    bool is_narrow;    /* signed: without the lowest code, so -127..127 */
    bool is_pow2;      /* scales are powers of two */
    oct_qround rounding;
    int axis; /* one scale for each index of this axis, or OCT_QSPEC_PER_TENSOR */
} oct_qspec;

/* Fails, saying what does not fit, if the fields contradict each other. */
oct_status oct_qspec_check(oct_ctx *ctx, const oct_qspec *s);

void oct_qspec_limits(const oct_qspec *s, int32_t *low, int32_t *high); /* of the codes */
oct_dtype oct_qspec_dtype(const oct_qspec *s); /* the ONNX type that holds the codes */

/* "u8 asymmetric per channel", for tables; at most 64 bytes. */
const char *oct_qspec_text(const oct_qspec *s, char *text, size_t size);

/*
 * Scale and zero point for a range of values. The range is widened to contain 0, and 0 is a code.
 * A range of nothing (all zero) gives 2^-18, and no scale is below 2^-60 or above 2^120.
 * Powers of two: the smallest that covers the range; the search for a better one is the solver's.
 * Symmetric: signed codes reach to the larger of the two ends; unsigned ones have their zero at the
 * bottom if nothing is below 0, else in the middle.
 */
void oct_qspec_solve(const oct_qspec *s, float low, float high, float *scale, int32_t *zero);

/* The range of values that the codes represent. */
void oct_qspec_range(const oct_qspec *s, float scale, int32_t zero, float *low, float *high);

/* x / scale + zero as a code, rounded as the spec says (half-even: bit-equal to QuantizeLinear). */
int32_t oct_qspec_code(const oct_qspec *s, float scale, int32_t zero, float x);

static inline float oct_qspec_value(float scale, int32_t zero, int32_t code)
{
    return scale * (float)(code - zero);
}

/* n values to the nearest values that have codes; y may be x. */
void oct_qspec_fake(const oct_qspec *s, float scale, int32_t zero, const float *x, float *y,
                    int64_t n);

#endif
