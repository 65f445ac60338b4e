/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a network into blocks: see blocks.h. */
#include "quant/learn/blocks.h"

#include <string.h>

#include "op/channels.h"
#include "op/op.h"

typedef struct cutter {
    const oct_qmap *m;
    const oct_graph *g;
    oct_arena *a;
    int32_t size;
    uint8_t *is_needed; /* by value id: a layer depends on it */
    int32_t *of;        /* by node id: its block, or -1 */
    int32_t *depth;     /* by node id: layers up to it inside its block */
    int32_t *level;     /* by node id: layers up to it in the network, on the longest path */
    uint8_t *is_done;   /* by node id: it has its block */
    int32_t *deepest;   /* by block */
    uint8_t *is_closed; /* by block: no further layers */
    int32_t n;
} cutter;

static bool is_layer(const oct_qmap *m, const oct_node *n)
{
    const int32_t w = n->n_in > 1 && n->in[1] ? oct_qmap_at(m, n, 1) : -1;
    oct_weight_axes ax;

    return w >= 0 && m->points[w].role == OCT_QROLE_WEIGHT &&
           m->points[w].state == OCT_QSTATE_ACTIVE && oct_weight_axes_of(n, &ax);
}

static bool has_weights(const oct_node *n)
{
    oct_weight_axes ax;

    return oct_weight_axes_of(n, &ax);
}

static bool is_const(const oct_value *v)
{
    return !v || oct_value_known(v);
}

/* Nodes that some layer needs, and layers. */
static bool is_needed(const cutter *c, const oct_node *n)
{
    bool any = is_layer(c->m, n);

    for (int32_t k = 0; k < n->n_out && !any; k++)
        any = n->out[k] && c->is_needed[n->out[k]->id];
    return any;
}

static oct_status find_needed(cutter *c)
{
    for (const oct_node *n = c->g->last; n; n = n->prev) {
        if (!is_needed(c, n)) continue;
        for (int k = 0; k < oct_op_n_attrs(n->op); k++)
            if (n->attr[k].kind == OCT_ATTR_GRAPH)
                return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                                     "networks with bodies cannot be learned block by block");
        c->of[n->id] = 0; /* for now: in some block */
        for (int32_t i = 0; i < n->n_in; i++)
            if (n->in[i]) c->is_needed[n->in[i]->id] = 1;
    }
    return OCT_OK;
}

static void find_levels(cutter *c)
{
    for (const oct_node *n = c->g->first; n; n = n->next) {
        for (int32_t i = 0; i < n->n_in; i++)
            if (n->in[i] && n->in[i]->producer)
                c->level[n->id] = OCT_MAX(c->level[n->id], c->level[n->in[i]->producer->id]);
        c->level[n->id] += has_weights(n);
    }
}

/* --- one node after the other --- */

static int32_t new_block(cutter *c)
{
    return c->n++;
}

/* The last block it reads from, and how deep it is there. */
static int32_t latest(const cutter *c, const oct_node *n, int32_t *depth)
{
    int32_t b = 0;

    *depth = 0;
    for (int32_t i = 0; i < n->n_in; i++) {
        const oct_node *p = n->in[i] ? n->in[i]->producer : NULL;

        if (!p || c->of[p->id] < b) continue;
        *depth = c->of[p->id] > b ? c->depth[p->id] : OCT_MAX(*depth, c->depth[p->id]);
        b = c->of[p->id];
    }
    return b;
}

/* Does a node that comes later, but soon enough to be of the same block, read v? */
static bool is_read_soon(const cutter *c, const oct_value *v, const oct_node *now)
{
    for (int32_t i = 0; i < v->n_users; i++) {
        const oct_node *u = v->users[i];

        if (c->of[u->id] >= 0 && !c->is_done[u->id] &&
            c->level[u->id] <= c->level[now->id] + 2 * c->size)
            return true;
    }
    return false;
}

/* Is the result of this node all that will be read of its block soon? */
static bool is_end(const cutter *c, const oct_node *n)
{
    int32_t live = 0;

    if (oct_node_moves_data(n)) return false; /* a Concat moves on to where it is read */
    for (const oct_node *k = n; k; k = k->prev)
        for (int32_t i = 0; i < k->n_out && c->of[k->id] == c->of[n->id]; i++)
            live += k->out[i] && is_read_soon(c, k->out[i], n);
    return live <= 1;
}

static void assign(cutter *c, const oct_node *n)
{
    int32_t depth, b = latest(c, n, &depth);

    if (has_weights(n)) {
        if (c->is_closed[b] || depth >= 2 * c->size) {
            b = new_block(c);
            depth = 0;
        }
        depth++;
    }
    c->of[n->id] = b;
    c->depth[n->id] = depth;
    c->deepest[b] = OCT_MAX(c->deepest[b], depth);
    c->is_done[n->id] = 1;
    if (!c->is_closed[b] && c->deepest[b] >= (c->size + 1) / 2 && is_end(c, n)) c->is_closed[b] = 1;
}

/* Copies (Concat, nearest Resize) are made where they are read: the block before has less to give.
 */
static void sink_copies(cutter *c)
{
    for (const oct_node *n = c->g->last; n; n = n->prev) {
        const oct_value *y = oct_node_out(n, 0);
        int32_t b = -1;

        if (c->of[n->id] < 0 || !oct_node_moves_data(n)) continue;
        for (int32_t k = 0; k < n->n_out; k++) {
            y = n->out[k];
            for (int32_t i = 0; y && i < y->n_users; i++) {
                const int32_t u = c->of[y->users[i]->id];

                b = b < 0 || b == u ? u : c->of[n->id];
            }
            if (y && y->is_output) b = c->of[n->id];
        }
        if (b > c->of[n->id]) c->of[n->id] = b;
    }
}

/* --- what a block reads and gives --- */

static void add_value(const oct_value **list, int32_t *n, const oct_value *v)
{
    for (int32_t i = 0; i < *n; i++)
        if (list[i] == v) return;
    list[(*n)++] = v;
}

static bool is_read_outside(const cutter *c, const oct_value *v, int32_t b)
{
    for (int32_t i = 0; i < v->n_users; i++)
        if (c->of[v->users[i]->id] != b) return true;
    return v->is_output;
}

static oct_status fill(const cutter *c, int32_t index, oct_block *b)
{
    int32_t n = 0, n_in = 0, n_out = 0;

    for (const oct_node *k = c->g->first; k; k = k->next)
        if (c->of[k->id] == index) n++, n_in += k->n_in, n_out += k->n_out;
    b->nodes = oct_arena_array(c->a, (size_t)n + 1, sizeof(*b->nodes));
    b->layers = oct_arena_array(c->a, (size_t)n + 1, sizeof(*b->layers));
    b->in = oct_arena_array(c->a, (size_t)n_in + 1, sizeof(*b->in));
    b->out = oct_arena_array(c->a, (size_t)n_out + 1, sizeof(*b->out));
    if (!b->nodes || !b->layers || !b->in || !b->out) return OCT_ERR_MEMORY;
    b->depth = c->deepest[index];
    for (const oct_node *k = c->g->first; k; k = k->next) {
        if (c->of[k->id] != index) continue;
        b->nodes[b->n_nodes++] = k;
        if (is_layer(c->m, k)) b->layers[b->n_layers++] = k;
        for (int32_t i = 0; i < k->n_in; i++)
            if (!is_const(k->in[i]) &&
                (!k->in[i]->producer || c->of[k->in[i]->producer->id] != index))
                add_value(b->in, &b->n_in, k->in[i]);
        for (int32_t i = 0; i < k->n_out; i++)
            if (k->out[i] && is_read_outside(c, k->out[i], index))
                add_value(b->out, &b->n_out, k->out[i]);
    }
    return OCT_OK;
}

/* Values that pass between blocks are stored: float32 of a known shape. */
static oct_status check(const oct_graph *g, const oct_block *b)
{
    for (int32_t i = 0; i < b->n_in + b->n_out; i++) {
        const oct_value *v = i < b->n_in ? b->in[i] : b->out[i - b->n_in];

        if (v->type.dtype != OCT_DTYPE_F32 || !oct_type_is_static(&v->type))
            return oct_fail(g->ctx, OCT_ERR_UNSUPPORTED,
                            "value '%s' lies between blocks, and is not float32 of a known shape",
                            v->name);
    }
    return OCT_OK;
}

static oct_status list_blocks(cutter *c, oct_blocks *out)
{
    out->item = oct_arena_array(c->a, (size_t)c->n + 1, sizeof(*out->item));
    out->of_node = c->of;
    if (!out->item) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < c->n; i++) {
        oct_block *b = &out->item[out->n];

        OCT_TRY(fill(c, i, b));
        OCT_TRY(check(c->g, b));
        if (b->n_nodes) out->n++; /* all its nodes may have moved on */
    }
    for (int32_t i = 0; i < out->n; i++)
        for (int32_t k = 0; k < out->item[i].n_nodes; k++)
            c->of[out->item[i].nodes[k]->id] = i;
    return OCT_OK;
}

oct_status oct_blocks_find(const oct_qmap *m, int32_t size, oct_arena *a, oct_blocks *out)
{
    const size_t n_nodes = (size_t)m->g->root->n_node_ids + 1,
                 n_values = (size_t)m->g->root->n_value_ids + 1;
    cutter c = {.m = m, .g = m->g, .a = a, .size = size, .n = 1};

    *out = (oct_blocks){0};
    c.is_needed = oct_arena_array(a, n_values, 1);
    c.level = oct_arena_array(a, n_nodes, sizeof(*c.level));
    c.is_done = oct_arena_array(a, n_nodes, 1);
    c.of = oct_arena_array(a, n_nodes, sizeof(*c.of));
    c.depth = oct_arena_array(a, n_nodes, sizeof(*c.depth));
    c.deepest = oct_arena_array(a, n_nodes, sizeof(*c.deepest));
    c.is_closed = oct_arena_array(a, n_nodes, 1);
    if (!c.is_needed || !c.level || !c.is_done || !c.of || !c.depth || !c.deepest || !c.is_closed)
        return OCT_ERR_MEMORY;
    memset(c.of, -1, n_nodes * sizeof(*c.of));
    OCT_TRY(find_needed(&c));
    find_levels(&c);
    for (const oct_node *n = c.g->first; n; n = n->next)
        if (c.of[n->id] >= 0) assign(&c, n);
    sink_copies(&c);
    return list_blocks(&c, out);
}
