/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far numbers are from exact ones, summed up over pictures. Sums are kept in two doubles, so
 * that the order in which threads add to them leaves no trace in the result.
 */
#ifndef OCT_STAT_DISTANCE_H
#define OCT_STAT_DISTANCE_H

#include <octet/error.h>

#include "stat/histogram.h"

enum { OCT_DISTANCE_SLOTS = 256 }; /* of a histogram: 128 to 256 bins over the range seen */

typedef struct oct_sum {
    double high, low;
} oct_sum;

void oct_sum_add(oct_sum *s, double x);
void oct_sum_merge(oct_sum *s, const oct_sum *other);

static inline double oct_sum_value(const oct_sum *s)
{
    return s->high + s->low;
}

typedef struct oct_distance {
    oct_sum error, signal, power, product; /* (y - x)^2, x^2, y^2, x * y; x are exact */
    int64_t n;
    oct_histogram exact, other; /* count NULL: no divergence is wanted */
} oct_distance;

/* counts: 2 * OCT_DISTANCE_SLOTS zeros that live as long, or NULL. */
void oct_distance_init(oct_distance *d, uint64_t *counts);

/* y in place of x. Pairs with something that is no finite number are left out. */
void oct_distance_see(oct_distance *d, const float *x, const float *y, int64_t n);
void oct_distance_merge(oct_distance *d, const oct_distance *other);

/* error power / signal power; < 0: nothing was seen */
double oct_distance_noise(const oct_distance *d);
oct_error oct_distance_error(const oct_distance *d);

/* For results: nothing was measured. */
static inline oct_error oct_error_none(void)
{
    return (oct_error){.noise = -1, .cosine = 1};
}

#endif
