/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a convolution's weights: sizes, and parts of the work. */
#ifndef OCT_EXEC_TRAIN_CONV_GRAD_WEIGHT_H
#define OCT_EXEC_TRAIN_CONV_GRAD_WEIGHT_H

#include "exec/kernel.h"
#include "exec/simd/simd.h"
#include "op/conv_geometry.h"

/*
 * One group of channels. Work comes in units of some rows of one image's result; `splits` splits of
 * the units sum into memory of their own, which is added up in a fixed order at the end, and
 * `shares` of the blocks of output channels are computed independently: the same number of threads
 * gives the same bytes.
 */
typedef struct oct_grad_weight {
    const oct_simd *simd;
    int64_t batch, groups, c_in, c_out; /* channels of one group */
    int64_t in_h, in_w, x_pitch, out_h, out_w, dy_pitch;
    int64_t kernel[2], stride[2], dilation[2], pad[2];
    bool depthwise, has_bias;
    int64_t skip[2]; /* 1x1 kernels copy every skip-th row and column only; else 1 */
    int64_t unit_rows, unit_columns; /* pixels of a unit; columns: 0: all */
    int64_t n_units, splits, shares;
    int64_t tiles, n_blocks;                       /* of input channels, of output channels */
    int64_t x_floats, dy_floats, acc_floats, room; /* room: of one split and share, without acc */
} oct_grad_weight;

/* Pointers of one step of one run, and one group. */
typedef struct oct_grad_weight_io {
    const oct_grad_weight *g;
    const float *x, *dy;
    float *dw, *db; /* db: NULL if it is not asked for */
    float *scratch;
} oct_grad_weight_io;

/* Output channels [*first, *first + *n) of block b, in *n_vec vectors. */
void oct_grad_weight_block(const oct_grad_weight *g, int64_t b, int64_t *first, int64_t *n,
                           int64_t *n_vec);

/* Sums of the units of split and share `part` / of all splits (oct_range_fn over tiles). */
void oct_grad_weight_dense(const oct_grad_weight_io *io, int64_t part);
void oct_grad_weight_depthwise(const oct_grad_weight_io *io, int64_t split);

/* Where split s sums: [block][tile][tap][4][width], then the biases. */
static inline float *oct_grad_weight_acc(const oct_grad_weight_io *io, int64_t s)
{
    return io->scratch + s * io->g->acc_floats;
}

#endif
