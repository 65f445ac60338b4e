/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution in f32, NHWC: parameters of the vector code. */
#ifndef OCT_EXEC_SIMD_SIMD_CONV_H
#define OCT_EXEC_SIMD_SIMD_CONV_H

#include "op/act.h"

/* A block of output channels that one pass over the input computes. */
typedef struct oct_conv_block {
    int n_vec;         /* vectors of channels */
    int64_t first;     /* first output channel */
    int64_t n;         /* output channels; the last vector may be partly used */
    const float *w;    /* [ky][kx][c_in][n_vec * width] */
    const float *bias; /* [n_vec * width] */
} oct_conv_block;

/* Pitches are elements from pixel to pixel. */
typedef struct oct_conv {
    int64_t in_h, in_w, in_pitch, c_in;
    int64_t out_h, out_w, out_pitch, c_out, residual_pitch;
    int64_t kernel[2], stride[2], dilation[2], pad[2]; /* y, x */
    oct_conv_block *blocks;
    int32_t n_blocks;
    int64_t patch_size; /* floats of scratch one thread needs */
    oct_act act[2];
    float residual_scale;
    /* depthwise only */
    const float *dw_w;    /* [ky][kx][c rounded up to whole vectors] */
    const float *dw_bias; /* [c rounded up] */
    int64_t dw_pitch;
} oct_conv;

/* One image. */
typedef struct oct_conv_io {
    const float *x, *residual; /* residual may be NULL */
    float *y;
    float *patch; /* scratch of this thread */
} oct_conv_io;

#define OCT_CONV_MAX_VEC   4
#define OCT_CONV_PIXELS    14 /* of the largest tile */
#define OCT_WINOGRAD_TILES 24 /* at a time; fits all block sizes without a rest */

typedef struct oct_conv_simd {
    int max_vec; /* vectors of the largest block */

    /* Output pixels [x0, x1) of row y, blocks [b0, b1). */
    void (*dense)(const oct_conv *c, const oct_conv_io *io, int64_t y, int64_t x0, int64_t x1,
                  int32_t b0, int32_t b1);

    /* Row y of a depthwise convolution, all channels. */
    void (*depthwise)(const oct_conv *c, const oct_conv_io *io, int64_t y);

    /* Tiles of 4x4 output pixels, counted over all images; at most OCT_WINOGRAD_TILES. */
    void (*winograd)(const oct_conv *c, const oct_conv_io *io, int64_t first, int64_t n);

    /* n 3x3 filters, o, y and x floats from filter to filter and from tap to tap, to 36 points that
     * are `step` floats apart: point k of filter l goes to u[k * step + l]. */
    void (*winograd_filters)(const float *w, int64_t o, int64_t y, int64_t x, float *u,
                             int64_t step, int64_t n);

    /* The gradient of 3x3 weights by the same method: tile `tile` of x (the operand) and of dy (the
     * gradient of the result) to 36 points each, `step` floats apart. */
    void (*winograd_x)(const oct_conv *c, const float *x, int64_t tile, float *v, int64_t step);
    void (*winograd_dy)(const oct_conv *c, const float *dy, int64_t tile, float *u, int64_t step);

    /* Sums of their products to 3x3 weights: 36 points `step` floats apart, in n_parts parts `part`
     * floats apart, for `lanes` weights; tap k goes to w[k * lanes]. Whole vectors are read. */
    void (*winograd_weights)(const float *m, int64_t step, int64_t part, int64_t n_parts, float *w,
                             int64_t lanes);
} oct_conv_simd;

#endif
