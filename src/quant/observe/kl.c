/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kl: the range whose codes keep most of the distribution, by relative entropy.
 *
 * Both ends are clipped at the same distance from 0. What is clipped is counted at the ends of the
 * distribution, but not in its quantized form, which is flat over each code; exact zeros count in
 * neither, since they have a code. With per-channel histograms there is little to choose: bins
 * are hardly finer than codes.
 */
#include <float.h>
#include <math.h>

#include "quant/observe/density.h"

typedef struct sums {
    double *entropy; /* n + 1: sums of m log m over bins before */
    int32_t *filled; /* n + 1: bins before that hold something */
} sums;

static double m_log_m(double m)
{
    return m > 0 ? m * log(m) : 0;
}

static oct_status make_sums(const oct_density *d, oct_arena *a, sums *s)
{
    s->entropy = oct_arena_array(a, (size_t)d->n + 1, sizeof(*s->entropy));
    s->filled = oct_arena_array(a, (size_t)d->n + 1, sizeof(*s->filled));
    if (!s->entropy || !s->filled) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < d->n; i++) {
        s->entropy[i + 1] = s->entropy[i] + m_log_m(d->mass[i]);
        s->filled[i + 1] = s->filled[i] + (d->mass[i] > 0);
    }
    return OCT_OK;
}

/* The bin that starts at or after x, kept inside [a, b]. */
static int32_t bin_at(const oct_density *d, double x, int32_t a, int32_t b)
{
    const double i = rint(x / d->width) - (double)d->first;

    return i <= a ? a : i >= b ? b : (int32_t)i;
}

/* Mass over one code's bins, and its logarithm in each: -1e3 stands for log 0. */
static double flat_log(const oct_density *d, const sums *s, int32_t a, int32_t b, double *mass)
{
    const int32_t filled = s->filled[b] - s->filled[a];

    *mass = filled ? d->below[b].mass - d->below[a].mass : 0;
    return *mass > 0 ? log(*mass / filled) : -1e3;
}

/* Relative entropy when [low, high] has n codes; -1: bins are too few to tell. */
static double divergence(const oct_density *d, const sums *s, double low, double high, int32_t n)
{
    const int32_t a = bin_at(d, low, 0, d->n), b = bin_at(d, high, 0, d->n);
    const double all = d->below[d->n].mass, inside = d->below[b].mass - d->below[a].mass;
    const double under = d->below[a].mass, over = all - d->below[b].mass;
    double p_log_p, p_log_q = 0, first = -1e3, last = -1e3;

    if ((high - low) / d->width < n || b - a < 2 || !(inside > 0)) return -1;
    p_log_p = s->entropy[b] - s->entropy[a];
    p_log_p += m_log_m(d->mass[a] + under) - m_log_m(d->mass[a]);
    p_log_p += m_log_m(d->mass[b - 1] + over) - m_log_m(d->mass[b - 1]);
    for (int32_t i = 0, from = a; i < n && from < b; i++) {
        const int32_t to = i + 1 == n ? b : bin_at(d, low + (high - low) * (i + 1) / n, from, b);
        double mass, q;

        if (to == from) continue;
        q = flat_log(d, s, from, to, &mass);
        if (from == a) first = q;
        last = q;
        p_log_q += mass * q;
        from = to;
    }
    p_log_q += under * first * (under > 0) + over * last * (over > 0);
    return (p_log_p - p_log_q) / all + log(inside / all);
}

static oct_status search(const oct_qspec *spec, const oct_density *d, oct_arena *a, float *low,
                         float *high)
{
    const double far = fmax(-d->low, d->high);
    int32_t code_low, code_high;
    double best = DBL_MAX;
    sums s;

    OCT_TRY(make_sums(d, a, &s));
    oct_qspec_limits(spec, &code_low, &code_high);
    for (int i = 0; i < 128; i++) {
        const double clip = far * exp2(-i / 16.0);
        const bool both = spec->is_symmetric && d->low < 0;
        const double lo = both ? -clip : fmax(d->low, -clip),
                     hi = both ? clip : fmin(d->high, clip);
        const double kl = divergence(d, &s, lo, hi, code_high - code_low + 1);

        if (kl < 0) break;
        if (kl >= best) continue;
        best = kl;
        *low = (float)lo;
        *high = (float)hi;
    }
    return OCT_OK;
}

static oct_status solve(const oct_observer *o, const oct_qspec *spec, const oct_density *d,
                        float *low, float *high)
{
    oct_arena *a;
    oct_status st;

    *low = (float)d->low;
    *high = (float)d->high;
    if (!(d->low < d->high) || spec->bits > 16) return OCT_OK;
    if (!(a = oct_arena_new(o->ctx))) return OCT_ERR_MEMORY;
    st = search(spec, d, a, low, high);
    oct_arena_free(a);
    return st;
}

const oct_observer_row oct_observer_kl =
    OCT_HISTOGRAM_OBSERVER("kl", "the range that keeps most of the distribution (entropy)", solve);
