/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that were exported for one batch, made to take another. */
#include "detect/detector.h"
#include "graph/op.h"
#include "op/op.h"

enum { DEPTH = 4 }; /* exporters concatenate sizes, each unsqueezed */

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

enum { RESIZE_SIZES = 3 };

/* A Resize to fixed sizes of all axes that begin with the batch. It would shrink another batch to
 * this one, and an addition after it would repeat one picture for all. */
static bool resizes_batch(const oct_node *n, int64_t batch)
{
    const oct_value *sizes = oct_node_is(n, &oct_op_resize) ? oct_node_in(n, RESIZE_SIZES) : NULL;
    const oct_type *x = &n->in[0]->type, *y = &n->out[0]->type;

    return sizes && is_fixed(sizes, DEPTH) && x->rank >= 2 && oct_type_is_static(y) &&
           sizes->type.dim[0] == x->rank && x->dim[0] == batch && y->dim[0] == batch;
}

/* The sizes are those of the operand's first axis, and the fixed ones of the others. */
static oct_status open_resize(oct_graph *g, oct_node *n)
{
    const oct_type *y = &n->out[0]->type;
    oct_builder b = {.g = g, .before = n};
    oct_value *parts[2];
    oct_node *concat;

    parts[0] = oct_emit(&b, &oct_op_gather, oct_emit(&b, &oct_op_shape, n->in[0], NULL, NULL),
                        oct_ints(&b, (int64_t[]){0}, 1), NULL);
    parts[1] = oct_ints(&b, y->dim + 1, y->rank - 1);
    concat = oct_emit_node(&b, &oct_op_concat, parts, 2, 1);
    oct_emit_int(&b, concat, "axis", 0);
    return oct_emitted(&b, concat) ? oct_node_set_input(n, RESIZE_SIZES, concat->out[0]) : b.status;
}

oct_status oct_detector_free_batch(oct_graph *g, int64_t batch)
{
    for (oct_node *n = g->first; n; n = n->next) {
        if (repeats_batch(n, batch)) OCT_TRY(open_reshape(g, n));
        if (resizes_batch(n, batch)) OCT_TRY(open_resize(g, n));
    }
    return OCT_OK;
}
