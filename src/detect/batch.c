/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files made for one picture have its 1 written down in the shapes of Reshape nodes: ShuffleNet's
 * channel shuffle, flattened outputs. With "as the operand has it" (0) instead, the network takes
 * any number of pictures.
 */
#include "detect/detector.h"
#include "op/op.h"

/* [1, ..] becomes [1 or more, ..]: the first dim is that of the pictures. */
static bool keeps_one_picture(const oct_node *n)
{
    const oct_tensor *shape = oct_node_const(n, 1);
    const oct_attr *allow_zero;

    if (!oct_node_is(n, &oct_op_reshape) || !n->in[0] || !shape || oct_tensor_len(shape) < 2)
        return false;
    allow_zero = oct_node_attr(n, "allowzero");
    return shape->type.dtype == OCT_DTYPE_I64 && oct_tensor_get_i64(shape, 0) == 1 &&
           n->in[0]->type.rank > 1 && n->in[0]->type.dim[0] == 1 && !(allow_zero && allow_zero->i);
}

oct_status oct_detector_free_batch(oct_graph *g)
{
    for (oct_node *n = g->first; n; n = n->next) {
        const int64_t as_operand = 0;
        oct_tensor *shape = NULL;
        oct_value *v;

        if (!keeps_one_picture(n)) continue;
        OCT_TRY(oct_tensor_copy(g->ctx, oct_node_const(n, 1), &shape));
        oct_store_i64(OCT_DTYPE_I64, shape->data, 0, 1, &as_operand);
        if (!(v = oct_value_const(g, NULL, shape))) return OCT_ERR_MEMORY;
        OCT_TRY(oct_node_set_input(n, 1, v));
    }
    return OCT_OK;
}
