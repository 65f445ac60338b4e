/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms as distributions with prefix sums, and what the observers that keep histograms share.
 */
#ifndef OCT_QUANT_OBSERVE_DENSITY_H
#define OCT_QUANT_OBSERVE_DENSITY_H

#include "quant/observe/observer.h"
#include "stat/histogram.h"

/* For solvers: counts are spread evenly inside a bin, zeros are a peak. */

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
void oct_histograms_see_value(oct_observer *o, const oct_value_view *s);
oct_status oct_histograms_merge(oct_observer *o, const oct_observer *other);
oct_status oct_histograms_solve(const oct_observer *o, const oct_qspec *spec, float *low,
                                float *high);
void oct_histograms_fini(oct_observer *o);

/* The row of such an observer; solve_ is its solve_density. */
#define OCT_HISTOGRAM_OBSERVER(name_, help_, solve_)                                               \
    {                                                                                              \
        .name = name_, .help = help_, .size = sizeof(oct_histograms), .has_channels = true,        \
        .init = oct_histograms_init, .see = oct_histograms_see_value,                              \
        .merge = oct_histograms_merge, .solve = oct_histograms_solve, .solve_density = solve_,     \
        .fini = oct_histograms_fini,                                                               \
    }

#endif
