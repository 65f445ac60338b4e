/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Winograd's F(4x4, 3x3) in exact integers: 36 products for 16 results of a 3x3 filter instead of
 * 144, with factors of 16 bits. Transformed codes are at most 100 * 255, weights at most 49 * 128.
 * The accumulators are those of direct convolution times 9 * 2^k, modulo 2^32: 9 has an inverse
 * there, and 2^k is shifted out. So the results are the same, bit for bit, as long as 64 times an
 * accumulator fits.
 */
#ifndef OCT_EXEC_SIMD_INT8_INT8_WINOGRAD_H
#define OCT_EXEC_SIMD_INT8_INT8_WINOGRAD_H

#include "exec/simd/int8/simd_int8.h"

#define OCT_INT8_POINTS    36 /* products of a tile */
#define OCT_INT8_MAX_TILES 13 /* tiles of 4x4 results that are made together */

/* Is it faster than direct convolution? Known before the weights are. */
bool oct_int8_winograd_pays(const oct_int8 *set, const oct_int8_conv *c);

/* Bytes of the transformed weights of all blocks. */
size_t oct_int8_winograd_size(const oct_int8 *set, const oct_int8_conv *c);

/* Weights of the blocks, scratch and tiles of c, which has its base. False: accumulators may be
 * too large, nothing is done. */
bool oct_int8_winograd_pack(const oct_int8 *set, const oct_int8_weights *w, int8_t *to,
                            oct_int8_conv *c);

/* Bytes of one transformed point of a tile, as 16-bit elements. */
static inline int64_t oct_int8_winograd_row(const oct_int8 *set, const oct_int8_conv *c)
{
    const int64_t vector = set->width * 2;

    return oct_ceil_div(c->c_in, vector) * vector * 2;
}

#endif
