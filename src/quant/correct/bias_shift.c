/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bias correction of one channel, from samples of its error.
 *
 * Not the mean error. A bias shifts all pixels of a channel alike, while errors are large where
 * they do not matter: far on the flat side of an activation, or on the few pixels that are clipped.
 * So the shift minimises the error after the activation: errors are weighted by the activation's
 * slope, outliers are clipped, and a shift that does not improve both halves of the images is
 * dropped.
 */
#include <math.h>
#include <stdlib.h>

#include "quant/correct/correct.h"

#define OUTLIER      4.0    /* standard deviations from the median */
#define DEVIATION    1.4826 /* of a normal distribution whose median absolute deviation is 1 */
#define LEAST_WEIGHT 0.05   /* values with a lower weight are ignored when outliers are defined */

enum { LEAST_SAMPLES = 8 };

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static double median(float *x, int64_t n)
{
    qsort(x, (size_t)n, sizeof(*x), ascending);
    return (double)x[n / 2];
}

/* How much of an error at x passes the activation. */
static double weight(const oct_following_act *b, float x)
{
    const double s = oct_following_act_slope(b, (double)x);

    return s * s;
}

/* Median and spread of the errors that pass. False: too few do. */
static bool find_middle(const oct_following_act *b, const float *exact, const float *now, int64_t n,
                        float *scratch, double *middle, double *reach)
{
    int64_t k = 0;

    for (int64_t i = 0; i < n; i++)
        if (weight(b, exact[i]) > LEAST_WEIGHT) scratch[k++] = exact[i] - now[i];
    if (k < LEAST_SAMPLES) return false;
    *middle = median(scratch, k);
    for (int64_t i = 0; i < k; i++)
        scratch[i] = (float)fabs((double)scratch[i] - *middle);
    *reach = OUTLIER * DEVIATION * median(scratch, k);
    return true;
}

/* The weighted mean error; outliers are clipped to the largest regular error. */
static double weighted(const oct_following_act *b, const float *exact, const float *now, int64_t n,
                       float *scratch)
{
    double middle, reach, sum = 0, weights = 0;

    if (!find_middle(b, exact, now, n, scratch, &middle, &reach)) return 0;
    for (int64_t i = 0; i < n; i++) {
        const double w = weight(b, exact[i]), e = (double)exact[i] - (double)now[i];

        sum += w * OCT_MIN(OCT_MAX(e, middle - reach), middle + reach);
        weights += w;
    }
    return sum / weights;
}

/* Does it reduce the squared error after the activation? */
static bool helps(const oct_following_act *b, const float *exact, const float *now, int64_t n,
                  double shift)
{
    double gain = 0;

    for (int64_t i = 0; i < n; i++) {
        const double want = oct_following_act_apply(b, (double)exact[i]);
        const double before = want - oct_following_act_apply(b, (double)now[i]);
        const double after = want - oct_following_act_apply(b, (double)now[i] + shift);

        gain += before * before - after * after;
    }
    return gain > 0;
}

float oct_best_shift(const oct_following_act *b, const float *exact, const float *now, int64_t n,
                     int64_t half, float *scratch)
{
    const double s = n > 0 ? weighted(b, exact, now, n, scratch) : 0;

    if (!isfinite(s) || s == 0 || !helps(b, exact, now, half, s)) return 0;
    return helps(b, exact + half, now + half, n - half, s) ? (float)s : 0;
}
