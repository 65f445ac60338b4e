/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channel alignment: between two adjacent convolutions, each channel is shifted and scaled so that
 * its range is centred at 0 and as wide as the others', by changing the weights and biases of both.
 * One scale for all channels then loses less.
 *
 * Which pairs, and the arithmetic, are NNCF's: the second convolution has one group, no padding
 * (its zeros would have to be shifted too), stride and dilation 1; the ends of a channel are
 * medians over images of its quantiles 1e-4 and 1 - 1e-4; a factor is at most 100.
 */
#include <math.h>
#include <stdlib.h>

#include "op/op.h"
#include "pass/fuse/affine.h"
#include "pass/rewrite.h"
#include "quant/correct/channel_factors.h"
#include "quant/correct/correct.h"
#include "quant/observe/calibrate.h"
#include "quant/solve/solve.h"

#define QUANTILE    1e-4
#define MOST_FACTOR 1e2

static bool is_conv(const oct_node *n)
{
    return oct_node_is(n, &oct_op_conv) && oct_is_linear_layer(n);
}

static bool all_ones(const oct_node *n, const char *name)
{
    const oct_attr *a = oct_node_attr(n, name);

    for (int64_t i = 0; a && a->kind == OCT_ATTR_INTS && i < a->n; i++)
        if (a->is[i] != 1) return false;
    return true;
}

/* The consumer of this convolution that can be aligned with it, or NULL. */
static oct_node *partner(const oct_node *n)
{
    oct_node *u = is_conv(n) ? oct_sole_user(n->out[0]) : NULL;

    if (!u || !is_conv(u) || u->in[0] != n->out[0]) return NULL;
    if (oct_node_attr(u, "group")->i != 1 || !oct_linear_layer_takes_shifts(u)) return NULL;
    if (!all_ones(u, "strides") || !all_ones(u, "dilations")) return NULL;
    return oct_linear_layer_channels(n) == oct_linear_layer_in_channels(u) ? u : NULL;
}

static int32_t count(const oct_graph *g)
{
    int32_t n = 0;

    for (const oct_node *k = g->first; k; k = k->next)
        n += partner(k) != NULL;
    return n;
}

static oct_status watch(const oct_graph *g, const oct_graph *bound, oct_calibration *c)
{
    oct_observer_options o;

    oct_observer_options_init(&o);
    o.kind = "estimator";
    o.per_channel = true;
    o.low.stat = o.high.stat = OCT_STAT_QUANTILE;
    o.low.gather = o.high.gather = OCT_GATHER_MEDIAN;
    o.low.quantile_outlier_prob = o.high.quantile_outlier_prob = QUANTILE;
    for (const oct_node *n = g->first; n; n = n->next)
        if (partner(n)) OCT_TRY(oct_calibration_watch(c, bound->values[n->out[0]->id], &o, false));
    return OCT_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double *x, int64_t n, double *scratch)
{
    for (int64_t i = 0; i < n; i++)
        scratch[i] = x[i];
    qsort(scratch, (size_t)n, sizeof(*scratch), ascending);
    return n % 2 ? scratch[n / 2] : (scratch[n / 2 - 1] + scratch[n / 2]) / 2;
}

/* x = factor * y + middle is what the second one computes from y. */
static oct_status find_map(const oct_watch *w, oct_arena *a, oct_affine *before)
{
    const oct_qspec spec = {.bits = 8, .axis = 1};
    const int64_t n = w->channels;
    float *low = oct_arena_array(a, (size_t)n + 1, sizeof(float));
    float *high = oct_arena_array(a, (size_t)n + 1, sizeof(float));
    double *width = oct_arena_array(a, (size_t)n + 1, sizeof(double));
    double *scratch = oct_arena_array(a, (size_t)n + 1, sizeof(double)), middle_width;

    if (!low || !high || !width || !scratch) return OCT_ERR_MEMORY;
    OCT_TRY(oct_observer_solve(w->range, &spec, low, high));
    OCT_TRY(oct_affine_identity(a, n, before));
    for (int64_t c = 0; c < n; c++)
        width[c] = (double)high[c] - (double)low[c];
    middle_width = median(width, n, scratch);
    for (int64_t c = 0; c < n; c++) {
        const double s = middle_width > 0 && width[c] > 0 ? width[c] / middle_width : 1;

        before->scale[c] = OCT_MIN(OCT_MAX(s, 1 / MOST_FACTOR), MOST_FACTOR);
        before->shift[c] = ((double)high[c] + (double)low[c]) / 2;
    }
    return OCT_OK;
}

/* y = (x - middle) / factor after the first one, the inverse before the second. */
static oct_status move(oct_node *first, oct_node *second, const oct_affine *before, oct_arena *a)
{
    oct_affine after;
    bool done = false;

    OCT_TRY(oct_affine_identity(a, before->channels, &after));
    for (int64_t c = 0; c < before->channels; c++) {
        after.scale[c] = 1 / before->scale[c];
        after.shift[c] = -before->shift[c] / before->scale[c];
    }
    OCT_TRY(oct_linear_layer_apply_after(first, &after, &done));
    if (done) OCT_TRY(oct_linear_layer_apply_before(second, before, &done));
    return done ? OCT_OK : oct_node_fail(first, OCT_ERR_FORMAT, "its weights are not finite");
}

static oct_status align_all(oct_graph *g, const oct_graph *bound, const oct_calibration *c,
                            oct_arena *a, int32_t n_pairs)
{
    oct_channel_factors *all = oct_arena_array(a, (size_t)n_pairs, sizeof(*all));
    int32_t n = 0;

    if (!all) return OCT_ERR_MEMORY;
    for (oct_node *k = g->first; k; k = k->next) {
        oct_node *second = partner(k);
        const oct_watch *w = second ? oct_calibration_of(c, bound->values[k->out[0]->id]) : NULL;
        oct_affine before;

        if (!w || w->channels != oct_linear_layer_channels(k) || n == n_pairs) continue;
        OCT_TRY(find_map(w, a, &before));
        OCT_TRY(move(k, second, &before, a));
        all[n++] = (oct_channel_factors){.value = k->out[0]->name,
                                         .x = {before.scale, before.shift},
                                         .channels = before.channels};
    }
    return oct_channel_factors_write(g, OCT_MOVED_ALIGN, all, n);
}

oct_status oct_align(oct_graph *g, const oct_graph *bound, oct_feed *f, int32_t *n_pairs)
{
    const int32_t n = count(g);
    oct_arena *a = NULL;
    oct_calibration *c = NULL;
    oct_status st;

    if (n_pairs) *n_pairs = n;
    if (n == 0) return OCT_OK;
    st = oct_calibration_new(bound, &c);
    if (!st) st = watch(g, bound, c);
    if (!st) st = oct_calibrate(c, bound, f);
    if (!st && !(a = oct_arena_new(g->ctx))) st = OCT_ERR_MEMORY;
    if (!st) st = align_all(g, bound, c, a, n);
    oct_arena_free(a);
    oct_calibration_free(c);
    return st;
}

oct_status oct_align_again(oct_value *v, const double *x, int64_t n, oct_arena *a, bool *fits)
{
    const double most = MOST_FACTOR * 1.001; /* the file has rounded values */
    oct_node *first = v->producer, *second = first ? partner(first) : NULL;
    const int64_t channels = second ? oct_linear_layer_channels(first) : 0;
    oct_affine before;

    *fits = second && first->out[0] == v && n == 2 * channels;
    for (int64_t c = 0; c < channels && *fits; c++)
        *fits = x[c] >= 1 / most && x[c] <= most && isfinite(x[channels + c]);
    if (!*fits) return OCT_OK;
    OCT_TRY(oct_affine_identity(a, channels, &before));
    for (int64_t c = 0; c < channels; c++) {
        before.scale[c] = x[c];
        before.shift[c] = x[channels + c];
    }
    return move(first, second, &before, a);
}
