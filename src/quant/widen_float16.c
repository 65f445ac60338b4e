/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A float16 network as a float32 one: quantization measures and rounds float32. Inputs and outputs
 * keep their type, with a Cast after and before them; float32 holds every float16, so that results
 * differ by rounding alone.
 */
#include "quant/widen_float16.h"

#include "op/op.h"
#include "pass/rewrite.h"

static bool has_half(const oct_graph *g)
{
    for (int32_t i = 0; i < g->n_value_ids; i++)
        if (g->values[i] && g->values[i]->type.dtype == OCT_DTYPE_F16) return true;
    return false;
}

/* Bodies have values of their own kind; such a network stays as it is. */
static bool has_bodies(const oct_graph *g)
{
    for (const oct_node *n = g->first; n; n = n->next)
        if (n->op->flags & OCT_OP_HAS_BODY) return true;
    return false;
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

/* The result goes out in float16, under its name. */
static oct_status narrow_output(oct_graph *g, int32_t i)
{
    oct_value *v = g->outputs[i], *y = NULL;
    const char *name = v->name;

    OCT_TRY(add_cast(g, NULL, v, OCT_DTYPE_F16, &y));
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

        if (to && to->i == OCT_DTYPE_F16) OCT_TRY(oct_node_set_int(n, "to", OCT_DTYPE_F32));
    }
    return OCT_OK;
}

oct_status oct_quantize_widen(oct_graph *g, bool *changed)
{
    uint8_t *is_half;

    *changed = has_half(g) && !has_bodies(g);
    if (!*changed) return OCT_OK;
    if (!(is_half = oct_arena_alloc(g->arena, (size_t)g->n_outputs + 1))) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < g->n_outputs; i++)
        is_half[i] = g->outputs[i]->type.dtype == OCT_DTYPE_F16 && g->outputs[i]->producer;
    for (int32_t i = 0; i < g->n_value_ids; i++) {
        oct_value *v = g->values[i];

        if (!v || v->type.dtype != OCT_DTYPE_F16) continue;
        if (v->data)
            OCT_TRY(widen_constant(v));
        else if (!v->is_input)
            v->type.dtype = OCT_DTYPE_F32;
    }
    OCT_TRY(widen_nodes(g));
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (!g->inputs[i]->data && g->inputs[i]->type.dtype == OCT_DTYPE_F16)
            OCT_TRY(widen_input(g, g->inputs[i]));
    for (int32_t i = 0; i < g->n_outputs; i++)
        if (is_half[i]) OCT_TRY(narrow_output(g, i));
    return oct_graph_infer(g);
}
