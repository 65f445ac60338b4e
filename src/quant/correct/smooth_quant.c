/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SmoothQuant: a few input channels of a matrix product may be far larger than all others and use
 * up the codes. x * W = (x / s) * (s * W), with s for each channel, from the largest magnitude of
 * the channel and of its weights, balanced by alpha. smooth_apply.c applies the factors; this file
 * finds them and records them in the metadata.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/plan.h"
#include "exec/run.h"
#include "op/op.h"
#include "quant/correct/channel_factors.h"
#include "quant/correct/correct.h"
#include "quant/correct/smooth_quant.h"
#include "quant/solve/solve.h"

#define LEAST_PART 0.1 /* no factor is below that of this fraction of the channels */

typedef struct smoothed {
    oct_smoothing by;
    float *most[OCT_MAX_WORKERS]; /* of each channel: the largest magnitude */
} smoothed;

typedef struct work {
    oct_graph *g;
    const oct_graph *bound;
    oct_arena *arena;
    smoothed *item;
    int32_t n;
    oct_map by_name; /* index + 1 */
    uint8_t *wanted; /* by value id */
    struct worker {
        struct work *w;
        int32_t number;
    } workers[OCT_MAX_WORKERS];
} work;

/* --- which --- */

static int64_t channels_of(const work *w, const oct_value *x)
{
    const oct_type *t = &w->bound->values[x->id]->type;
    oct_weight_axes ax;
    bool some = false;

    if (x->data || t->dtype != OCT_DTYPE_F32 || !oct_type_is_static(t) || t->rank < 2) return 0;
    for (int32_t i = 0; i < x->n_users; i++) {
        if (!oct_smooth_reads(x->users[i], x)) continue;
        (void)oct_weight_axes_of(x->users[i], &ax);
        if (ax.n_in != t->dim[t->rank - 1]) return 0;
        some = true;
    }
    return some ? t->dim[t->rank - 1] : 0;
}

static oct_status find(work *w)
{
    for (int32_t i = 0; i < w->bound->n_value_ids; i++) {
        oct_value *x = w->g->values[i];
        const int64_t n = x && x->graph == w->g ? channels_of(w, x) : 0;
        smoothed *s = &w->item[w->n];

        if (n == 0) continue;
        *s = (smoothed){.by = {.x = x, .channels = n}};
        s->by.factor = oct_arena_array(w->arena, (size_t)n, sizeof(double));
        if (!s->by.factor) return OCT_ERR_MEMORY;
        for (int k = 0; k < OCT_MAX_WORKERS; k++)
            if (!(s->most[k] = oct_arena_array(w->arena, (size_t)n, sizeof(float))))
                return OCT_ERR_MEMORY;
        w->wanted[i] = 1;
        OCT_TRY(oct_map_put(&w->by_name, x->name, (void *)(uintptr_t)(++w->n)));
    }
    return OCT_OK;
}

/* --- one pass over the images --- */

static void see_row(const float *x, int64_t n, int64_t step, float *most)
{
    for (int64_t i = 0; i < n; i++) {
        const float y = fabsf(x[i * step]);

        if (!(y <= *most)) *most = y; /* NaN as well */
    }
}

static void see(float *most, int64_t channels, const oct_seen *v)
{
    const float *x = v->data;
    const int64_t rows = oct_type_len(v->type) / OCT_MAX(channels, (int64_t)1);

    if (v->layout != OCT_LAYOUT_CLAST) {
        for (int64_t c = 0; c < channels; c++)
            see_row(x + c, rows, channels, &most[c]);
        return;
    }
    /* [.., channels, dim 1]: the last axis is the innermost but one. */
    for (int64_t i = 0; i < rows / v->type->dim[1]; i++)
        for (int64_t c = 0; c < channels; c++)
            see_row(x + (i * channels + c) * v->pitch, v->type->dim[1], 1, &most[c]);
}

static oct_status on_value(void *user, const oct_seen *v)
{
    const struct worker *k = user;
    const uintptr_t at = (uintptr_t)oct_map_get(&k->w->by_name, v->value->name);

    if (at) see(k->w->item[at - 1].most[k->number], k->w->item[at - 1].by.channels, v);
    return OCT_OK;
}

static oct_status begin(void *user, int32_t worker, oct_run *r)
{
    work *w = user;

    w->workers[worker] = (struct worker){.w = w, .number = worker};
    oct_run_set_seen_hook(r, on_value, &w->workers[worker]);
    return OCT_OK;
}

static oct_status after(void *user, int32_t worker, oct_ctx *ctx, oct_run *r, int64_t index)
{
    (void)user, (void)worker, (void)ctx, (void)index;
    return oct_run_show_inputs(r);
}

static oct_status measure(work *w, oct_feed *f)
{
    oct_feed_job job = {.what = "smoothing", .begin = begin, .one = after, .user = w};
    oct_plan_options o;
    oct_plan *plan = NULL;
    oct_status st;

    OCT_TRY(oct_feed_rewind(f, 0));
    oct_plan_options_init(&o);
    oct_feed_workers(f, w->g->ctx, &job.n_workers, &o.n_threads);
    job.n_workers = OCT_MIN(job.n_workers, (int32_t)OCT_MAX_WORKERS);
    st = oct_plan_new_watching(w->bound, &o, w->wanted, &plan);
    if (!st) st = oct_feed_each(f, plan, &job);
    oct_plan_free(plan);
    for (int32_t i = 0; i < w->n && !st; i++)
        for (int64_t c = 0; c < w->item[i].by.channels; c++) {
            float *most = &w->item[i].most[0][c];

            for (int k = 1; k < OCT_MAX_WORKERS; k++)
                if (!(w->item[i].most[k][c] <= *most)) *most = w->item[i].most[k][c];
            if (!isfinite(*most))
                return oct_fail(w->g->ctx, OCT_ERR_FORMAT, "value '%s' is not finite",
                                w->item[i].by.x->name);
        }
    return st;
}

/* --- factors --- */

/* The largest weight that meets each channel. */
static void weigh(const smoothed *s, double *most)
{
    for (int32_t i = 0; i < s->by.x->n_users; i++) {
        const oct_node *n = s->by.x->users[i];
        oct_weight_axes ax;
        int64_t step;
        const float *w;

        if (!oct_smooth_reads(n, s->by.x)) continue;
        (void)oct_weight_axes_of(n, &ax);
        w = n->in[1]->data->data;
        step = ax.in == 0 ? ax.n_out : 1;
        for (int64_t c = 0; c < ax.n_in; c++)
            for (int64_t o = 0; o < ax.n_out; o++)
                most[c] =
                    OCT_MAX(most[c], fabs((double)w[c * step + o * (ax.in == 0 ? 1 : ax.n_in)]));
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static oct_status find_factors(smoothed *s, double alpha, oct_arena *a)
{
    double *w = oct_arena_array(a, (size_t)s->by.channels, sizeof(double)), least;

    if (!w) return OCT_ERR_MEMORY;
    weigh(s, w);
    for (int64_t c = 0; c < s->by.channels; c++) {
        const double x = (double)s->most[0][c];

        s->by.factor[c] = x > 0 && w[c] > 0 ? pow(x, alpha) / pow(w[c], 1 - alpha) : 0;
        w[c] = s->by.factor[c];
    }
    qsort(w, (size_t)s->by.channels, sizeof(*w), ascending);
    least = OCT_MAX(w[(int64_t)(LEAST_PART * (double)(s->by.channels - 1))],
                    1 / OCT_SMOOTH_MOST_FACTOR);
    least = OCT_MIN(least, OCT_SMOOTH_MOST_FACTOR);
    for (int64_t c = 0; c < s->by.channels; c++) {
        s->by.factor[c] = OCT_MIN(OCT_MAX(s->by.factor[c], least), OCT_SMOOTH_MOST_FACTOR);
        if (!isfinite(s->by.factor[c])) s->by.factor[c] = 1;
    }
    return OCT_OK;
}

/* --- all of it --- */

static oct_status tell(const work *w)
{
    oct_channel_factors *all = oct_arena_array(w->arena, (size_t)w->n, sizeof(*all));

    if (!all) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < w->n; i++)
        all[i] = (oct_channel_factors){.value = w->item[i].by.x->name,
                                       .x = {w->item[i].by.factor},
                                       .channels = w->item[i].by.channels};
    return oct_channel_factors_write(w->g, OCT_MOVED_SMOOTH, all, w->n);
}

static oct_status run(work *w, oct_feed *f, double alpha)
{
    const size_t n = (size_t)w->bound->n_value_ids + 1;

    w->item = oct_arena_array(w->arena, n, sizeof(*w->item));
    w->wanted = oct_arena_array(w->arena, n, 1);
    if (!w->item || !w->wanted) return OCT_ERR_MEMORY;
    OCT_TRY(find(w));
    if (w->n == 0) return OCT_OK;
    OCT_TRY(measure(w, f));
    for (int32_t i = 0; i < w->n; i++) {
        OCT_TRY(find_factors(&w->item[i], alpha, w->arena));
        OCT_TRY(oct_smooth_apply(&w->item[i].by, w->arena));
    }
    return tell(w);
}

oct_status oct_smooth(oct_graph *g, const oct_graph *bound, oct_feed *f, double alpha,
                      int32_t *n_products)
{
    work w = {.g = g, .bound = bound, .arena = oct_arena_new(g->ctx)};
    oct_status st;

    if (!w.arena) return OCT_ERR_MEMORY;
    oct_map_init(&w.by_name, g->ctx);
    st = run(&w, f, alpha);
    if (n_products) *n_products = w.n;
    oct_map_fini(&w.by_name);
    oct_arena_free(w.arena);
    return st;
}
