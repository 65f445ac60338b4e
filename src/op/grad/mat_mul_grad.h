/* SPDX-License-Identifier: Apache-2.0 */
/* What MatMul, Gemm and FusedMatMul share. */
#ifndef OCT_OP_GRAD_MAT_MUL_GRAD_H
#define OCT_OP_GRAD_MAT_MUL_GRAD_H

#include "op/grad/rules.h"

/* Gradients of operands 0 and 1 of y = alpha x' y', with vectors and batches that broadcast. */
oct_status oct_grad_product(const oct_grad_args *a, double alpha, bool trans_x, bool trans_y);

#endif
