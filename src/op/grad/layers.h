/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient rules of layers with spatial structure; each is named after the rows that have it. */
#ifndef OCT_OP_GRAD_LAYERS_H
#define OCT_OP_GRAD_LAYERS_H

#include "graph/op.h"

oct_status oct_grad_conv(const oct_grad_args *a);
oct_status oct_grad_conv_transpose(const oct_grad_args *a);
oct_status oct_grad_max_pool(const oct_grad_args *a);
oct_status oct_grad_average_pool(const oct_grad_args *a);
oct_status oct_grad_lp_pool(const oct_grad_args *a);
oct_status oct_grad_global_average_pool(const oct_grad_args *a);
oct_status oct_grad_global_max_pool(const oct_grad_args *a);
oct_status oct_grad_global_lp_pool(const oct_grad_args *a);
oct_status oct_grad_batch_normalization(const oct_grad_args *a);
oct_status oct_grad_resize(const oct_grad_args *a); /* Resize, Upsample */
oct_status oct_grad_grid_sample(const oct_grad_args *a);
oct_status oct_grad_deform_conv(const oct_grad_args *a);
oct_status oct_grad_roi_align(const oct_grad_args *a);

#endif
