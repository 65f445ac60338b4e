/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient rules of the reductions in op/reduce.c. */
#ifndef OCT_OP_GRAD_REDUCE_GRAD_H
#define OCT_OP_GRAD_REDUCE_GRAD_H

#include "op/grad/rules.h"

oct_status oct_grad_reduce_l1(const oct_grad_args *a);
oct_status oct_grad_reduce_l2(const oct_grad_args *a);
oct_status oct_grad_reduce_log_sum(const oct_grad_args *a);
oct_status oct_grad_reduce_log_sum_exp(const oct_grad_args *a);
oct_status oct_grad_reduce_max(const oct_grad_args *a);
oct_status oct_grad_reduce_mean(const oct_grad_args *a);
oct_status oct_grad_reduce_min(const oct_grad_args *a);
oct_status oct_grad_reduce_prod(const oct_grad_args *a);
oct_status oct_grad_reduce_sum(const oct_grad_args *a);
oct_status oct_grad_reduce_sum_square(const oct_grad_args *a);

#endif
