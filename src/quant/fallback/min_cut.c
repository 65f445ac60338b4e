/* SPDX-License-Identifier: Apache-2.0 */
/* Dinic's algorithm: levels by breadth, then paths along them until none is left. */
#include "quant/fallback/min_cut.h"

#include <string.h>

typedef struct arc {
    int32_t to, next; /* next: of the same node; -1 at the end */
    int64_t left;     /* capacity */
} arc;

/* Arcs come in pairs, an arc and its reverse: 2k and 2k + 1. */
struct oct_min_cut {
    oct_arena *a;
    int32_t n; /* the nodes, then source and sink */
    arc *arcs;
    int32_t n_arcs, cap_arcs;
    int32_t *first, *level, *at, *path, *queue; /* by node */
};

oct_status oct_min_cut_new(oct_arena *a, int32_t n, oct_min_cut **out)
{
    oct_min_cut *c = oct_arena_array(a, 1, sizeof(*c));
    const size_t count = (size_t)n + 2;

    if (!c) return OCT_ERR_MEMORY;
    c->a = a;
    c->n = n + 2;
    c->first = oct_arena_array(a, count, sizeof(int32_t));
    c->level = oct_arena_array(a, count, sizeof(int32_t));
    c->at = oct_arena_array(a, count, sizeof(int32_t));
    c->path = oct_arena_array(a, count, sizeof(int32_t));
    c->queue = oct_arena_array(a, count, sizeof(int32_t));
    if (!c->first || !c->level || !c->at || !c->path || !c->queue) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < c->n; i++)
        c->first[i] = -1;
    *out = c;
    return OCT_OK;
}

static oct_status grow(oct_min_cut *c)
{
    const int32_t cap = c->cap_arcs ? 2 * c->cap_arcs : 64;
    arc *arcs;

    if (c->n_arcs + 2 <= c->cap_arcs) return OCT_OK;
    if (c->cap_arcs > INT32_MAX / 4) return OCT_ERR_MEMORY;
    if (!(arcs = oct_arena_array(c->a, (size_t)cap, sizeof(*arcs)))) return OCT_ERR_MEMORY;
    if (c->n_arcs) memcpy(arcs, c->arcs, (size_t)c->n_arcs * sizeof(*arcs));
    c->arcs = arcs;
    c->cap_arcs = cap;
    return OCT_OK;
}

oct_status oct_min_cut_edge(oct_min_cut *c, int32_t i, int32_t k, int64_t price)
{
    if (price <= 0) return OCT_OK;
    OCT_TRY(grow(c));
    c->arcs[c->n_arcs] = (arc){k, c->first[i], price};
    c->first[i] = c->n_arcs++;
    c->arcs[c->n_arcs] = (arc){i, c->first[k], 0};
    c->first[k] = c->n_arcs++;
    return OCT_OK;
}

oct_status oct_min_cut_terminals(oct_min_cut *c, int32_t i, int64_t source, int64_t sink)
{
    OCT_TRY(oct_min_cut_edge(c, c->n - 2, i, sink));
    return oct_min_cut_edge(c, i, c->n - 1, source);
}

/* Distances from the source, -1 if out of reach. Is the sink within reach? */
static bool find_levels(oct_min_cut *c)
{
    int32_t head = 0, tail = 0;

    for (int32_t i = 0; i < c->n; i++)
        c->level[i] = -1;
    c->queue[tail++] = c->n - 2;
    c->level[c->n - 2] = 0;
    while (head < tail) {
        const int32_t i = c->queue[head++];

        for (int32_t k = c->first[i]; k >= 0; k = c->arcs[k].next) {
            if (!c->arcs[k].left || c->level[c->arcs[k].to] >= 0) continue;
            c->level[c->arcs[k].to] = c->level[i] + 1;
            c->queue[tail++] = c->arcs[k].to;
        }
    }
    return c->level[c->n - 1] >= 0;
}

/* Augments the flow along the path of `depth` arcs. */
static void take(oct_min_cut *c, int32_t depth)
{
    int64_t room = INT64_MAX;

    for (int32_t i = 0; i < depth; i++)
        room = OCT_MIN(room, c->arcs[c->path[i]].left);
    for (int32_t i = 0; i < depth; i++) {
        c->arcs[c->path[i]].left -= room;
        c->arcs[c->path[i] ^ 1].left += room;
    }
}

/* One path further down the levels; false: there is none any more. */
static bool find_path(oct_min_cut *c)
{
    int32_t i = c->n - 2, depth = 0;

    while (i != c->n - 1) {
        const int32_t k = c->at[i];

        if (k < 0) { /* a dead end */
            if (depth == 0) return false;
            i = c->arcs[c->path[--depth] ^ 1].to;
            c->at[i] = c->arcs[c->at[i]].next;
        } else if (c->arcs[k].left && c->level[c->arcs[k].to] == c->level[i] + 1) {
            c->path[depth++] = k;
            i = c->arcs[k].to;
        } else {
            c->at[i] = c->arcs[k].next;
        }
    }
    take(c, depth);
    return true;
}

oct_status oct_min_cut_solve(oct_min_cut *c, uint8_t *is_source)
{
    while (find_levels(c)) {
        memcpy(c->at, c->first, (size_t)c->n * sizeof(*c->at));
        while (find_path(c))
            ;
    }
    for (int32_t i = 0; i < c->n - 2; i++)
        is_source[i] = c->level[i] >= 0;
    return OCT_OK;
}
