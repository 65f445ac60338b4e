/* SPDX-License-Identifier: Apache-2.0 */
/* The table of layers, before and after pruning. */
#include "prune/result.h"

#include "base/map.h"
#include "base/sized.h"
#include "op/op.h"

struct oct_prune_result {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_prune_totals totals;
    oct_prune_layer *layers;
    const oct_node **nodes; /* of each layer; of the graph that was pruned */
    int32_t n;
};

oct_status oct_prune_result_new(oct_ctx *ctx, oct_prune_result **out)
{
    oct_prune_result *r = oct_calloc(ctx, 1, sizeof(*r));

    *out = NULL;
    if (!r) return OCT_ERR_MEMORY;
    r->ctx = ctx;
    if (!(r->arena = oct_arena_new(ctx))) {
        oct_free(ctx, r);
        return OCT_ERR_MEMORY;
    }
    *out = r;
    return OCT_OK;
}

void oct_prune_result_free(oct_prune_result *r)
{
    if (!r) return;
    oct_arena_free(r->arena);
    oct_free(r->ctx, r);
}

oct_prune_totals *oct_prune_result_totals(oct_prune_result *r)
{
    return &r->totals;
}

static int64_t params_of(const oct_graph *g)
{
    int64_t n = 0;

    for (int32_t id = 0; id < g->n_value_ids; id++) {
        const oct_value *v = g->values[id];

        if (v && v->data && oct_dtype_is_float(v->data->type.dtype)) n += oct_tensor_len(v->data);
    }
    return n;
}

/* Channels that a layer makes and reads, by its weights. */
static void sizes_of(const oct_node *n, int64_t *made, int64_t *read)
{
    oct_weight_axes w;

    if (!oct_weight_axes_of(n, &w)) return;
    *made = w.out == 0 ? w.n_out : w.n_out * w.groups;
    *read = w.in == 0 ? w.n_in : w.n_in * w.groups;
}

/* The reason, if none of the channels can go; a layer's channels may be of several groups. */
static const oct_unit *reason(const oct_channels *c, const oct_cut *k)
{
    const oct_unit *first = NULL;

    for (int64_t i = 0; i < k->n; i++) {
        const oct_unit *u = k->unit[i] >= 0 ? &c->units[k->unit[i]] : NULL;

        if (u && !u->why) return NULL;
        if (u && !first) first = u;
    }
    return first;
}

static oct_status add_layer(oct_prune_result *r, const oct_channels *c, const oct_cut *k)
{
    oct_prune_layer *l = &r->layers[r->n];
    const oct_unit *u = reason(c, k);

    r->nodes[r->n++] = k->node;
    l->name = oct_arena_strdup(r->arena, k->node->name);
    l->op = k->node->op->name;
    if (!l->name) return OCT_ERR_MEMORY;
    if (u) l->why = u->why;
    if (u && u->node && !(l->at = oct_arena_strdup(r->arena, u->node->name))) return OCT_ERR_MEMORY;
    sizes_of(k->node, &l->channels, &l->inputs);
    l->macs = oct_node_macs(k->node);
    l->params = oct_node_params(k->node);
    r->totals.channels += l->channels;
    return OCT_OK;
}

oct_status oct_prune_result_before(oct_prune_result *r, const oct_prune_groups *g)
{
    const oct_channels *c = g->c;

    r->layers = oct_arena_array(r->arena, (size_t)c->n_cuts + 1, sizeof(*r->layers));
    r->nodes = oct_arena_array(r->arena, (size_t)c->n_cuts + 1, sizeof(oct_node *));
    if (!r->layers || !r->nodes) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < c->n_cuts; i++)
        if (c->cuts[i].role == OCT_CUT_OUT && c->cuts[i].axis >= 0)
            OCT_TRY(add_layer(r, c, &c->cuts[i]));
    r->totals.n_groups = g->n;
    for (int32_t i = 0; i < g->n; i++)
        r->totals.n_protected += g->groups[i].why != NULL;
    for (const oct_node *n = c->g->first; n; n = n->next)
        r->totals.macs += oct_node_macs(n);
    r->totals.params = params_of(c->g);
    return OCT_OK;
}

oct_status oct_prune_result_move(oct_prune_result *r, const oct_graph *to)
{
    oct_map map;
    oct_status st = OCT_OK;
    int32_t n = 0;

    oct_map_init(&map, r->ctx);
    for (oct_node *k = to->first; k && !st; k = k->next)
        st = oct_map_put(&map, k->name, k);
    for (int32_t i = 0; i < r->n && !st; i++) {
        r->nodes[i] = oct_map_get(&map, r->layers[i].name);
        n += r->nodes[i] != NULL;
    }
    oct_map_fini(&map);
    if (!st && !n)
        st =
            oct_fail(r->ctx, OCT_ERR_ARG,
                     "the networks have no layers of the same names: one is not the other, pruned");
    return st;
}

void oct_prune_result_after(oct_prune_result *r, const oct_graph *g)
{
    for (int32_t i = 0; i < r->n; i++) {
        oct_prune_layer *l = &r->layers[i];

        if (!r->nodes[i]) continue;
        sizes_of(r->nodes[i], &l->channels_left, &l->inputs_left);
        l->macs_left = oct_node_macs(r->nodes[i]);
        l->params_left = oct_node_params(r->nodes[i]);
        r->totals.channels_left += l->channels_left;
    }
    for (const oct_node *n = g->first; n; n = n->next)
        r->totals.macs_left += oct_node_macs(n);
    r->totals.params_left = params_of(g);
}

void oct_prune_get_totals(const oct_prune_result *r, oct_prune_totals *out)
{
    oct_sized_give(out, &r->totals, sizeof(r->totals));
}

int32_t oct_prune_get_layer(const oct_prune_result *r, int32_t i, oct_prune_layer *out)
{
    if (i < 0 || i >= r->n) return 0;
    oct_sized_give(out, &r->layers[i], sizeof(r->layers[i]));
    return 1;
}
