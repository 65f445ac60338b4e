/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Twins: values of the same name in both networks. A name alone proves little (another export of
 * the same network numbers its nodes differently), so twins must also come from the same twins.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/side_by_side.h"
#include "graph/op.h"
#include "quant/solve/solve.h"

#define MIN_MATCHING 0.5  /* of the float network's layers: else it is another network */
#define MAX_ROUNDS   16   /* of dropping twins that are none */
#define MAX_WALK     4096 /* nodes between a value and those it comes from */

/* --- names --- */

static oct_status match_names(oct_pair *p)
{
    oct_status st = OCT_OK;
    oct_map names;

    p->twin = oct_arena_array(p->arena, (size_t)p->quantized->n_value_ids + 1, sizeof(*p->twin));
    p->twin_of = oct_arena_array(p->arena, (size_t)p->exact->n_value_ids + 1, sizeof(*p->twin_of));
    if (!p->twin || !p->twin_of) return OCT_ERR_MEMORY;
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
        p->twin[i] = x;
        p->twin_of[x->id] = v;
    }
    oct_map_fini(&names);
    return st;
}

/* A pair that has little in common is a mistake, and everything said about it would be noise. */
static oct_status check_matching(const oct_pair *p)
{
    const oct_node *missing = NULL;
    int64_t n = 0, found = 0;
    oct_weight_axes ax;

    for (const oct_node *k = p->exact->first; k; k = k->next) {
        if (!oct_weight_axes_of(k, &ax) || !k->out[0]) continue;
        n++;
        if (p->twin_of[k->out[0]->id])
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

/* --- where twins come from --- */

/* A walk back through one network, to the next twins. */
typedef struct walk {
    const oct_graph *g;
    oct_value *const *twin; /* by value id: not NULL at twins */
    int32_t *stamp;         /* by value id */
    int32_t serial;
    const oct_value **list;
    int32_t n_list;
    int32_t *found; /* twins: ids in the exact network */
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
    if (w->twin[v->id]) {
        w->found[w->n_found++] = is_exact(p, w) ? v->id : w->twin[v->id]->id;
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

/* Twins that v comes from, sorted. False: it comes from something that the other has not. */
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

static bool is_true_twin(const oct_pair *p, walk *exact, walk *quantized, const oct_value *v)
{
    const oct_value *q = p->twin_of[v->id];

    if (!v->producer || !q->producer) return !v->producer && !q->producer;
    if (!find_sources(p, exact, v) || !find_sources(p, quantized, q)) return false;
    return exact->n_found == quantized->n_found &&
           memcmp(exact->found, quantized->found, (size_t)exact->n_found * sizeof(*exact->found)) ==
               0;
}

static oct_status start_walk(const oct_pair *p, const oct_graph *g, oct_value **twin, walk *w)
{
    const size_t n = (size_t)g->n_value_ids + 1;

    *w = (walk){.g = g, .twin = twin};
    w->stamp = oct_arena_array(p->arena, n, sizeof(*w->stamp));
    w->list = oct_arena_array(p->arena, OCT_MIN(n, (size_t)MAX_WALK) + 1, sizeof(*w->list));
    w->found = oct_arena_array(p->arena, n, sizeof(*w->found));
    return w->stamp && w->list && w->found ? OCT_OK : OCT_ERR_MEMORY;
}

/* Those that come from elsewhere are none; without them others may come from elsewhere too. */
static oct_status drop_false_twins(oct_pair *p)
{
    walk exact, quantized;
    bool changed = true;

    OCT_TRY(start_walk(p, p->exact, p->twin_of, &exact));
    OCT_TRY(start_walk(p, p->quantized, p->twin, &quantized));
    for (int round = 0; round < MAX_ROUNDS && changed; round++) {
        changed = false;
        for (int32_t i = 0; i < p->exact->n_value_ids; i++) {
            if (!p->twin_of[i] || is_true_twin(p, &exact, &quantized, p->exact->values[i]))
                continue;
            p->twin[p->twin_of[i]->id] = NULL;
            p->twin_of[i] = NULL;
            changed = true;
        }
    }
    return OCT_OK;
}

oct_status oct_pair_match_values(oct_pair *p)
{
    OCT_TRY(match_names(p));
    OCT_TRY(check_matching(p));
    OCT_TRY(drop_false_twins(p));
    return check_matching(p);
}
