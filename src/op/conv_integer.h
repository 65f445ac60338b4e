/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of 8-bit operands in int32, shared by ConvInteger and QLinearConv. */
#ifndef OCT_OP_CONV_INTEGER_H
#define OCT_OP_CONV_INTEGER_H

#include "op/conv_geometry.h"

/*
 * y[batch x c_out x out] = (x - x_zero) * (w - w_zero), padding reads x_zero. w_zero has one number
 * for each filter. The geometry is that of static types.
 */
oct_status oct_conv_integer(const oct_args *a, const oct_conv_geometry *g, const oct_tensor *x,
                            int32_t x_zero, const oct_tensor *w, const int32_t *w_zero, int32_t *y);

#endif
