/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a whole graph, and sorting of its nodes. */
#include <string.h>

#include "graph/op.h"

#define MAX_DEPTH 64 /* of nested subgraphs */

typedef struct verifier {
    const oct_graph *root;
    uint8_t *seen; /* by value id: defined so far */
    oct_map names;
} verifier;

static bool reads(const oct_node *n, const oct_value *v)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] == v) return true;
    return false;
}

static oct_status check_inputs(verifier *c, const oct_node *n)
{
    if (n->n_in < n->op->min_in)
        return oct_node_fail(n, OCT_ERR_FORMAT, "has %d inputs, needs at least %d", (int)n->n_in,
                             n->op->min_in);
    if (n->op->max_in >= 0 && n->n_in > n->op->max_in)
        return oct_node_fail(n, OCT_ERR_FORMAT, "has %d inputs, takes at most %d", (int)n->n_in,
                             n->op->max_in);
    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_value *v = n->in[i];

        if (!v) {
            if (i < n->op->min_in && n->op->max_in >= 0)
                return oct_node_fail(n, OCT_ERR_FORMAT, "input %d must be given", (int)i);
            continue;
        }
        if (c->root->values[v->id] != v)
            return oct_node_fail(n, OCT_ERR_FORMAT, "input '%s' was removed", v->name);
        if (!oct_value_known(v) && !c->seen[v->id])
            return oct_node_fail(n, OCT_ERR_FORMAT, "input '%s' is made later or never", v->name);
        if (v->n_users < 1)
            return oct_node_fail(n, OCT_ERR_STATE, "input '%s' does not know of it", v->name);
    }
    return OCT_OK;
}

static oct_status check_outputs(verifier *c, const oct_node *n)
{
    const int max_out = n->op->max_out ? n->op->max_out : 1;

    if (max_out >= 0 && n->n_out > max_out)
        return oct_node_fail(n, OCT_ERR_FORMAT, "has %d outputs, gives at most %d", (int)n->n_out,
                             max_out);
    for (int32_t i = 0; i < n->n_out; i++) {
        const oct_value *v = n->out[i];

        if (!v) continue;
        if (v->producer != n || v->out_index != i)
            return oct_node_fail(n, OCT_ERR_FORMAT, "output '%s' is made twice", v->name);
        if (oct_value_known(v))
            return oct_node_fail(n, OCT_ERR_FORMAT, "output '%s' is a constant", v->name);
        c->seen[v->id] = 1;
    }
    return OCT_OK;
}

static oct_status check_attrs(const oct_node *n)
{
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++) {
        const oct_attr_def *d = &n->op->attrs[i];

        if (n->attr[i].kind == OCT_ATTR_NONE && d->required)
            return oct_node_fail(n, OCT_ERR_FORMAT, "attribute '%s' must be given", d->name);
        if (n->attr[i].kind != OCT_ATTR_NONE && n->attr[i].kind != d->kind)
            return oct_node_fail(n, OCT_ERR_FORMAT, "attribute '%s' is of the wrong kind", d->name);
    }
    return OCT_OK;
}

static oct_status check_graph(verifier *c, const oct_graph *g, int depth);

static oct_status check_bodies(verifier *c, const oct_node *n, int depth)
{
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++)
        if (n->attr[i].kind == OCT_ATTR_GRAPH) OCT_TRY(check_graph(c, n->attr[i].g, depth + 1));
    for (int i = 0; i < n->n_extra; i++)
        if (n->extra[i].value.kind == OCT_ATTR_GRAPH)
            OCT_TRY(check_graph(c, n->extra[i].value.g, depth + 1));
    return OCT_OK;
}

static oct_status check_graph(verifier *c, const oct_graph *g, int depth)
{
    if (depth > MAX_DEPTH) return oct_fail(g->ctx, OCT_ERR_FORMAT, "subgraphs nest too deeply");
    for (int32_t i = 0; i < g->n_inputs; i++)
        c->seen[g->inputs[i]->id] = 1;
    for (const oct_node *n = g->first; n; n = n->next) {
        if (n->graph != g) return oct_node_fail(n, OCT_ERR_STATE, "is in the wrong graph");
        OCT_TRY(check_inputs(c, n));
        OCT_TRY(check_attrs(n));
        OCT_TRY(check_bodies(c, n, depth));
        OCT_TRY(check_outputs(c, n));
    }
    for (int32_t i = 0; i < g->n_outputs; i++) {
        const oct_value *v = g->outputs[i];

        if (!oct_value_known(v) && !c->seen[v->id])
            return oct_fail(g->ctx, OCT_ERR_FORMAT, "output '%s' of graph '%s' is never made",
                            v->name, g->name);
    }
    return OCT_OK;
}

/* Links the other way round: every user a value lists really reads it. */
static oct_status check_values(verifier *c)
{
    const oct_graph *g = c->root;

    for (int32_t i = 0; i < g->n_value_ids; i++) {
        const oct_value *v = g->values[i];

        if (!v) continue;
        for (int32_t u = 0; u < v->n_users; u++) {
            if (u > 0 && v->users[u] == v->users[u - 1]) continue; /* reads it more than once */
            if (!reads(v->users[u], v))
                return oct_fail(g->ctx, OCT_ERR_STATE, "value '%s' lists node '%s' as a user",
                                v->name, v->users[u]->name);
        }
        if (oct_map_get(&c->names, v->name))
            return oct_fail(g->ctx, OCT_ERR_FORMAT, "two values are called '%s'", v->name);
        OCT_TRY(oct_map_put(&c->names, v->name, (void *)(uintptr_t)v));
    }
    return OCT_OK;
}

oct_status oct_graph_verify(const oct_graph *g)
{
    verifier c = {.root = g->root};
    oct_status st;

    c.seen = oct_calloc(g->ctx, (size_t)OCT_MAX(g->root->n_value_ids, 1), 1);
    if (!c.seen) return OCT_ERR_MEMORY;
    oct_map_init(&c.names, g->ctx);
    st = check_graph(&c, g->root, 0);
    if (!st) st = check_values(&c);
    oct_map_fini(&c.names);
    oct_free(g->ctx, c.seen);
    return st;
}

/* --- sorting --- */

typedef struct sorter {
    oct_graph *g;
    int32_t *waiting; /* by node id: distinct inputs of this graph not yet made; -1: placed */
} sorter;

/* The node of graph g that holds `n`, which may be deep inside its bodies. */
static oct_node *holder(const oct_graph *g, oct_node *n, oct_node *const *body_of)
{
    while (n && n->graph != g)
        n = body_of[n->id];
    return n;
}

static void note_bodies(oct_node *owner, const oct_node *n, oct_node **body_of)
{
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++) {
        if (n->attr[i].kind != OCT_ATTR_GRAPH) continue;
        for (oct_node *b = n->attr[i].g->first; b; b = b->next) {
            body_of[b->id] = owner;
            note_bodies(owner, b, body_of);
        }
    }
}

/* The node is placed: nodes that waited only for it become ready. */
static void release_users(sorter *s, const oct_node *n, oct_node *const *body_of, oct_node **ready,
                          int32_t *n_ready)
{
    for (int32_t o = 0; o < n->n_out; o++) {
        const oct_value *v = n->out[o];

        for (int32_t u = 0; v && u < v->n_users; u++) {
            oct_node *h = holder(s->g, v->users[u], body_of);

            if (h && h != n && --s->waiting[h->id] == 0) ready[(*n_ready)++] = h;
        }
    }
}

static void count_waiting(sorter *s, oct_node *const *body_of)
{
    for (oct_node *n = s->g->first; n; n = n->next)
        for (int32_t o = 0; o < n->n_out; o++) {
            const oct_value *v = n->out[o];

            for (int32_t u = 0; v && u < v->n_users; u++) {
                oct_node *h = holder(s->g, v->users[u], body_of);

                if (h) s->waiting[h->id]++; /* h == n: reads itself, never ready */
            }
        }
}

static bool is_sorted(const oct_graph *g, uint8_t *made, oct_node *const *body_of)
{
    for (const oct_node *n = g->first; n; n = n->next) {
        for (int32_t o = 0; o < n->n_out; o++) {
            const oct_value *v = n->out[o];

            for (int32_t u = 0; v && u < v->n_users; u++) {
                const oct_node *h = holder(g, v->users[u], body_of);

                if (h == n || (h && made[h->id])) return false;
            }
        }
        made[n->id] = 1;
    }
    return true;
}

static oct_status sort_nodes(sorter *s, oct_node *const *body_of, oct_node **ready)
{
    oct_graph *g = s->g;
    const int32_t n_nodes = g->n_nodes;
    int32_t n_ready = 0, at = 0;

    count_waiting(s, body_of);
    for (oct_node *n = g->first; n; n = n->next)
        if (s->waiting[n->id] == 0) ready[n_ready++] = n;
    while (at < n_ready)
        release_users(s, ready[at++], body_of, ready, &n_ready);
    if (n_ready < n_nodes) {
        for (const oct_node *n = g->first; n; n = n->next)
            if (s->waiting[n->id] > 0)
                return oct_node_fail(n, OCT_ERR_FORMAT, "is part of a cycle");
    }
    for (int32_t i = 0; i < n_nodes; i++)
        oct_node_move_before(ready[i], NULL);
    return OCT_OK;
}

oct_status oct_graph_sort(oct_graph *g)
{
    const size_t n_ids = (size_t)OCT_MAX(g->root->n_node_ids, 1);
    sorter s = {.g = g};
    oct_node **body_of = NULL, **ready = NULL;
    uint8_t *made = NULL;
    oct_status st = OCT_ERR_MEMORY;

    if (!(s.waiting = oct_calloc(g->ctx, n_ids, sizeof(int32_t)))) goto done;
    if (!(body_of = oct_calloc(g->ctx, n_ids, sizeof(oct_node *)))) goto done;
    if (!(ready = oct_calloc(g->ctx, n_ids, sizeof(oct_node *)))) goto done;
    if (!(made = oct_calloc(g->ctx, n_ids, 1))) goto done;
    for (oct_node *n = g->first; n; n = n->next)
        note_bodies(n, n, body_of);
    st = is_sorted(g, made, body_of) ? OCT_OK : sort_nodes(&s, body_of, ready);
done:
    oct_free(g->ctx, s.waiting);
    oct_free(g->ctx, body_of);
    oct_free(g->ctx, ready);
    oct_free(g->ctx, made);
    return st;
}
