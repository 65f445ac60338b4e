/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Full bias correction: layer by layer, the network quantized so far, with all earlier shifts, is
 * compared with the float one, and the layer's bias is corrected by the error.
 *
 * The correction is not the mean error: see bias_shift.c.
 *
 * Memory: SAMPLE_BYTES for the float network's samples of all layers, whatever their number (but at
 * least LEAST_PIXELS of each channel and image), and as much for those of one level: layers that do
 * not depend on each other, which are corrected together.
 */
#include "exec/plan.h"
#include "exec/run.h"
#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"
#include "quant/correct/correct.h"
#include "quant/lower/lower.h"
#include "quant/solve/solve.h"

enum {
    MOST_IMAGES = 32,
    LEAST_IMAGES = 4, /* two for each half */
    MOST_PIXELS = 256,
    LEAST_PIXELS = 4,
};

#define SAMPLE_BYTES (64u << 20)

typedef struct layer {
    const oct_node *node;
    const char *name;                 /* of its output */
    int32_t level;                    /* layers upstream of it on the longest path, and itself */
    int64_t channels, places, pixels; /* of an image: how many there are, and how many are
                                       * sampled */
    bool channels_last;               /* products: along the last axis */
    oct_following_act act;
    float *exact, *now; /* [channel][image][pixel]; layers of different levels share `now` */
    float *picture[OCT_MAX_WORKERS]; /* [channel][pixel]: the image a worker is processing */
} layer;

typedef struct work {
    oct_qmap *m;
    const oct_graph *bound;
    oct_ctx *ctx;
    oct_arena *arena;
    layer *layers;
    int32_t n, n_levels;
    int64_t images;
    oct_map by_name; /* index + 1 */
    uint8_t *wanted; /* by value id */
    float *scratch;  /* as many as a channel has samples */
    struct worker {
        struct work *w;
        int32_t number;
    } workers[OCT_MAX_WORKERS];
    const layer **level; /* those that are compared now, as the outputs of the plan */
    int32_t n_level;
} work;

/* --- which layers --- */

static bool is_candidate(const oct_qmap *m, const oct_node *n)
{
    const int32_t w = n->n_in > 1 && n->in[1] ? oct_qmap_at(m, n, 1) : -1;
    oct_weight_axes ax;

    return w >= 0 && m->points[w].state == OCT_QSTATE_ACTIVE && oct_weight_axes_of(n, &ax) &&
           oct_qmap_shift_of(m, n) && oct_type_is_static(&n->out[0]->type);
}

/* Marks values, by id, from which a layer can be reached. */
static void find_followed(const work *w, uint8_t *followed)
{
    for (const oct_node *n = w->bound->last; n; n = n->prev) {
        bool any = is_candidate(w->m, n);

        for (int32_t k = 0; k < n->n_out && !any; k++)
            any = n->out[k] && followed[n->out[k]->id];
        for (int32_t i = 0; i < n->n_in && any; i++)
            if (n->in[i]) followed[n->in[i]->id] = 1;
    }
}

static oct_status add_layer(work *w, const oct_node *n, int32_t level)
{
    const oct_type *t = &n->out[0]->type;
    layer *l = &w->layers[w->n];
    const int64_t shifts = oct_qmap_shift_of(w->m, n)->n;

    *l = (layer){.node = n, .name = n->out[0]->name, .level = level, .channels = shifts};
    l->channels_last = oct_node_is(n, &oct_op_gemm) || oct_node_is(n, &oct_op_mat_mul);
    l->act = oct_activation_after(n->out[0]);
    if (t->rank < 2 || t->dim[l->channels_last ? t->rank - 1 : 1] != shifts) return OCT_OK;
    l->places = l->channels_last ? oct_type_len(t) / shifts : oct_type_span(t, 2, t->rank);
    if (l->places < 1) return OCT_OK;
    w->n++;
    w->n_levels = OCT_MAX(w->n_levels, level);
    w->wanted[n->out[0]->id] = 1;
    return oct_map_put(&w->by_name, l->name, (void *)(uintptr_t)w->n);
}

/* The last layers stay as they are: after them the size of an error is not what matters (scores
 * and boxes have different scales). */
static oct_status find_layers(work *w)
{
    const size_t n_ids = (size_t)w->bound->n_value_ids + 1;
    int32_t *level = oct_arena_array(w->arena, n_ids, sizeof(*level));
    uint8_t *followed = oct_arena_array(w->arena, n_ids, 1);

    w->wanted = oct_arena_array(w->arena, n_ids, 1);
    w->layers = oct_arena_array(w->arena, (size_t)w->bound->n_nodes + 1, sizeof(*w->layers));
    w->level = oct_arena_array(w->arena, (size_t)w->bound->n_nodes + 1, sizeof(*w->level));
    if (!level || !followed || !w->wanted || !w->layers || !w->level) return OCT_ERR_MEMORY;
    find_followed(w, followed);
    for (const oct_node *n = w->bound->first; n; n = n->next) {
        int32_t here = 0;

        for (int32_t i = 0; i < n->n_in; i++)
            if (n->in[i]) here = OCT_MAX(here, level[n->in[i]->id]);
        if (is_candidate(w->m, n)) {
            here++;
            if (followed[n->out[0]->id]) OCT_TRY(add_layer(w, n, here));
        }
        for (int32_t k = 0; k < n->n_out; k++)
            if (n->out[k]) level[n->out[k]->id] = here;
    }
    return OCT_OK;
}

/* Samples of a picture, all channels together. */
static size_t sample_size(const layer *l)
{
    return (size_t)(l->channels * l->pixels);
}

static oct_status allocate_layer(work *w, layer *l, int32_t n_workers)
{
    l->exact = oct_arena_array(w->arena, sample_size(l) * (size_t)w->images, sizeof(float));
    if (!l->exact) return OCT_ERR_MEMORY;
    for (int32_t k = 0; k < n_workers; k++)
        if (!(l->picture[k] = oct_arena_array(w->arena, sample_size(l), sizeof(float))))
            return OCT_ERR_MEMORY;
    return OCT_OK;
}

/* Each layer of a level gets its part of the memory that levels share. */
static oct_status allocate_now(work *w)
{
    size_t most = 1, *used = oct_arena_array(w->arena, (size_t)w->n_levels + 1, sizeof(*used));
    float *now;

    if (!used) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < w->n; i++) {
        used[w->layers[i].level] += sample_size(&w->layers[i]);
        most = OCT_MAX(most, used[w->layers[i].level]);
    }
    if (!(now = oct_arena_array(w->arena, most * (size_t)w->images, sizeof(float))))
        return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < w->n; i++) {
        layer *l = &w->layers[i];

        used[l->level] -= sample_size(l);
        l->now = now + used[l->level] * (size_t)w->images;
    }
    return OCT_OK;
}

static oct_status allocate(work *w, int32_t n_workers)
{
    int64_t channels = 1, pixels, most = 1;

    for (int32_t i = 0; i < w->n; i++)
        channels += w->layers[i].channels;
    pixels = (int64_t)(SAMPLE_BYTES / sizeof(float)) / (channels * w->images);
    pixels = OCT_MAX(OCT_MIN(pixels, (int64_t)MOST_PIXELS), (int64_t)LEAST_PIXELS);
    for (int32_t i = 0; i < w->n; i++) {
        w->layers[i].pixels = OCT_MIN(pixels, w->layers[i].places);
        most = OCT_MAX(most, w->layers[i].pixels);
        OCT_TRY(allocate_layer(w, &w->layers[i], n_workers));
    }
    OCT_TRY(allocate_now(w));
    w->scratch = oct_arena_array(w->arena, (size_t)(most * w->images), sizeof(float));
    return w->scratch ? OCT_OK : OCT_ERR_MEMORY;
}

/* --- sampling --- */

/* Which element of the value, in its logical order, pixel k of a channel is. */
static int64_t index_of(const layer *l, int64_t channel, int64_t k)
{
    const int64_t place = (2 * k + 1) * l->places / (2 * l->pixels);

    return l->channels_last ? place * l->channels + channel : channel * l->places + place;
}

static float element(const oct_seen *s, int64_t i)
{
    const float *x = s->data;
    int64_t channels, pixels;

    if (s->layout != OCT_LAYOUT_CLAST) return x[i];
    channels = s->type->dim[1];
    pixels = oct_type_span(s->type, 2, s->type->rank);
    return x[(i / (channels * pixels) * pixels + i % pixels) * s->pitch + i / pixels % channels];
}

static void keep(const work *w, const layer *l, float *all, int64_t image, const float *one)
{
    for (int64_t c = 0; c < l->channels; c++)
        for (int64_t k = 0; k < l->pixels; k++)
            all[(c * w->images + image) * l->pixels + k] = one[c * l->pixels + k];
}

static oct_status on_value(void *user, const oct_seen *s)
{
    const struct worker *k = user;
    const uintptr_t at = (uintptr_t)oct_map_get(&k->w->by_name, s->value->name);
    const layer *l = at ? &k->w->layers[at - 1] : NULL;

    if (!l || s->type->dtype != OCT_DTYPE_F32) return OCT_OK;
    for (int64_t c = 0; c < l->channels; c++)
        for (int64_t i = 0; i < l->pixels; i++)
            l->picture[k->number][c * l->pixels + i] = element(s, index_of(l, c, i));
    return OCT_OK;
}

static oct_status begin_exact(void *user, int32_t worker, oct_run *r)
{
    work *w = user;

    w->workers[worker] = (struct worker){.w = w, .number = worker};
    oct_run_set_seen_hook(r, on_value, &w->workers[worker]);
    return OCT_OK;
}

static oct_status after_exact(void *user, int32_t worker, oct_ctx *ctx, oct_run *r, int64_t image)
{
    work *w = user;

    (void)ctx;
    (void)r;
    for (int32_t i = 0; i < w->n; i++)
        keep(w, &w->layers[i], w->layers[i].exact, image, w->layers[i].picture[worker]);
    return OCT_OK;
}

static oct_status after_now(void *user, int32_t worker, oct_ctx *ctx, oct_run *r, int64_t image)
{
    work *w = user;

    (void)ctx;
    for (int32_t i = 0; i < w->n_level; i++) {
        const layer *l = w->level[i];
        const oct_tensor *t = NULL;

        OCT_TRY(oct_run_output(r, i, &t));
        for (int64_t c = 0; c < l->channels; c++)
            for (int64_t k = 0; k < l->pixels; k++)
                l->picture[worker][c * l->pixels + k] = ((const float *)t->data)[index_of(l, c, k)];
        keep(w, l, l->now, image, l->picture[worker]);
    }
    return OCT_OK;
}

static oct_status sample_layers(work *w, const oct_graph *g, oct_feed *f, bool exact)
{
    oct_feed_job job = {.what = exact ? "sampling" : NULL,
                        .begin = exact ? begin_exact : NULL,
                        .one = exact ? after_exact : after_now,
                        .user = w};
    oct_plan_options o;
    oct_plan *plan = NULL;
    oct_status st;

    OCT_TRY(oct_feed_rewind(f, w->images));
    oct_plan_options_init(&o);
    o.simulate = !exact;
    oct_feed_workers(f, w->ctx, &job.n_workers, &o.n_threads);
    job.n_workers = OCT_MIN(job.n_workers, (int32_t)OCT_MAX_WORKERS);
    st = exact ? oct_plan_new_watching(g, &o, w->wanted, &plan) : oct_plan_new(g, &o, &plan);
    if (!st) st = oct_feed_each(f, plan, &job);
    oct_plan_free(plan);
    return st;
}

/* --- level by level --- */

static oct_status correct(work *w, const layer *l)
{
    const int64_t n = w->images * l->pixels, half = w->images / 2 * l->pixels;
    float *shift = oct_calloc(w->ctx, (size_t)l->channels, sizeof(float));
    oct_status st;

    if (!shift) return OCT_ERR_MEMORY;
    for (int64_t c = 0; c < l->channels; c++)
        shift[c] = oct_best_shift(&l->act, l->exact + c * n, l->now + c * n, n, half, w->scratch);
    st = oct_qmap_shift(w->m, l->node, shift, l->channels);
    oct_free(w->ctx, shift);
    return st;
}

/* The lowered network up to the layers of this level, which become its outputs. */
static oct_status cut(work *w, oct_graph *g)
{
    for (int32_t i = 0; i < g->n_outputs; i++)
        g->outputs[i]->is_output = false;
    g->n_outputs = 0;
    for (int32_t i = 0; i < w->n_level; i++) {
        oct_value *v = oct_graph_find_value(g, w->level[i]->name);

        if (!v)
            return oct_node_fail(w->level[i]->node, OCT_ERR_STATE, "its result '%s' got lost",
                                 w->level[i]->name);
        OCT_TRY(oct_graph_add_output(g, v));
    }
    return oct_drop_dead(g);
}

static oct_status correct_level(work *w, oct_feed *f, int32_t level)
{
    oct_graph *g = NULL;
    oct_status st;

    w->n_level = 0;
    for (int32_t i = 0; i < w->n; i++)
        if (w->layers[i].level == level) w->level[w->n_level++] = &w->layers[i];
    if (w->n_level == 0) return OCT_OK;
    OCT_TRY(oct_lower(w->m, NULL, &g));
    st = cut(w, g);
    if (!st) st = sample_layers(w, g, f, false);
    oct_graph_free(g);
    for (int32_t i = 0; i < w->n_level && !st; i++)
        st = correct(w, w->level[i]);
    return st;
}

static oct_status run(work *w, oct_feed *f)
{
    int32_t n_workers, n_threads;

    OCT_TRY(find_layers(w));
    OCT_TRY(oct_feed_rewind(f, MOST_IMAGES));
    w->images = oct_feed_size(f);
    if (w->n == 0 || w->images < LEAST_IMAGES) return OCT_OK;
    oct_feed_workers(f, w->ctx, &n_workers, &n_threads);
    OCT_TRY(allocate(w, OCT_MIN(n_workers, (int32_t)OCT_MAX_WORKERS)));
    OCT_TRY(sample_layers(w, w->bound, f, true));
    for (int32_t level = 1; level <= w->n_levels; level++) {
        OCT_TRY(correct_level(w, f, level));
        OCT_TRY(oct_progress(w->ctx, "correcting biases", level, w->n_levels));
    }
    return OCT_OK;
}

oct_status oct_correct_bias_full(oct_qmap *m, const oct_graph *bound, oct_feed *f)
{
    work w = {.m = m, .bound = bound, .ctx = m->ctx, .arena = oct_arena_new(m->ctx)};
    oct_status st;

    if (!w.arena) return OCT_ERR_MEMORY;
    oct_map_init(&w.by_name, m->ctx);
    st = run(&w, f);
    oct_map_fini(&w.by_name);
    oct_arena_free(w.arena);
    return st;
}
