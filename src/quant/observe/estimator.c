/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimator: NNCF's range estimator. One number is taken of each sample for the low end and one
 * for the high end, and samples are put together by a rule.
 *
 * Medians and rules without outliers need the numbers of all samples: 65536 are kept for an end
 * of a value (so 4096 samples, or 64 at 1024 channels; never less than 64); later samples do not
 * count. All other rules need no more memory for more samples.
 *
 * Quantiles of a sample are read off a histogram: exact to the width of a bin.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/observe/density.h"

enum { KEPT_NUMBERS = 65536, KEPT_MIN = 64, KEPT_MAX = 4096 };

#define OUTLIERS 0.01 /* the part at either end that is one */

/* One end of the range. */
typedef struct side {
    double *sum;
    float *min, *max; /* of samples' numbers; n each */
    float *kept;      /* cap x n, or NULL */
} side;

typedef struct estimator {
    oct_histograms hist; /* of one sample; first, so that its functions find it */
    side low, high;
    float *now; /* n */
    int64_t n_kept, cap;
} estimator;

static bool needs_samples(oct_gather g)
{
    return g >= OCT_GATHER_MEDIAN;
}

static bool needs_histogram(oct_stat s)
{
    return s == OCT_STAT_QUANTILE || s == OCT_STAT_ABS_QUANTILE;
}

static oct_status check(oct_ctx *ctx, oct_stat stat, oct_gather gather, double prob, double clip)
{
    if ((int)stat < 0 || stat > OCT_STAT_MEAN || (int)gather < 0 ||
        gather > OCT_GATHER_MEDIAN_NO_OUTLIERS)
        return oct_fail(ctx, OCT_ERR_ARG, "estimator: no such statistic or aggregator");
    if (!(prob >= 0 && prob < 0.5))
        return oct_fail(ctx, OCT_ERR_ARG, "quantile_outlier_prob %g: 0 to less than 0.5", prob);
    if (!(clip >= 0)) return oct_fail(ctx, OCT_ERR_ARG, "clipping_value %g: less than 0", clip);
    return OCT_OK;
}

static oct_status init_side(oct_observer *o, side *s, oct_gather gather)
{
    const estimator *e = o->state;
    const size_t n = (size_t)oct_observer_n_ranges(o);

    s->sum = oct_calloc(o->ctx, n, sizeof(*s->sum));
    s->min = oct_calloc(o->ctx, n, sizeof(*s->min));
    s->max = oct_calloc(o->ctx, n, sizeof(*s->max));
    if (!s->sum || !s->min || !s->max) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) {
        s->min[i] = INFINITY;
        s->max[i] = -INFINITY;
    }
    if (!needs_samples(gather)) return OCT_OK;
    s->kept = oct_calloc(o->ctx, n, (size_t)e->cap * sizeof(*s->kept));
    return s->kept ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status init(oct_observer *o)
{
    const oct_observer_options *p = &o->options;
    const int64_t n = oct_observer_n_ranges(o);
    estimator *e = o->state;

    OCT_TRY(check(o->ctx, p->low.stat, p->low.gather, p->low.quantile_outlier_prob,
                  p->low.clipping_value));
    OCT_TRY(check(o->ctx, p->high.stat, p->high.gather, p->high.quantile_outlier_prob,
                  p->high.clipping_value));
    e->cap = OCT_MAX(OCT_MIN(KEPT_NUMBERS / n, KEPT_MAX), KEPT_MIN);
    if (needs_histogram(p->low.stat) || needs_histogram(p->high.stat)) {
        OCT_TRY(oct_histograms_init(o));
    } else {
        e->hist.scan = oct_calloc(o->ctx, (size_t)n, sizeof(*e->hist.scan));
        if (!e->hist.scan) return OCT_ERR_MEMORY;
    }
    e->now = oct_calloc(o->ctx, (size_t)n, sizeof(*e->now));
    if (!e->now) return OCT_ERR_MEMORY;
    OCT_TRY(init_side(o, &e->low, p->low.gather));
    return init_side(o, &e->high, p->high.gather);
}

/* Means of all numbers, or of each channel's. */
static void means(const oct_value_view *s, int64_t n, float *out)
{
    const int64_t between = s->planar ? s->pixels : 1, down = s->planar ? 1 : s->pitch;
    double all = 0;

    for (int64_t c = 0; c < s->channels; c++) {
        double sum = 0;

        for (int64_t i = 0; i < s->pixels; i++)
            sum += (double)s->data[c * between + i * down];
        if (n > 1) out[c] = (float)(sum / (double)s->pixels);
        all += sum;
    }
    if (n == 1) out[0] = (float)(all / (double)(s->pixels * s->channels));
}

/* The x below which this part of a sample is: the bin in which the count passes it, and a straight
 * line inside. */
static double quantile(const oct_histogram *h, double part)
{
    const int64_t n = oct_histogram_used(h);
    double total = 0, before = 0, here;

    for (int64_t i = 0; i < n; i++)
        total += (double)h->count[i];
    for (int64_t i = 0; i < n; i++, before += here) {
        here = (double)h->count[i];
        if (!(here > 0) || before + here < part * total) continue;
        return fmin(fmax(ldexp((double)(h->base + i) + (part * total - before) / here, h->k),
                         (double)h->low),
                    (double)h->high);
    }
    return (double)h->high;
}

/* The same for |x|. */
static double abs_quantile(const oct_histogram *h, double part)
{
    const double far = fmax(fabs((double)h->low), fabs((double)h->high));
    const int64_t n = oct_histogram_used(h), zero = -h->base;
    double total = 0, before = 0, here;

    if (h->low >= 0) return quantile(h, part);
    if (h->high <= 0) return -quantile(h, 1 - part);
    for (int64_t i = 0; i < n; i++)
        total += (double)h->count[i];
    for (int64_t i = 0; i < n; i++, before += here) { /* 0 is inside: no bin is farther than n */
        here = zero + i < n ? (double)h->count[zero + i] : 0;
        if (zero - 1 - i >= 0) here += (double)h->count[zero - 1 - i];
        if (here > 0 && before + here >= part * total)
            return fmin(ldexp((double)i + (part * total - before) / here, h->k), far);
    }
    return far;
}

/* What is taken of one range of this sample. */
static float statistic(const estimator *e, int64_t i, oct_stat stat, double prob, bool is_low)
{
    const oct_scan *now = &e->hist.scan[i];
    const float far = fmaxf(fabsf(now->low), fabsf(now->high));

    switch (stat) {
    case OCT_STAT_MIN:
        return now->low;
    case OCT_STAT_MAX:
        return now->high;
    case OCT_STAT_ABS_MAX:
        return is_low ? -far : far;
    case OCT_STAT_QUANTILE:
        return (float)quantile(&e->hist.h[i], is_low ? prob : 1 - prob);
    case OCT_STAT_ABS_QUANTILE:
        return (float)abs_quantile(&e->hist.h[i], 1 - prob) * (is_low ? -1.0f : 1.0f);
    default:
        return e->now[i];
    }
}

static void add(estimator *e, side *s, int64_t n, int64_t i, float v, double clip)
{
    if (clip > 0) v = fminf(fmaxf(v, (float)-clip), (float)clip);
    s->sum[i] += (double)v;
    s->min[i] = OCT_MIN(s->min[i], v);
    s->max[i] = OCT_MAX(s->max[i], v);
    if (s->kept && e->n_kept < e->cap) s->kept[e->n_kept * n + i] = v;
}

static void see(oct_observer *o, const oct_value_view *s)
{
    const oct_observer_options *p = &o->options;
    const int64_t n = oct_observer_n_ranges(o);
    estimator *e = o->state;

    if (e->hist.h) {
        for (int64_t i = 0; i < n; i++)
            oct_histogram_reset(&e->hist.h[i]);
        oct_histograms_see_value(o, s);
        if (o->has_bad) return;
    } else if (!oct_observer_scan(o, s, e->hist.scan)) {
        return;
    }
    if (p->low.stat == OCT_STAT_MEAN || p->high.stat == OCT_STAT_MEAN) means(s, n, e->now);
    for (int64_t i = 0; i < n; i++) {
        const float low = statistic(e, i, p->low.stat, p->low.quantile_outlier_prob, true);
        const float high = statistic(e, i, p->high.stat, p->high.quantile_outlier_prob, false);

        add(e, &e->low, n, i, low, p->low.clipping_value);
        add(e, &e->high, n, i, high, p->high.clipping_value);
    }
    if (e->n_kept < e->cap) e->n_kept++;
}

static void merge_side(side *s, const side *t, int64_t n, int64_t at, int64_t n_new)
{
    for (int64_t i = 0; i < n; i++) {
        s->sum[i] += t->sum[i];
        s->min[i] = OCT_MIN(s->min[i], t->min[i]);
        s->max[i] = OCT_MAX(s->max[i], t->max[i]);
    }
    if (s->kept) memcpy(s->kept + at * n, t->kept, (size_t)(n_new * n) * sizeof(*s->kept));
}

static bool same_rule(const oct_observer_options *a, const oct_observer_options *b)
{
    return a->low.stat == b->low.stat && a->low.gather == b->low.gather &&
           a->high.stat == b->high.stat && a->high.gather == b->high.gather;
}

static oct_status merge(oct_observer *o, const oct_observer *other)
{
    const int64_t n = oct_observer_n_ranges(o);
    const estimator *t = other->state;
    estimator *e = o->state;
    const int64_t n_new = OCT_MIN(t->n_kept, e->cap - e->n_kept);

    if (!same_rule(&o->options, &other->options))
        return oct_fail(o->ctx, OCT_ERR_ARG, "estimators with different rules cannot be merged");
    merge_side(&e->low, &t->low, n, e->n_kept, n_new);
    merge_side(&e->high, &t->high, n, e->n_kept, n_new);
    e->n_kept += n_new;
    return OCT_OK;
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Of sorted numbers, with interpolation. */
static double sorted_quantile(const float *v, int64_t n, double part)
{
    const double at = part * (double)(n - 1);
    const int64_t i = (int64_t)at;

    return (double)v[i] + (at - (double)i) * ((double)v[OCT_MIN(i + 1, n - 1)] - (double)v[i]);
}

/* From the kept numbers of range i; v is room for them. */
static float from_kept(const estimator *e, const side *s, int64_t n, int64_t i, oct_gather g,
                       float *v)
{
    int64_t from = 0, to = e->n_kept;
    double sum = 0;

    for (int64_t k = 0; k < e->n_kept; k++)
        v[k] = s->kept[k * n + i];
    qsort(v, (size_t)e->n_kept, sizeof(*v), ascending);
    if (g != OCT_GATHER_MEDIAN) {
        const double low = sorted_quantile(v, to, OUTLIERS);
        const double high = sorted_quantile(v, to, 1 - OUTLIERS);

        while (from < to - 1 && (double)v[from] < low)
            from++;
        while (to > from + 1 && (double)v[to - 1] > high)
            to--;
    }
    if (g != OCT_GATHER_MEAN_NO_OUTLIERS) return (float)sorted_quantile(v + from, to - from, 0.5);
    for (int64_t k = from; k < to; k++)
        sum += (double)v[k];
    return (float)(sum / (double)(to - from));
}

static void solve_side(const oct_observer *o, const side *s, oct_gather g, float *v, float *out)
{
    const int64_t n = oct_observer_n_ranges(o);

    for (int64_t i = 0; i < n; i++)
        out[i] = g == OCT_GATHER_MIN    ? s->min[i]
                 : g == OCT_GATHER_MAX  ? s->max[i]
                 : g == OCT_GATHER_MEAN ? (float)(s->sum[i] / (double)o->n_samples)
                                        : from_kept(o->state, s, n, i, g, v);
}

static oct_status solve(const oct_observer *o, const oct_qspec *spec, float *low, float *high)
{
    const estimator *e = o->state;
    float *v = oct_alloc(o->ctx, (size_t)(e->n_kept + 1) * sizeof(*v));

    (void)spec;
    if (!v) return OCT_ERR_MEMORY;
    solve_side(o, &e->low, o->options.low.gather, v, low);
    solve_side(o, &e->high, o->options.high.gather, v, high);
    oct_free(o->ctx, v);
    return OCT_OK;
}

static void fini_side(oct_ctx *ctx, const side *s)
{
    oct_free(ctx, s->sum);
    oct_free(ctx, s->min);
    oct_free(ctx, s->max);
    oct_free(ctx, s->kept);
}

static void fini(oct_observer *o)
{
    const estimator *e = o->state;

    oct_histograms_fini(o);
    fini_side(o->ctx, &e->low);
    fini_side(o->ctx, &e->high);
    oct_free(o->ctx, e->now);
}

const oct_observer_row oct_observer_estimator = {
    .name = "estimator",
    .help = "NNCF's range estimator: a statistic of each picture, put together by a rule",
    .size = sizeof(estimator),
    .has_channels = true,
    .init = init,
    .see = see,
    .merge = merge,
    .solve = solve,
    .fini = fini,
};
