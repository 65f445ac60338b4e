/* SPDX-License-Identifier: Apache-2.0 */
/* Creating and changing graphs: values, nodes, their links. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "graph/op.h"

oct_status oct_graph_new(oct_ctx *ctx, const char *name, oct_graph **out)
{
    oct_arena *arena = oct_arena_new(ctx);
    oct_graph *g = arena ? oct_arena_alloc(arena, sizeof(*g)) : NULL;

    if (!g) {
        oct_arena_free(arena);
        return OCT_ERR_MEMORY;
    }
    g->ctx = ctx;
    g->arena = arena;
    g->root = g;
    g->name = oct_arena_strdup(arena, name ? name : "");
    if (!g->name) {
        oct_arena_free(arena);
        return OCT_ERR_MEMORY;
    }
    *out = g;
    return OCT_OK;
}

oct_status oct_graph_new_sub(oct_graph *parent, const char *name, oct_graph **out)
{
    oct_graph *g = oct_arena_alloc(parent->arena, sizeof(*g));

    if (!g) return OCT_ERR_MEMORY;
    g->ctx = parent->ctx;
    g->arena = parent->arena;
    g->parent = parent;
    g->root = parent->root;
    g->name = oct_arena_strdup(parent->arena, name ? name : "");
    if (!g->name) return OCT_ERR_MEMORY;
    *out = g;
    return OCT_OK;
}

static void drop_attr(oct_attr *a)
{
    if (a->kind == OCT_ATTR_TENSOR && a->given) oct_tensor_unref(a->t);
    *a = (oct_attr){0};
}

static void free_graph_parts(oct_graph *g);

static void free_node_parts(oct_node *n)
{
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k && n->attr; i++) {
        if (n->attr[i].kind == OCT_ATTR_GRAPH && n->attr[i].g) free_graph_parts(n->attr[i].g);
        drop_attr(&n->attr[i]);
    }
    for (int i = 0; i < n->n_extra; i++) {
        if (n->extra[i].value.kind == OCT_ATTR_GRAPH) free_graph_parts(n->extra[i].value.g);
        drop_attr(&n->extra[i].value);
    }
}

static void free_graph_parts(oct_graph *g)
{
    for (oct_node *n = g->first; n; n = n->next)
        free_node_parts(n);
    oct_free(g->ctx, g->inputs);
    oct_free(g->ctx, g->outputs);
    g->inputs = g->outputs = NULL;
    g->first = g->last = NULL;
}

void oct_graph_free(oct_graph *g)
{
    if (!g) return;

    free_graph_parts(g);
    for (int32_t i = 0; i < g->n_value_ids; i++) {
        if (!g->values[i]) continue;
        oct_tensor_unref(g->values[i]->data);
        oct_tensor_unref(g->values[i]->initial);
        oct_free(g->ctx, g->values[i]->users);
    }
    oct_free(g->ctx, g->values);
    oct_arena_free(g->arena); /* g itself is in there */
}

/* --- values --- */

const char *oct_graph_fresh_name(oct_graph *g, const char *base)
{
    oct_graph *root = g->root;

    /* '~' does not occur in exporters' names, so a counter makes these unique without a search;
     * readers that meet one raise the counter (see oct_value_new). */
    return oct_arena_printf(g->arena, "%s~%lld", base, (long long)root->name_serial++);
}

/* Keeps the counter of made-up names ahead of any such name that comes from a file. */
static void note_name(oct_graph *root, const char *name)
{
    const char *tail = strrchr(name, '~');
    long long k;

    if (tail && sscanf(tail + 1, "%lld", &k) == 1 && k >= 0 && k < INT64_MAX / 2 &&
        k >= root->name_serial)
        root->name_serial = k + 1;
}

oct_value *oct_value_new(oct_graph *g, const char *name, const oct_type *type)
{
    oct_graph *root = g->root;
    oct_value *v = oct_arena_alloc(g->arena, sizeof(*v));

    if (!v) return NULL;
    if (oct_grow(g->ctx, &root->values, &root->cap_values, (size_t)root->n_value_ids + 1,
                 sizeof(oct_value *)))
        return NULL;
    v->graph = g;
    v->type = type ? *type : oct_type_unknown(OCT_DTYPE_NONE);
    v->name = name ? oct_arena_strdup(g->arena, name) : oct_graph_fresh_name(g, "value");
    if (!v->name) return NULL;
    if (name) note_name(root, name);
    v->id = root->n_value_ids;
    root->values[root->n_value_ids++] = v;
    return v;
}

oct_value *oct_value_const(oct_graph *g, const char *name, oct_tensor *t)
{
    oct_value *v = oct_value_new(g, name, &t->type);

    if (!v) {
        oct_tensor_unref(t);
        return NULL;
    }
    v->data = t;
    return v;
}

oct_value_kind oct_value_kind_of(const oct_value *v)
{
    if (v->initial) return v->is_state ? OCT_VALUE_STATE : OCT_VALUE_PARAM;
    if (v->data) return OCT_VALUE_CONST;
    return v->producer ? OCT_VALUE_INNER : OCT_VALUE_INPUT;
}

void oct_value_to_param(oct_value *v, bool is_state)
{
    if (!v->data) return;
    v->initial = v->data;
    v->data = NULL;
    v->is_state = is_state;
}

void oct_value_to_const(oct_value *v)
{
    if (!v->initial) return;
    v->data = v->initial;
    v->initial = NULL;
    v->is_state = false;
}

void oct_graph_params_to_consts(oct_graph *g)
{
    for (int32_t i = 0; i < g->root->n_value_ids; i++)
        if (g->root->values[i]) oct_value_to_const(g->root->values[i]);
}

oct_status oct_graph_add_input(oct_graph *g, oct_value *v)
{
    OCT_TRY(
        oct_grow(g->ctx, &g->inputs, &g->cap_inputs, (size_t)g->n_inputs + 1, sizeof(oct_value *)));
    g->inputs[g->n_inputs++] = v;
    v->is_input = true;
    return OCT_OK;
}

oct_status oct_graph_add_output(oct_graph *g, oct_value *v)
{
    OCT_TRY(oct_grow(g->ctx, &g->outputs, &g->cap_outputs, (size_t)g->n_outputs + 1,
                     sizeof(oct_value *)));
    g->outputs[g->n_outputs++] = v;
    v->is_output = true;
    return OCT_OK;
}

oct_value *oct_graph_find_value(const oct_graph *g, const char *name)
{
    const oct_graph *root = g->root;

    for (int32_t i = 0; i < root->n_value_ids; i++)
        if (root->values[i] && strcmp(root->values[i]->name, name) == 0) return root->values[i];
    return NULL;
}

oct_node *oct_graph_find_node(const oct_graph *g, const char *name)
{
    for (oct_node *n = g->first; n; n = n->next)
        if (strcmp(n->name, name) == 0) return n;
    return NULL;
}

static oct_status add_user(oct_value *v, oct_node *n)
{
    size_t cap = (size_t)v->cap_users;

    OCT_TRY(oct_grow(v->graph->ctx, &v->users, &cap, (size_t)v->n_users + 1, sizeof(oct_node *)));
    v->cap_users = (int32_t)cap;
    v->users[v->n_users++] = n;
    return OCT_OK;
}

static void remove_user(oct_value *v, const oct_node *n)
{
    /* From the end: nodes are mostly removed soon after they were linked. Order is kept, so that
     * passes see users in the order of the file. */
    for (int32_t i = v->n_users - 1; i >= 0; i--) {
        if (v->users[i] != n) continue;
        memmove(&v->users[i], &v->users[i + 1], (size_t)(v->n_users - 1 - i) * sizeof(oct_node *));
        v->n_users--;
        return;
    }
}

bool oct_value_can_replace(const oct_value *from, const oct_value *to)
{
    if (from->graph != to->graph) return !from->is_output;
    return !from->is_output || (to->producer && !to->is_input && !to->is_output && !to->data);
}

oct_status oct_value_replace_uses(oct_value *from, oct_value *to)
{
    while (from->n_users > 0) {
        oct_node *n = from->users[0];

        for (int32_t i = 0; i < n->n_in; i++)
            if (n->in[i] == from) OCT_TRY(oct_node_set_input(n, i, to));
    }
    if (!from->is_output) return OCT_OK;
    if (!oct_value_can_replace(from, to))
        return oct_fail(from->graph->ctx, OCT_ERR_STATE,
                        "output '%s' cannot be replaced by value '%s'", from->name, to->name);

    oct_graph *g = from->graph;
    const char *name = from->name;

    for (int32_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == from) g->outputs[i] = to;
    from->name = to->name; /* the interface's name goes with the output */
    to->name = name;
    to->is_output = true;
    from->is_output = false;
    return OCT_OK;
}

/* --- nodes --- */

int oct_op_n_attrs(const oct_op *op)
{
    int n = 0;

    while (op->attrs && op->attrs[n].name)
        n++;
    return n;
}

const oct_op *oct_op_opaque(oct_graph *g, const char *domain, const char *name)
{
    oct_op *op = NULL;

    /* One row for each name: nodes of the same unknown operator compare equal. */
    for (const oct_node *n = g->first; n; n = n->next)
        if (oct_op_is_opaque(n->op) && strcmp(n->op->name, name) == 0 &&
            strcmp(oct_op_domain(n->op), domain) == 0)
            return n->op;
    if (!(op = oct_arena_alloc(g->arena, sizeof(*op)))) return NULL;
    op->name = oct_arena_strdup(g->arena, name);
    op->domain = oct_arena_strdup(g->arena, domain);
    op->max_in = -1;
    op->max_out = -1;
    op->since = 1;
    op->flow = OCT_FLOW_STOP;
    return op->name && op->domain ? op : NULL;
}

static void link_node(oct_graph *g, oct_node *n, oct_node *before)
{
    n->next = before;
    n->prev = before ? before->prev : g->last;
    *(n->prev ? &n->prev->next : &g->first) = n;
    *(before ? &before->prev : &g->last) = n;
    g->n_nodes++;
}

static void unlink_node(oct_graph *g, oct_node *n)
{
    *(n->prev ? &n->prev->next : &g->first) = n->next;
    *(n->next ? &n->next->prev : &g->last) = n->prev;
    n->prev = n->next = NULL;
    g->n_nodes--;
}

static oct_status set_defaults(oct_node *n)
{
    const int k = oct_op_n_attrs(n->op);

    n->attr = oct_arena_array(n->graph->arena, (size_t)OCT_MAX(k, 1), sizeof(oct_attr));
    if (!n->attr) return OCT_ERR_MEMORY;
    for (int i = 0; i < k; i++) {
        const oct_attr_def *d = &n->op->attrs[i];
        oct_attr *a = &n->attr[i];

        if (d->no_default || d->required) continue;
        a->kind = d->kind;
        a->n = d->n_def;
        if (d->kind == OCT_ATTR_F32)
            a->f = d->def.f;
        else if (d->kind == OCT_ATTR_INT)
            a->i = d->def.i;
        else if (d->kind == OCT_ATTR_STRING) {
            a->s = d->def.s;
            a->n = (int64_t)strlen(d->def.s);
        } else if (d->kind == OCT_ATTR_INTS)
            a->is = d->def.is;
        else
            a->kind = OCT_ATTR_NONE;
    }
    return OCT_OK;
}

static oct_status link_operands(oct_node *n, oct_value *const *in, int32_t n_in,
                                oct_value *const *out, int32_t n_out)
{
    oct_graph *g = n->graph;

    n->in = oct_arena_array(g->arena, (size_t)OCT_MAX(n_in, 1), sizeof(oct_value *));
    n->out = oct_arena_array(g->arena, (size_t)OCT_MAX(n_out, 1), sizeof(oct_value *));
    if (!n->in || !n->out) return OCT_ERR_MEMORY;
    n->n_out = n_out;
    for (int32_t i = 0; i < n_out; i++) {
        oct_value *v = out ? out[i] : oct_value_new(g, NULL, NULL);

        if (!v && !out) return OCT_ERR_MEMORY;
        if (!v) continue;
        v->producer = n;
        v->out_index = i;
        n->out[i] = v;
    }
    for (int32_t i = 0; i < n_in; i++) {
        if (in[i]) OCT_TRY(add_user(in[i], n));
        n->in[i] = in[i];
        n->n_in = i + 1;
    }
    return OCT_OK;
}

oct_node *oct_node_new(oct_graph *g, oct_node *before, const char *name, const oct_op *op,
                       oct_value *const *in, int32_t n_in, oct_value *const *out, int32_t n_out)
{
    oct_node *n = oct_arena_alloc(g->arena, sizeof(*n));

    if (!n) return NULL;
    n->graph = g;
    n->op = op;
    n->name = name ? oct_arena_strdup(g->arena, name) : oct_graph_fresh_name(g, op->name);
    if (!n->name || set_defaults(n)) return NULL;
    if (name) note_name(g->root, name);
    if (link_operands(n, in, n_in, out, n_out)) {
        for (int32_t i = 0; i < n->n_in; i++)
            if (n->in[i]) remove_user(n->in[i], n);
        for (int32_t i = 0; n->out && i < n_out; i++)
            if (n->out[i]) n->out[i]->producer = NULL;
        return NULL;
    }
    n->id = g->root->n_node_ids++;
    link_node(g, n, before);
    return n;
}

oct_status oct_node_set_input(oct_node *n, int32_t i, oct_value *v)
{
    if (v) OCT_TRY(add_user(v, n));
    if (i == n->n_in) {
        oct_value **in = oct_arena_array(n->graph->arena, (size_t)n->n_in + 1, sizeof(oct_value *));

        if (!in) {
            if (v) remove_user(v, n);
            return OCT_ERR_MEMORY;
        }
        memcpy(in, n->in, (size_t)n->n_in * sizeof(oct_value *));
        n->in = in;
        n->n_in++;
    } else if (n->in[i]) {
        remove_user(n->in[i], n);
    }
    n->in[i] = v;
    return OCT_OK;
}

static void remove_value(oct_value *v)
{
    oct_graph *root = v->graph->root;

    oct_tensor_unref(v->data);
    oct_tensor_unref(v->initial);
    v->data = v->initial = NULL;
    oct_free(root->ctx, v->users);
    v->users = NULL;
    v->n_users = v->cap_users = 0;
    v->producer = NULL;
    root->values[v->id] = NULL;
}

/* Drops all references of a node, subgraphs included. */
static void release_uses(oct_node *n)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i]) remove_user(n->in[i], n);
    n->n_in = 0;
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++)
        if (n->attr[i].kind == OCT_ATTR_GRAPH)
            for (oct_node *b = n->attr[i].g->first; b; b = b->next)
                release_uses(b);
    for (int i = 0; i < n->n_extra; i++)
        if (n->extra[i].value.kind == OCT_ATTR_GRAPH)
            for (oct_node *b = n->extra[i].value.g->first; b; b = b->next)
                release_uses(b);
}

void oct_node_remove(oct_node *n)
{
    release_uses(n);
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) remove_value(n->out[i]);
    free_node_parts(n);
    unlink_node(n->graph, n);
}

void oct_node_move_before(oct_node *n, oct_node *before)
{
    oct_graph *g = n->graph;

    if (before == n) return;
    unlink_node(g, n);
    link_node(g, n, before);
}

/* --- attributes --- */

static oct_status copy_attr(oct_graph *g, oct_attr *dst, const oct_attr *src)
{
    oct_attr a = *src;
    size_t size = 0;

    a.given = true;
    if (a.kind == OCT_ATTR_F32S) size = sizeof(float);
    if (a.kind == OCT_ATTR_INTS) size = sizeof(int64_t);
    if (size) {
        void *p = oct_arena_array(g->arena, (size_t)OCT_MAX(a.n, 1), size);

        if (!p) return OCT_ERR_MEMORY;
        if (a.n) memcpy(p, src->is, (size_t)a.n * size);
        a.is = p;
    } else if (a.kind == OCT_ATTR_STRING || a.kind == OCT_ATTR_RAW) {
        char *p = oct_arena_alloc(g->arena, (size_t)a.n + 1);

        if (!p) return OCT_ERR_MEMORY;
        if (a.n) memcpy(p, src->s, (size_t)a.n);
        a.s = p;
    } else if (a.kind == OCT_ATTR_STRINGS) {
        const char **p = oct_arena_array(g->arena, (size_t)OCT_MAX(a.n, 1), sizeof(char *));

        if (!p) return OCT_ERR_MEMORY;
        for (int64_t i = 0; i < a.n; i++)
            if (!(p[i] = oct_arena_strdup(g->arena, src->ss[i]))) return OCT_ERR_MEMORY;
        a.ss = p;
    } else if (a.kind == OCT_ATTR_TENSOR) {
        oct_tensor_ref(a.t);
    }
    *dst = a;
    return OCT_OK;
}

oct_status oct_node_set_attr(oct_node *n, const char *name, const oct_attr *value)
{
    oct_graph *g = n->graph;
    oct_attr copy = {0};
    oct_extra_attr *extra;

    OCT_TRY(copy_attr(g, &copy, value));
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++) {
        if (strcmp(n->op->attrs[i].name, name) != 0) continue;
        if (n->op->attrs[i].kind != value->kind) {
            drop_attr(&copy);
            return oct_node_fail(n, OCT_ERR_TYPE, "attribute '%s' is of the wrong kind", name);
        }
        drop_attr(&n->attr[i]);
        n->attr[i] = copy;
        return OCT_OK;
    }
    for (int i = 0; i < n->n_extra; i++) {
        if (strcmp(n->extra[i].name, name) != 0) continue;
        drop_attr(&n->extra[i].value);
        n->extra[i].value = copy;
        return OCT_OK;
    }
    extra = oct_arena_array(g->arena, (size_t)n->n_extra + 1, sizeof(*extra));
    name = oct_arena_strdup(g->arena, name);
    if (!extra || !name) {
        drop_attr(&copy);
        return OCT_ERR_MEMORY;
    }
    if (n->n_extra) memcpy(extra, n->extra, (size_t)n->n_extra * sizeof(*extra));
    extra[n->n_extra] = (oct_extra_attr){.name = name, .value = copy};
    n->extra = extra;
    n->n_extra++;
    return OCT_OK;
}

oct_status oct_node_set_int(oct_node *n, const char *name, int64_t v)
{
    return oct_node_set_attr(n, name, &(oct_attr){.kind = OCT_ATTR_INT, .i = v});
}

oct_status oct_node_set_f32(oct_node *n, const char *name, float v)
{
    return oct_node_set_attr(n, name, &(oct_attr){.kind = OCT_ATTR_F32, .f = v});
}

oct_status oct_node_set_str(oct_node *n, const char *name, const char *v)
{
    return oct_node_set_attr(n, name,
                             &(oct_attr){.kind = OCT_ATTR_STRING, .s = v, .n = (int64_t)strlen(v)});
}

oct_status oct_node_set_ints(oct_node *n, const char *name, const int64_t *v, int64_t n_v)
{
    return oct_node_set_attr(n, name, &(oct_attr){.kind = OCT_ATTR_INTS, .is = v, .n = n_v});
}

const oct_attr *oct_node_attr(const oct_node *n, const char *name)
{
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++)
        if (strcmp(n->op->attrs[i].name, name) == 0)
            return n->attr[i].kind == OCT_ATTR_NONE ? NULL : &n->attr[i];
    for (int i = 0; i < n->n_extra; i++)
        if (strcmp(n->extra[i].name, name) == 0) return &n->extra[i].value;
    return NULL;
}

#undef oct_node_fail
oct_status oct_node_fail(const oct_node *n, oct_status status, const char *fmt, ...)
{
    char text[768];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return oct_fail(n->graph->ctx, status, "node '%s' (%s): %s", n->name, n->op->name, text);
}
