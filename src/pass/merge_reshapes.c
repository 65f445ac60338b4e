/* SPDX-License-Identifier: Apache-2.0 */
/* merge-reshapes: in a chain of Reshape, Flatten, Squeeze and Unsqueeze only the last one
 * counts. */
#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static bool is_view(const oct_node *n)
{
    static const oct_op *const views[] = {
        &oct_op_reshape,
        &oct_op_flatten,
        &oct_op_squeeze,
        &oct_op_unsqueeze,
    };

    for (size_t i = 0; n && i < OCT_COUNT(views); i++)
        if (n->op == views[i]) return true;
    return false;
}

/* Is the shape of this Reshape independent of its operand's? -1 depends on the length only. */
static bool is_free(const oct_node *n)
{
    const oct_tensor *shape = oct_node_const(n, 1);
    int64_t dims[OCT_MAX_RANK];
    int rank;

    if (!oct_node_is(n, &oct_op_reshape) || !shape) return false;
    if (!oct_const_ints(shape, dims, OCT_MAX_RANK, &rank)) return false;
    for (int i = 0; i < rank; i++)
        if (dims[i] == 0) return false;
    return true;
}

/* A fully known shape: any view can become a Reshape to it. */
static oct_status reshape_to_type(oct_node *n, oct_value *x)
{
    const oct_type *t = &n->out[0]->type;
    oct_tensor *shape = NULL;
    oct_value *in[2] = {x, NULL};
    oct_node *made;

    OCT_TRY(oct_tensor_vec_i64(n->graph->ctx, t->dim, t->rank, &shape));
    if (!(in[1] = oct_const_for(n, "shape", shape))) return OCT_ERR_MEMORY;
    return oct_node_become(n, &oct_op_reshape, in, 2, &made);
}

/* The view whose result n reads. */
static oct_node *view_before(const oct_node *n)
{
    oct_node *before = n->in[0] ? n->in[0]->producer : NULL;

    return is_view(before) && before->graph == n->graph ? before : NULL;
}

static oct_status merge(oct_node *n, int *n_changed)
{
    oct_node *before = view_before(n);

    for (; before && is_free(n); before = view_before(n)) {
        oct_value *mid = n->in[0];

        OCT_TRY(oct_node_set_input(n, 0, before->in[0]));
        OCT_TRY(oct_prune(mid));
        ++*n_changed;
    }
    if (!before || !oct_inner_producer(n->in[0]) || oct_type_len(&n->out[0]->type) < 1)
        return OCT_OK;
    ++*n_changed;
    return reshape_to_type(n, before->in[0]);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (is_view(n) && n->n_out == 1 && n->out[0]) OCT_TRY(merge(n, n_changed));
    }
    return OCT_OK;
}

const oct_pass oct_pass_merge_reshapes = {
    .name = "merge-reshapes",
    .help = "merge consecutive Reshape, Flatten, Squeeze and Unsqueeze",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_ALL,
};
