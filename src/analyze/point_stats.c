/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a value, from what was added up. */
#include <math.h>
#include <stdlib.h>

#include "analyze/value_stats.h"

static double kurtosis(const oct_value_stats *t)
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
static oct_status spread(oct_arena *a, const oct_value_stats *t, double *out)
{
    double *width = oct_arena_array(a, (size_t)t->n_channels + 1, sizeof(*width));
    int64_t n = 0;

    if (!width) return OCT_ERR_MEMORY;
    for (int64_t c = 0; c < t->n_channels; c++) {
        const double w = (double)t->channels[c].high - (double)t->channels[c].low;

        if (w > 0 && isfinite(w)) width[n++] = w;
    }
    *out = 0;
    if (t->n_channels < 2 || n < 2) return OCT_OK;
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

/* Parameters of the widest channel, for comparison with the values. */
static void fill_scale(const oct_grid *g, oct_analyzed_point *p)
{
    int64_t widest = 0;

    for (int64_t i = 1; i < g->n; i++)
        if (g->scale[i] > g->scale[widest]) widest = i;
    p->n_scales = (int32_t)g->n;
    p->scale = (double)g->scale[widest];
    p->zero = (double)g->zero[widest];
    p->low = ((double)g->low - p->zero) * p->scale;
    p->high = ((double)g->high - p->zero) * p->scale;
    p->levels = oct_grid_levels(g);
}

oct_status oct_value_stats_of_point(const oct_value_stats *t, oct_arena *scratch, oct_arena *a,
                                    oct_analyzed_point *p)
{
    const double signal = oct_sum_value(&t->power[1]);

    fill_scale(t->grid, p);
    if (!oct_histogram_is_empty(&t->histogram)) {
        p->min = (double)t->histogram.low;
        p->max = (double)t->histogram.high;
    }
    p->kurtosis = kurtosis(t);
    p->clipped = (double)t->clipped / (double)OCT_MAX(t->n, (int64_t)1);
    for (int32_t c = 0; c < p->levels; c++)
        p->used += t->used[c];
    p->noise = signal > 0 ? oct_sum_value(&t->error) / signal : 0;
    OCT_TRY(spread(scratch, t, &p->spread));
    return fill_histogram(a, &t->histogram, p);
}
