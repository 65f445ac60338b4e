/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inner loops in f32, compiled once for each instruction set from the same source; a plan uses the
 * best set of the CPU. Tests compare each with a plain C reference.
 */
#ifndef OCT_EXEC_SIMD_SIMD_H
#define OCT_EXEC_SIMD_SIMD_H

#include "exec/simd/simd_conv.h"
#include "exec/simd/simd_stats.h"
#include "exec/simd/simd_train.h"
#include "op/act.h"

typedef enum oct_simd_op {
    OCT_SIMD_ADD,
    OCT_SIMD_SUB,
    OCT_SIMD_MUL,
    OCT_SIMD_DIV,
    OCT_SIMD_MIN,
    OCT_SIMD_MAX,
    OCT_SIMD_OP_COUNT
} oct_simd_op;

typedef struct oct_simd {
    const char *name;
    int width; /* f32 lanes of a vector */

    /* y[i] = act(x[i]); y may be x. */
    void (*act)(const oct_act *act, const float *x, float *y, int64_t n);

    /* y[i] = a[i * sa] op b[i * sb], strides 0 or 1; y may be a or b. */
    void (*binary)(oct_simd_op op, const float *a, int sa, const float *b, int sb, float *y,
                   int64_t n);

    /* Softmax over `len` rows of `inner` contiguous columns: x[k * step + i]. */
    void (*softmax)(const float *x, float *y, int64_t len, int64_t step, int64_t inner);

    /* The expected value of w[k] under such a softmax, for each column: DFL. */
    void (*expected_value)(const float *x, const float *w, float *y, int64_t len, int64_t step,
                           int64_t inner);

    /* y[i] = w[0] * x[0][i] + w[1] * x[1][i] + .., from left to right. */
    void (*weighted_sum)(const float *w, const float *const *x, int n_x, float *y, int64_t n);

    /* y[i] += w * x[i] (first: =): the accumulation of resizing and pooling. */
    void (*axpy)(float w, const float *x, float *y, int64_t n, bool first);

    /* y[i] = scale * round(clamp(x[i] / scale, low, high)), half to even, parameters at
     * i * step (0 or 1): QuantizeLinear and DequantizeLinear bit for bit; y may be x. */
    void (*fake_quantize)(const float *x, float *y, int64_t n, const float *scale, const float *low,
                          const float *high, int step);

    /* y[c * y_pitch + r] = x[r * x_pitch + c]; they do not overlap. */
    void (*transpose)(const float *x, int64_t x_pitch, float *y, int64_t y_pitch, int64_t rows,
                      int64_t cols);

    const oct_conv_simd *conv;
    const oct_stats_simd *stats;
    const oct_train_simd *train;
} oct_simd;

/* The best the CPU has, at most what ONEDNN_MAX_CPU_ISA allows. */
const oct_simd *oct_simd_get(void);

/* All that were compiled in and that this CPU can run, best first; NULL beyond the end. */
const oct_simd *oct_simd_at(int i);

#endif
