/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network in float16 or bfloat16 as a float32 one: kernels compute and quantization measures in
 * float32. Inputs and outputs keep their type, with a Cast after and before them; float32 holds
 * every such number, so that results differ by rounding alone.
 */
#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static bool is_half(oct_dtype t)
{
    return t == OCT_DTYPE_F16 || t == OCT_DTYPE_BF16;
}

static bool reads_half(const oct_node *n)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && is_half(n->in[i]->type.dtype)) return true;
    return false;
}

static bool gives_half(const oct_node *n)
{
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && is_half(n->out[i]->type.dtype)) return true;
    return false;
}

static bool has_half(const oct_graph *g)
{
    for (int32_t i = 0; i < g->n_value_ids; i++)
        if (g->values[i] && is_half(g->values[i]->type.dtype)) return true;
    return false;
}

/* Results get their type from the operands, but for a Cast's. Bodies have values of their own. */
static bool can_widen(const oct_graph *g)
{
    for (const oct_node *n = g->first; n; n = n->next) {
        if (n->op->flags & OCT_OP_HAS_BODY) return false;
        if (!gives_half(n) || oct_node_is(n, &oct_op_cast)) continue;
        if (!reads_half(n) || oct_node_attr(n, "dtype") || oct_node_attr(n, "output_dtype"))
            return false;
    }
    return !g->parent;
}

static oct_status widen_constant(oct_value *v)
{
    oct_type type = v->type;
    oct_tensor *t = NULL;

    type.dtype = OCT_DTYPE_F32;
    OCT_TRY(oct_tensor_make(v->graph->ctx, &type, &t));
    for (int64_t i = 0, n = oct_tensor_len(t); i < n; i++)
        ((float *)t->data)[i] = (float)oct_tensor_get_f64(v->data, i);
    oct_tensor_unref(v->data);
    v->data = t;
    v->type = type;
    return OCT_OK;
}

static oct_status add_cast(oct_graph *g, oct_node *before, oct_value *x, oct_dtype to,
                           oct_value **out)
{
    oct_node *n;

    if (!(*out = oct_value_new(g, NULL, NULL))) return OCT_ERR_MEMORY;
    if (!(n = oct_node_new(g, before, NULL, &oct_op_cast, &x, 1, out, 1))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_node_set_int(n, "to", to));
    return oct_node_infer(n);
}

static oct_status widen_input(oct_graph *g, oct_value *v)
{
    oct_value *y = NULL;

    if (!v->n_users) return OCT_OK;
    OCT_TRY(add_cast(g, g->first, v, OCT_DTYPE_F32, &y));
    for (int32_t k = v->n_users - 1; k >= 0; k--) {
        oct_node *u = v->users[k];

        if (u == y->producer) continue;
        for (int32_t i = 0; i < u->n_in; i++)
            if (u->in[i] == v) OCT_TRY(oct_node_set_input(u, i, y));
        k = v->n_users; /* the list has changed */
    }
    return OCT_OK;
}

/* The result goes out in its type, under its name. */
static oct_status narrow_output(oct_graph *g, int32_t i, oct_dtype to)
{
    oct_value *v = g->outputs[i], *y = NULL;
    const char *name = v->name;

    OCT_TRY(add_cast(g, NULL, v, to, &y));
    g->outputs[i] = y;
    v->name = y->name;
    y->name = name;
    v->is_output = false;
    y->is_output = true;
    return OCT_OK;
}

static oct_status widen_nodes(oct_graph *g)
{
    for (oct_node *n = g->first; n; n = n->next) {
        const oct_attr *to = oct_node_is(n, &oct_op_cast) ? oct_node_attr(n, "to") : NULL;

        if (to && is_half((oct_dtype)to->i)) OCT_TRY(oct_node_set_int(n, "to", OCT_DTYPE_F32));
    }
    return OCT_OK;
}

oct_status oct_widen_half(oct_graph *g, bool *changed)
{
    oct_dtype *was;

    *changed = has_half(g) && can_widen(g);
    if (!*changed) return OCT_OK;
    if (!(was = oct_arena_array(g->arena, (size_t)g->n_outputs + 1, sizeof(*was))))
        return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_outputs; i++)
        was[i] = g->outputs[i]->producer ? g->outputs[i]->type.dtype : OCT_DTYPE_F32;
    for (int32_t i = 0; i < g->n_value_ids; i++) {
        oct_value *v = g->values[i];

        if (!v || !is_half(v->type.dtype)) continue;
        if (v->data)
            OCT_TRY(widen_constant(v));
        else if (!v->is_input)
            v->type.dtype = OCT_DTYPE_F32;
    }
    OCT_TRY(widen_nodes(g));
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (!g->inputs[i]->data && is_half(g->inputs[i]->type.dtype))
            OCT_TRY(widen_input(g, g->inputs[i]));
    for (int32_t i = 0; i < g->n_outputs; i++)
        if (is_half(was[i])) OCT_TRY(narrow_output(g, i, was[i]));
    return oct_graph_infer(g);
}

/* Only where it pays: single operators in half precision keep its rounding. */
static oct_status run(oct_graph *g, int *n_changed)
{
    bool is_heavy = false, changed = false;

    for (const oct_node *n = g->first; n && !is_heavy; n = n->next)
        is_heavy = (oct_node_is(n, &oct_op_conv) || oct_node_is(n, &oct_op_conv_transpose) ||
                    oct_node_is(n, &oct_op_gemm) || oct_node_is(n, &oct_op_mat_mul)) &&
                   reads_half(n) && gives_half(n);
    if (is_heavy) OCT_TRY(oct_widen_half(g, &changed));
    *n_changed += changed;
    return OCT_OK;
}

const oct_pass oct_pass_widen_half = {
    .name = "widen-half",
    .help = "compute networks in float16 and bfloat16 in float32, which the kernels are made for",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .in = OCT_IN_PLANS,
};
