/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: units that have the same axes of the same constants. */
#include "prune/groups.h"

#include <stdlib.h>

#include "base/map.h"

/* What is gathered of one unit. */
typedef struct mark {
    uint64_t hash;
    const oct_node *node;
    int64_t width;
    int32_t unit;
    bool is_used, is_free;
} mark;

/* The slices of one constant along one axis: each unit's hash takes up how many are its own. */
static void add_cut(const oct_cut *k, mark *marks, int64_t *count)
{
    for (int64_t i = 0; i < k->n; i++)
        if (k->unit[i] >= 0) count[k->unit[i]]++;
    for (int64_t i = 0; i < k->n; i++) {
        mark *m = k->unit[i] >= 0 ? &marks[k->unit[i]] : NULL;
        int64_t key[3] = {k->value->id, k->axis, 0};

        if (!m || !count[k->unit[i]]) continue;
        key[2] = count[k->unit[i]];
        m->hash = oct_hash_bytes(key, sizeof(key), m->hash + 1);
        m->is_used = true;
        if (k->role == OCT_CUT_OUT && !m->node) {
            m->node = k->node;
            m->width = key[2];
        }
        count[k->unit[i]] = 0;
    }
}

static int by_hash(const void *pa, const void *pb)
{
    const mark *a = pa, *b = pb;

    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    if (a->is_free != b->is_free) return a->is_free ? -1 : 1;
    return (a->unit > b->unit) - (a->unit < b->unit);
}

static int by_unit(const void *pa, const void *pb)
{
    const oct_prune_group *a = pa, *b = pb;

    return (a->units[0] > b->units[0]) - (a->units[0] < b->units[0]);
}

static oct_status collect(oct_channels *c, mark *marks, int32_t n, oct_prune_groups *out)
{
    int32_t *units = oct_arena_array(c->arena, (size_t)n + 1, sizeof(*units));

    out->groups = oct_arena_array(c->arena, (size_t)n + 1, sizeof(*out->groups));
    if (!out->groups || !units) return OCT_ERR_MEMORY;
    qsort(marks, (size_t)n, sizeof(*marks), by_hash);
    for (int32_t i = 0; i < n; i++) {
        oct_prune_group *g = &out->groups[out->n ? out->n - 1 : 0];
        const bool is_new =
            !i || marks[i - 1].hash != marks[i].hash || marks[i - 1].is_free != marks[i].is_free;

        if (is_new) {
            g = &out->groups[out->n++];
            g->units = units + i;
            g->node = marks[i].node;
            g->width = OCT_MAX(marks[i].width, 1);
            g->why = c->units[marks[i].unit].why;
            g->at = c->units[marks[i].unit].node;
        }
        g->units[g->n++] = marks[i].unit;
        g->n_kept++;
    }
    qsort(out->groups, (size_t)out->n, sizeof(*out->groups), by_unit);
    return OCT_OK;
}

static oct_status find(oct_channels *c, mark *marks, int64_t *count, oct_prune_groups *out)
{
    int32_t n = 0;

    for (int32_t i = 0; i < c->n_units; i++) {
        marks[i].unit = i;
        marks[i].is_free = !c->units[i].why;
    }
    for (int32_t i = 0; i < c->n_cuts; i++)
        if (c->cuts[i].axis >= 0 && !c->cuts[i].is_again) add_cut(&c->cuts[i], marks, count);
    for (int32_t i = 0; i < c->n_units; i++)
        if (marks[i].is_used && marks[i].node && oct_unit_root(c, i) == i) marks[n++] = marks[i];
    return collect(c, marks, n, out);
}

oct_status oct_prune_groups_find(oct_channels *c, oct_prune_groups *out)
{
    const size_t n = (size_t)c->n_units + 1;
    mark *marks = oct_calloc(c->ctx, n, sizeof(*marks));
    int64_t *count = oct_calloc(c->ctx, n, sizeof(*count));
    oct_status st = marks && count ? OCT_OK : OCT_ERR_MEMORY;

    *out = (oct_prune_groups){.c = c};
    out->keep = oct_arena_array(c->arena, n, sizeof(*out->keep));
    out->score = oct_arena_array(c->arena, n, sizeof(*out->score));
    if (!out->keep || !out->score) st = OCT_ERR_MEMORY;
    for (size_t i = 0; !st && i < n; i++)
        out->keep[i] = true;
    if (!st) st = find(c, marks, count, out);
    if (!st) st = oct_prune_count(out, &out->macs, &out->params);
    oct_free(c->ctx, marks);
    oct_free(c->ctx, count);
    return st;
}
