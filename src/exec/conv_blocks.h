/* SPDX-License-Identifier: Apache-2.0 */
/* Output channels of a float convolution in blocks, as its loops take them. */
#ifndef OCT_EXEC_CONV_BLOCKS_H
#define OCT_EXEC_CONV_BLOCKS_H

#include "exec/kernel.h"
#include "exec/simd/simd.h"

/* Cuts c_out into blocks of nearly equal size. Each has room for `rows` rows of weights and one of
 * biases, all zero, each as wide as the block's vectors; *memory is where all of it begins. */
oct_status oct_conv_cut(oct_plan *p, const oct_simd *simd, int64_t rows, oct_conv *c,
                        float **memory);

#endif
