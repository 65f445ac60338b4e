/* SPDX-License-Identifier: Apache-2.0 */
/* What gathering and scattering operators need of each other. */
#ifndef OCT_OP_GRAD_GATHER_GRAD_H
#define OCT_OP_GRAD_GATHER_GRAD_H

#include "op/grad/rules.h"

/* y = Gather(x, indices, axis): the gradient of x, a tensor of type `x`. */
oct_value *oct_grad_of_gather(oct_builder *b, oct_value *dy, oct_value *indices, int32_t axis,
                              const oct_type *x);

oct_value *oct_grad_gather_elements(oct_builder *b, oct_value *x, oct_value *indices,
                                    int64_t axis); /* GatherElements */

/* ScatterElements; reduction "none" or "add". */
oct_value *oct_grad_scatter_elements(oct_builder *b, oct_value *x, oct_value *indices,
                                     oct_value *updates, int64_t axis, const char *reduction);

/* Rules. */
oct_status oct_grad_gather(const oct_grad_args *a);
oct_status oct_grad_gather_elements_of(const oct_grad_args *a);
oct_status oct_grad_gather_nd(const oct_grad_args *a);
oct_status oct_grad_scatter(const oct_grad_args *a); /* Scatter and ScatterElements */
oct_status oct_grad_scatter_nd(const oct_grad_args *a);

#endif
