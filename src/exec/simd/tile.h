/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the vector code share within one instruction set. */
#ifndef OCT_EXEC_SIMD_TILE_H
#define OCT_EXEC_SIMD_TILE_H

#include "exec/simd/simd_conv.h"

/* y[n][n_vec * width] = x[n][k] w[k][n_vec * width]: the inner product of Winograd's method. */
void OCT_SIMD_PRODUCT(const float *x, int64_t k, int64_t n, const float *w, int n_vec, float *y);

/* Tiles [first, first + n) of all images, all blocks. */
void OCT_SIMD_WINOGRAD(const oct_conv *c, const oct_conv_io *io, int64_t first, int64_t n);

#endif
