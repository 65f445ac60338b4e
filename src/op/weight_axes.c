/* SPDX-License-Identifier: Apache-2.0 */
/* Axes of a layer's weights, by its row. */
#include "op/op.h"

bool oct_weight_axes_of(const oct_node *n, oct_weight_axes *out)
{
    const oct_tensor *w = oct_node_const(n, 1);

    if (!n->op->weights.axes || !w || w->type.dtype != OCT_DTYPE_F32) return false;
    *out = (oct_weight_axes){.groups = 1};
    if (!n->op->weights.axes(n, &w->type, out)) return false;
    out->n_out = w->type.dim[out->out];
    out->n_in = w->type.dim[out->in];
    return out->groups >= 1;
}
