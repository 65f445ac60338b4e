/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of float convolutions share: which they take, and weights in blocks. */
#ifndef OCT_EXEC_F32_F32_CONV_BLOCKS_H
#define OCT_EXEC_F32_F32_CONV_BLOCKS_H

#include "exec/f32/f32_conv_part.h"
#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/conv_geometry.h"

/* Is it a Conv in f32, 1-D or 2-D? Then *g is 2-D. */
bool oct_conv_find(const oct_plan *p, const oct_step *s, oct_conv_geometry *g);

/* Are its weights and its bias constant? They are packed once, when the plan is made. */
bool oct_conv_is_constant(const oct_plan *p, const oct_step *s);

/* Of a step with constant ones; NULL: there is none. */
const float *oct_conv_bias(const oct_plan *p, const oct_step *s);

/* Sizes of a 2-D geometry; c_in and c_out of one group. */
void oct_conv_fill_geometry(const oct_conv_geometry *g, oct_conv *c);

/* Pitches and what is fused, for a part that is a whole step. */
void oct_conv_part_fill(const oct_plan *p, const oct_step *s, oct_conv_part *part);

/* Weights in the file's order: elements from filter to filter, channel to channel, and from tap to
 * tap, down and across; w is at the first of them, and steps may be negative. */
typedef struct oct_conv_weights {
    const float *w;
    int64_t o, c, y, x;
    const float *bias;    /* [c_out] or NULL */
    const oct_simd *simd; /* for transforms; may be NULL */
} oct_conv_weights;

/* Writes the factors of n filters from o on: row r of filter o + l goes to to[r * step + l]. */
typedef void (*oct_conv_filter_fn)(const oct_conv_weights *w, const oct_conv *c, int64_t o,
                                   int64_t n, float *to, int64_t step);

/* The weights themselves: kernel[0] * kernel[1] * c_in rows. */
void oct_conv_put_taps(const oct_conv_weights *w, const oct_conv *c, int64_t o, int64_t n,
                       float *to, int64_t step);

/* Splits c_out into blocks of nearly equal size: their number, and floats for `rows` rows of
 * weights and one of biases. */
int32_t oct_conv_n_blocks(const oct_simd *simd, const oct_conv *c);
int64_t oct_conv_packed_floats(const oct_simd *simd, const oct_conv *c, int64_t rows);

/* Makes c->blocks, which has room for them, with weights at `at`. */
void oct_conv_lay_blocks(const oct_simd *simd, oct_conv *c, int64_t rows, float *at);

/* Packs the filters [begin, end); with the last one of a block, zeros in the lanes beyond it. */
void oct_conv_pack_filters(const oct_simd *simd, const oct_conv_weights *w, const oct_conv *c,
                           oct_conv_filter_fn put, int64_t begin, int64_t end);

/* Depthwise weights: floats, and packing them to `packed`. */
int64_t oct_conv_depthwise_floats(const oct_simd *simd, const oct_conv *c);
void oct_conv_pack_depthwise(const oct_simd *simd, const oct_conv_weights *w, float *packed,
                             oct_conv *c);

/* All of that in the plan's memory. */
oct_status oct_conv_pack(oct_plan *p, const oct_simd *simd, const oct_conv_weights *w, int64_t rows,
                         oct_conv_filter_fn put, oct_conv *c);

#endif
