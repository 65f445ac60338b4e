/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluation with reference kernels: of one node (constant folding) and of whole graphs (bodies).
 * Work is counted as it is done: how often a body runs is not known before.
 */
#include <string.h>

#include "graph/op.h"

oct_tensor *oct_env_get(const oct_env *env, const oct_value *v)
{
    if (v->data) return v->data;
    for (; env; env = env->outer)
        if (env->by_id && env->by_id[v->id]) return env->by_id[v->id];
    return v->initial;
}

void oct_node_for_ctx(const oct_node *n, oct_ctx *ctx, oct_node_for *out)
{
    out->node = *n;
    out->graph = *n->graph;
    out->graph.ctx = ctx;
    out->node.graph = &out->graph;
}

static oct_ctx *env_ctx(const oct_env *env, const oct_graph *g)
{
    for (; env; env = env->outer)
        if (env->ctx) return env->ctx;
    return g->ctx;
}

/* --- work --- */

#define NODE_WORK 4096 /* what evaluating the smallest node costs, in elements */

static oct_status too_much(const oct_node *n, int64_t limit)
{
    return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                         "takes more than %lld operations, the limit for one node (see "
                         "oct_ctx_set_work_limit)",
                         (long long)limit);
}

static oct_status spend(oct_meter *m, int64_t n_operations)
{
    if (n_operations > m->left) return too_much(m->node, m->limit);
    m->left -= n_operations;
    return OCT_OK;
}

oct_status oct_args_spend(const oct_args *a, int64_t n_operations)
{
    const int64_t limit = oct_ctx_work_limit(a->ctx);

    if (a->env && a->env->meter) return spend(a->env->meter, n_operations);
    return n_operations > limit ? too_much(a->node, limit) : OCT_OK;
}

/* Fast kernels multiply and add some dozen times as fast as plain ones. */
#define FAST_MACS 32

oct_status oct_node_check_work(const oct_node *n)
{
    const int64_t limit = oct_ctx_work_limit(n->graph->ctx);
    const int64_t work = n->op->work   ? n->op->work(n)
                         : n->op->macs ? n->op->macs(n) / FAST_MACS
                                       : 0;

    return work > limit ? too_much(n, limit) : OCT_OK;
}

/* Adds lengths, which may be unknown or too many to count. */
static void add_work(int64_t *sum, int64_t len)
{
    if (len > 0 && !oct_add_i64(*sum, len, sum)) *sum = INT64_MAX;
}

static oct_status spend_on_node(const oct_node *n, oct_tensor *const *in, const oct_type *out,
                                oct_meter *m)
{
    const unsigned few = OCT_OP_PICKS | OCT_OP_VIEW | OCT_OP_IS_COPY | OCT_OP_TYPE_ONLY;
    int64_t work = NODE_WORK;

    for (int32_t i = 0; i < n->n_in && !(n->op->flags & few); i++)
        if (in[i]) add_work(&work, oct_tensor_len(in[i]));
    for (int32_t i = 0; i < n->n_out && !(n->op->flags & OCT_OP_VIEW); i++)
        if (n->out[i]) add_work(&work, oct_type_len(&out[i]));
    return spend(m, work);
}

/* --- nodes --- */

oct_status oct_args_alloc(const oct_args *a, int i, const oct_type *type)
{
    if (i >= a->node->n_out || !a->node->out[i]) return OCT_OK; /* unused */
    oct_tensor_unref(a->out[i]);
    a->out[i] = NULL;
    return oct_tensor_make(a->ctx, type, &a->out[i]);
}

/* Types of the outputs, from the actual operands. */
static oct_status output_types(const oct_node *n, oct_tensor *const *in, oct_arena *scratch,
                               oct_type *out)
{
    const oct_type **types = oct_arena_array(scratch, (size_t)OCT_MAX(n->n_in, 1), sizeof(*types));
    const oct_tensor **data = oct_arena_array(scratch, (size_t)OCT_MAX(n->n_in, 1), sizeof(*data));

    if (!types || !data) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!in[i]) continue;
        types[i] = &in[i]->type;
        data[i] = in[i]->data || in[i]->size == 0 ? in[i] : NULL;
    }
    for (int32_t i = 0; i < n->n_out; i++)
        out[i] = oct_type_unknown(OCT_DTYPE_NONE);
    return n->op->shape(&(oct_infer){
        .ctx = oct_arena_ctx(scratch), .node = n, .in = types, .data = data, .out = out});
}

static oct_status make_outputs(const oct_node *n, oct_tensor *const *in, const oct_type *types,
                               oct_ctx *ctx, oct_tensor **out, bool *done)
{
    char text[OCT_TYPE_TEXT_SIZE];
    size_t size;

    if ((n->op->flags & (OCT_OP_VIEW | OCT_OP_IS_COPY)) && n->n_out == 1 && in[0] &&
        oct_type_len(&types[0]) == oct_type_len(&in[0]->type)) {
        *done = true;
        return oct_tensor_view(ctx, in[0], &types[0], &out[0]);
    }
    if (n->op->flags & OCT_OP_DATA_SHAPE) return OCT_OK;
    for (int32_t i = 0; i < n->n_out; i++) {
        if (!n->out[i]) continue;
        if (!oct_type_is_static(&types[i]) || types[i].dtype == OCT_DTYPE_NONE)
            return oct_node_fail(n, OCT_ERR_SHAPE, "the shape of output %d cannot be known",
                                 (int)i);
        if (types[i].dtype != OCT_DTYPE_STRING && !oct_type_bytes(&types[i], &size))
            return oct_node_fail(n, OCT_ERR_SHAPE, "output %d would be %s, which is too large",
                                 (int)i, oct_type_text(&types[i], text));
        OCT_TRY(oct_tensor_make(ctx, &types[i], &out[i]));
    }
    return OCT_OK;
}

static oct_status check_operands(const oct_node *n, oct_tensor *const *in)
{
    if (!n->op->ref || !n->op->shape)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "octet cannot run the operator %s%s%s; it can only keep it",
                             oct_op_domain(n->op), *oct_op_domain(n->op) ? "." : "", n->op->name);
    if (n->n_in < n->op->min_in)
        return oct_node_fail(n, OCT_ERR_FORMAT, "has %d inputs, needs at least %d", (int)n->n_in,
                             n->op->min_in);
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !in[i])
            return oct_node_fail(n, OCT_ERR_STATE, "input '%s' has no data", n->in[i]->name);
    return OCT_OK;
}

/* A node without named results is skipped: its kernel would have nowhere to write. */
static bool is_wanted(const oct_node *n)
{
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) return true;
    return false;
}

static oct_status eval_node(const oct_node *of, oct_tensor *const *in, oct_tensor **out,
                            const oct_env *env, oct_arena *scratch)
{
    oct_ctx *ctx = oct_arena_ctx(scratch);
    oct_meter meter = {.left = oct_ctx_work_limit(ctx), .limit = oct_ctx_work_limit(ctx)};
    const oct_env here = {
        .outer = env, .meter = env && env->meter ? env->meter : &meter, .ctx = ctx};
    oct_node_for own;
    const oct_node *n = of;
    oct_type *types;
    bool done = false;
    oct_status st;

    if (ctx != of->graph->ctx) {
        oct_node_for_ctx(of, ctx, &own);
        n = &own.node;
    }
    if (!here.meter->node) here.meter->node = n;
    OCT_TRY(check_operands(n, in));
    memset(out, 0, (size_t)n->n_out * sizeof(*out));
    if (!is_wanted(n)) return OCT_OK;
    if (!(types = oct_arena_array(scratch, (size_t)OCT_MAX(n->n_out, 1), sizeof(*types))))
        return OCT_ERR_MEMORY;
    OCT_TRY(output_types(n, in, scratch, types));
    OCT_TRY(spend_on_node(n, in, types, here.meter));
    st = make_outputs(n, in, types, ctx, out, &done);
    if (!st && !done)
        st = n->op->ref(&(oct_args){.ctx = ctx,
                                    .node = n,
                                    .in = in,
                                    .out = out,
                                    .scratch = scratch,
                                    .n_threads = oct_ctx_threads(ctx),
                                    .env = &here});
    for (int32_t i = 0; i < n->n_out && st; i++) {
        oct_tensor_unref(out[i]);
        out[i] = NULL;
    }
    return st;
}

oct_status oct_node_eval(const oct_node *n, oct_tensor *const *in, oct_tensor **out,
                         const oct_env *env)
{
    oct_arena *scratch = oct_arena_new(env_ctx(env, n->graph));
    oct_status st = scratch ? eval_node(n, in, out, env, scratch) : OCT_ERR_MEMORY;

    oct_arena_free(scratch);
    return st;
}

/* --- whole graphs --- */

/* Marks, for every value read by the node or inside its bodies, that node as the last reader. */
static void mark_last_use(const oct_node *n, int32_t at, int32_t *last)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i]) last[n->in[i]->id] = at;
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++) {
        if (n->attr[i].kind != OCT_ATTR_GRAPH) continue;
        for (const oct_node *b = n->attr[i].g->first; b; b = b->next)
            mark_last_use(b, at, last);
        for (int32_t o = 0; o < n->attr[i].g->n_outputs; o++)
            last[n->attr[i].g->outputs[o]->id] = at;
    }
}

typedef struct evaluation {
    const oct_graph *g;
    oct_env env;   /* its context is the one to use */
    int32_t *last; /* by value id: index of the last node that reads it */
    oct_arena *scratch;
} evaluation;

static oct_status eval_step(evaluation *e, const oct_node *n, int32_t at)
{
    const size_t k = (size_t)(n->n_in + n->n_out) + 1;
    oct_tensor **slots = oct_calloc(e->env.ctx, k, sizeof(*slots));
    oct_tensor **in = slots, **out = slots ? slots + n->n_in : NULL;
    oct_status st;

    if (!slots) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i]) in[i] = oct_env_get(&e->env, n->in[i]);
    st = eval_node(n, in, out, &e->env, e->scratch);
    oct_arena_reset(e->scratch);
    for (int32_t i = 0; i < n->n_out && !st; i++) {
        if (!out[i]) continue;
        if (n->out[i])
            e->env.by_id[n->out[i]->id] = out[i];
        else
            oct_tensor_unref(out[i]);
    }
    oct_free(e->env.ctx, slots);
    if (st) return st;
    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_value *v = n->in[i];

        if (!v || v->graph != e->g || v->is_output || oct_value_known(v) || e->last[v->id] != at)
            continue;
        oct_tensor_unref(e->env.by_id[v->id]);
        e->env.by_id[v->id] = NULL;
    }
    return OCT_OK;
}

static oct_status eval_all(evaluation *e, oct_tensor *const *ins, oct_tensor **outs)
{
    const oct_graph *g = e->g;
    int32_t at = 0;

    for (int32_t i = 0; i < g->n_inputs; i++)
        if (ins[i]) e->env.by_id[g->inputs[i]->id] = oct_tensor_ref(ins[i]);
    for (const oct_node *n = g->first; n; n = n->next)
        mark_last_use(n, at++, e->last);
    at = 0;
    for (const oct_node *n = g->first; n; n = n->next)
        OCT_TRY(eval_step(e, n, at++));
    for (int32_t i = 0; i < g->n_outputs; i++) {
        oct_tensor *t = oct_env_get(&e->env, g->outputs[i]);

        if (!t) {
            const char *name = g->outputs[i]->name;

            while (i-- > 0) {
                oct_tensor_unref(outs[i]);
                outs[i] = NULL;
            }
            return oct_fail(e->env.ctx, OCT_ERR_STATE, "output '%s' was not computed", name);
        }
        outs[i] = oct_tensor_ref(t);
    }
    return OCT_OK;
}

oct_status oct_graph_eval(const oct_graph *g, oct_tensor *const *ins, oct_tensor **outs,
                          const oct_env *outer)
{
    const size_t n_ids = (size_t)OCT_MAX(g->root->n_value_ids, 1);
    oct_ctx *ctx = env_ctx(outer, g);
    evaluation e = {.g = g,
                    .env = {.outer = outer, .meter = outer ? outer->meter : NULL, .ctx = ctx}};
    oct_status st = OCT_ERR_MEMORY;

    if (e.env.meter) OCT_TRY(spend(e.env.meter, NODE_WORK + (int64_t)n_ids));
    if (!(e.env.by_id = oct_calloc(ctx, n_ids, sizeof(oct_tensor *)))) goto done;
    if (!(e.last = oct_calloc(ctx, n_ids, sizeof(int32_t)))) goto done;
    if (!(e.scratch = oct_arena_new(ctx))) goto done;
    st = eval_all(&e, ins, outs);
done:
    for (size_t i = 0; e.env.by_id && i < n_ids; i++)
        oct_tensor_unref(e.env.by_id[i]);
    oct_free(ctx, e.env.by_id);
    oct_free(ctx, e.last);
    oct_arena_free(e.scratch);
    return st;
}
