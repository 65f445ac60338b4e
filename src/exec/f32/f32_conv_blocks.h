/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of float convolutions share: which they take, and weights in blocks. */
#ifndef OCT_EXEC_F32_F32_CONV_BLOCKS_H
#define OCT_EXEC_F32_F32_CONV_BLOCKS_H

#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/conv_geometry.h"

/* Is it a Conv in f32, 1-D or 2-D, with constant weights and bias? Then *g is 2-D. */
bool oct_conv_find(const oct_plan *p, const oct_step *s, oct_conv_geometry *g);

/* Of a step that the function above accepts; NULL: there is none. */
const float *oct_conv_bias(const oct_plan *p, const oct_step *s);

/* Weights in the file's order: elements from filter to filter, channel to channel, tap to tap. */
typedef struct oct_conv_weights {
    const float *w;
    int64_t o, c, t;
    const float *bias; /* [c_out] or NULL */
} oct_conv_weights;

/* Writes the factors of filter o: row r goes to to[r * step]. */
typedef void (*oct_conv_filter_fn)(const oct_conv_weights *w, const oct_conv *c, int64_t o,
                                   float *to, int64_t step);

/* The weights themselves: kernel[0] * kernel[1] * c_in rows. */
void oct_conv_put_taps(const oct_conv_weights *w, const oct_conv *c, int64_t o, float *to,
                       int64_t step);

/* Splits c_out into blocks of nearly equal size, with `rows` rows of weights and one of biases. */
oct_status oct_conv_pack(oct_plan *p, const oct_simd *simd, const oct_conv_weights *w, int64_t rows,
                         oct_conv_filter_fn put, oct_conv *c);

#endif
