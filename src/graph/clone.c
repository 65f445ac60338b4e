/* SPDX-License-Identifier: Apache-2.0 */
/* Deep copies: ids stay the same, so side tables of the original serve the copy too. */
#include <string.h>

#include "graph/op.h"

typedef struct cloner {
    oct_graph *to;
    oct_op *last_row; /* opaque rows live in the arena: copied once in a row */
    const oct_op *last_row_of;
} cloner;

static const char *copy_str(oct_graph *g, const char *s, bool *ok)
{
    char *p = s ? oct_arena_strdup(g->arena, s) : NULL;

    if (s && !p) *ok = false;
    return p;
}

static oct_status clone_value(cloner *c, const oct_value *v, oct_graph *owner)
{
    oct_graph *root = c->to;
    oct_value *w = oct_arena_alloc(root->arena, sizeof(*w));
    bool ok = true;

    if (!w) return OCT_ERR_MEMORY;
    *w = (oct_value){.id = v->id,
                     .graph = owner,
                     .type = v->type,
                     .is_declared = v->is_declared,
                     .out_index = v->out_index,
                     .is_input = v->is_input,
                     .is_output = v->is_output,
                     .raw_type_size = v->raw_type_size};
    w->name = copy_str(root, v->name, &ok);
    w->doc = copy_str(root, v->doc, &ok);
    if (v->raw_type) {
        char *raw = oct_arena_strndup(root->arena, v->raw_type, v->raw_type_size);

        ok = ok && raw;
        w->raw_type = raw;
    }
    if (v->dim_name && v->type.rank > 0) {
        w->dim_name = oct_arena_array(root->arena, (size_t)v->type.rank, sizeof(char *));
        for (int i = 0; w->dim_name && i < v->type.rank; i++)
            w->dim_name[i] = copy_str(root, v->dim_name[i], &ok);
        ok = ok && w->dim_name;
    }
    if (!ok) return OCT_ERR_MEMORY;
    if (v->data) w->data = oct_tensor_ref(v->data);
    if (v->initial) w->initial = oct_tensor_ref(v->initial);
    w->is_state = v->is_state;
    root->values[v->id] = w;
    return OCT_OK;
}

static const oct_op *clone_row(cloner *c, const oct_op *op)
{
    oct_op *row;

    if (!oct_op_is_opaque(op)) return op;
    if (op == c->last_row_of) return c->last_row;
    if (!(row = oct_arena_alloc(c->to->arena, sizeof(*row)))) return NULL;
    *row = *op;
    row->name = oct_arena_strdup(c->to->arena, op->name);
    row->domain = oct_arena_strdup(c->to->arena, oct_op_domain(op));
    if (!row->name || !row->domain) return NULL;
    c->last_row_of = op;
    c->last_row = row;
    return row;
}

static oct_status clone_graph(cloner *c, const oct_graph *from, oct_graph *to);

static oct_status clone_attr(cloner *c, oct_node *n, const char *name, const oct_attr *a)
{
    oct_attr copy = *a;

    if (a->kind == OCT_ATTR_GRAPH) {
        OCT_TRY(oct_graph_new_sub(n->graph, a->g->name, &copy.g));
        OCT_TRY(oct_node_set_attr(n, name, &copy)); /* first: so that it is freed with the node */
        return clone_graph(c, a->g, copy.g);
    }
    return oct_node_set_attr(n, name, &copy);
}

static oct_status clone_node(cloner *c, const oct_node *n, oct_graph *to)
{
    const oct_op *op = clone_row(c, n->op);
    oct_value **in = oct_arena_array(to->arena, (size_t)(n->n_in + n->n_out) + 1, sizeof(*in));
    oct_value **out = in ? in + n->n_in : NULL;
    oct_node *copy;
    bool ok = true;

    if (!op || !in) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? c->to->values[n->in[i]->id] : NULL;
    for (int32_t i = 0; i < n->n_out; i++) {
        if (!n->out[i]) continue;
        out[i] = c->to->values[n->out[i]->id];
        out[i]->graph = to;
    }
    if (!(copy = oct_node_new(to, NULL, n->name, op, in, n->n_in, out, n->n_out)))
        return OCT_ERR_MEMORY;
    copy->id = n->id;
    copy->doc = copy_str(to, n->doc, &ok);
    if (!ok) return OCT_ERR_MEMORY;
    for (int i = 0, k = oct_op_n_attrs(op); i < k; i++)
        if (n->attr[i].given) OCT_TRY(clone_attr(c, copy, op->attrs[i].name, &n->attr[i]));
    for (int i = 0; i < n->n_extra; i++)
        OCT_TRY(clone_attr(c, copy, n->extra[i].name, &n->extra[i].value));
    return OCT_OK;
}

static oct_status clone_graph(cloner *c, const oct_graph *from, oct_graph *to)
{
    bool ok = true;

    to->doc = copy_str(to, from->doc, &ok);
    if (!ok) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < from->n_inputs; i++) {
        oct_value *v = c->to->values[from->inputs[i]->id];

        v->graph = to;
        OCT_TRY(oct_graph_add_input(to, v));
    }
    for (const oct_node *n = from->first; n; n = n->next)
        OCT_TRY(clone_node(c, n, to));
    for (int32_t i = 0; i < from->n_outputs; i++) {
        oct_value *v = c->to->values[from->outputs[i]->id];

        if (from->outputs[i]->graph == from) v->graph = to; /* a constant of this body */
        OCT_TRY(oct_graph_add_output(to, v));
    }
    return OCT_OK;
}

static oct_status clone_info(const oct_model_info *from, oct_graph *g)
{
    oct_model_info *to = &g->info;
    bool ok = true;

    *to = *from;
    to->producer_name = copy_str(g, from->producer_name, &ok);
    to->producer_version = copy_str(g, from->producer_version, &ok);
    to->domain = copy_str(g, from->domain, &ok);
    to->doc = copy_str(g, from->doc, &ok);
    to->opsets = oct_arena_array(g->arena, (size_t)OCT_MAX(from->n_opsets, 1), sizeof(oct_opset));
    to->props = oct_arena_array(g->arena, (size_t)OCT_MAX(from->n_props, 1), sizeof(oct_prop));
    if (!to->opsets || !to->props) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < from->n_opsets; i++)
        to->opsets[i] =
            (oct_opset){copy_str(g, from->opsets[i].domain, &ok), from->opsets[i].version};
    for (int32_t i = 0; i < from->n_props; i++)
        to->props[i] = (oct_prop){copy_str(g, from->props[i].key, &ok),
                                  copy_str(g, from->props[i].value, &ok)};
    return ok ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status clone_root(const oct_graph *g, oct_graph *to)
{
    cloner c = {.to = to};

    OCT_TRY(oct_grow(g->ctx, &to->values, &to->cap_values, (size_t)OCT_MAX(g->n_value_ids, 1),
                     sizeof(oct_value *)));
    memset(to->values, 0, (size_t)g->n_value_ids * sizeof(oct_value *));
    to->n_value_ids = g->n_value_ids;
    for (int32_t i = 0; i < g->n_value_ids; i++)
        if (g->values[i]) OCT_TRY(clone_value(&c, g->values[i], to));
    OCT_TRY(clone_info(&g->info, to));
    OCT_TRY(clone_graph(&c, g, to));
    to->n_node_ids = g->n_node_ids;
    to->name_serial = g->name_serial;
    return OCT_OK;
}

oct_status oct_graph_clone(const oct_graph *g, oct_graph **out)
{
    oct_graph *to = NULL;
    oct_status st;

    if (g->parent) return oct_fail(g->ctx, OCT_ERR_ARG, "only a whole graph can be cloned");
    OCT_TRY(oct_graph_new(g->ctx, g->name, &to));
    st = clone_root(g, to);
    if (st)
        oct_graph_free(to);
    else
        *out = to;
    return st;
}
