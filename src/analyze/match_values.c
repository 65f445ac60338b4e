/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches values of the same name in both networks. A name alone proves little (another export of
 * the same network numbers its nodes differently), so matching values must also be computed from
 * matching values.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/side_by_side.h"
#include "op/op.h"

#define MIN_MATCHING 0.5  /* of the float network's layers: else it is another network */
#define MAX_ROUNDS   16   /* of dropping matches that are none */
#define MAX_WALK     4096 /* nodes between a value and the matches it is computed from */

/* --- names --- */

static oct_status match_names(oct_pair *p)
{
    oct_status st = OCT_OK;
    oct_map names;

    p->exact_of =
        oct_arena_array(p->arena, (size_t)p->quantized->n_value_ids + 1, sizeof(*p->exact_of));
    p->quantized_of =
        oct_arena_array(p->arena, (size_t)p->exact->n_value_ids + 1, sizeof(*p->quantized_of));
    if (!p->exact_of || !p->quantized_of) return OCT_ERR_MEMORY;
    oct_map_init(&names, p->ctx);
    for (int32_t i = 0; i < p->exact->n_value_ids && !st; i++) {
        oct_value *v = p->exact->values[i];

        if (v && !v->data && v->graph == p->exact && oct_type_is_static(&v->type))
            st = oct_map_put(&names, v->name, v);
    }
    for (int32_t i = 0; i < p->quantized->n_value_ids && !st; i++) {
        oct_value *v = p->quantized->values[i];
        oct_value *x =
            v && !v->data && v->graph == p->quantized ? oct_map_get(&names, v->name) : NULL;

        if (!x || !oct_type_equal(&x->type, &v->type)) continue;
        p->exact_of[i] = x;
        p->quantized_of[x->id] = v;
    }
    oct_map_fini(&names);
    return st;
}

/* A pair with little in common is a mistake, and all results would be noise. */
static oct_status check_matching(const oct_pair *p)
{
    const oct_node *missing = NULL;
    int64_t n = 0, found = 0;
    oct_weight_axes ax;

    for (const oct_node *k = p->exact->first; k; k = k->next) {
        if (!oct_weight_axes_of(k, &ax) || !k->out[0]) continue;
        n++;
        if (p->quantized_of[k->out[0]->id])
            found++;
        else if (!missing)
            missing = k;
    }
    if ((double)found >= MIN_MATCHING * (double)n) return OCT_OK;
    return oct_fail(p->ctx, OCT_ERR_ARG,
                    "the two networks do not belong together: of %lld layers with weights of the "
                    "float one, %lld are in the quantized one with the same name and shape (not: "
                    "'%s', made by node '%s'); the quantized file must be made from this one and "
                    "keep its names",
                    (long long)n, (long long)found, missing->out[0]->name, missing->name);
}

/* --- where matches come from --- */

/* A walk upstream through one network, to the next matches. */
typedef struct walk {
    const oct_graph *g;
    oct_value *const *match; /* by value id: not NULL at matches */
    int32_t *stamp;          /* by value id */
    int32_t serial;
    const oct_value **list;
    int32_t n_list;
    int32_t *found; /* matches: ids in the exact network */
    int32_t n_found;
} walk;

static bool is_exact(const oct_pair *p, const walk *w)
{
    return w->g == p->exact;
}

static bool visit(const oct_pair *p, walk *w, const oct_value *v)
{
    if (!v || v->data || w->stamp[v->id] == w->serial) return true;
    w->stamp[v->id] = w->serial;
    if (w->match[v->id]) {
        w->found[w->n_found++] = is_exact(p, w) ? v->id : w->match[v->id]->id;
        return true;
    }
    if (!v->producer || w->n_list == MAX_WALK) return false;
    w->list[w->n_list++] = v;
    return true;
}

static int by_number(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* The matches that v is computed from, sorted. False: it depends on something that the other
 * network does not have. */
static bool find_sources(const oct_pair *p, walk *w, const oct_value *v)
{
    bool good = true;

    w->serial++;
    w->n_list = w->n_found = 0;
    w->stamp[v->id] = w->serial;
    w->list[w->n_list++] = v;
    for (int32_t k = 0; k < w->n_list && good; k++) {
        const oct_node *n = w->list[k]->producer;

        for (int32_t i = 0; i < n->n_in && good; i++)
            good = visit(p, w, n->in[i]);
    }
    qsort(w->found, (size_t)w->n_found, sizeof(*w->found), by_number);
    return good;
}

static bool is_true_match(const oct_pair *p, walk *exact, walk *quantized, const oct_value *v)
{
    const oct_value *q = p->quantized_of[v->id];

    if (!v->producer || !q->producer) return !v->producer && !q->producer;
    if (!find_sources(p, exact, v) || !find_sources(p, quantized, q)) return false;
    return exact->n_found == quantized->n_found &&
           memcmp(exact->found, quantized->found, (size_t)exact->n_found * sizeof(*exact->found)) ==
               0;
}

static oct_status start_walk(const oct_pair *p, const oct_graph *g, oct_value **match, walk *w)
{
    const size_t n = (size_t)g->n_value_ids + 1;

    *w = (walk){.g = g, .match = match};
    w->stamp = oct_arena_array(p->arena, n, sizeof(*w->stamp));
    w->list = oct_arena_array(p->arena, OCT_MIN(n, (size_t)MAX_WALK) + 1, sizeof(*w->list));
    w->found = oct_arena_array(p->arena, n, sizeof(*w->found));
    return w->stamp && w->list && w->found ? OCT_OK : OCT_ERR_MEMORY;
}

/* Drops matches that are computed from different values; others may fail without them, too. */
static oct_status drop_false_matches(oct_pair *p)
{
    walk exact, quantized;
    bool changed = true;

    OCT_TRY(start_walk(p, p->exact, p->quantized_of, &exact));
    OCT_TRY(start_walk(p, p->quantized, p->exact_of, &quantized));
    for (int round = 0; round < MAX_ROUNDS && changed; round++) {
        changed = false;
        for (int32_t i = 0; i < p->exact->n_value_ids; i++) {
            if (!p->quantized_of[i] || is_true_match(p, &exact, &quantized, p->exact->values[i]))
                continue;
            p->exact_of[p->quantized_of[i]->id] = NULL;
            p->quantized_of[i] = NULL;
            changed = true;
        }
    }
    return OCT_OK;
}

oct_status oct_pair_match_values(oct_pair *p)
{
    OCT_TRY(match_names(p));
    OCT_TRY(check_matching(p));
    OCT_TRY(drop_false_matches(p));
    return check_matching(p);
}
