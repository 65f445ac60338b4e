/* SPDX-License-Identifier: Apache-2.0 */
/* Scan: a body run on each slice of its operands, with state carried over and results stacked. */
#include "op/body.h"
#include "op/move.h"

enum { BODY, NUM_SCAN_INPUTS, IN_AXES, IN_DIRECTIONS, OUT_AXES, OUT_DIRECTIONS };

enum { REPORT = 1 << 10 }; /* rounds between two chances to cancel */

/* How many operands and results are state, the rest are scanned. */
typedef struct counts {
    int32_t n_state, n_scan_in, n_scan_out;
} counts;

static oct_status check_list(const oct_node *n, int attr, int32_t want)
{
    if (!oct_has(n, attr) || n->attr[attr].n == want) return OCT_OK;
    return oct_node_fail(n, OCT_ERR_FORMAT, "%s has %lld entries, expected %d",
                         n->op->attrs[attr].name, (long long)n->attr[attr].n, (int)want);
}

static oct_status count(const oct_node *n, counts *c)
{
    const int64_t scanned = oct_int(n, NUM_SCAN_INPUTS);

    if (scanned < 1 || scanned > n->n_in || n->n_in - scanned > n->n_out)
        return oct_node_fail(n, OCT_ERR_FORMAT, "num_scan_inputs is %lld with %d operands",
                             (long long)scanned, (int)n->n_in);
    c->n_scan_in = (int32_t)scanned;
    c->n_state = n->n_in - c->n_scan_in;
    c->n_scan_out = n->n_out - c->n_state;
    OCT_TRY(check_list(n, IN_AXES, c->n_scan_in));
    OCT_TRY(check_list(n, IN_DIRECTIONS, c->n_scan_in));
    OCT_TRY(check_list(n, OUT_AXES, c->n_scan_out));
    OCT_TRY(check_list(n, OUT_DIRECTIONS, c->n_scan_out));
    return oct_body_check(n, n->attr[BODY].g, n->n_in, n->n_out);
}

static int64_t entry(const oct_node *n, int attr, int32_t i)
{
    return oct_has(n, attr) ? n->attr[attr].is[i] : 0;
}

/* The number of rounds, which all scanned operands must agree on; -1: not known. */
static oct_status rounds(const oct_node *n, const counts *c, const oct_type *const *in,
                         int64_t *out)
{
    *out = -1;
    for (int32_t i = 0; i < c->n_scan_in; i++) {
        const oct_type *t = in[c->n_state + i];
        int32_t axis;

        if (!t) return oct_node_fail(n, OCT_ERR_FORMAT, "operand %d is missing", (int)i);
        if (t->rank < 0) continue;
        OCT_TRY(oct_axis(n, entry(n, IN_AXES, i), t->rank, &axis));
        if (*out < 0) *out = t->dim[axis];
        if (t->dim[axis] >= 0 && t->dim[axis] != *out)
            return oct_node_fail(n, OCT_ERR_SHAPE, "operands have %lld and %lld slices",
                                 (long long)*out, (long long)t->dim[axis]);
    }
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_node *n = q->node;
    counts c;
    int64_t len;

    OCT_TRY(count(n, &c));
    OCT_TRY(rounds(n, &c, q->in, &len));
    for (int32_t i = 0; i < n->n_out; i++) {
        const oct_type *one = &n->attr[BODY].g->outputs[i]->type, *t;

        if (i < c.n_state) {
            OCT_TRY(oct_infer_need(q, i, &t));
            q->out[i] = oct_type_join(t, one);
        } else {
            OCT_TRY(oct_stack_type(n, one, len, entry(n, OUT_AXES, i - c.n_state), &q->out[i]));
        }
    }
    return OCT_OK;
}

/* Slice `at` of scanned operand i. */
static oct_status take(const oct_args *a, const counts *c, int32_t i, int64_t at, oct_tensor **out)
{
    const oct_tensor *x = a->in[c->n_state + i];
    oct_type t = oct_type_make(x->type.dtype, 0, NULL);
    oct_tensor *made;
    oct_move m;
    int32_t axis;

    OCT_TRY(oct_axis(a->node, entry(a->node, IN_AXES, i), x->type.rank, &axis));
    for (int32_t d = 0; d < x->type.rank; d++)
        if (d != axis) t.dim[t.rank++] = x->type.dim[d];
    OCT_TRY(oct_tensor_make(a->ctx, &t, &made));
    const int64_t len = x->type.dim[axis], inner = oct_type_span(&t, axis, t.rank);
    if (entry(a->node, IN_DIRECTIONS, i)) at = len - 1 - at;
    oct_move_init(&m);
    oct_move_add(&m, oct_type_span(&t, 0, axis), len * inner, inner);
    oct_move_add(&m, inner, 1, 1);
    oct_move_run(&m, t.dtype, x->data, at * inner, made->data, 0, a->n_threads);
    *out = made;
    return OCT_OK;
}

static void drop(oct_tensor **t, int32_t from, int32_t to)
{
    for (int32_t i = from; i < to; i++) {
        oct_tensor_unref(t[i]);
        t[i] = NULL;
    }
}

static oct_status one_round(const oct_args *a, const counts *c, int64_t at, oct_tensor **in,
                            oct_tensor **out, oct_stack *stacks)
{
    const oct_node *n = a->node;

    for (int32_t i = 0; i < c->n_scan_in; i++)
        OCT_TRY(take(a, c, i, at, &in[c->n_state + i]));
    OCT_TRY(oct_body_run(a, n->attr[BODY].g, in, out));
    for (int32_t i = 0; i < c->n_state; i++) {
        oct_tensor_unref(in[i]);
        in[i] = out[i];
        out[i] = NULL;
    }
    for (int32_t i = 0; i < c->n_scan_out; i++)
        OCT_TRY(oct_stack_push(a, &stacks[i], out[c->n_state + i]));
    return OCT_OK;
}

static oct_status hand_out(const oct_args *a, const counts *c, oct_tensor **state,
                           const oct_stack *stacks)
{
    const oct_node *n = a->node;

    for (int32_t i = 0; i < c->n_state; i++)
        if (oct_node_out(n, i)) a->out[i] = oct_tensor_ref(state[i]);
    for (int32_t i = 0; i < c->n_scan_out; i++)
        OCT_TRY(oct_stack_finish(a, &stacks[i], c->n_state + i,
                                 n->attr[BODY].g->outputs[c->n_state + i], entry(n, OUT_AXES, i),
                                 entry(n, OUT_DIRECTIONS, i) != 0));
    return OCT_OK;
}

static oct_status run(const oct_args *a, const counts *c, int64_t len, oct_tensor **in,
                      oct_tensor **out, oct_stack *stacks)
{
    const oct_node *n = a->node;
    oct_status st = OCT_OK;

    for (int64_t at = 0; at < len && !st; at++) {
        if (at % REPORT == REPORT - 1) OCT_TRY(oct_progress(a->ctx, n->name, at, len));
        st = one_round(a, c, at, in, out, stacks);
        drop(in, c->n_state, n->n_in);
        drop(out, 0, n->n_out);
    }
    return st;
}

static oct_status ref(const oct_args *a)
{
    const oct_node *n = a->node;
    const oct_type **types = oct_args_scratch(a, (size_t)n->n_in, sizeof(*types));
    oct_tensor **in = oct_args_scratch(a, (size_t)n->n_in, sizeof(*in));
    oct_tensor **out = oct_args_scratch(a, (size_t)n->n_out, sizeof(*out));
    oct_stack *stacks = oct_args_scratch(a, (size_t)n->n_out, sizeof(*stacks));
    counts c;
    int64_t len;
    oct_status st;

    if (!types || !in || !out || !stacks) return OCT_ERR_MEMORY;
    OCT_TRY(count(n, &c));
    for (int32_t i = 0; i < n->n_in; i++)
        types[i] = a->in[i] ? &a->in[i]->type : NULL;
    OCT_TRY(rounds(n, &c, types, &len));
    for (int32_t i = 0; i < c.n_state; i++)
        if (a->in[i]) in[i] = oct_tensor_ref(a->in[i]);
    st = run(a, &c, len, in, out, stacks);
    if (!st) st = hand_out(a, &c, in, stacks);
    drop(in, 0, n->n_in);
    for (int32_t i = 0; i < n->n_out; i++)
        oct_stack_fini(&stacks[i], a->ctx);
    return st;
}

static const oct_attr_def attrs[] = {
    [BODY] = {"body", OCT_ATTR_GRAPH, .def = {.i = 0}, .no_default = true, .required = true},
    [NUM_SCAN_INPUTS] = {"num_scan_inputs", OCT_ATTR_INT, .def = {.i = 0}, .required = true},
    [IN_AXES] = {"scan_input_axes", OCT_ATTR_INTS, .def = {.is = NULL}, .no_default = true},
    [IN_DIRECTIONS] = {"scan_input_directions", OCT_ATTR_INTS, .def = {.is = NULL},
                       .no_default = true},
    [OUT_AXES] = {"scan_output_axes", OCT_ATTR_INTS, .def = {.is = NULL}, .no_default = true},
    [OUT_DIRECTIONS] = {"scan_output_directions", OCT_ATTR_INTS, .def = {.is = NULL},
                        .no_default = true},
    {0},
};

const oct_op oct_op_scan = {
    .name = "Scan",
    .since = 9,
    .min_in = 1,
    .max_in = -1,
    .min_out = 1,
    .max_out = -1,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .flags = OCT_OP_HAS_BODY | OCT_OP_DATA_SHAPE,
};
