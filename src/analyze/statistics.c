/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics: what the float network has at each place where the quantized one has codes. One pass,
 * each worker with its own sums, which are merged at the end.
 */
#include "analyze/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/plan.h"
#include "exec/run.h"
#include "op/quant.h"
#include "quant/distance.h"

enum {
    SLOTS = 256, /* of the histogram: 128 to 256 bins */
    BLOCK = 512, /* numbers looked at together */
    POWERS = 4,
};

/* Scales for a row of numbers, as far as it has any. */
typedef struct grid {
    float *scale, *zero; /* one for each channel, or one */
    float low, high;     /* codes */
} grid;

/* What one worker has seen at one site. */
typedef struct tally {
    oct_histogram histogram;
    oct_scan *channels;    /* of each channel, all pictures */
    oct_sum power[POWERS]; /* x, x^2, x^3, x^4 */
    oct_sum error;         /* of rounding and clipping */
    int64_t n, clipped;
    uint8_t *used; /* by code, from the lowest */
    bool has_bad;
} tally;

/* A value with sites on it: one value may have several. */
typedef struct station {
    const oct_site *site;
    int64_t n_channels;
    grid grid;
    int32_t next; /* another site of the same value, or -1 */
} station;

typedef struct survey {
    const oct_pair *p;
    station *stations;
    int32_t *first;  /* by value id of the exact network: station, or -1 */
    oct_map by_name; /* the plan has its own values: first station + 1 */
    tally *tallies[OCT_FEED_MAX_WORKERS];
    oct_scan *scratch[OCT_FEED_MAX_WORKERS];
    int32_t n_workers;
    oct_arena *arena;
} survey;

typedef struct seer {
    survey *s;
    int32_t worker;
} seer;

/* --- numbers --- */

/* Nearest whole number, ties to even, without a call: numbers this small have no fraction behind
 * the addition. */
static float nearest(float t)
{
    const float large = 0x1.8p23f;

    return (t + large) - large;
}

/* Codes of n numbers under scales `step` apart, from the lowest code; and what they stand for.
 * Returns how many numbers no code can hold: nearer to one beyond the ends than to those. */
static int64_t quantize(const grid *g, const float *x, int64_t n, int64_t channel, int step,
                        int32_t *code, float *back)
{
    int64_t clipped = 0;

    for (int64_t i = 0; i < n; i++) {
        const int64_t c = channel + i * step;
        const float low = g->low - g->zero[c], high = g->high - g->zero[c];
        const float t = x[i] / g->scale[c];
        const float held = t < low ? low : t > high ? high : t;
        const float whole = nearest(held);

        clipped += t < low - 0.5f || t > high + 0.5f;
        code[i] = (int32_t)(whole - low);
        back[i] = whole * g->scale[c];
    }
    return clipped;
}

static void add_powers(tally *t, const float *x, const float *back, int64_t n)
{
    double sum[POWERS] = {0}, error = 0;

    for (int64_t i = 0; i < n; i++) {
        const double v = (double)x[i], d = v - (double)back[i];

        sum[0] += v;
        sum[1] += v * v;
        sum[2] += v * v * v;
        sum[3] += v * v * v * v;
        error += d * d;
    }
    for (int k = 0; k < POWERS; k++)
        oct_sum_add(&t->power[k], sum[k]);
    oct_sum_add(&t->error, error);
    t->n += n;
}

/* n numbers in a row, of one channel (step 0) or of channels one after the other (step 1). */
static void see_row(const grid *g, tally *t, const float *x, int64_t n, int64_t channel, int step)
{
    int32_t code[BLOCK];
    float back[BLOCK];

    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t len = OCT_MIN(n - i, (int64_t)BLOCK);

        t->clipped += quantize(g, x + i, len, channel + i * step, step, code, back);
        add_powers(t, x + i, back, len);
        for (int64_t k = 0; k < len; k++)
            t->used[code[k]] = 1;
    }
}

static void see_sight(const station *k, tally *t, const oct_sight *s)
{
    const bool each = k->site->codes.n > 1;

    if (s->planar) {
        for (int64_t c = 0; c < s->channels; c++)
            see_row(&k->grid, t, s->data + c * s->pixels, s->pixels, each ? c : 0, 0);
        return;
    }
    if (!each && s->pitch == s->channels) {
        see_row(&k->grid, t, s->data, s->pixels * s->channels, 0, 0);
        return;
    }
    for (int64_t i = 0; i < s->pixels; i++)
        see_row(&k->grid, t, s->data + i * s->pitch, s->channels, 0, each);
}

static void see_station(const station *k, tally *t, oct_scan *scratch, const oct_sight *s)
{
    oct_scan all = {.low = INFINITY, .high = -INFINITY};

    if (!oct_scan_channels(s, scratch)) {
        t->has_bad = true;
        return;
    }
    for (int64_t c = 0; c < s->channels; c++) {
        oct_scan *to = &t->channels[c];

        to->low = OCT_MIN(to->low, scratch[c].low);
        to->high = OCT_MAX(to->high, scratch[c].high);
        all.low = OCT_MIN(all.low, scratch[c].low);
        all.high = OCT_MAX(all.high, scratch[c].high);
        all.zeros += scratch[c].zeros;
    }
    oct_histogram_see(&t->histogram, s, &all);
    see_sight(k, t, s);
}

/* --- hooks --- */

static void see(survey *s, int32_t worker, int32_t at, const oct_seen *seen)
{
    for (; at >= 0; at = s->stations[at].next) {
        const station *k = &s->stations[at];
        const int64_t batch = seen->type->rank >= 2 ? seen->type->dim[0] : 1;
        const int64_t pixels =
            oct_type_len(seen->type) / OCT_MAX(batch * k->n_channels, (int64_t)1);
        const bool last = seen->layout == OCT_LAYOUT_CLAST;
        oct_sight sight = {.data = seen->data,
                           .pixels = pixels,
                           .channels = k->n_channels,
                           .pitch = last ? seen->pitch : k->n_channels,
                           .planar = !last && pixels > 1};

        for (int64_t i = 0; i < batch; i++) {
            see_station(k, &s->tallies[worker][at], s->scratch[worker], &sight);
            sight.data += pixels * sight.pitch;
        }
    }
}

static oct_status on_value(void *user, const oct_seen *seen)
{
    const seer *k = user;
    const uintptr_t at = (uintptr_t)oct_map_get(&k->s->by_name, seen->value->name);

    if (at && seen->type->dtype == OCT_DTYPE_F32) see(k->s, k->worker, (int32_t)at - 1, seen);
    return OCT_OK;
}

typedef struct job {
    survey *s;
    seer seers[OCT_FEED_MAX_WORKERS];
} job;

static oct_status begin(void *user, int32_t worker, oct_run *r)
{
    job *j = user;

    j->seers[worker] = (seer){j->s, worker};
    oct_run_set_seen_hook(r, on_value, &j->seers[worker]);
    return OCT_OK;
}

/* Inputs are not made by a step, so no hook shows them. */
static oct_status after(void *user, int32_t worker, oct_ctx *ctx, oct_run *r, int64_t index)
{
    survey *s = ((job *)user)->s;
    const oct_graph *g = s->p->exact;

    for (int32_t i = 0; i < g->n_inputs; i++) {
        const oct_value *v = g->inputs[i];
        void *data = NULL;

        if (s->first[v->id] < 0) continue;
        OCT_TRY(oct_run_input(r, v->name, &data, NULL));
        if (!data) continue;
        see(s, worker, s->first[v->id],
            &(oct_seen){.value = v, .type = &v->type, .layout = OCT_LAYOUT_PLAIN, .data = data});
    }
    for (int32_t i = 0; i < s->p->n_sites; i++)
        if (s->tallies[worker][i].has_bad)
            return oct_fail(ctx, OCT_ERR_FORMAT,
                            "value '%s' is not finite for '%s'; is the network sound, and the "
                            "preprocessing right?",
                            s->stations[i].site->value->name, oct_feed_name(s->p->feed, index));
    return OCT_OK;
}

/* --- making and merging --- */

static oct_status make_grid(oct_arena *a, const oct_codes *c, grid *g)
{
    const size_t n = (size_t)c->n;
    int32_t low, high;

    g->scale = oct_arena_array(a, n + 1, sizeof(float));
    g->zero = oct_arena_array(a, n + 1, sizeof(float));
    if (!g->scale || !g->zero) return OCT_ERR_MEMORY;
    oct_quant_limits(c->dtype, &low, &high);
    g->low = (float)low;
    g->high = (float)high;
    for (int64_t i = 0; i < c->n; i++) {
        g->scale[i] = oct_codes_scale(c, i);
        g->zero[i] = (float)oct_codes_zero(c, i);
    }
    return OCT_OK;
}

static oct_status make_tally(oct_arena *a, const station *k, tally *t)
{
    uint64_t *counts = oct_arena_array(a, SLOTS, sizeof(*counts));

    t->channels = oct_arena_array(a, (size_t)k->n_channels + 1, sizeof(*t->channels));
    t->used = oct_arena_alloc(a, (size_t)(k->grid.high - k->grid.low) + 2);
    if (!counts || !t->channels || !t->used) return OCT_ERR_MEMORY;
    oct_histogram_init(&t->histogram, SLOTS, counts);
    for (int64_t c = 0; c < k->n_channels; c++)
        t->channels[c] = (oct_scan){.low = INFINITY, .high = -INFINITY};
    return OCT_OK;
}

static oct_status make_stations(survey *s)
{
    const oct_pair *p = s->p;

    s->stations = oct_arena_array(s->arena, (size_t)p->n_sites + 1, sizeof(*s->stations));
    s->first = oct_arena_array(s->arena, (size_t)p->exact->n_value_ids + 1, sizeof(int32_t));
    if (!s->stations || !s->first) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->exact->n_value_ids; i++)
        s->first[i] = -1;
    for (int32_t i = 0; i < p->n_sites; i++) {
        const oct_value *v = p->sites[i].value;
        station *k = &s->stations[i];

        *k = (station){.site = &p->sites[i],
                       .n_channels = v->type.rank >= 2 ? v->type.dim[1] : 1,
                       .next = s->first[v->id]};
        s->first[v->id] = i;
        OCT_TRY(make_grid(s->arena, &k->site->codes, &k->grid));
        OCT_TRY(oct_map_put(&s->by_name, v->name, (void *)(uintptr_t)(i + 1)));
    }
    return OCT_OK;
}

static oct_status make_tallies(survey *s)
{
    int64_t most = 1;

    for (int32_t i = 0; i < s->p->n_sites; i++)
        most = OCT_MAX(most, s->stations[i].n_channels);
    for (int32_t w = 0; w < s->n_workers; w++) {
        s->tallies[w] = oct_arena_array(s->arena, (size_t)s->p->n_sites + 1, sizeof(tally));
        s->scratch[w] = oct_arena_array(s->arena, (size_t)most, sizeof(oct_scan));
        if (!s->tallies[w] || !s->scratch[w]) return OCT_ERR_MEMORY;
        for (int32_t i = 0; i < s->p->n_sites; i++)
            OCT_TRY(make_tally(s->arena, &s->stations[i], &s->tallies[w][i]));
    }
    return OCT_OK;
}

static void merge(const station *k, tally *t, const tally *other)
{
    const int32_t levels = (int32_t)(k->grid.high - k->grid.low) + 1;

    oct_histogram_merge(&t->histogram, &other->histogram);
    for (int64_t c = 0; c < k->n_channels; c++) {
        t->channels[c].low = OCT_MIN(t->channels[c].low, other->channels[c].low);
        t->channels[c].high = OCT_MAX(t->channels[c].high, other->channels[c].high);
    }
    for (int i = 0; i < POWERS; i++)
        oct_sum_merge(&t->power[i], &other->power[i]);
    oct_sum_merge(&t->error, &other->error);
    t->n += other->n;
    t->clipped += other->clipped;
    for (int32_t i = 0; i < levels; i++)
        t->used[i] |= other->used[i];
}

/* --- results --- */

static double kurtosis(const tally *t)
{
    const double n = (double)OCT_MAX(t->n, (int64_t)1);
    const double m1 = oct_sum_value(&t->power[0]) / n, m2 = oct_sum_value(&t->power[1]) / n;
    const double m3 = oct_sum_value(&t->power[2]) / n, m4 = oct_sum_value(&t->power[3]) / n;
    const double variance = m2 - m1 * m1;
    const double fourth = m4 - 4 * m1 * m3 + 6 * m1 * m1 * m2 - 3 * m1 * m1 * m1 * m1;

    return variance > 1e-12 * m2 ? fourth / (variance * variance) : 0;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* The widest channel's range over the median channel's, for those that are not constant. */
static oct_status spread(oct_arena *a, const station *k, const tally *t, double *out)
{
    double *width = oct_arena_array(a, (size_t)k->n_channels + 1, sizeof(*width));
    int64_t n = 0;

    if (!width) return OCT_ERR_MEMORY;
    for (int64_t c = 0; c < k->n_channels; c++) {
        const double w = (double)t->channels[c].high - (double)t->channels[c].low;

        if (w > 0 && isfinite(w)) width[n++] = w;
    }
    *out = 0;
    if (k->n_channels < 2 || n < 2) return OCT_OK;
    qsort(width, (size_t)n, sizeof(*width), by_size);
    *out = width[n - 1] / width[n / 2];
    return OCT_OK;
}

static oct_status fill_histogram(oct_arena *a, const oct_histogram *h, oct_analyzed_point *p)
{
    const int64_t n = oct_histogram_used(h);
    int64_t *count = oct_arena_array(a, (size_t)n + 1, sizeof(*count));

    if (!count) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++)
        count[i] = (int64_t)h->count[i];
    p->histogram = count;
    p->n_bins = (int32_t)n;
    p->histogram_low = n ? ldexp((double)h->base, h->k) : 0;
    p->histogram_high = n ? ldexp((double)(h->base + n), h->k) : 0;
    return OCT_OK;
}

/* Parameters of the widest channel: what a reader compares the numbers with. */
static void fill_scale(const station *k, oct_analyzed_point *p)
{
    const grid *g = &k->grid;
    int64_t widest = 0;

    for (int64_t i = 1; i < k->site->codes.n; i++)
        if (g->scale[i] > g->scale[widest]) widest = i;
    p->type = oct_dtype_name(k->site->codes.dtype);
    p->n_scales = (int32_t)k->site->codes.n;
    p->scale = (double)g->scale[widest];
    p->zero = (double)g->zero[widest];
    p->low = ((double)g->low - p->zero) * p->scale;
    p->high = ((double)g->high - p->zero) * p->scale;
    p->levels = (int32_t)(g->high - g->low) + 1;
}

static oct_status fill_point(survey *s, int32_t i, oct_arena *a, oct_analyzed_point *p)
{
    const station *k = &s->stations[i];
    const tally *t = &s->tallies[0][i];
    const oct_value *v = k->site->value;
    const double signal = oct_sum_value(&t->power[1]);

    *p = (oct_analyzed_point){.struct_size = sizeof(*p), .kurtosis = kurtosis(t)};
    p->value = oct_arena_strdup(a, v->name);
    p->layer = v->producer ? oct_arena_strdup(a, v->producer->name) : "";
    if (!p->value || !p->layer) return OCT_ERR_MEMORY;
    fill_scale(k, p);
    if (!oct_histogram_is_empty(&t->histogram)) {
        p->min = (double)t->histogram.low;
        p->max = (double)t->histogram.high;
    }
    p->clipped = (double)t->clipped / (double)OCT_MAX(t->n, (int64_t)1);
    for (int32_t c = 0; c < p->levels; c++)
        p->used += t->used[c];
    p->noise = signal > 0 ? oct_sum_value(&t->error) / signal : 0;
    OCT_TRY(spread(s->arena, k, t, &p->spread));
    return fill_histogram(a, &t->histogram, p);
}

/* --- the pass --- */

static oct_status run_pass(survey *s, int32_t n_threads)
{
    const oct_graph *g = s->p->exact;
    uint8_t *wanted = oct_arena_alloc(s->arena, (size_t)g->n_value_ids + 1);
    job j = {.s = s};
    const oct_feed_job work = {.what = "looking at numbers",
                               .n_workers = s->n_workers,
                               .begin = begin,
                               .one = after,
                               .user = &j};
    oct_plan *plan = NULL;
    oct_plan_options o;
    oct_status st;

    if (!wanted) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < s->p->n_sites; i++)
        wanted[s->stations[i].site->value->id] = 1;
    oct_plan_options_init(&o);
    o.n_threads = n_threads;
    OCT_TRY(oct_plan_new_watching(g, &o, wanted, &plan));
    st = oct_feed_rewind(s->p->feed, s->p->images);
    if (!st) st = oct_feed_each(s->p->feed, plan, &work);
    oct_plan_free(plan);
    return st;
}

static oct_status survey_all(survey *s, oct_analysis *a)
{
    int32_t n_threads;

    a->points = oct_arena_array(a->arena, (size_t)s->p->n_sites + 1, sizeof(*a->points));
    if (!a->points) return OCT_ERR_MEMORY;
    oct_feed_workers(s->p->feed, s->p->ctx, &s->n_workers, &n_threads);
    OCT_TRY(make_stations(s));
    OCT_TRY(make_tallies(s));
    OCT_TRY(run_pass(s, n_threads));
    for (int32_t i = 0; i < s->p->n_sites; i++) {
        for (int32_t w = 1; w < s->n_workers; w++)
            merge(&s->stations[i], &s->tallies[0][i], &s->tallies[w][i]);
        OCT_TRY(fill_point(s, i, a->arena, &a->points[i]));
        a->n_points++;
    }
    return OCT_OK;
}

oct_status oct_analyze_statistics(oct_analysis *a, const oct_pair *p)
{
    survey s = {.p = p};
    oct_status st;

    if (p->n_sites == 0) return OCT_OK;
    oct_map_init(&s.by_name, p->ctx);
    st = (s.arena = oct_arena_new(p->ctx)) ? survey_all(&s, a) : OCT_ERR_MEMORY;
    oct_map_fini(&s.by_name);
    oct_arena_free(s.arena);
    return st;
}
