/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a layer: their axes, by its row, and how many there are. */
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

bool oct_node_is_recurrent(const oct_node *n)
{
    return oct_node_is(n, &oct_op_lstm) || oct_node_is(n, &oct_op_gru) ||
           oct_node_is(n, &oct_op_rnn);
}

static int64_t count_floats(const oct_node *n, int32_t i)
{
    const oct_tensor *t = oct_node_const(n, i);

    return t && t->type.rank > 1 && t->type.dtype == OCT_DTYPE_F32 ? oct_tensor_len(t) : 0;
}

int64_t oct_weight_count(const oct_node *n)
{
    oct_weight_axes ax;

    if (oct_weight_axes_of(n, &ax)) return oct_tensor_len(n->in[1]->data);
    if (oct_node_is_recurrent(n)) return count_floats(n, 1) + count_floats(n, 2);
    return oct_node_is(n, &oct_op_gather) ? count_floats(n, 0) : 0;
}
