/* SPDX-License-Identifier: Apache-2.0 */
/* Accumulates statistics of the elements of a value. */
#include "analyze/value_stats.h"

#include <math.h>

#include "op/quant.h"

enum {
    SLOTS = 256, /* of the histogram: 128 to 256 bins */
    BLOCK = 512, /* elements processed together */
};

oct_status oct_grid_make(oct_arena *a, const oct_codes *c, oct_grid *g)
{
    const size_t n = (size_t)c->n + 1;
    int32_t low, high;

    g->scale = oct_arena_array(a, n, sizeof(float));
    g->zero = oct_arena_array(a, n, sizeof(float));
    if (!g->scale || !g->zero) return OCT_ERR_MEMORY;
    oct_quant_limits(c->dtype, &low, &high);
    g->n = c->n;
    g->low = (float)low;
    g->high = (float)high;
    for (int64_t i = 0; i < c->n; i++) {
        g->scale[i] = oct_codes_scale(c, i);
        g->zero[i] = (float)oct_codes_zero(c, i);
    }
    return OCT_OK;
}

oct_status oct_value_stats_init(oct_arena *a, const oct_grid *g, int64_t n_channels,
                                oct_value_stats *t)
{
    uint64_t *counts = oct_arena_array(a, SLOTS, sizeof(*counts));

    *t = (oct_value_stats){.grid = g, .n_channels = n_channels};
    t->channels = oct_arena_array(a, (size_t)n_channels + 1, sizeof(*t->channels));
    t->used = oct_arena_alloc(a, (size_t)oct_grid_levels(g));
    if (!counts || !t->channels || !t->used) return OCT_ERR_MEMORY;
    oct_histogram_init(&t->histogram, SLOTS, counts);
    for (int64_t c = 0; c < n_channels; c++)
        t->channels[c] = (oct_scan){.low = INFINITY, .high = -INFINITY};
    return OCT_OK;
}

/* Nearest integer, ties to even, without a call: at this magnitude floats have no fraction after
 * the addition. */
static float nearest(float t)
{
    const float large = 0x1.8p23f;

    return (t + large) - large;
}

/* Codes of n elements under scales `step` apart, from the lowest code; and their values. Returns
 * how many elements are clipped: nearer to a code beyond the ends than to those. */
static int64_t quantize(const oct_grid *g, const float *x, int64_t n, int64_t channel, int step,
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

static void add_powers(oct_value_stats *t, const float *x, const float *back, int64_t n)
{
    double sum[OCT_VALUE_STATS_POWERS] = {0}, error = 0;

    for (int64_t i = 0; i < n; i++) {
        const double v = (double)x[i], d = v - (double)back[i];

        sum[0] += v;
        sum[1] += v * v;
        sum[2] += v * v * v;
        sum[3] += v * v * v * v;
        error += d * d;
    }
    for (int k = 0; k < OCT_VALUE_STATS_POWERS; k++)
        oct_sum_add(&t->power[k], sum[k]);
    oct_sum_add(&t->error, error);
    t->n += n;
}

/* n contiguous elements, of one channel (step 0) or of consecutive channels (step 1). */
static void see_row(oct_value_stats *t, const float *x, int64_t n, int64_t channel, int step)
{
    int32_t code[BLOCK];
    float back[BLOCK];

    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t len = OCT_MIN(n - i, (int64_t)BLOCK);

        t->clipped += quantize(t->grid, x + i, len, channel + i * step, step, code, back);
        add_powers(t, x + i, back, len);
        for (int64_t k = 0; k < len; k++)
            t->used[code[k]] = 1;
    }
}

static void see_view(oct_value_stats *t, const oct_value_view *s)
{
    const bool each = t->grid->n > 1;

    if (s->planar) {
        for (int64_t c = 0; c < s->channels; c++)
            see_row(t, s->data + c * s->pixels, s->pixels, each ? c : 0, 0);
        return;
    }
    if (!each && s->pitch == s->channels) {
        see_row(t, s->data, s->pixels * s->channels, 0, 0);
        return;
    }
    for (int64_t i = 0; i < s->pixels; i++)
        see_row(t, s->data + i * s->pitch, s->channels, 0, each);
}

void oct_value_stats_see(oct_value_stats *t, const oct_value_view *s, oct_scan *scratch)
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
    see_view(t, s);
}

void oct_value_stats_merge(oct_value_stats *t, const oct_value_stats *other)
{
    const int32_t levels = oct_grid_levels(t->grid);

    oct_histogram_merge(&t->histogram, &other->histogram);
    for (int64_t c = 0; c < t->n_channels; c++) {
        t->channels[c].low = OCT_MIN(t->channels[c].low, other->channels[c].low);
        t->channels[c].high = OCT_MAX(t->channels[c].high, other->channels[c].high);
    }
    for (int i = 0; i < OCT_VALUE_STATS_POWERS; i++)
        oct_sum_merge(&t->power[i], &other->power[i]);
    oct_sum_merge(&t->error, &other->error);
    t->n += other->n;
    t->clipped += other->clipped;
    for (int32_t i = 0; i < levels; i++)
        t->used[i] |= other->used[i];
}
