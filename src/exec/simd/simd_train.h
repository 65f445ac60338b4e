/* SPDX-License-Identifier: Apache-2.0 */
/* Inner loops of training in f32, NHWC: gradients of weights, batch statistics, slopes. */
#ifndef OCT_EXEC_SIMD_SIMD_TRAIN_H
#define OCT_EXEC_SIMD_SIMD_TRAIN_H

#include "op/act.h"

#define OCT_OUTER_CHANNELS 4 /* channels of x that one pass multiplies with a block of dy */

/*
 * Outer products of pixels, summed: acc[c][m] += sum over pixels of x[pixel][c] * dy[pixel][m], for
 * OCT_OUTER_CHANNELS channels of x and n_vec vectors of channels of dy.
 */
typedef struct oct_outer {
    const float *x;         /* OCT_OUTER_CHANNELS floats for each pixel */
    int64_t x_row, x_pixel; /* floats from row to row, from pixel to pixel */
    const float *dy;        /* n_vec * width floats for each pixel */
    int64_t dy_pixel;       /* floats from pixel to pixel; rows follow each other */
    int64_t rows, columns;
    int n_vec;  /* at most that of the convolutions' blocks */
    float *acc; /* [OCT_OUTER_CHANNELS][n_vec * width] */
} oct_outer;

/*
 * A convolution with sums in double: for n pixels, y = w[last row] + sum over `rows` rows of
 * `terms` products. All lanes of w are read, the first c_out of them are written.
 */
typedef struct oct_conv_sums {
    const double *x;    /* of the first pixel */
    int64_t row, pixel; /* doubles from row to row, from pixel to pixel */
    int64_t rows, terms;
    const double *w; /* [rows][terms][lanes], then biases [lanes] */
    int64_t lanes;   /* a multiple of four vectors of doubles */
    float *y;
    int64_t pitch, c_out, n; /* pitch: floats from pixel to pixel */
} oct_conv_sums;

/* For each channel of a normalization; all of the length of a row. */
typedef struct oct_norm {
    const float *mul, *add;      /* pre-activation: (x - mean) * mul + add */
    const float *mean, *inv_std; /* normalized x, here hat: (x - mean) * inv_std */
    const float *dz, *dhat;      /* means over the pixels of dz and of dz * hat: norm_grad */
    oct_act act;
} oct_norm;

typedef struct oct_train_simd {
    void (*outer)(const oct_outer *o);

    /* acc[i] += sum over k < n of a[k * a_step + i] * b[k * b_step + i], for `lanes` channels. */
    void (*dot)(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t n,
                float *acc, int64_t lanes);

    void (*conv_double)(const oct_conv_sums *s);

    /* sum[i] += sum over k < n rows of x. */
    void (*sums)(const float *x, int64_t pitch, int64_t n, float *sum, int64_t lanes);

    /* The same of x and of its square, in double. */
    void (*moments)(const float *x, int64_t pitch, int64_t n, double *sum, double *square,
                    int64_t lanes);

    /* y = act(x * mul + add) for n rows. */
    void (*norm)(const oct_norm *m, const float *x, int64_t x_pitch, float *y, int64_t y_pitch,
                 int64_t n, int64_t lanes);

    /* With dz = dy * act'(x * mul + add): sum[i] and dot[i] get the sums over k < n rows of dz and
     * of dz * (x - mean) * inv_std. */
    void (*norm_sums)(const oct_norm *m, const float *x, int64_t x_pitch, const float *dy,
                      int64_t dy_pitch, int64_t n, float *sum, float *dot, int64_t lanes);

    /* dx = mul * (dz - m->dz - hat * m->dhat) for n rows. */
    void (*norm_grad)(const oct_norm *m, const float *x, int64_t x_pitch, const float *dy,
                      int64_t dy_pitch, float *dx, int64_t dx_pitch, int64_t n, int64_t lanes);

    /* dx[i] = dy[i] * act'(x[i]); dx may be dy or x. */
    void (*act_grad)(const oct_act *act, const float *x, const float *dy, float *dx, int64_t n);

    /* index[i]: which of the taps x[at[k] + i] is the first maximum; a NaN is above all. */
    void (*max_taps)(const float *x, const int64_t *at, int32_t n_taps, int32_t *index,
                     int64_t lanes);

    /* FakeQuantGrad: dx[i] = dy[i] if round(x[i] / scale) is in [low, high], else 0; sums[0] += the
     * slope of the scale times dy[i], sums[1] += dy[i] out of range. The slope in range is that of
     * rounding times `rounding`. dx may be dy. */
    void (*fake_grad)(const float *x, const float *dy, float *dx, int64_t n, float scale, float low,
                      float high, float rounding, float *sums);

    /* The same where each lane has its own numbers and sums. */
    void (*fake_grad_lanes)(const float *x, const float *dy, float *dx, int64_t n,
                            const float *scale, const float *low, const float *high, float rounding,
                            float *slope, float *outside);
} oct_train_simd;

#endif
