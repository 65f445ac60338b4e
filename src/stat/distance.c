/* SPDX-License-Identifier: Apache-2.0 */
/* Errors between numbers: sums in blocks, then in two doubles; divergence of histograms. */
#include "stat/distance.h"

#include <math.h>
#include <string.h>

enum {
    LANES = 8, /* sums side by side, which vectorises */
    BLOCK = 4096,
};

/* --- sums --- */

void oct_sum_add(oct_sum *s, double x)
{
    const double sum = s->high + x, part = sum - s->high;

    s->low += (s->high - (sum - part)) + (x - part); /* what rounding took away */
    s->high = sum;
}

void oct_sum_merge(oct_sum *s, const oct_sum *other)
{
    oct_sum_add(s, other->high);
    oct_sum_add(s, other->low);
}

void oct_distance_init(oct_distance *d, uint64_t *counts)
{
    *d = (oct_distance){.n = 0};
    oct_histogram_init(&d->exact, OCT_DISTANCE_SLOTS, counts);
    oct_histogram_init(&d->other, OCT_DISTANCE_SLOTS, counts ? counts + OCT_DISTANCE_SLOTS : NULL);
}

typedef struct lanes {
    double error[LANES], signal[LANES], power[LANES], product[LANES];
} lanes;

static void add_lane(lanes *l, int j, double x, double y)
{
    const double d = y - x;

    l->error[j] += d * d;
    l->signal[j] += x * x;
    l->power[j] += y * y;
    l->product[j] += x * y;
}

static double total(const double *v)
{
    double sum = 0;

    for (int j = 0; j < LANES; j++)
        sum += v[j];
    return sum;
}

static void add_block(oct_distance *d, const float *x, const float *y, int64_t n)
{
    lanes l = {{0}};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            add_lane(&l, j, (double)x[i + j], (double)y[i + j]);
    for (; i < n; i++)
        add_lane(&l, 0, (double)x[i], (double)y[i]);
    oct_sum_add(&d->error, total(l.error));
    oct_sum_add(&d->signal, total(l.signal));
    oct_sum_add(&d->power, total(l.power));
    oct_sum_add(&d->product, total(l.product));
    d->n += n;
}

static oct_value_view sight_of(const float *x, int64_t n)
{
    return (oct_value_view){.data = x, .pixels = n, .channels = 1, .pitch = 1, .planar = true};
}

/* All of them are finite. */
static void see_all(oct_distance *d, const float *x, const float *y, int64_t n,
                    const oct_scan scan[2])
{
    const oct_value_view sx = sight_of(x, n), sy = sight_of(y, n);

    for (int64_t i = 0; i < n; i += BLOCK)
        add_block(d, x + i, y + i, OCT_MIN(n - i, (int64_t)BLOCK));
    if (d->exact.count) oct_histogram_see(&d->exact, &sx, &scan[0]);
    if (d->other.count) oct_histogram_see(&d->other, &sy, &scan[1]);
}

static bool look(const float *x, const float *y, int64_t n, oct_scan scan[2])
{
    const oct_value_view sx = sight_of(x, n), sy = sight_of(y, n);

    return oct_scan_all(&sx, &scan[0]) && oct_scan_all(&sy, &scan[1]);
}

/* Numbers that are not finite spoil neither sums nor histograms. */
static void see_finite(oct_distance *d, const float *x, const float *y, int64_t n)
{
    float a[BLOCK], b[BLOCK];
    oct_scan scan[2];
    int64_t k = 0;

    for (int64_t i = 0; i < n; i++) {
        if (isfinite(x[i]) && isfinite(y[i])) {
            a[k] = x[i];
            b[k++] = y[i];
        }
        if (k < BLOCK && i + 1 < n) continue;
        if (k && look(a, b, k, scan)) see_all(d, a, b, k, scan);
        k = 0;
    }
}

void oct_distance_see(oct_distance *d, const float *x, const float *y, int64_t n)
{
    oct_scan scan[2];

    if (n <= 0) return;
    if (look(x, y, n, scan))
        see_all(d, x, y, n, scan);
    else
        see_finite(d, x, y, n);
}

void oct_distance_merge(oct_distance *d, const oct_distance *other)
{
    oct_sum_merge(&d->error, &other->error);
    oct_sum_merge(&d->signal, &other->signal);
    oct_sum_merge(&d->power, &other->power);
    oct_sum_merge(&d->product, &other->product);
    d->n += other->n;
    if (d->exact.count && other->exact.count) oct_histogram_merge(&d->exact, &other->exact);
    if (d->other.count && other->other.count) oct_histogram_merge(&d->other, &other->other);
}

/* --- measures --- */

double oct_distance_noise(const oct_distance *d)
{
    const double error = oct_sum_value(&d->error), signal = oct_sum_value(&d->signal);

    if (d->n == 0) return -1;
    if (signal > 0) return error / signal;
    return error > 0 ? 1 : 0;
}

static double cosine(const oct_distance *d)
{
    const double x = oct_sum_value(&d->signal), y = oct_sum_value(&d->power);

    if (!(oct_sum_value(&d->error) > 0)) return 1;
    if (!(x > 0) || !(y > 0)) return 0;
    return oct_sum_value(&d->product) / (sqrt(x) * sqrt(y));
}

/* h with the bins that both have in common. */
static void align(const oct_histogram *h, const oct_histogram *other, oct_histogram *to)
{
    uint64_t none[OCT_DISTANCE_SLOTS] = {0};
    oct_histogram empty = *other;

    empty.count = none; /* its range counts, not what is in it */
    empty.zeros = 0;
    oct_histogram_merge(to, h);
    oct_histogram_merge(to, &empty);
}

/*
 * Sum of p log(p / q). A bin that only p has counts as half a number in q: else the divergence
 * would be infinite.
 */
static double divergence(const oct_distance *d)
{
    uint64_t counts[2][OCT_DISTANCE_SLOTS] = {{0}};
    double n = (double)d->n, all = n, sum = 0;
    oct_histogram p, q;

    if (!d->exact.count || !d->other.count || d->n == 0) return 0;
    oct_histogram_init(&p, OCT_DISTANCE_SLOTS, counts[0]);
    oct_histogram_init(&q, OCT_DISTANCE_SLOTS, counts[1]);
    align(&d->exact, &d->other, &p);
    align(&d->other, &d->exact, &q);
    for (int i = 0; i < OCT_DISTANCE_SLOTS; i++)
        if (p.count[i] && !q.count[i]) all += 0.5;
    for (int i = 0; i < OCT_DISTANCE_SLOTS; i++)
        if (p.count[i])
            sum += (double)p.count[i] / n *
                   log((double)p.count[i] * all / (n * (q.count[i] ? (double)q.count[i] : 0.5)));
    return OCT_MAX(sum, 0.0);
}

oct_error oct_distance_error(const oct_distance *d)
{
    oct_error e = oct_error_none();

    e.noise = oct_distance_noise(d);
    if (d->n == 0) return e;
    e.cosine = cosine(d);
    e.mse = oct_sum_value(&d->error) / (double)d->n;
    e.kl = divergence(d);
    return e;
}
