/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logits of distributions: Softmax gives the same whatever is added to all that it reads. Those of
 * DFL reach from about -10 to 30. Symmetric codes reach as far below zero as above, so they either
 * cut off what is above 15, where the sides of small objects are, or have wide steps. All layers
 * that a Softmax reads get the same less in their biases, so that what matters of what they give is
 * as far below zero as above: the largest logit of each distribution, and a little below it.
 */
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "pass/fuse/affine.h"
#include "quant/correct/channel_factors.h"
#include "quant/correct/correct.h"
#include "quant/observe/calibrate.h"
#include "quant/place/place.h"
#include "quant/solve/solve.h"

/* Pictures: after these the ends of ranges hardly move. */
enum { LOOK_AT = 16 };

/* What is so much below the largest logit of a distribution is as good as impossible: e^-8. */
#define REACH 8.0

/* A bias of few bits has wide steps if it is large: it is moved if codes reach at least so much
 * further than they have to, and not beyond the limit. */
#define WORTH 1.25
#define MOST  64.0

typedef struct work {
    const oct_qmap *m;
    oct_arena *arena;
    const oct_node **reader; /* by point: what computes with it; NULL: nothing does */
    bool *is_shared;         /* by point: other nodes do, too, or it is an output */
    const oct_node **of;     /* by point: the Softmax that it is moved for; NULL: none */
    int32_t n;               /* points that are moved */
    oct_graph *watched;      /* the network with the largest logit of each distribution */
    const oct_value **top;   /* that, by id of the Softmax; NULL: none */
    oct_calibration *c;
} work;

/* --- which --- */

static void note_reader(void *arg, int32_t point, const oct_node *reader)
{
    work *w = arg;

    if (!reader || (w->reader[point] && w->reader[point] != reader)) w->is_shared[point] = true;
    w->reader[point] = reader;
}

/* The bias of a layer, if what it has less all results have less; NULL. */
static oct_value *plain_bias(const oct_node *layer)
{
    const oct_attr *beta = oct_node_is(layer, &oct_op_gemm) ? oct_node_attr(layer, "beta") : NULL;
    oct_value *v = oct_is_linear_layer(layer) ? oct_own_bias(layer) : NULL;

    if (beta && beta->f != 1.0f) return NULL;
    return v && oct_tensor_len(v->data) == oct_linear_layer_channels(layer) ? v : NULL;
}

/* The bias that can take what is added to this point alone; NULL: none can. */
static oct_value *bias_of(const work *w, int32_t point)
{
    const oct_qpoint *p = &w->m->points[point];

    if (w->is_shared[point] || p->role != OCT_QROLE_ACT || p->state != OCT_QSTATE_ACTIVE ||
        p->node || !p->spec.is_symmetric || !p->value->producer)
        return NULL;
    return plain_bias(p->value->producer);
}

/* All that the Softmax reads is moved, or nothing. */
static oct_status choose(work *w, const oct_node *softmax, uint8_t *mark)
{
    int32_t n = 0;

    memset(mark, 0, (size_t)w->m->n_points);
    OCT_TRY(oct_place_sources(w->m, softmax->in[0], mark));
    for (int32_t i = 0; i < w->m->n_points; i++) {
        if (mark[i] && !bias_of(w, i)) return OCT_OK;
        n += mark[i];
    }
    w->n += n;
    for (int32_t i = 0; i < w->m->n_points && n; i++)
        if (mark[i]) w->of[i] = softmax;
    return OCT_OK;
}

static oct_status choose_all(work *w)
{
    const size_t n = (size_t)w->m->n_points + 1;
    uint8_t *mark = oct_arena_alloc(w->arena, n);

    w->n = 0;
    w->of = oct_arena_array(w->arena, n, sizeof(const oct_node *));
    if (!w->of || !mark) return OCT_ERR_MEMORY;
    for (const oct_node *k = w->m->g->first; k; k = k->next)
        if (oct_node_is(k, &oct_op_softmax)) OCT_TRY(choose(w, k, mark));
    return OCT_OK;
}

/* Who else reads a point takes long to find out, and most networks have none to move. */
static oct_status find(work *w)
{
    const size_t n = (size_t)w->m->n_points + 1;

    w->reader = oct_arena_array(w->arena, n, sizeof(const oct_node *));
    w->is_shared = oct_arena_array(w->arena, n, sizeof(bool));
    if (!w->reader || !w->is_shared) return OCT_ERR_MEMORY;
    OCT_TRY(choose_all(w));
    if (!w->n) return OCT_OK;
    OCT_TRY(oct_place_readers(w->m, w->arena, note_reader, w));
    return choose_all(w);
}

/* --- how far --- */

/* The largest logit of each distribution becomes an output. */
static oct_status add_top(work *w, const oct_node *softmax)
{
    oct_builder b = {.g = w->watched};
    const int64_t axis = oct_node_attr(softmax, "axis")->i;
    oct_value *x = w->watched->values[softmax->in[0]->id];
    oct_value *y = oct_emit(&b, &oct_op_reduce_max, x, oct_ints(&b, &axis, 1), NULL);

    OCT_TRY(b.status);
    w->top[softmax->id] = y;
    return oct_graph_add_output(w->watched, y);
}

static oct_status look(work *w, oct_feed *f)
{
    oct_observer_options ends;

    oct_observer_options_init(&ends);
    ends.kind = "minmax";
    w->top = oct_arena_array(w->arena, (size_t)w->m->g->n_node_ids + 1, sizeof(*w->top));
    if (!w->top) return OCT_ERR_MEMORY;
    OCT_TRY(oct_graph_clone(w->m->g, &w->watched));
    for (int32_t i = 0; i < w->m->n_points; i++)
        if (w->of[i] && !w->top[w->of[i]->id]) OCT_TRY(add_top(w, w->of[i]));
    OCT_TRY(oct_graph_infer(w->watched));
    OCT_TRY(oct_calibration_new(w->watched, &w->c));
    for (int32_t i = 0; i < w->m->g->n_node_ids; i++)
        if (w->top[i]) OCT_TRY(oct_calibration_watch(w->c, w->top[i], &ends, false));
    OCT_TRY(oct_feed_rewind(f, LOOK_AT));
    OCT_TRY(oct_calibrate(w->c, w->watched, f));
    return oct_feed_rewind(f, 0);
}

/* How far codes reach that reach so far at least. */
static double reach(const work *w, const oct_node *softmax, double least)
{
    for (int32_t i = 0; i < w->m->n_points; i++)
        if (w->of[i] == softmax && w->m->points[i].spec.is_pow2) return exp2(ceil(log2(least)));
    return least;
}

/* The middle of what matters to the Softmax; 0: it is well where it is. */
static double middle(const work *w, const oct_node *softmax)
{
    const oct_observer *seen = oct_calibration_of(w->c, w->top[softmax->id])->range;
    const double low = (double)seen->seen_low - REACH, high = (double)seen->seen_high;
    const double now = fmax(fabs(low), fabs(high)), centred = (high - low) / 2;

    if (!(low < high)) return 0;
    if (reach(w, softmax, now) < WORTH * reach(w, softmax, centred)) return 0;
    return fmin(fmax((low + high) / 2, -MOST), MOST);
}

/* --- moving --- */

static oct_status subtract(oct_value *bias, double by)
{
    oct_tensor *t = NULL;

    OCT_TRY(oct_tensor_copy(bias->graph->ctx, bias->data, &t));
    for (int64_t i = 0; i < oct_tensor_len(t); i++)
        ((float *)t->data)[i] -= (float)by;
    oct_tensor_unref(bias->data);
    bias->data = t;
    return OCT_OK;
}

static oct_status move(work *w, oct_graph *g, oct_centred *out)
{
    oct_channel_factors *all = oct_arena_array(w->arena, (size_t)w->n, sizeof(*all));

    out->at = oct_arena_array(g->arena, (size_t)w->n, sizeof(*out->at));
    if (!all || !out->at) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < w->m->n_points; i++) {
        const oct_value *v = g->values[w->m->points[i].value->id];
        const double by = w->of[i] ? middle(w, w->of[i]) : 0;
        oct_centred_layer *k = &out->at[out->n];

        if (by == 0) continue;
        *k = (oct_centred_layer){v->producer, by};
        OCT_TRY(subtract(bias_of(w, i), k->by));
        OCT_TRY(subtract(oct_own_bias(v->producer), k->by));
        all[out->n++] = (oct_channel_factors){.value = v->name, .x = {&k->by}, .channels = 1};
    }
    return out->n ? oct_channel_factors_write(g, OCT_MOVED_LOGITS, all, out->n) : OCT_OK;
}

static oct_status centre(work *w, oct_graph *g, oct_feed *f, oct_centred *out)
{
    OCT_TRY(find(w));
    if (!w->n) return OCT_OK;
    OCT_TRY(look(w, f));
    return move(w, g, out);
}

oct_status oct_centre_logits(const oct_qmap *m, oct_graph *g, oct_feed *f, oct_centred *out)
{
    work w = {.m = m, .arena = oct_arena_new(m->ctx)};
    oct_status st = w.arena ? OCT_OK : OCT_ERR_MEMORY;

    *out = (oct_centred){0};
    if (!st) st = centre(&w, g, f, out);
    oct_calibration_free(w.c);
    oct_graph_free(w.watched);
    oct_arena_free(w.arena);
    return st;
}

oct_status oct_centre_again(oct_value *v, const double *x, int64_t n, oct_arena *a, bool *fits)
{
    oct_value *bias = v->producer ? plain_bias(v->producer) : NULL;

    (void)a;
    *fits = bias && n == 1 && fabs(x[0]) <= MOST;
    return *fits ? subtract(bias, x[0]) : OCT_OK;
}
