/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the vector code share within one instruction set. */
#ifndef OCT_EXEC_SIMD_TILE_H
#define OCT_EXEC_SIMD_TILE_H

#include "exec/simd/simd_conv.h"

/* y[n][n_vec * width] = x[n][k] w[k][n_vec * width]: the inner product of Winograd's method. */
void OCT_SIMD_PRODUCT(const float *x, int64_t k, int64_t n, const float *w, int n_vec, float *y);

/* Tiles [first, first + n) of all images, all blocks. */
void OCT_SIMD_WINOGRAD(const oct_conv *c, const oct_conv_io *io, int64_t first, int64_t n);

/* See oct_conv_simd. */
void OCT_SIMD_WINOGRAD_FILTERS(const float *w, int64_t o, int64_t y, int64_t x, float *u,
                               int64_t step, int64_t n);
void OCT_SIMD_WINOGRAD_X(const oct_conv *c, const float *x, int64_t tile, float *v, int64_t step);
void OCT_SIMD_WINOGRAD_DY(const oct_conv *c, const float *dy, int64_t tile, float *u, int64_t step);
void OCT_SIMD_WINOGRAD_WEIGHTS(const float *m, int64_t step, int64_t part, int64_t n_parts,
                               float *w, int64_t lanes);

#endif
