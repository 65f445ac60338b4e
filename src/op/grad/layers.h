/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient rules of layers with spatial structure; each is named after the rows that have it. */
#ifndef OCT_OP_GRAD_LAYERS_H
#define OCT_OP_GRAD_LAYERS_H

#include "graph/op.h"

oct_status oct_grad_resize(const oct_grad_args *a); /* Resize, Upsample */

#endif
