/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized subgraphs of layers, copied from the quantized network into the float one. */
#include "analyze/side_by_side.h"

#include "graph/op.h"

/* The copy of a value of the quantized network in the current graph. */
typedef struct copier {
    const oct_pair *p;
    oct_graph *to;
    oct_value **copy; /* by value id of the quantized network */
} copier;

static oct_value *operand(copier *c, const oct_value *v)
{
    if (c->copy[v->id]) return c->copy[v->id];
    if (v->data)
        c->copy[v->id] = oct_value_const(c->to, NULL, oct_tensor_ref(v->data));
    else if (c->p->exact_of[v->id])
        c->copy[v->id] = c->to->values[c->p->exact_of[v->id]->id];
    return c->copy[v->id];
}

static oct_status copy_attributes(const oct_node *n, oct_node *to)
{
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++)
        if (n->attr[i].given) OCT_TRY(oct_node_set_attr(to, n->op->attrs[i].name, &n->attr[i]));
    for (int32_t i = 0; i < n->n_extra; i++)
        OCT_TRY(oct_node_set_attr(to, n->extra[i].name, &n->extra[i].value));
    return OCT_OK;
}

static oct_status copy_node(copier *c, const oct_node *n)
{
    oct_value **in = oct_arena_array(c->to->arena, (size_t)(n->n_in + n->n_out) + 1, sizeof(*in));
    oct_value **out = in ? in + n->n_in : NULL;
    oct_node *made;

    if (!in) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !(in[i] = operand(c, n->in[i]))) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) {
            if (!(out[i] = oct_value_new(c->to, NULL, &n->out[i]->type))) return OCT_ERR_MEMORY;
            c->copy[n->out[i]->id] = out[i];
        }
    made = oct_node_new(c->to, NULL, NULL, n->op, in, n->n_in, out, n->n_out);
    return made ? copy_attributes(n, made) : OCT_ERR_MEMORY;
}

oct_status oct_pair_copy_subgraph(const oct_pair *p, const oct_pair_layer *u, oct_graph *to,
                                  oct_value **made)
{
    copier c = {.p = p,
                .to = to,
                .copy = oct_calloc(p->ctx, (size_t)p->quantized->n_value_ids + 1, sizeof(*c.copy))};
    oct_status st = c.copy ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t k = 0; k < u->n_subgraph && !st; k++)
        st = copy_node(&c, u->subgraph[k]);
    for (int32_t i = 0; i < u->last->n_out && !st; i++) {
        const oct_value *v = u->last->out[i], *q = v ? p->quantized_of[v->id] : NULL;

        made[i] = q ? c.copy[q->id] : NULL;
    }
    oct_free(p->ctx, c.copy);
    return st;
}

/* Consumers of the layer read its copy, which reads the layer's operands. */
static oct_status splice(const oct_pair *p, const oct_pair_layer *u, oct_graph *g)
{
    oct_value **made = oct_arena_array(g->arena, (size_t)u->last->n_out + 1, sizeof(*made));

    if (!made) return OCT_ERR_MEMORY;
    OCT_TRY(oct_pair_copy_subgraph(p, u, g, made));
    for (int32_t i = 0; i < u->last->n_out; i++)
        if (made[i]) OCT_TRY(oct_value_replace_uses(g->values[u->last->out[i]->id], made[i]));
    return oct_graph_sort(g);
}

oct_status oct_pair_splice(const oct_pair *p, const oct_pair_layer *u, oct_graph **out)
{
    oct_graph *g = NULL;
    oct_status st;

    OCT_TRY(oct_graph_clone(p->exact, &g));
    if ((st = splice(p, u, g))) {
        oct_graph_free(g);
        return st;
    }
    *out = g;
    return OCT_OK;
}
