/* SPDX-License-Identifier: Apache-2.0 */
/* Loop: a body run again and again, with values carried over and results stacked. */
#include "op/body.h"
#include "op/move.h"

enum { BODY };
enum {
    MAX_TRIPS = 1 << 20, /* a loop that has not ended by then is taken for endless */
    REPORT = 1 << 10,    /* trips between two chances to cancel */
};

static oct_status shape(const oct_infer *q)
{
    const oct_node *n = q->node;
    const oct_graph *body = n->attr[BODY].g;
    const int32_t n_carried = n->n_in - 2;
    const oct_type *t;

    OCT_TRY(oct_infer_check(q, 0, OCT_SET_INT));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_BOOL));
    OCT_TRY(oct_body_check(n, body, n->n_in, 1 + (int64_t)n->n_out));
    if (n->n_out < n_carried)
        return oct_infer_fail(q, OCT_ERR_FORMAT, "%d values are carried, but only %d come out",
                              (int)n_carried, (int)n->n_out);
    for (int32_t i = 0; i < n->n_out; i++) {
        const oct_type *one = &body->outputs[1 + i]->type;

        if (i < n_carried) {
            OCT_TRY(oct_infer_need(q, 2 + i, &t));
            q->out[i] = oct_type_join(t, one);
        } else {
            OCT_TRY(oct_stack_type(n, one, -1, 0, &q->out[i]));
        }
    }
    return OCT_OK;
}

/* One running loop. in: round, condition, carried values; out: condition, carried, stacked. */
typedef struct loop {
    const oct_graph *body;
    oct_tensor **in, **out;
    int32_t n_in, n_out, n_carried;
    oct_stack *stacks;
    bool go_on;
} loop;

static oct_status scalar(oct_ctx *ctx, oct_dtype dtype, int64_t v, oct_tensor **out)
{
    const oct_type t = oct_type_make(dtype, 0, NULL);
    oct_tensor *made;

    OCT_TRY(oct_tensor_make(ctx, &t, &made));
    oct_store_i64(dtype, made->data, 0, 1, &v);
    oct_tensor_unref(*out);
    *out = made;
    return OCT_OK;
}

static oct_status round_trip(const oct_args *a, loop *l, int64_t i)
{
    /* New scalars in every round: the body may have kept the old ones as results. */
    OCT_TRY(scalar(a->ctx, OCT_DTYPE_I64, i, &l->in[0]));
    OCT_TRY(scalar(a->ctx, OCT_DTYPE_BOOL, 1, &l->in[1]));
    OCT_TRY(oct_body_run(a, l->body, l->in, l->out));
    if (oct_tensor_len(l->out[0]) != 1)
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "the body's condition is no scalar");
    l->go_on = oct_tensor_get_i64(l->out[0], 0) != 0;
    for (int32_t k = 0; k < l->n_carried; k++) {
        oct_tensor_unref(l->in[2 + k]);
        l->in[2 + k] = l->out[1 + k];
        l->out[1 + k] = NULL;
    }
    for (int32_t k = 1 + l->n_carried; k < l->n_out; k++)
        OCT_TRY(oct_stack_push(a, &l->stacks[k], l->out[k]));
    return OCT_OK;
}

static void drop_results(loop *l)
{
    for (int32_t k = 0; k < l->n_out; k++) {
        oct_tensor_unref(l->out[k]);
        l->out[k] = NULL;
    }
}

static oct_status run(const oct_args *a, loop *l)
{
    const oct_tensor *limit = oct_args_in(a, 0), *cond = oct_args_in(a, 1);
    const int64_t trips = oct_read_int(limit, INT64_MAX);
    oct_status st = OCT_OK;

    l->go_on = oct_read_int(cond, 1) != 0;
    for (int64_t i = 0; i < trips && l->go_on && !st; i++) {
        if (i == MAX_TRIPS)
            return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED,
                                 "the loop does not end after %d trips", MAX_TRIPS);
        if (i % REPORT == REPORT - 1) OCT_TRY(oct_progress(a->ctx, a->node->name, i, trips));
        st = round_trip(a, l, i);
        drop_results(l);
    }
    return st;
}

static oct_status hand_out(const oct_args *a, loop *l)
{
    for (int32_t i = 0; i < a->node->n_out; i++) {
        if (i < l->n_carried) {
            if (oct_node_out(a->node, i)) a->out[i] = oct_tensor_ref(l->in[2 + i]);
        } else {
            OCT_TRY(oct_stack_finish(a, &l->stacks[1 + i], i, l->body->outputs[1 + i], 0, false));
        }
    }
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    loop l = {.body = a->node->attr[BODY].g, .n_carried = a->node->n_in - 2};
    oct_status st;

    OCT_TRY(oct_body_check(a->node, l.body, a->node->n_in, 1 + (int64_t)a->node->n_out));
    l.in = oct_args_scratch(a, (size_t)l.body->n_inputs, sizeof(*l.in));
    l.out = oct_args_scratch(a, (size_t)l.body->n_outputs, sizeof(*l.out));
    l.stacks = oct_args_scratch(a, (size_t)l.body->n_outputs, sizeof(*l.stacks));
    if (!l.in || !l.out || !l.stacks) return OCT_ERR_MEMORY;
    l.n_in = l.body->n_inputs;
    l.n_out = l.body->n_outputs;
    for (int32_t i = 2; i < l.n_in; i++)
        l.in[i] = oct_tensor_ref(a->in[i]);
    st = run(a, &l);
    if (!st) st = hand_out(a, &l);
    for (int32_t i = 0; i < l.n_in; i++)
        oct_tensor_unref(l.in[i]);
    for (int32_t i = 0; i < l.n_out; i++)
        oct_stack_fini(&l.stacks[i], a->ctx);
    return st;
}

static const oct_attr_def attrs[] = {
    [BODY] = {"body", OCT_ATTR_GRAPH, .def = {.i = 0}, .no_default = true, .required = true},
    {0},
};

const oct_op oct_op_loop = {
    .name = "Loop",
    .since = 7,
    .min_in = 2,
    .max_in = -1,
    .min_out = 1,
    .max_out = -1,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .flags = OCT_OP_HAS_BODY | OCT_OP_DATA_SHAPE,
};
