/* SPDX-License-Identifier: Apache-2.0 */
/* Half precision at the borders: weights as they are stored, inputs and outputs. */
#include "op/op.h"
#include "quant/half/half.h"
#include "tensor/small_float.h"

static oct_status cast(oct_graph *g, oct_node *before, oct_value *v, oct_dtype to, oct_value **out)
{
    oct_node *n = oct_node_new(g, before, NULL, &oct_op_cast, &v, 1, NULL, 1);

    if (!n) return OCT_ERR_MEMORY;
    OCT_TRY(oct_node_set_int(n, "to", to));
    *out = n->out[0];
    return oct_node_infer(n);
}

/* All readers of `from` but one read `to`. */
static oct_status move_readers(oct_value *from, oct_value *to, const oct_node *but)
{
    for (int32_t k = 0; k < from->n_users; k++) {
        oct_node *u = from->users[k];

        if (u == but) continue;
        for (int32_t i = 0; i < u->n_in; i++)
            if (u->in[i] == from) OCT_TRY(oct_node_set_input(u, i, to));
        k = -1; /* the list has changed */
    }
    return OCT_OK;
}

/* --- weights --- */

/* A layer's weights or a table, not a bias, a scale or a size. */
static bool is_weight(const oct_value *v)
{
    if (!v->data || v->type.dtype != OCT_DTYPE_F32 || v->type.rank < 2 || v->is_output)
        return false;
    for (int32_t i = 0; i < v->n_users; i++)
        if (v->users[i]->graph != v->graph || !oct_half_takes(v->users[i], 0)) return false;
    return v->n_users > 0 && oct_tensor_len(v->data) > 1;
}

static oct_status store_weight(oct_graph *g, oct_value *v)
{
    oct_type type = v->type;
    oct_tensor *t = NULL;
    oct_value *stored, *wide = NULL;
    const char *name = v->name;

    type.dtype = OCT_DTYPE_BF16;
    OCT_TRY(oct_tensor_make(g->ctx, &type, &t));
    oct_f32_to_bf16_n(v->data->data, oct_tensor_len(t), t->data);
    if (!(stored = oct_value_const(g, NULL, t))) return OCT_ERR_MEMORY;
    OCT_TRY(cast(g, g->first, stored, OCT_DTYPE_F32, &wide));
    v->name = stored->name;
    stored->name = name; /* the weight keeps its name */
    return move_readers(v, wide, NULL);
}

oct_status oct_half_store_bf16(oct_graph *g)
{
    const int32_t n = g->n_value_ids;

    for (int32_t i = 0; i < n; i++)
        if (g->values[i] && g->values[i]->graph == g && is_weight(g->values[i]))
            OCT_TRY(store_weight(g, g->values[i]));
    return OCT_OK;
}

/* --- inputs and outputs --- */

static oct_status narrow_input(oct_graph *g, oct_value *v, oct_dtype to)
{
    oct_value *wide = NULL;

    v->type.dtype = to;
    if (!v->n_users) return OCT_OK;
    for (int32_t k = 0; k < v->n_users; k++) {
        oct_node *u = v->users[k];
        const oct_attr *as = oct_node_is(u, &oct_op_cast) ? oct_node_attr(u, "to") : NULL;

        if (!as || as->i != to || u->out[0]->is_output) continue;
        OCT_TRY(move_readers(u->out[0], v, NULL)); /* it converted to this type */
        oct_node_remove(u);
        k = -1;
    }
    for (int32_t k = 0; k < v->n_users; k++) {
        const oct_node *u = v->users[k];

        if (u->graph == g && u->out[0]->type.dtype == to) continue; /* computes in it */
        OCT_TRY(cast(g, g->first, v, OCT_DTYPE_F32, &wide));
        break;
    }
    for (int32_t k = 0; wide && k < v->n_users; k++) {
        oct_node *u = v->users[k];

        if (u == wide->producer || (u->graph == g && u->out[0]->type.dtype == to)) continue;
        for (int32_t i = 0; i < u->n_in; i++)
            if (u->in[i] == v) OCT_TRY(oct_node_set_input(u, i, wide));
        k = -1;
    }
    return OCT_OK;
}

static oct_status narrow_output(oct_graph *g, int32_t i, oct_dtype to)
{
    oct_value *v = g->outputs[i], *y = NULL;
    const char *name = v->name;

    OCT_TRY(cast(g, NULL, v, to, &y));
    v->name = y->name;
    y->name = name;
    v->is_output = false;
    y->is_output = true;
    g->outputs[i] = y;
    return OCT_OK;
}

oct_status oct_half_io(oct_graph *g, oct_dtype to)
{
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (!g->inputs[i]->data && g->inputs[i]->type.dtype == OCT_DTYPE_F32)
            OCT_TRY(narrow_input(g, g->inputs[i], to));
    for (int32_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i]->type.dtype == OCT_DTYPE_F32 && g->outputs[i]->producer)
            OCT_TRY(narrow_output(g, i, to));
    return OCT_OK;
}
