/* SPDX-License-Identifier: Apache-2.0 */
/* Noise of rounding the inputs of activations and convolutions, channel by channel. */
#include <math.h>

#include "op/op.h"
#include "quant/fallback/fallback_parts.h"

/*
 * Noise over variance that is let through. Depthwise convolutions cost little in float, and have no
 * other channels among which noise averages out. A trade of time for accuracy: twice as much costs
 * .003 of what the network repeats of its float self, half gains .004 (docs/accuracy.md).
 */
#define DENSE_LIMIT     4e-3
#define DEPTHWISE_LIMIT 2e-3

#define SMALL 1e-4 /* channels with less than this part of the mean variance hardly count */
#define DEAD  1e-6 /* channels with less than this part of it are constants */

double oct_rounding_noise_limit(const oct_node *n)
{
    return oct_node_is_depthwise(n) ? DEPTHWISE_LIMIT : DENSE_LIMIT;
}

/* --- noise over variance, mean of the channels --- */

typedef struct sums {
    double weight, y, yy, noise;
} sums;

/* One channel, as if its values were normally distributed. */
static sums channel_sums(const oct_following_act *f, double mean, double deviation,
                         const oct_qpoint *p, double gate_step)
{
    enum { HALF = 16 };
    const double step = (double)p->scale[0];
    sums s = {0};
    float low, high;

    oct_qspec_range(&p->spec, p->scale[0], p->zero[0], &low, &high);
    for (int k = -HALF; k <= HALF; k++) {
        const double z = 4.0 * k / HALF, w = exp(-z * z / 2), x = mean + deviation * z;
        const double y = oct_following_act_apply(f, x),
                     seen = fmin(fmax(x, (double)low), (double)high);
        const double clipped = y - oct_following_act_apply(f, seen),
                     d = seen == x ? oct_following_act_slope(f, x) : 0;
        const double gate = x * gate_step;

        s.weight += w;
        s.y += w * y;
        s.yy += w * y * y;
        s.noise += w * (clipped * clipped + (step * step * d * d + gate * gate) / 12);
    }
    return (sums){1, s.y / s.weight, s.yy / s.weight, s.noise / s.weight};
}

static double mean_ratio(const double *noise, const double *variance, int64_t n)
{
    double mean = 0, sum = 0;

    for (int64_t i = 0; i < n; i++)
        mean += variance[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        if (variance[i] > DEAD * mean) sum += fmin(noise[i] / (variance[i] + SMALL * mean), 1);
    return sum / (double)n;
}

oct_status oct_preact_rounding_noise(const oct_qmap *m, int32_t point, const oct_following_act *f,
                                     const oct_calibration *c, oct_arena *a, double *ratio)
{
    const oct_qpoint *p = oct_qmap_root(m, point);
    const oct_value *v = m->points[point].value;
    const oct_watch *w = oct_calibration_of(c, v);
    const int32_t g = f->gate ? m->of_value[f->gate->id] : -1;
    const double gate_step = g >= 0 && m->points[g].n == 1 ? (double)m->points[g].scale[0] : 0;
    double *noise, *variance;

    *ratio = 0;
    if (!w || !w->square || p->n != 1) return OCT_OK;
    noise = oct_arena_array(a, (size_t)w->channels + 1, sizeof(double));
    variance = oct_arena_array(a, (size_t)w->channels + 1, sizeof(double));
    if (!noise || !variance) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < w->channels; i++) {
        const sums s = channel_sums(f, oct_watch_mean(c, w, i), sqrt(oct_watch_variance(c, w, i)),
                                    p, gate_step);

        noise[i] = s.noise;
        variance[i] = fmax(s.yy - s.y * s.y, 0);
    }
    *ratio = mean_ratio(noise, variance, w->channels);
    return OCT_OK;
}

oct_status oct_input_rounding_noise(const oct_qmap *m, const oct_node *n, float step,
                                    const oct_calibration *c, oct_arena *a, double *ratio)
{
    const oct_watch *w = oct_calibration_of(c, n->out[0]);
    const int32_t k = oct_qmap_at(m, n, 0);
    const oct_qpoint *p = k >= 0 ? oct_qmap_root(m, k) : NULL;
    const oct_tensor *weight = oct_node_const(n, 1);
    double *noise, *variance;
    int64_t span;

    *ratio = 0;
    if (!p || p->n != 1 || p->state == OCT_QSTATE_OFF || !w || !w->square || !weight) return OCT_OK;
    if (weight->type.dim[0] != w->channels) return OCT_OK;
    if (step <= 0) step = p->scale[0];
    noise = oct_arena_array(a, (size_t)w->channels + 1, sizeof(double));
    variance = oct_arena_array(a, (size_t)w->channels + 1, sizeof(double));
    if (!noise || !variance) return OCT_ERR_MEMORY;
    span = oct_type_span(&weight->type, 1, weight->type.rank);
    for (int64_t i = 0; i < w->channels; i++) {
        const float *row = (const float *)weight->data + i * span;

        for (int64_t e = 0; e < span; e++)
            noise[i] += (double)row[e] * (double)row[e];
        noise[i] *= (double)step * (double)step / 12;
        variance[i] = oct_watch_variance(c, w, i);
    }
    *ratio = mean_ratio(noise, variance, w->channels);
    return OCT_OK;
}
