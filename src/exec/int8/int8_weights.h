/* SPDX-License-Identifier: Apache-2.0 */
/* Weights as signed bytes, and the scale of each accumulator: what convolutions and matrix
 * products share. */
#ifndef OCT_EXEC_INT8_INT8_WEIGHTS_H
#define OCT_EXEC_INT8_INT8_WEIGHTS_H

#include "exec/int8/int8_kernel.h"
#include "op/conv_geometry.h"

enum { OCT_WEIGHTED_X, OCT_WEIGHTED_W, OCT_WEIGHTED_B };

/* The layout of a weight: filter o reads input channels [first[o], first[o] + c). */
typedef struct oct_int8_shape {
    int64_t filters, channels, taps; /* of one filter */
    int64_t group_filters;           /* filters that read the same channels */
    int64_t o, c, t;                 /* elements from one to the next */
    int32_t axis;                    /* axis of the weight tensor that counts the filters */
} oct_int8_shape;

/* Of a convolution. */
oct_int8_shape oct_int8_conv_shape(const oct_conv_geometry *g);

/* Can the step's weights, factors, bias and scales be expressed in integers? *is_wide: less
 * their zero points, the weights do not fit a signed byte and become the sum of two. */
bool oct_int8_weights_fit(const oct_plan *p, const oct_step *s, const oct_int8_shape *w,
                          bool *is_wide);

/* The weights less their zero points, as signed bytes; freed with oct_free() unless borrowed. */
typedef struct oct_int8_bytes {
    const int8_t *w;
    const int8_t *rest; /* what w lacks, or NULL */
    void *own;
} oct_int8_bytes;

oct_status oct_int8_weights_read(const oct_plan *p, const oct_step *s, const oct_int8_shape *w,
                                 oct_int8_bytes *out);

/* By filter: scale of the accumulator; bias in accumulator units or in f32 (one of them NULL). */
typedef struct oct_int8_accumulators {
    float *scale;
    int32_t *bias;
    float *bias_f32;
} oct_int8_accumulators;

oct_status oct_int8_weights_accumulators(oct_plan *p, const oct_step *s, const oct_int8_shape *w,
                                         oct_int8_accumulators *out);

/* Packs weights into memory of the plan, for the convolution c of the step. */
oct_status oct_int8_weights_pack(oct_plan *p, const oct_step *s, const oct_int8_weights *w,
                                 oct_int8_conv *c);

/* One group's convolution, or all of a depthwise one; g is 2-D. The caller sets pitches and
 * strides. */
oct_int8_conv oct_int8_windows(const oct_conv_geometry *g);

/* The product of a matrix of `rows` rows, `pitch` apart, with the weights: a convolution of single
 * pixels. */
oct_int8_conv oct_int8_product(int64_t rows, int64_t pitch, const oct_int8_shape *w);

#endif
