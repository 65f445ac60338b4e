/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax along the last axis. For any other axis ONNX Runtime transposes the data itself, each
 * time and slowly: in a quantized detector that was a tenth of the time. Explicit Transposes, which
 * it merges with its neighbours, take a quarter of that.
 */
#include "op/op.h"
#include "quant/lower/lower_parts.h"

static oct_status transpose_around(oct_node *n, int axis)
{
    oct_builder b = {.g = n->graph, .before = n, .prefix = n->name};
    const int rank = n->in[0]->type.rank;
    int64_t there[OCT_MAX_RANK], back[OCT_MAX_RANK];
    oct_value *x, *y = n->out[0];

    for (int i = 0; i < rank; i++) {
        there[i] = i == rank - 1 ? axis : i < axis ? i : i + 1;
        back[there[i]] = i;
    }
    if (!(x = oct_lowering_transpose(&b, n->in[0], there))) return b.status;
    OCT_TRY(oct_node_set_input(n, 0, x));
    OCT_TRY(oct_node_set_int(n, "axis", rank - 1));
    OCT_TRY(oct_node_infer(n));
    b.before = n->next;
    if (!(x = oct_lowering_transpose(&b, y, back))) return b.status;
    OCT_TRY(oct_value_replace_uses(y, x));
    return oct_node_set_input(x->producer, 0, y);
}

oct_status oct_lowering_softmax(oct_lowering *l)
{
    for (oct_node *n = l->g->first, *next; n; n = next) {
        const int rank = oct_node_is(n, &oct_op_softmax) && n->in[0] ? n->in[0]->type.rank : 0;
        int64_t axis = rank > 0 ? oct_node_attr(n, "axis")->i : 0;

        next = n->next;
        if (axis < 0) axis += rank;
        if (rank < 2 || axis < 0 || axis >= rank - 1 || n->out[0]->is_output) continue;
        if (oct_type_is_static(&n->in[0]->type) &&
            oct_type_span(&n->in[0]->type, (int)axis + 1, rank) == 1)
            continue;
        OCT_TRY(transpose_around(n, (int)axis));
    }
    return OCT_OK;
}
