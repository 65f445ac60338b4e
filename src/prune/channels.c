/* SPDX-License-Identifier: Apache-2.0 */
/* Units of channels: following all nodes, and what holds for the whole graph afterwards. */
#include "prune/channels.h"

#include <string.h>

#include "op/channels.h"
#include "prune/follow.h"

/* --- units --- */

int32_t oct_unit_root(const oct_channels *c, int32_t unit)
{
    while (unit >= 0 && c->units[unit].parent != unit) {
        c->units[unit].parent = c->units[c->units[unit].parent].parent;
        unit = c->units[unit].parent;
    }
    return unit;
}

const oct_unit *oct_unit_get(const oct_channels *c, int32_t unit)
{
    return &c->units[oct_unit_root(c, unit)];
}

oct_status oct_units_new(oct_channels *c, int64_t n, int32_t *first)
{
    if (n < 0 || n > OCT_MAX_LABELS - c->n_units)
        return oct_fail(c->ctx, OCT_ERR_UNSUPPORTED, "the network has more than %d channels",
                        (int)OCT_MAX_LABELS);
    OCT_TRY(
        oct_grow(c->ctx, &c->units, &c->cap_units, (size_t)(c->n_units + n), sizeof(*c->units)));
    *first = c->n_units;
    for (int64_t i = 0; i < n; i++, c->n_units++)
        c->units[c->n_units] = (oct_unit){.parent = c->n_units};
    return OCT_OK;
}

void oct_unit_protect(oct_channels *c, int32_t unit, const oct_node *n, const char *why)
{
    oct_unit *u;

    if (unit < 0) return;
    u = &c->units[oct_unit_root(c, unit)];
    if (u->why) return;
    u->why = why;
    u->node = n;
}

/* The older unit becomes the root: groups come in the order of the network. */
void oct_units_unite(oct_channels *c, int32_t a, int32_t b)
{
    oct_unit *to, *from;

    a = oct_unit_root(c, a);
    b = oct_unit_root(c, b);
    if (a == b) return;
    if (a < 0 || b < 0) {
        oct_unit_protect(c, OCT_MAX(a, b), NULL, "it is joined with channels that cannot go");
        return;
    }
    to = &c->units[OCT_MIN(a, b)];
    from = &c->units[OCT_MAX(a, b)];
    from->parent = OCT_MIN(a, b);
    if (!to->why && from->why) {
        to->why = from->why;
        to->node = from->node;
    }
    c->is_changed = true;
}

void oct_units_protect(oct_channels *c, const oct_value *v, const oct_node *n, const char *why)
{
    const oct_tensor *t = v && v->id < c->n_labels ? c->labels[v->id] : NULL;
    const int64_t len = t ? oct_tensor_len(t) : 0;

    for (int64_t i = 0; i < len; i++)
        oct_unit_protect(c, ((const int32_t *)t->data)[i], n, why);
}

/* --- the whole graph --- */

/* A value that a body reads, or that leaves the graph, stays as it is. */
static void protect_ends(oct_channels *c)
{
    for (int32_t id = 0; id < c->n_labels; id++) {
        const oct_value *v = c->g->values[id];

        if (!v || !c->labels[id]) continue;
        if (v->is_output) oct_units_protect(c, v, NULL, "it is an output of the network");
        for (int32_t i = 0; i < v->n_users; i++)
            if (v->users[i]->graph != c->g)
                oct_units_protect(c, v, v->users[i], "it is read inside a body");
    }
}

/* Different labels along an axis, at the start of the others; of long lanes, in their beginning. */
static int64_t count_units(const oct_tensor *t, int32_t axis)
{
    const int64_t inner = oct_type_span(&t->type, axis + 1, t->type.rank);
    const int32_t *label = t->data;
    int64_t n = 0;

    for (int64_t i = 0; i < OCT_MIN(t->type.dim[axis], 2048); i++) {
        bool is_new = true;

        for (int64_t j = 0; j < i && is_new; j++)
            is_new = label[i * inner] != label[j * inner];
        n += is_new;
    }
    return n;
}

/* The channels of a value lie along one axis: that with the most units. */
static oct_status choose_axis(oct_channels *c, const oct_value *v)
{
    int32_t best = -1, n_varying = 0;
    int64_t most = 0;
    unsigned varying = 0;
    oct_tensor *t = NULL;
    oct_status st = oct_follow_read(c, v, &t);

    for (int32_t d = 0; !st && d < t->type.rank; d++) {
        if (!oct_labels_vary(t, d)) continue;
        varying |= 1u << d;
        n_varying++;
    }
    for (int32_t d = 0; n_varying > 1 && d < t->type.rank; d++) {
        const int64_t n = varying & (1u << d) ? count_units(t, d) : 0;

        if (n <= most) continue;
        most = n;
        best = d;
    }
    if (!st && n_varying == 0) oct_units_protect(c, v, v->producer, "a value has no other channel");
    oct_tensor_unref(t);
    return st || n_varying < 2 ? st : oct_follow_tie(c, v, best);
}

static oct_status read_cut(oct_channels *c, oct_cut *k)
{
    int32_t *lane = NULL;

    k->n = k->value->type.dim[k->axis];
    if (!k->unit && !(k->unit = oct_arena_array(c->arena, (size_t)k->n, sizeof(*k->unit))))
        return OCT_ERR_MEMORY;
    OCT_TRY(oct_follow_lane(c, k->of, k->of_axis, &lane));
    memcpy(k->unit, lane, (size_t)k->n * sizeof(*lane));
    return OCT_OK;
}

/* A constant that several nodes read has one unit for each slice. */
static void join_cuts(oct_channels *c, oct_cut **first)
{
    for (int32_t i = 0; i < c->n_cuts; i++) {
        oct_cut *k = &c->cuts[i], **of = &first[(size_t)k->value->id * OCT_MAX_RANK];

        if (k->axis < 0) continue;
        if (!of[k->axis]) of[k->axis] = k;
        k->is_again = of[k->axis] != k;
        for (int64_t j = 0; k->is_again && j < k->n; j++)
            oct_units_unite(c, of[k->axis]->unit[j], k->unit[j]);
    }
}

static oct_status settle_once(oct_channels *c)
{
    const size_t n = (size_t)c->n_labels * OCT_MAX_RANK;
    oct_cut **first = oct_calloc(c->ctx, n + 1, sizeof(*first));
    oct_status st = first ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t id = 0; id < c->n_labels && !st; id++)
        if (c->g->values[id] && c->labels[id]) st = choose_axis(c, c->g->values[id]);
    for (int32_t i = 0; i < c->n_cuts && !st; i++)
        if (c->cuts[i].axis >= 0) st = read_cut(c, &c->cuts[i]);
    if (!st) join_cuts(c, first);
    oct_free(c->ctx, first);
    return st;
}

/* Constants with an axis to cut may be read only by nodes whose rules know of it. */
static oct_status check_consumers(oct_channels *c)
{
    int32_t *n_told = oct_calloc(c->ctx, (size_t)c->n_labels + 1, sizeof(*n_told));

    if (!n_told) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < c->n_cuts; i++) {
        const oct_cut *k = &c->cuts[i];
        bool is_known = false;

        for (int32_t j = i; j-- > 0 && c->cuts[j].node == k->node;)
            is_known |= c->cuts[j].value == k->value && c->cuts[j].operand == k->operand;
        n_told[k->value->id] += !is_known;
    }
    for (int32_t i = 0; i < c->n_cuts; i++) {
        const oct_cut *k = &c->cuts[i];

        if (n_told[k->value->id] == k->value->n_users && !k->value->is_output) continue;
        for (int64_t j = 0; k->axis >= 0 && j < k->n; j++)
            oct_unit_protect(c, k->unit[j], k->node, "its weights are read by other nodes, too");
    }
    oct_free(c->ctx, n_told);
    return OCT_OK;
}

/* Uniting units may make another value differ along one axis fewer, or more. */
static oct_status settle(oct_channels *c)
{
    do {
        c->is_changed = false;
        OCT_TRY(settle_once(c));
    } while (c->is_changed);
    OCT_TRY(check_consumers(c));
    for (int32_t i = 0; i < c->n_cuts; i++)
        for (int64_t j = 0; c->cuts[i].axis >= 0 && j < c->cuts[i].n; j++)
            c->cuts[i].unit[j] = oct_unit_root(c, c->cuts[i].unit[j]);
    return OCT_OK;
}

static oct_status find(oct_channels *c)
{
    for (oct_node *n = c->g->first; n; n = n->next)
        OCT_TRY(oct_channel_rule_of(n).follow(c, n));
    protect_ends(c);
    return settle(c);
}

oct_status oct_channels_find(oct_graph *g, oct_channels **out)
{
    oct_channels *c = oct_calloc(g->ctx, 1, sizeof(*c));
    oct_status st = OCT_ERR_MEMORY;

    *out = NULL;
    if (!c) return st;
    c->ctx = g->ctx;
    c->g = g;
    c->n_labels = g->root->n_value_ids;
    c->labels = oct_calloc(g->ctx, (size_t)c->n_labels + 1, sizeof(*c->labels));
    c->arena = oct_arena_new(g->ctx);
    if (c->labels && c->arena) st = find(c);
    if (st)
        oct_channels_free(c);
    else
        *out = c;
    return st;
}

void oct_channels_free(oct_channels *c)
{
    if (!c) return;
    for (int32_t i = 0; c->labels && i < c->n_labels; i++)
        oct_tensor_unref(c->labels[i]);
    oct_free(c->ctx, c->labels);
    oct_free(c->ctx, c->units);
    oct_free(c->ctx, c->cuts);
    oct_arena_free(c->arena);
    oct_free(c->ctx, c);
}

oct_status oct_channels_of(const oct_channels *c, const oct_value *v, int32_t *axis,
                           const int32_t **unit)
{
    const oct_tensor *t = v->id < c->n_labels ? c->labels[v->id] : NULL;
    int32_t *lane;

    *axis = -1;
    *unit = NULL;
    for (int32_t d = 0; t && d < t->type.rank; d++)
        if (oct_labels_vary(t, d)) *axis = d;
    if (*axis < 0) return OCT_OK;
    lane = oct_arena_array(c->arena, (size_t)t->type.dim[*axis], sizeof(*lane));
    if (!lane) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < t->type.dim[*axis]; i++)
        lane[i] = oct_unit_root(c, ((const int32_t *)t->data)[i]);
    *unit = lane;
    return OCT_OK;
}
