/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that fuse-conv-bn and fuse-conv-affine share. */
#ifndef OCT_PASS_FUSE_FUSE_AFFINE_H
#define OCT_PASS_FUSE_FUSE_AFFINE_H

#include "graph/op.h"

/* Every node that `wanted` accepts and that scales and shifts the result of a linear layer is
 * absorbed into that layer's weights. */
oct_status oct_fuse_after_layers(oct_graph *g, bool (*wanted)(const oct_node *n), int *n_changed);

#endif
