/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of channels that dense convolutions read: between each channel's own and one for all,
 * finer for channels with large weights.
 *
 * Rounding a channel with scale s, whose weights have size w, adds an error of s * w to the
 * accumulator. A small scale is not free: it is folded into the layer's weights, so the weights of
 * that channel get fewer codes. Channels with large weights can afford that, and gain most.
 */
#include <math.h>

#include "op/op.h"
#include "quant/solve/solve.h"

#define IMPORTANCE_EXPONENT 0.25 /* measured: docs/accuracy.md */
#define IMPORTANCE_LEAST    0.02 /* of the mean: bounds how coarse channels without weights get */

/* --- importance of channels --- */

/* Squares of the weights of each input channel, 1 on average. */
static oct_status find_columns(const oct_qpoint *p, int64_t n, oct_arena *a, double **out)
{
    const oct_tensor *w = p->value->data;
    const int64_t inner = oct_type_span(&w->type, 2, w->type.rank), len = oct_tensor_len(w);
    double *sum = oct_arena_array(a, (size_t)n + 1, sizeof(double)), all = 0;

    if (!(*out = sum)) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < len; i++) {
        const double x = (double)((const float *)w->data)[i];

        sum[i / inner % n] += x * x;
        all += x * x;
    }
    for (int64_t c = 0; c < n; c++)
        sum[c] = all > 0 ? sum[c] * (double)n / all : 1;
    return OCT_OK;
}

/* Powers of two are too coarse to follow it: weights seldom differ by a factor of two. */
static bool takes_importance(const oct_qpoint *p)
{
    return p->channel_share < 1.0f && !p->spec.is_pow2;
}

/* Adds the weights of one layer to the points that its input channels come from. */
static oct_status add_layer(const oct_qmap *m, const oct_qpoint *p, oct_arena *a, double **sum)
{
    oct_weight_axes ax;
    oct_channel_source *from;
    double *columns;
    int64_t n;

    if (p->role != OCT_QROLE_WEIGHT || p->state != OCT_QSTATE_ACTIVE) return OCT_OK;
    if (!oct_node_is(p->node, &oct_op_conv) || !oct_weight_axes_of(p->node, &ax)) return OCT_OK;
    OCT_TRY(oct_place_origins(m, p->node, 0, a, &n, &from));
    if (ax.groups != 1 || n != ax.n_in || n < 2) return OCT_OK;
    OCT_TRY(find_columns(p, n, a, &columns));
    for (int64_t c = 0; c < n; c++) {
        const int32_t point = from[c].point;

        if (point < 0 || !takes_importance(&m->points[point])) continue;
        if (!sum[point])
            sum[point] =
                oct_arena_array(a, (size_t)m->points[point].value->type.dim[1], sizeof(double));
        if (!sum[point]) return OCT_ERR_MEMORY;
        sum[point][from[c].channel] += columns[c];
    }
    return OCT_OK;
}

static void to_importance(double *x, int64_t n)
{
    double mean = 0;

    for (int64_t c = 0; c < n; c++)
        mean += (x[c] = sqrt(x[c])) / (double)n;
    for (int64_t c = 0; c < n; c++)
        x[c] = mean > 0 ? OCT_MAX(x[c] / mean, IMPORTANCE_LEAST) : 1;
}

oct_status oct_channel_importance(const oct_qmap *m, oct_arena *a, double ***out)
{
    double **sum = oct_arena_array(a, (size_t)m->n_points + 1, sizeof(*sum));

    if (!(*out = sum)) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < m->n_points; i++)
        OCT_TRY(add_layer(m, &m->points[i], a, sum));
    for (int32_t i = 0; i < m->n_points; i++)
        if (sum[i]) to_importance(sum[i], m->points[i].value->type.dim[1]);
    return OCT_OK;
}

/* --- scales --- */

/* Logarithm of the factor by which a channel's own scale is made finer, up to a common term. */
static double factor(const oct_qpoint *p, const double *importance, const float *scale, int64_t i)
{
    return (1 - (double)p->channel_share) * log2((double)scale[i]) +
           (importance ? IMPORTANCE_EXPONENT * log2(importance[i]) : 0);
}

void oct_solve_channel_scales(const oct_qpoint *p, const double *importance, float *scale,
                              int32_t *zero, int64_t n)
{
    int32_t low_code, high_code;
    double most = -INFINITY;

    if (n <= 1 || p->channel_share >= 1.0f) return;
    oct_qspec_limits(&p->spec, &low_code, &high_code);
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, factor(p, importance, scale, i));
    for (int64_t i = 0; i < n; i++) {
        const float low = scale[i] * (float)(low_code - zero[i]);
        double to = log2((double)scale[i]) + most - factor(p, importance, scale, i);

        if (p->spec.is_pow2) to = ceil(to - 0.5); /* the nearest, of two the finer one */
        scale[i] = (float)exp2(to);
        if (!p->spec.is_symmetric)
            zero[i] = OCT_MIN(low_code + (int32_t)lrintf(-low / scale[i]), high_code);
    }
}
