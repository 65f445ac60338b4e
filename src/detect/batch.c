/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that were exported for one batch, made to take another. */
#include "detect/detector.h"
#include "graph/op.h"
#include "op/op.h"

/* Is it a constant, or computed from constants alone? */
static bool is_fixed(const oct_value *v, int depth)
{
    if (v->data) return true;
    if (!v->producer || depth == 0) return false;
    for (int32_t i = 0; i < v->producer->n_in; i++)
        if (v->producer->in[i] && !is_fixed(v->producer->in[i], depth - 1)) return false;
    return true;
}

/* A Reshape whose fixed target begins with the batch, as its operand does. */
static bool repeats_batch(const oct_node *n, int64_t batch)
{
    enum { DEPTH = 4 }; /* exporters concatenate sizes, each unsqueezed */
    const oct_type *x, *y;

    if (!oct_node_is(n, &oct_op_reshape) || n->n_in < 2 || !is_fixed(n->in[1], DEPTH)) return false;
    x = &n->in[0]->type;
    y = &n->out[0]->type;
    if (x->rank < 2 || y->rank < 2 || !oct_type_is_static(y)) return false;
    return x->dim[0] == batch && y->dim[0] == batch && oct_node_attr(n, "allowzero")->i == 0;
}

/* The target says 0 instead: as many as the operand has. */
static oct_status open_reshape(oct_graph *g, oct_node *n)
{
    const oct_type *y = &n->out[0]->type;
    oct_builder b = {.g = g};
    int64_t dims[OCT_MAX_RANK] = {0};
    oct_value *v;

    for (int32_t i = 1; i < y->rank; i++)
        dims[i] = y->dim[i];
    /* A size that follows from the others may follow from another size of the pictures. */
    if (n->in[1]->data)
        for (int32_t i = 1; i < y->rank; i++)
            dims[i] = oct_tensor_get_i64(n->in[1]->data, i);
    v = oct_ints(&b, dims, y->rank);
    return b.status ? b.status : oct_node_set_input(n, 1, v);
}

oct_status oct_detector_free_batch(oct_graph *g, int64_t batch)
{
    for (oct_node *n = g->first; n; n = n->next)
        if (repeats_batch(n, batch)) OCT_TRY(open_reshape(g, n));
    return OCT_OK;
}
