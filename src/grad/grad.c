/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reverse differentiation. A node is *active* if its result depends on a value asked for and the
 * loss depends on its result; active nodes are visited from the last to the first, and the rule of
 * each row turns gradients of results into gradients of operands.
 */
#include "grad/grad.h"

#include "op/grad/rules.h"

typedef struct grad_job {
    oct_graph *g;
    oct_builder b;
    int32_t n_ids;    /* values there were before */
    bool *depends;    /* by value id: on one of wrt */
    bool *matters;    /* by value id: the loss depends on it */
    oct_value **grad; /* by value id: gradient so far, NULL: zero */
    int32_t max_in, max_out;
} grad_job;

/* Of a type that carries gradients. Narrow floats would, and are refused. */
static bool is_float(const oct_value *v)
{
    return oct_dtype_is_float(v->type.dtype);
}

static bool is_wide(const oct_value *v)
{
    return v->type.dtype == OCT_DTYPE_F32 || v->type.dtype == OCT_DTYPE_F64;
}

/* A gradient flows through this value. */
static bool is_active(const grad_job *j, const oct_value *v)
{
    return v && v->id < j->n_ids && j->depends[v->id] && j->matters[v->id] && is_float(v);
}

static bool node_is_active(const grad_job *j, const oct_node *n)
{
    bool in = false, out = false;

    for (int32_t i = 0; i < n->n_in; i++)
        in |= is_active(j, n->in[i]);
    for (int32_t i = 0; i < n->n_out; i++)
        out |= is_active(j, n->out[i]);
    return in && out;
}

/* Marks in both directions. Only floats carry a dependence: a comparison or an index does not. */
static void mark(grad_job *j, const oct_value *loss, oct_value *const *wrt, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        j->depends[wrt[i]->id] = true;
    for (const oct_node *k = j->g->first; k; k = k->next) {
        bool any = false;

        for (int32_t i = 0; i < k->n_in; i++)
            any |= k->in[i] && j->depends[k->in[i]->id] && is_float(k->in[i]);
        for (int32_t i = 0; i < k->n_out; i++)
            if (k->out[i] && any) j->depends[k->out[i]->id] = true;
    }
    j->matters[loss->id] = true;
    for (const oct_node *k = j->g->last; k; k = k->prev) {
        bool any = false;

        for (int32_t i = 0; i < k->n_out; i++)
            any |= k->out[i] && j->matters[k->out[i]->id] && is_float(k->out[i]);
        for (int32_t i = 0; i < k->n_in; i++)
            if (k->in[i] && any) j->matters[k->in[i]->id] = true;
    }
}

/* Integers carry no gradient, and a network that is quantized would train its last layers only. */
static oct_status check_quantized(const grad_job *j, const oct_node *n)
{
    const bool quantizes = oct_node_is(n, &oct_op_quantize_linear) ||
                           oct_node_is(n, &oct_op_ms_quantize_linear) ||
                           oct_node_is(n, &oct_op_dynamic_quantize_linear);

    if (!quantizes || !j->depends[n->in[0]->id] || !is_float(n->in[0])) return OCT_OK;
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && j->matters[n->out[i]->id])
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                                 "quantized values carry no gradient: train the network before it "
                                 "is quantized");
    return OCT_OK;
}

static oct_status check_value(const oct_node *n, const oct_value *v)
{
    if (!is_wide(v))
        return oct_node_fail(n, OCT_ERR_TYPE,
                             "'%s' is %s; gradients are float32 or float64: make it a network in "
                             "float32 first",
                             v->name, oct_dtype_name(v->type.dtype));
    if (!oct_type_is_static(&v->type))
        return oct_node_fail(n, OCT_ERR_SHAPE,
                             "the shape of '%s' is not known: set the shapes of the network's "
                             "inputs first",
                             v->name);
    return OCT_OK;
}

/* Before anything is emitted: is there a rule for every active node, with known shapes? */
static oct_status check(grad_job *j)
{
    for (const oct_node *n = j->g->first; n; n = n->next) {
        OCT_TRY(check_quantized(j, n));
        if (!node_is_active(j, n)) continue;
        j->max_in = OCT_MAX(j->max_in, n->n_in);
        j->max_out = OCT_MAX(j->max_out, n->n_out);
        if (!n->op->grad)
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                                 "this operator has no gradient; layers upstream of it cannot be "
                                 "trained: freeze them, or train from other outputs");
        for (int32_t i = 0; i < n->n_in + n->n_out; i++) {
            const oct_value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];

            if (is_active(j, v)) OCT_TRY(check_value(n, v));
        }
    }
    return OCT_OK;
}

static void add_to(grad_job *j, const oct_value *v, oct_value *dv)
{
    oct_value **sum = &j->grad[v->id];

    *sum = *sum ? oct_emit(&j->b, &oct_op_add, *sum, dv, NULL) : dv;
}

static oct_status differentiate(grad_job *j, const oct_node *n, oct_value **dy, oct_value **dx,
                                bool *wanted)
{
    bool any = false;

    for (int32_t i = 0; i < n->n_out; i++) {
        dy[i] = is_active(j, n->out[i]) ? j->grad[n->out[i]->id] : NULL;
        any |= dy[i] != NULL;
    }
    if (!any) return OCT_OK;
    for (int32_t i = 0; i < n->n_in; i++) {
        wanted[i] = is_active(j, n->in[i]);
        dx[i] = NULL;
    }
    j->b.prefix = n->name;
    OCT_TRY(n->op->grad(&(oct_grad_args){&j->b, n, dy, wanted, dx}));
    OCT_TRY(j->b.status);
    for (int32_t i = 0; i < n->n_in; i++)
        if (wanted[i] && dx[i]) add_to(j, n->in[i], dx[i]);
    return j->b.status;
}

static oct_status walk(grad_job *j, const oct_value *loss)
{
    oct_arena *a = j->g->arena;
    oct_value **dy = oct_arena_array(a, (size_t)j->max_out + 1, sizeof(*dy));
    oct_value **dx = oct_arena_array(a, (size_t)j->max_in + 1, sizeof(*dx));
    bool *wanted = oct_arena_array(a, (size_t)j->max_in + 1, sizeof(*wanted));

    if (!dy || !dx || !wanted) return OCT_ERR_MEMORY;
    for (oct_node *n = loss->producer; n; n = n->prev)
        if (node_is_active(j, n)) OCT_TRY(differentiate(j, n, dy, dx, wanted));
    return OCT_OK;
}

static oct_status prepare(grad_job *j, const oct_value *loss)
{
    const size_t n = (size_t)j->g->root->n_value_ids;

    if (oct_type_len(&loss->type) != 1 || !is_wide(loss))
        return oct_fail(j->g->ctx, OCT_ERR_SHAPE,
                        "the loss '%s' must be one number of type float32 or float64", loss->name);
    j->n_ids = (int32_t)n;
    j->depends = oct_arena_array(j->g->arena, n, sizeof(*j->depends));
    j->matters = oct_arena_array(j->g->arena, n, sizeof(*j->matters));
    j->grad = oct_arena_array(j->g->arena, n, sizeof(*j->grad));
    return j->depends && j->matters && j->grad ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status run(grad_job *j, oct_value *loss, oct_value *const *wrt, int32_t n,
                      oct_value **dwrt)
{
    j->grad[loss->id] = oct_grad_filled(&j->b, &loss->type, 1);
    OCT_TRY(j->b.status);
    OCT_TRY(walk(j, loss));
    for (int32_t i = 0; i < n; i++) {
        dwrt[i] = j->grad[wrt[i]->id];
        if (!dwrt[i]) dwrt[i] = oct_grad_filled(&j->b, &wrt[i]->type, 0);
    }
    return j->b.status;
}

oct_status oct_grad(oct_graph *g, oct_value *loss, oct_value *const *wrt, int32_t n,
                    oct_value **dwrt)
{
    grad_job j = {.g = g, .b = {.g = g}};
    oct_node *const last = g->last;
    oct_status status;

    OCT_TRY(prepare(&j, loss));
    mark(&j, loss, wrt, n);
    OCT_TRY(check(&j));
    status = run(&j, loss, wrt, n, dwrt);
    /* A rule may refuse what its node's attributes say, after others have emitted. */
    while (status && g->last != last)
        oct_node_remove(g->last);
    return status;
}
