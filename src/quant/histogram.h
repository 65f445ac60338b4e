/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram whose bins are 2^k wide and start at multiples of 2^k. k is the smallest for which
 * all that was seen fits into the slots, so it depends on the smallest and largest number alone:
 * the order in which numbers come, and merging, change nothing. (Except for numbers so near to 0
 * that x / 2^k is no normal float: they may count as 0.)
 *
 * Bin i, from i * 2^k to (i + 1) * 2^k, is in slot i - base; the smallest number is in slot 0.
 */
#ifndef OCT_QUANT_HISTOGRAM_H
#define OCT_QUANT_HISTOGRAM_H

#include "quant/scan.h"

typedef struct oct_histogram {
    int32_t n_slots; /* a power of two: at least half of them are used, unless numbers are equal */
    int32_t k;
    int64_t base;
    float low, high; /* seen; low > high: nothing yet */
    uint64_t zeros;  /* exactly 0: also counted in bin 0 */
    uint64_t *count; /* n_slots; borrowed */
} oct_histogram;

/* `bins` are asked for: 16 to 65536. */
int32_t oct_histogram_slots(int32_t bins);

/* count: n_slots zeros that live as long as the histogram. */
void oct_histogram_init(oct_histogram *h, int32_t n_slots, uint64_t *count);
void oct_histogram_reset(oct_histogram *h);

/* All numbers of a sight; scan is what oct_scan_all() found. */
void oct_histogram_see(oct_histogram *h, const oct_sight *s, const oct_scan *scan);

/* One histogram for each channel; scan[channels] is what oct_scan_channels() found. Where the sight
 * is of some pixels only, each stands for `by`, and the ends that the scan found are counted too.
 */
void oct_histograms_see(oct_histogram *h, const oct_sight *s, const oct_scan *scan, int64_t by);

/* Both have the same number of slots. */
void oct_histogram_merge(oct_histogram *h, const oct_histogram *other);

static inline bool oct_histogram_is_empty(const oct_histogram *h)
{
    return h->low > h->high;
}

/* Slots from the smallest to the largest number. */
int64_t oct_histogram_used(const oct_histogram *h);

/* --- as a distribution, for solvers: counts are spread evenly inside a bin, zeros are a peak ---
 */

typedef struct oct_moments {
    double mass, first, second; /* sums of 1, x, x^2; of what follows x, if anything does */
} oct_moments;

typedef struct oct_density {
    int64_t first;      /* index of the first bin */
    int32_t n;          /* bins */
    double width;       /* of a bin */
    double *mass;       /* n; without the zeros */
    oct_moments *below; /* n + 1: sums over all bins before */
    double zeros;
    double low, high; /* seen, 0 included */
    const oct_observer_options *o;
} oct_density;

/* Weights, if any, are applied to the counts. Lives in the arena. */
oct_status oct_density_make(const oct_histogram *h, const oct_observer_options *o, oct_arena *a,
                            oct_density *d);

/* What x becomes by what follows it. */
static inline double oct_density_value(const oct_density *d, double x)
{
    return d->o->follow ? (double)d->o->follow(d->o->follow_user, (float)x) : x;
}

/* Sums over x' < x; zeros are not in it. */
oct_moments oct_density_below(const oct_density *d, double x);

/* The x below which this part of the mass is, zeros included: part in 0..1. */
double oct_density_quantile(const oct_density *d, double part);
/* The same for |x|. */
double oct_density_abs_quantile(const oct_density *d, double part);

/* --- observers that keep histograms: one, or one for each channel --- */

typedef struct oct_histograms {
    oct_histogram *h; /* oct_observer_n_ranges() */
    uint64_t *counts;
    oct_scan *scan, *thin; /* of all numbers, and of those that are counted */
} oct_histograms;

oct_status oct_histograms_init(oct_observer *o);
void oct_histograms_look(oct_observer *o, const oct_sight *s);
oct_status oct_histograms_merge(oct_observer *o, const oct_observer *other);
oct_status oct_histograms_solve(const oct_observer *o, const oct_qspec *spec, float *low,
                                float *high);
void oct_histograms_fini(oct_observer *o);

/* The row of such an observer; solve_ is its solve_density. */
#define OCT_HISTOGRAM_OBSERVER(name_, help_, solve_)                                               \
    {                                                                                              \
        .name = name_, .help = help_, .size = sizeof(oct_histograms), .has_channels = true,        \
        .init = oct_histograms_init, .see = oct_histograms_look, .merge = oct_histograms_merge,    \
        .solve = oct_histograms_solve, .solve_density = solve_, .fini = oct_histograms_fini,       \
    }

#endif
