/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration. Each worker has its own observers, merged at the end in order; what is summed in
 * floating point is rounded to a grid first, so that the sum does not depend on who saw what.
 */
#include "quant/observe/calibrate.h"

#include <math.h>
#include <string.h>

#include "base/machine.h"
#include "exec/plan.h"
#include "exec/run.h"
#include "exec/simd/simd.h"

oct_status oct_calibration_new(const oct_graph *g, oct_calibration **out)
{
    oct_calibration *c = oct_calloc(g->ctx, 1, sizeof(*c));
    const size_t n = (size_t)g->n_value_ids;

    if (!c) return OCT_ERR_MEMORY;
    c->ctx = g->ctx;
    c->cap = (int32_t)n;
    c->watch = oct_calloc(g->ctx, n + 1, sizeof(*c->watch));
    c->of_value = oct_calloc(g->ctx, n + 1, sizeof(*c->of_value));
    if (!c->watch || !c->of_value) {
        oct_calibration_free(c);
        return OCT_ERR_MEMORY;
    }
    memset(c->of_value, -1, (n + 1) * sizeof(*c->of_value));
    *out = c;
    return OCT_OK;
}

static void free_watches(oct_ctx *ctx, oct_watch *w, int32_t n)
{
    for (int32_t i = 0; w && i < n; i++) {
        oct_observer_free(w[i].range);
        oct_free(ctx, w[i].sum);
        oct_free(ctx, w[i].square);
    }
    oct_free(ctx, w);
}

void oct_calibration_free(oct_calibration *c)
{
    if (!c) return;
    free_watches(c->ctx, c->watch, c->n);
    oct_free(c->ctx, c->of_value);
    oct_free(c->ctx, c);
}

oct_status oct_calibration_watch(oct_calibration *c, const oct_value *v,
                                 const oct_observer_options *range, bool means)
{
    int32_t *at = &c->of_value[v->id];
    oct_watch *w;

    if (v->type.dtype != OCT_DTYPE_F32 || !oct_type_is_static(&v->type))
        return oct_fail(c->ctx, OCT_ERR_SHAPE, "value '%s' has no fixed shape of floats", v->name);
    if (*at < 0) {
        *at = c->n++;
        c->watch[*at] = (oct_watch){.value = v, .channels = v->type.rank >= 2 ? v->type.dim[1] : 1};
    }
    w = &c->watch[*at];
    if (range && !w->range) OCT_TRY(oct_observer_new(c->ctx, range, w->channels, &w->range));
    if (means && !w->sum && !(w->sum = oct_calloc(c->ctx, (size_t)w->channels + 1, sizeof(double))))
        return OCT_ERR_MEMORY;
    return OCT_OK;
}

oct_status oct_calibration_watch_spread(oct_calibration *c, const oct_value *v)
{
    oct_watch *w;

    OCT_TRY(oct_calibration_watch(c, v, NULL, true));
    w = &c->watch[c->of_value[v->id]];
    if (!w->square) w->square = oct_calloc(c->ctx, (size_t)w->channels + 1, sizeof(double));
    return w->square ? OCT_OK : OCT_ERR_MEMORY;
}

const oct_watch *oct_calibration_of(const oct_calibration *c, const oct_value *v)
{
    const int32_t i = c->of_value[v->id];

    return i >= 0 ? &c->watch[i] : NULL;
}

/* --- a worker --- */

typedef struct pass {
    oct_calibration *c;
    const oct_graph *bound;
    oct_feed *feed;
    oct_map by_name; /* of a watched value: its index + 1 */
    struct worker {
        struct pass *pass;
        oct_watch *watch; /* of this worker; the calibration's own for worker 0 */
        double *scratch;  /* sums of one image */
        int64_t hook_ns;
    } workers[OCT_MAX_WORKERS];
    int32_t n_workers;
    int64_t max_channels;
} pass;

/* NCHW: a channel as rows of a few columns, which are added up at the end. */
static void add_nchw(const oct_value_view *s, double *sum)
{
    const oct_stats_simd *simd = oct_simd_get()->stats;
    const int64_t rows = s->pixels / OCT_STATS_LANES, whole = rows * OCT_STATS_LANES;

    for (int64_t c = 0; c < s->channels; c++) {
        const float *plane = s->data + c * s->pixels;
        double part[OCT_STATS_LANES] = {0};

        simd->sum(part, plane, rows, OCT_STATS_LANES, OCT_STATS_LANES);
        simd->sum(part, plane + whole, 1, 0, s->pixels - whole);
        for (int i = 0; i < OCT_STATS_LANES; i++)
            sum[c] += part[i];
    }
}

/* A part of a sum, rounded to a multiple of `grid`: sums of those are exact in double. */
static double on_grid(double sum, int64_t n, double grid)
{
    return rint(sum / (double)OCT_MAX(n, (int64_t)1) / grid) * grid;
}

/* An image's means, divided by the number of images of an item. */
static void see_means(struct worker *k, oct_watch *w, const oct_value_view *s, int64_t batch)
{
    memset(k->scratch, 0, (size_t)w->channels * sizeof(double));
    if (s->planar)
        add_nchw(s, k->scratch);
    else
        oct_simd_get()->stats->sum(k->scratch, s->data, s->pixels, s->pitch, s->channels);
    for (int64_t c = 0; c < w->channels; c++)
        w->sum[c] += on_grid(k->scratch[c], s->pixels * batch, 0x1p-20);
}

static void add_squares(const oct_value_view *s, double *sum)
{
    const int64_t outer = s->planar ? s->channels : s->pixels;
    const int64_t inner = s->planar ? s->pixels : s->channels;
    const int64_t pitch = s->planar ? s->pixels : s->pitch;

    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const double x = (double)s->data[o * pitch + i];

            sum[s->planar ? o : i] += x * x;
        }
}

/* As the means, but finer: deviations of a thousandth count. */
static void see_squares(struct worker *k, oct_watch *w, const oct_value_view *s, int64_t batch)
{
    memset(k->scratch, 0, (size_t)w->channels * sizeof(double));
    add_squares(s, k->scratch);
    for (int64_t c = 0; c < w->channels; c++)
        w->square[c] += on_grid(k->scratch[c], s->pixels * batch, 0x1p-24);
}

static void see(struct worker *k, oct_watch *w, const oct_seen *seen)
{
    const int32_t rank = seen->type->rank;
    const int64_t batch = rank >= 2 ? seen->type->dim[0] : 1;
    const int64_t pixels = oct_type_len(seen->type) / OCT_MAX(batch * w->channels, (int64_t)1);
    const bool last = seen->layout == OCT_LAYOUT_CLAST;
    oct_value_view s = {.data = seen->data,
                        .pixels = pixels,
                        .channels = w->channels,
                        .pitch = last ? seen->pitch : w->channels,
                        .planar = !last && pixels > 1};

    for (int64_t i = 0; i < batch; i++) {
        if (w->range) oct_observer_see(w->range, &s);
        if (w->sum) see_means(k, w, &s, batch);
        if (w->square) see_squares(k, w, &s, batch);
        s.data += pixels * s.pitch;
    }
}

static oct_status on_value(void *user, const oct_seen *seen)
{
    struct worker *k = user;
    const int64_t start = oct_time_ns();
    const uintptr_t at = (uintptr_t)oct_map_get(&k->pass->by_name, seen->value->name);

    if (at) see(k, &k->watch[at - 1], seen);
    k->hook_ns += oct_time_ns() - start;
    return OCT_OK;
}

static oct_status begin(void *user, int32_t worker, oct_run *r)
{
    pass *p = user;

    oct_run_set_seen_hook(r, on_value, &p->workers[worker]);
    return OCT_OK;
}

static oct_status after(void *user, int32_t worker, oct_ctx *ctx, oct_run *r, int64_t index)
{
    pass *p = user;
    const struct worker *k = &p->workers[worker];

    OCT_TRY(oct_run_show_inputs(r));
    for (int32_t i = 0; i < p->c->n; i++)
        if (k->watch[i].range && k->watch[i].range->has_bad)
            return oct_fail(ctx, OCT_ERR_FORMAT,
                            "value '%s' is not finite for '%s'; is the network sound, and the "
                            "preprocessing right?",
                            k->watch[i].value->name, oct_feed_name(p->feed, index));
    return OCT_OK;
}

/* --- all of it --- */

static oct_status copy_watches(pass *p, oct_watch **out)
{
    oct_calibration *c = p->c;
    oct_watch *w = oct_calloc(c->ctx, (size_t)c->n + 1, sizeof(*w));

    if (!(*out = w)) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < c->n; i++) {
        w[i].value = c->watch[i].value;
        w[i].channels = c->watch[i].channels;
        if (c->watch[i].range)
            OCT_TRY(
                oct_observer_new(c->ctx, &c->watch[i].range->options, w[i].channels, &w[i].range));
        if (c->watch[i].sum &&
            !(w[i].sum = oct_calloc(c->ctx, (size_t)w[i].channels + 1, sizeof(double))))
            return OCT_ERR_MEMORY;
        if (c->watch[i].square &&
            !(w[i].square = oct_calloc(c->ctx, (size_t)w[i].channels + 1, sizeof(double))))
            return OCT_ERR_MEMORY;
    }
    return OCT_OK;
}

static oct_status prepare(pass *p, uint8_t *wanted)
{
    oct_calibration *c = p->c;

    for (int32_t i = 0; i < c->n; i++) {
        wanted[c->watch[i].value->id] = 1;
        p->max_channels = OCT_MAX(p->max_channels, c->watch[i].channels);
        OCT_TRY(oct_map_put(&p->by_name, c->watch[i].value->name, (void *)(uintptr_t)(i + 1)));
    }
    for (int32_t k = 0; k < p->n_workers; k++) {
        struct worker *s = &p->workers[k];

        s->pass = p;
        s->watch = c->watch;
        if (k > 0) OCT_TRY(copy_watches(p, &s->watch));
        s->scratch = oct_calloc(c->ctx, (size_t)p->max_channels + 1, sizeof(double));
        if (!s->scratch) return OCT_ERR_MEMORY;
    }
    return OCT_OK;
}

static oct_status merge(pass *p)
{
    oct_calibration *c = p->c;

    for (int32_t k = 1; k < p->n_workers; k++)
        for (int32_t i = 0; i < c->n; i++) {
            const oct_watch *w = &p->workers[k].watch[i];

            if (w->range) OCT_TRY(oct_observer_merge(c->watch[i].range, w->range));
            for (int64_t ch = 0; w->sum && ch < w->channels; ch++)
                c->watch[i].sum[ch] += w->sum[ch];
            for (int64_t ch = 0; w->square && ch < w->channels; ch++)
                c->watch[i].square[ch] += w->square[ch];
        }
    return OCT_OK;
}

static oct_status run_pass(pass *p, const uint8_t *wanted, int32_t n_threads)
{
    oct_calibration *c = p->c;
    const oct_feed_job job = {
        .what = "calibrating", .n_workers = p->n_workers, .begin = begin, .one = after, .user = p};
    const int64_t start = oct_time_ns();
    oct_plan_options o;
    oct_plan *plan = NULL;
    oct_status st;

    oct_plan_options_init(&o);
    o.n_threads = n_threads;
    OCT_TRY(oct_plan_new_watching(p->bound, &o, wanted, &plan));
    st = oct_feed_each(p->feed, plan, &job);
    oct_plan_free(plan);
    if (st) return st;
    c->images += oct_feed_size(p->feed);
    c->seconds += (double)(oct_time_ns() - start) * 1e-9;
    for (int32_t k = 0; k < p->n_workers; k++) /* side by side, so each counts for its share */
        c->hook_seconds += (double)p->workers[k].hook_ns * 1e-9 / (double)p->n_workers;
    return merge(p);
}

oct_status oct_calibrate(oct_calibration *c, const oct_graph *bound, oct_feed *f)
{
    pass p = {.c = c, .bound = bound, .feed = f};
    uint8_t *wanted = oct_calloc(c->ctx, (size_t)bound->n_value_ids + 1, 1);
    int32_t n_threads;
    oct_status st;

    if (!wanted) return OCT_ERR_MEMORY;
    oct_map_init(&p.by_name, c->ctx);
    oct_feed_workers(f, c->ctx, &p.n_workers, &n_threads);
    st = prepare(&p, wanted);
    if (!st) st = run_pass(&p, wanted, n_threads);
    for (int32_t k = 0; k < p.n_workers; k++) {
        if (k > 0) free_watches(c->ctx, p.workers[k].watch, c->n);
        oct_free(c->ctx, p.workers[k].scratch);
    }
    oct_map_fini(&p.by_name);
    oct_free(c->ctx, wanted);
    return st;
}
