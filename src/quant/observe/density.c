/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms as distributions with sums, and the parts that histogram observers share. */
#include "quant/observe/density.h"

#include <math.h>
#include <string.h>

/* Sums of 1, x and x^2 over mass spread evenly from a to b. */
static oct_moments spread(double mass, double a, double b)
{
    return (oct_moments){mass, mass * (a + b) / 2, mass * (a * a + a * b + b * b) / 3};
}

oct_status oct_density_make(const oct_histogram *h, const oct_observer_options *o, oct_arena *a,
                            oct_density *d)
{
    const double width = ldexp(1.0, h->k);
    oct_moments sum = {0, 0, 0};

    *d = (oct_density){
        .first = h->base, .n = (int32_t)oct_histogram_used(h), .width = width, .o = o};
    d->mass = oct_arena_array(a, (size_t)d->n, sizeof(*d->mass));
    d->below = oct_arena_array(a, (size_t)d->n + 1, sizeof(*d->below));
    if (!d->mass || !d->below) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < d->n; i++) {
        const double x = (double)(d->first + i) * width;
        const uint64_t count = h->count[i] - (d->first + i == 0 ? h->zeros : 0);
        double mass = (double)count;
        oct_moments m;

        m = spread(mass, oct_density_value(d, x), oct_density_value(d, x + width));
        d->mass[i] = mass;
        d->below[i] = sum;
        sum = (oct_moments){sum.mass + m.mass, sum.first + m.first, sum.second + m.second};
    }
    d->below[d->n] = sum;
    d->zeros = (double)h->zeros;
    d->low = fmin(h->low, 0);
    d->high = fmax(h->high, 0);
    return OCT_OK;
}

oct_moments oct_density_below(const oct_density *d, double x)
{
    const double t = x / d->width - (double)d->first;
    oct_moments m, part;
    int32_t i;
    double start;

    if (!(t > 0)) return d->below[0];
    if (t >= d->n) return d->below[d->n];
    i = (int32_t)t;
    m = d->below[i];
    start = (double)(d->first + i) * d->width;
    part = spread(d->mass[i] * (t - i), oct_density_value(d, start), oct_density_value(d, x));
    return (oct_moments){m.mass + part.mass, m.first + part.first, m.second + part.second};
}

/* Where the sum of bins reaches `mass`; counts are never negative, so halving finds it. */
static double reach(const oct_density *d, double mass)
{
    int32_t a = 0, b = d->n;
    double part;

    while (b - a > 1) {
        const int32_t middle = a + (b - a) / 2;

        if (d->below[middle].mass <= mass)
            a = middle;
        else
            b = middle;
    }
    part = d->mass[a] > 0 ? (mass - d->below[a].mass) / d->mass[a] : 0;
    return ((double)(d->first + a) + fmin(fmax(part, 0), 1)) * d->width;
}

double oct_density_quantile(const oct_density *d, double part)
{
    const double negative = oct_density_below(d, 0).mass;
    const double all = d->below[d->n].mass + d->zeros, wanted = part * all;
    double x;

    if (wanted < negative)
        x = reach(d, wanted);
    else if (wanted <= negative + d->zeros)
        x = 0;
    else
        x = reach(d, wanted - d->zeros);
    return fmin(fmax(x, d->low), d->high);
}

double oct_density_abs_quantile(const oct_density *d, double part)
{
    const double wanted = part * (d->below[d->n].mass + d->zeros);
    double a = 0, b = fmax(-d->low, d->high);

    for (int i = 0; i < 50; i++) {
        const double x = (a + b) / 2;
        const double mass = oct_density_below(d, x).mass - oct_density_below(d, -x).mass + d->zeros;

        if (mass < wanted)
            a = x;
        else
            b = x;
    }
    return b;
}

/* With a histogram for each channel, bins are fewer: there are many, and 128 still hold a clipping
 * point to less than a per cent of the range, finer between even masses. */
enum { CHANNEL_BINS = 128 };

/* Between the counts of two channels: without it, equal bins of all of them would share a few lines
 * of the cache. */
enum { GAP = 64 / sizeof(uint64_t) };

oct_status oct_histograms_init(oct_observer *o)
{
    oct_histograms *s = o->state;
    const int64_t n = oct_observer_n_ranges(o);
    const int32_t bins = n > 1 ? OCT_MIN(o->options.bins, CHANNEL_BINS) : o->options.bins;
    const int32_t n_slots = oct_histogram_slots(bins);
    size_t total;

    if (!oct_mul_size((size_t)n, (size_t)n_slots + GAP, &total))
        return oct_fail(o->ctx, OCT_ERR_MEMORY, "out of memory: %lld histograms", (long long)n);
    s->counts = oct_calloc(o->ctx, total, sizeof(*s->counts));
    s->h = oct_calloc(o->ctx, (size_t)n, sizeof(*s->h));
    s->scan = oct_calloc(o->ctx, (size_t)n, sizeof(*s->scan));
    s->thin = oct_calloc(o->ctx, (size_t)n, sizeof(*s->thin));
    if (!s->counts || !s->h || !s->scan || !s->thin) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++)
        oct_histogram_init(&s->h[i], n_slots, s->counts + i * (n_slots + GAP));
    return OCT_OK;
}

/* Neighbours are alike: this many pixels of a picture, spread evenly, fill the bins of a channel as
 * well as all would. The smallest and the largest number are of all pixels, and always counted:
 * errors of numbers far out are large. */
enum { CHANNEL_PIXELS = 4096 };

/* Steps are odd: rows of pictures, mostly even in width, do not fall into step with them. */
static int64_t thin_out(const oct_value_view *all, oct_value_view *some)
{
    const int64_t step = ((all->pixels + CHANNEL_PIXELS - 1) / CHANNEL_PIXELS) | 1;

    *some = *all;
    if (all->planar || step <= 1) return 1;
    some->pixels = (all->pixels + step - 1) / step;
    some->pitch = all->pitch * step;
    return step;
}

static void look_at_channels(oct_observer *o, const oct_value_view *all)
{
    oct_histograms *s = o->state;
    oct_value_view some;
    const int64_t step = thin_out(all, &some);

    if (step == 1) {
        oct_histograms_see(s->h, all, s->scan, 1);
        return;
    }
    (void)oct_scan_channels(&some, s->thin); /* cannot find what the scan of all did not */
    for (int64_t i = 0; i < o->channels; i++)
        s->thin[i] = (oct_scan){s->scan[i].low, s->scan[i].high, s->thin[i].zeros};
    oct_histograms_see(s->h, &some, s->thin, step);
}

void oct_histograms_see_value(oct_observer *o, const oct_value_view *sight)
{
    oct_histograms *s = o->state;

    if (!oct_observer_scan(o, sight, s->scan)) return;
    if (oct_observer_n_ranges(o) > 1)
        look_at_channels(o, sight);
    else
        oct_histogram_see(s->h, sight, s->scan);
}

oct_status oct_histograms_merge(oct_observer *o, const oct_observer *other)
{
    oct_histograms *s = o->state;
    const oct_histograms *t = other->state;

    for (int64_t i = 0; i < oct_observer_n_ranges(o); i++)
        oct_histogram_merge(&s->h[i], &t->h[i]);
    return OCT_OK;
}

void oct_histograms_fini(oct_observer *o)
{
    oct_histograms *s = o->state;

    oct_free(o->ctx, s->counts);
    oct_free(o->ctx, s->h);
    oct_free(o->ctx, s->scan);
    oct_free(o->ctx, s->thin);
}

oct_status oct_histograms_solve(const oct_observer *o, const oct_qspec *spec, float *low,
                                float *high)
{
    const oct_histograms *s = o->state;
    oct_arena *a = oct_arena_new(o->ctx);
    oct_status st = OCT_OK;

    if (!a) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < oct_observer_n_ranges(o) && !st; i++) {
        oct_density d;

        oct_arena_reset(a);
        st = oct_density_make(&s->h[i], &o->options, a, &d);
        if (!st) st = o->row->solve_density(o, spec, &d, &low[i], &high[i]);
    }
    oct_arena_free(a);
    return st;
}
