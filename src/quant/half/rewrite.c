/* SPDX-License-Identifier: Apache-2.0 */
/* A network in float16 where that was decided: constants converted, Casts where both kinds meet. */
#include "op/op.h"
#include "quant/half/half.h"
#include "tensor/small_float.h"

/* Twins of values in the other type, by value id; made when first needed. */
typedef struct twins {
    oct_graph *g;
    const oct_half_plan *p;
    oct_value **half, **full;
} twins;

static bool is_narrow(const twins *t, const oct_node *n)
{
    return n && n->graph == t->g && n->id < t->p->n_nodes && t->p->narrow[n->id];
}

/* It takes over the name. */
static oct_status half_constant(oct_graph *g, oct_value *v, oct_value **out)
{
    oct_type type = v->type;
    oct_tensor *t = NULL;
    const char *name;

    type.dtype = OCT_DTYPE_F16;
    OCT_TRY(oct_tensor_make(g->ctx, &type, &t));
    oct_f32_to_f16_n(v->data->data, oct_tensor_len(t), t->data);
    if (!(*out = oct_value_const(g, NULL, t))) return OCT_ERR_MEMORY;
    name = (*out)->name;
    (*out)->name = v->name;
    v->name = name;
    return OCT_OK;
}

/* A Cast of v behind its producer. */
static oct_status cast(oct_graph *g, oct_value *v, oct_dtype to, oct_value **out)
{
    oct_node *before = v->producer ? v->producer->next : g->first, *n;

    n = oct_node_new(g, before, NULL, &oct_op_cast, &v, 1, NULL, 1);
    if (!n) return OCT_ERR_MEMORY;
    OCT_TRY(oct_node_set_int(n, "to", to));
    *out = n->out[0];
    (*out)->type = v->type;
    (*out)->type.dtype = to;
    return OCT_OK;
}

/* v in float16, for a narrow node. */
static oct_status half_of(twins *t, oct_value *v, int32_t n_ids, oct_value **out)
{
    if (v->id >= n_ids || is_narrow(t, v->producer)) {
        *out = v; /* computed in float16 */
        return OCT_OK;
    }
    if (!t->half[v->id])
        OCT_TRY(v->data ? half_constant(t->g, v, &t->half[v->id])
                        : cast(t->g, v, OCT_DTYPE_F16, &t->half[v->id]));
    *out = t->half[v->id];
    return OCT_OK;
}

static oct_status full_of(twins *t, oct_value *v, oct_value **out)
{
    if (!t->full[v->id]) OCT_TRY(cast(t->g, v, OCT_DTYPE_F32, &t->full[v->id]));
    *out = t->full[v->id];
    return OCT_OK;
}

static oct_status narrow_operands(twins *t, oct_node *n, int32_t n_ids)
{
    for (int32_t i = 0; i < n->n_in; i++) {
        oct_value *v = NULL;

        if (!oct_half_takes(n, i)) continue;
        OCT_TRY(half_of(t, n->in[i], n_ids, &v));
        if (v != n->in[i]) OCT_TRY(oct_node_set_input(n, i, v));
    }
    return OCT_OK;
}

/* Nodes that stay float32, those of bodies included, read a Cast of a float16 result. */
static oct_status widen_readers(twins *t, oct_value *v)
{
    for (int32_t k = 0; k < v->n_users; k++) {
        oct_node *u = v->users[k];
        oct_value *wide = NULL;

        if (is_narrow(t, u) || (t->full[v->id] && t->full[v->id]->producer == u)) continue;
        OCT_TRY(full_of(t, v, &wide));
        for (int32_t i = 0; i < u->n_in; i++)
            if (u->in[i] == v) OCT_TRY(oct_node_set_input(u, i, wide));
        k = -1; /* the list has changed */
    }
    return OCT_OK;
}

/* Outputs stay float32 under their names. */
static oct_status widen_output(twins *t, int32_t i)
{
    oct_value *v = t->g->outputs[i], *wide = NULL;
    const char *name = v->name;

    if (!is_narrow(t, v->producer)) return OCT_OK;
    OCT_TRY(full_of(t, v, &wide));
    v->name = wide->name;
    wide->name = name;
    v->is_output = false;
    wide->is_output = true;
    t->g->outputs[i] = wide;
    return OCT_OK;
}

static oct_status mark_results(const twins *t)
{
    for (oct_node *n = t->g->first; n; n = n->next)
        for (int32_t i = 0; is_narrow(t, n) && i < n->n_out; i++)
            if (n->out[i] && n->out[i]->type.dtype == OCT_DTYPE_F32) {
                n->out[i]->type.dtype = OCT_DTYPE_F16;
                n->out[i]->is_declared = false;
            }
    return OCT_OK;
}

oct_status oct_half_rewrite(oct_graph *g, const oct_half_plan *p)
{
    const size_t n_ids = (size_t)g->n_value_ids;
    twins t = {.g = g, .p = p};
    oct_node *next;

    t.half = oct_arena_array(g->arena, n_ids + 1, sizeof(oct_value *));
    t.full = oct_arena_array(g->arena, n_ids + 1, sizeof(oct_value *));
    if (!t.half || !t.full) return OCT_ERR_MEMORY;
    for (oct_node *n = g->first; n; n = next) {
        next = n->next;
        if (is_narrow(&t, n)) OCT_TRY(narrow_operands(&t, n, (int32_t)n_ids));
    }
    for (size_t i = 0; i < n_ids; i++)
        if (g->values[i] && is_narrow(&t, g->values[i]->producer) &&
            g->values[i]->type.dtype == OCT_DTYPE_F32)
            OCT_TRY(widen_readers(&t, g->values[i]));
    for (int32_t i = 0; i < g->n_outputs; i++)
        OCT_TRY(widen_output(&t, i));
    return mark_results(&t);
}
