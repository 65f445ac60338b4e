/* SPDX-License-Identifier: Apache-2.0 */
/* merge-slices: a Slice of a Slice along other axes becomes one. */
#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* What a Slice does, each axis once, from 0 up. */
typedef struct cut {
    int n;
    int64_t start[OCT_MAX_RANK], end[OCT_MAX_RANK], axis[OCT_MAX_RANK], step[OCT_MAX_RANK];
} cut;

/* An optional operand; if absent, it is as the caller filled it. */
static bool read_optional(const oct_node *n, int i, int want, int64_t *out)
{
    int got;

    if (!oct_node_in(n, i)) return true;
    return oct_const_ints(oct_node_const(n, i), out, OCT_MAX_RANK, &got) && got == want;
}

static bool read_cut(const oct_node *n, cut *c)
{
    const int32_t rank = n->in[0]->type.rank;
    int n_end;

    if (rank < 1 || n->n_in < 3) return false;
    if (!oct_const_ints(oct_node_const(n, 1), c->start, OCT_MAX_RANK, &c->n)) return false;
    if (!oct_const_ints(oct_node_const(n, 2), c->end, OCT_MAX_RANK, &n_end)) return false;
    if (c->n != n_end || c->n > rank) return false;
    for (int i = 0; i < c->n; i++) {
        c->axis[i] = i;
        c->step[i] = 1;
    }
    if (!read_optional(n, 3, c->n, c->axis) || !read_optional(n, 4, c->n, c->step)) return false;
    for (int i = 0; i < c->n; i++) {
        if (c->axis[i] < 0) c->axis[i] += rank;
        if (c->axis[i] < 0 || c->axis[i] >= rank) return false;
    }
    return true;
}

/* Appends b to a; false if both slice the same axis. */
static bool join(cut *a, const cut *b)
{
    const int n = a->n;

    for (int i = 0; i < b->n; i++) {
        for (int k = 0; k < n; k++)
            if (a->axis[k] == b->axis[i]) return false;
        if (a->n == OCT_MAX_RANK) return false;
        a->start[a->n] = b->start[i];
        a->end[a->n] = b->end[i];
        a->axis[a->n] = b->axis[i];
        a->step[a->n++] = b->step[i];
    }
    return true;
}

static oct_status set_ints(oct_node *n, int32_t i, const char *role, const int64_t *v, int len)
{
    oct_tensor *t = NULL;

    OCT_TRY(oct_tensor_vec_i64(n->graph->ctx, v, len, &t));
    return oct_node_set_const(n, i, role, t);
}

static oct_status merge(oct_node *n, int *n_changed)
{
    oct_value *mid = n->in[0];
    oct_node *before = mid->producer;
    cut c, outer;

    if (!oct_node_is(before, &oct_op_slice) || before->graph != n->graph) return OCT_OK;
    if (!read_cut(before, &c) || !read_cut(n, &outer) || !join(&c, &outer)) return OCT_OK;
    OCT_TRY(set_ints(n, 1, "starts", c.start, c.n));
    OCT_TRY(set_ints(n, 2, "ends", c.end, c.n));
    OCT_TRY(set_ints(n, 3, "axes", c.axis, c.n));
    OCT_TRY(set_ints(n, 4, "steps", c.step, c.n));
    OCT_TRY(oct_node_set_input(n, 0, before->in[0]));
    ++*n_changed;
    return oct_prune(mid);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first; n; n = n->next)
        if (oct_node_is(n, &oct_op_slice) && n->in[0]) OCT_TRY(merge(n, n_changed));
    return OCT_OK;
}

const oct_pass oct_pass_merge_slices = {
    .name = "merge-slices",
    .help = "merge consecutive Slices along different axes",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_ALL,
};
