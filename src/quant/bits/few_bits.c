/* SPDX-License-Identifier: Apache-2.0 */
/* Bits of weights by what they cost: see few_bits.h. */
#include "quant/bits/few_bits.h"

#include <stdlib.h>

#include "base/ctx.h"
#include "quant/heal/probe.h"
#include "quant/solve/solve.h"

enum { PICTURES = 8, ALL_BITS = 8 };

typedef struct ranked {
    double density;
    int32_t layer;
} ranked;

static int by_density(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    if (x->density != y->density) return x->density > y->density ? -1 : 1;
    return x->layer < y->layer ? -1 : x->layer > y->layer;
}

oct_status oct_few_bits_pick(oct_few_bits_layer *layers, int32_t n, double share, oct_arena *a)
{
    ranked *r = oct_arena_array(a, (size_t)n + 1, sizeof(*r));

    if (!r) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n; i++)
        r[i] = (ranked){layers[i].noise / layers[i].weights, i};
    qsort(r, (size_t)n, sizeof(*r), by_density);
    for (int32_t i = 0; i < n; i++) {
        oct_few_bits_layer *l = &layers[r[i].layer];

        l->keeps = l->noise > 0 && l->weights <= share;
        if (l->keeps) share -= l->weights;
    }
    return OCT_OK;
}

typedef struct chooser {
    oct_qmap *m;
    const oct_target *t;
    const oct_quantize_options *o;
    int32_t *points;
    oct_few_bits_layer *layers;
    int32_t n;
} chooser;

static oct_status set(const chooser *c, oct_qmap *m, int32_t i, int bits)
{
    oct_weight_bits(&m->points[c->points[i]], c->t, c->o, bits);
    return oct_solve_weight_again(m, c->points[i], c->t, c->o);
}

/* Those whose bits are open, with their shares of all weights. */
static oct_status find_layers(chooser *c, oct_arena *a)
{
    double all = 0;

    c->points = oct_arena_array(a, (size_t)c->m->n_points + 1, sizeof(*c->points));
    c->layers = oct_arena_array(a, (size_t)c->m->n_points + 1, sizeof(*c->layers));
    if (!c->points || !c->layers) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < c->m->n_points; i++) {
        const oct_qpoint *p = &c->m->points[i];
        const double n = (double)oct_type_len(&p->value->type);

        if (p->role != OCT_QROLE_WEIGHT || !p->node) continue;
        all += n;
        if (!p->may_have_8_bits || p->state != OCT_QSTATE_ACTIVE || n < 1) continue;
        c->layers[c->n].weights = n;
        c->points[c->n++] = i;
    }
    for (int32_t i = 0; i < c->n; i++)
        c->layers[i].weights /= all;
    return OCT_OK;
}

/* One layer after the other has few bits, all others 8. */
static oct_status measure(chooser *c, oct_qmap *copy, oct_probe *p)
{
    double all_bits = 0;

    for (int32_t i = 0; i < c->n; i++)
        OCT_TRY(set(c, copy, i, ALL_BITS));
    OCT_TRY(oct_probe_measure(p, copy, &all_bits, NULL));
    for (int32_t i = 0; i < c->n; i++) {
        double noise = 0;

        OCT_TRY(set(c, copy, i, c->o->weight_bits));
        OCT_TRY(oct_probe_measure(p, copy, &noise, NULL));
        OCT_TRY(set(c, copy, i, ALL_BITS));
        c->layers[i].noise = noise - all_bits;
        oct_log(c->m->ctx, OCT_LOG_INFO, "'%s' with weights of %d bits: noise %.3g at the outputs",
                copy->points[c->points[i]].node->name, c->o->weight_bits, noise - all_bits);
        OCT_TRY(oct_progress(c->m->ctx, "choosing bits", i + 1, c->n));
    }
    return OCT_OK;
}

static oct_status choose(chooser *c, const oct_graph *bound, oct_feed *f, oct_arena *a)
{
    oct_probe *p = NULL;
    oct_qmap *copy = NULL;
    oct_status st;

    OCT_TRY(find_layers(c, a));
    if (!c->n || !(oct_weight_bits_spared(c->o) > 0)) return OCT_OK;
    OCT_TRY(oct_probe_new(bound, c->m, f, PICTURES, &p));
    st = oct_qmap_clone(c->m, &copy);
    if (!st) st = measure(c, copy, p);
    oct_qmap_free(copy);
    oct_probe_free(p);
    if (!st) st = oct_few_bits_pick(c->layers, c->n, oct_weight_bits_spared(c->o), a);
    for (int32_t i = 0; i < c->n && !st; i++)
        st = set(c, c->m, i, c->layers[i].keeps ? ALL_BITS : c->o->weight_bits);
    return st;
}

oct_status oct_few_bits_choose(oct_qmap *m, const oct_graph *bound, const oct_target *t,
                               const oct_quantize_options *o, oct_feed *f)
{
    chooser c = {.m = m, .t = t, .o = o};
    oct_arena *a = oct_arena_new(m->ctx);
    oct_status st = a ? choose(&c, bound, f, a) : OCT_ERR_MEMORY;

    oct_arena_free(a);
    return st;
}
