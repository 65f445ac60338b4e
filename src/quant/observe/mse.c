/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mse: the range with the least squared error, of rounding inside it and of clipping outside.
 *
 * mse_wide: the same, with errors of clipping counted several times. Errors of rounding are as
 * often above as below, and mostly cancel in the accumulators of the next layer; what clipping
 * takes from neighbouring pixels has one sign and adds up, and it is taken from the strongest
 * answers.
 */
#include <float.h>
#include <math.h>

#include "quant/observe/density.h"

/* docs/accuracy.md: 1 seems worse, 8 is no better. Where each channel has its own range, what is
 * clipped was not the strongest of all; there 1 to 8 make no difference. */
enum { CLIP_WEIGHT = 4, CHANNEL_CLIP_WEIGHT = 2 };

typedef struct search {
    const oct_qspec *spec;
    double clip_weight;
    const oct_density *d;
    int32_t low, high; /* codes */
    double error;      /* the least so far, of: */
    double scale;
    int32_t zero;
} search;

/* Squared error of what is between two points and becomes v. */
static double cell(const oct_moments *a, const oct_moments *b, double v)
{
    return (b->second - a->second) - 2 * v * (b->first - a->first) + v * v * (b->mass - a->mass);
}

/* The value of a code, after the activation if there is one. */
static double value_of(const search *q, double v, double scale)
{
    return oct_density_value(q->d, v * scale);
}

/* Zeros make no error: zero has a code. */
static double error_of(const search *q, double scale, int32_t zero)
{
    const oct_density *d = q->d;
    const double bottom = (double)q->low - zero, top = (double)q->high - zero;
    const double end = (double)(d->first + d->n) * d->width / scale; /* of the data, in steps */
    const oct_moments low = oct_density_below(d, (bottom - 0.5) * scale);
    const oct_moments high = oct_density_below(d, (top + 0.5) * scale);
    const double clipped = cell(&d->below[0], &low, value_of(q, bottom, scale)) +
                           cell(&high, &d->below[d->n], value_of(q, top, scale));
    double v = fmin(fmax(bottom, floor((double)d->first * d->width / scale)), top);
    oct_moments a = low, b;
    double sum = q->clip_weight * clipped;

    /* Bins cannot tell where in a step: errors are spread evenly. */
    if (scale < 2.5 * d->width && !d->o->follow)
        return sum + fmax(high.mass - low.mass, 0) * scale * scale / 12;
    for (; v < top && v < end; v++) {
        b = oct_density_below(d, (v + 0.5) * scale);
        sum += cell(&a, &b, value_of(q, v, scale));
        a = b;
    }
    return sum + cell(&a, &high, value_of(q, v, scale));
}

static void attempt(search *q, double scale, double zero)
{
    const double z = q->spec->is_symmetric ? q->zero : fmin(fmax(rint(zero), q->low), q->high);
    double error;

    if (!(scale >= 0x1p-60) || !(scale <= 0x1p120)) return; /* as oct_qspec_solve() bounds it */
    error = error_of(q, scale, (int32_t)z);
    if (!(error < q->error)) return;
    q->error = error;
    q->scale = scale;
    q->zero = (int32_t)z;
}

static void attempt_range(search *q, double low, double high)
{
    double scale;

    if (q->spec->is_symmetric)
        scale = fmax(high / ((double)q->high - q->zero),
                     q->low < q->zero ? low / ((double)q->low - q->zero) : 0);
    else
        scale = (high - low) / ((double)q->high - q->low);
    attempt(q, scale, q->low - low / scale);
}

/* Both ends clipped at the same distance from 0, nearer and nearer, while it gets better. */
static void search_coarse(search *q)
{
    const double far = fmax(-q->d->low, q->d->high);
    int since = 0;

    for (int i = 0; i < 100 && since < 12; i++) {
        const double clip = far * exp2(-0.25 * i), before = q->error;

        attempt_range(q, fmax(q->d->low, -clip), fmin(q->d->high, clip));
        since = q->error < before ? 0 : since + 1;
    }
}

/* Either end on its own, down to nothing: one may matter much less than the other. */
static void search_ends(search *q)
{
    for (int end = 0; end < 2; end++) {
        const double low = q->scale * ((double)q->low - q->zero);
        const double high = q->scale * ((double)q->high - q->zero);

        for (int i = 1; i <= 18; i++) {
            const double part = i < 18 ? exp2(-0.5 * i) : 0;

            attempt_range(q, end ? low : low * part, end ? high * part : high);
        }
    }
}

enum { STEPS = 6 }; /* to either side */

/* One end after the other, then scale and zero point, nearer and nearer around the best. */
static void search_fine(search *q)
{
    for (double span = 0.6; span > 0.05; span /= 3) {
        for (int end = 0; end < 2; end++) {
            const double low = q->scale * ((double)q->low - q->zero);
            const double high = q->scale * ((double)q->high - q->zero);

            for (int i = -STEPS; i <= STEPS && !q->spec->is_symmetric; i++)
                attempt_range(q, end ? low : low * (1 + span * i / STEPS),
                              end ? high * (1 + span * i / STEPS) : high);
        }
    }
    for (double span = q->spec->is_symmetric ? 0.2 : 0.04; span > 0.004; span /= 4) {
        const double scale = q->scale;
        const int32_t zero = q->zero, reach = q->spec->is_symmetric ? 0 : 2;

        for (int32_t dz = -reach; dz <= reach; dz++)
            for (int i = -STEPS; i <= STEPS; i++)
                attempt(q, scale * (1 + span * i / STEPS), (double)zero + dz);
    }
}

/* Exponents from the one that covers all downwards, and zero points from where the low end just
 * fits to where the high end does. */
static void search_pow2(search *q)
{
    enum { DEEPER = 7, ZEROS = 24 };
    float cover;
    int32_t zero;

    oct_qspec_solve(q->spec, (float)q->d->low, (float)q->d->high, &cover, &zero);
    for (int i = 0; i < DEEPER; i++) {
        const double scale = ldexp((double)cover, -i);
        const double at_low = q->low - q->d->low / scale, at_high = q->high - q->d->high / scale;

        for (int j = 0; j <= (q->spec->is_symmetric ? 0 : ZEROS); j++)
            attempt(q, scale, at_low + (at_high - at_low) * j / ZEROS);
    }
}

static oct_status solve(const oct_observer *o, const oct_qspec *spec, const oct_density *d,
                        float *low, float *high)
{
    const int weight = o->row != &oct_observer_mse_wide ? 1
                       : o->options.per_channel         ? CHANNEL_CLIP_WEIGHT
                                                        : CLIP_WEIGHT;
    search q = {.spec = spec, .clip_weight = weight, .d = d, .error = DBL_MAX};

    oct_qspec_limits(spec, &q.low, &q.high);
    *low = (float)d->low;
    *high = (float)d->high;
    if (!(d->low < d->high)) return OCT_OK;
    if (spec->is_symmetric && !spec->is_signed && d->low < 0)
        q.zero = (int32_t)((uint32_t)1 << (spec->bits - 1));
    if (spec->is_pow2)
        search_pow2(&q);
    else
        search_coarse(&q);
    if (q.error == DBL_MAX) return OCT_OK; /* too small or large for a scale: as it is */
    if (!spec->is_pow2 && !spec->is_symmetric) search_ends(&q);
    if (!spec->is_pow2) search_fine(&q);
    oct_qspec_range(spec, (float)q.scale, q.zero, low, high);
    return OCT_OK;
}

const oct_observer_row oct_observer_mse =
    OCT_HISTOGRAM_OBSERVER("mse", "the range with the least squared error", solve);
const oct_observer_row oct_observer_mse_wide = OCT_HISTOGRAM_OBSERVER(
    "mse_wide",
    "the same, with clipping counted several times: it adds up in the layers that follow", solve);
