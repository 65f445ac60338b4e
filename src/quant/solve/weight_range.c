/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of constants: all values are known, so nothing is estimated. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "op/quant.h"
#include "quant/observe/observer.h"

#define PERCENTILE 99.99

enum { LANES = 16, CHUNK = 4096 };

typedef struct weights {
    const oct_qspec *spec;
    float *w; /* n, contiguous */
    int64_t n;
    float low, high; /* of all, 0 included */
} weights;

/* Squared error of n values; n is a multiple of LANES and at most CHUNK. */
static double chunk_error(const float *w, int64_t n, float scale, float lo, float hi)
{
    const float inv = 1.0f / scale;
    float sum[LANES] = {0};
    double total = 0;

    for (int64_t i = 0; i < n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            float t = w[i + j] * inv;

            t = t > lo ? t : lo;
            t = t < hi ? t : hi;
            t = w[i + j] - scale * oct_round_even(t);
            sum[j] += t * t;
        }
    for (int j = 0; j < LANES; j++)
        total += (double)sum[j];
    return total;
}

static double error_of(const weights *q, float low, float high)
{
    float scale, lo, hi;
    int32_t zero, code_low, code_high;
    double sum = 0;

    oct_qspec_solve(q->spec, low, high, &scale, &zero);
    oct_qspec_limits(q->spec, &code_low, &code_high);
    lo = (float)(code_low - zero);
    hi = (float)(code_high - zero);
    /* The values after the last are zero up to a full row, and zero makes no error. */
    for (int64_t i = 0; i < q->n; i += CHUNK)
        sum += chunk_error(q->w + i, OCT_MIN((q->n - i + LANES - 1) / LANES * LANES, CHUNK), scale,
                           lo, hi);
    return sum;
}

/* Squared distance to the range alone: it only grows when the range shrinks. */
static double clipping(const weights *q, float low, float high)
{
    double sum = 0;

    for (int64_t i = 0; i < q->n; i++) {
        const float over = q->w[i] > high ? q->w[i] - high : q->w[i] < low ? low - q->w[i] : 0;

        sum += (double)(over * over);
    }
    return sum;
}

typedef struct best {
    double error;
    float low, high;
} best;

static void attempt(const weights *q, float low, float high, best *b)
{
    const double error = error_of(q, low, high);

    if (error < b->error) *b = (best){error, low, high};
}

/* Powers of two: the one that covers all, and those below. */
static void search_pow2(const weights *q, best *b)
{
    for (int i = 0; i < 5; i++)
        attempt(q, ldexpf(q->low, -i), ldexpf(q->high, -i), b);
}

/* In steps of a hundredth down to a fifth of the range, then finer around the best. */
static void search_shrink(const weights *q, best *b)
{
    float lo, hi;

    for (int i = 0; i < 80; i++) {
        const float f = 1 - 0.01f * (float)i;

        attempt(q, f * q->low, f * q->high, b);
        /* Codes may reach a bit beyond the range: only a clear excess ends the search. */
        if (i % 8 == 7 && clipping(q, f * q->low, f * q->high) > 1.5 * b->error) break;
    }
    lo = b->low;
    hi = b->high;
    for (int i = -4; i <= 4; i++)
        attempt(q, lo * (1 + 0.002f * (float)i), hi * (1 + 0.002f * (float)i), b);
    for (int end = 0; end < 2 && !q->spec->is_symmetric; end++) {
        lo = b->low;
        hi = b->high;
        for (int i = -8; i <= 8; i++)
            attempt(q, end ? lo : lo * (1 + 0.02f * (float)i),
                    end ? hi * (1 + 0.02f * (float)i) : hi, b);
    }
}

static void solve_mse(const weights *q, float *low, float *high)
{
    best b = {DBL_MAX, q->low, q->high};

    if (q->spec->is_pow2)
        search_pow2(q, &b);
    else
        search_shrink(q, &b);
    *low = b.low;
    *high = b.high;
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Of sorted values, with interpolation. */
static float quantile(const float *w, int64_t n, double part)
{
    const double at = part * (double)(n - 1);
    const int64_t i = (int64_t)at;
    const float next = w[OCT_MIN(i + 1, n - 1)];

    return (float)((double)w[i] + (at - (double)i) * ((double)next - (double)w[i]));
}

static void solve_percentile(const weights *q, float *low, float *high)
{
    const double part = PERCENTILE / 100;

    if (q->spec->is_symmetric)
        for (int64_t i = 0; i < q->n; i++)
            q->w[i] = fabsf(q->w[i]);
    qsort(q->w, (size_t)q->n, sizeof(*q->w), ascending);
    *high = quantile(q->w, q->n, part);
    *low = q->spec->is_symmetric ? OCT_MAX(-*high, q->low) : quantile(q->w, q->n, 1 - part);
    *high = OCT_MIN(*high, q->high);
}

static const struct {
    const char *name;
    void (*solve)(const weights *q, float *low, float *high); /* NULL: all of it */
} kinds[] = {{"max", NULL}, {"mse", solve_mse}, {"percentile", solve_percentile}};

/* Index into kinds[], or an error with the nearest. */
static oct_status find_kind(oct_ctx *ctx, const char *name, size_t *out)
{
    oct_nearest near = {name, 64, kinds[0].name};

    *out = 0;
    for (size_t i = 0; i < OCT_COUNT(kinds); i++)
        if (oct_nearest_try(&near, kinds[i].name)) *out = i;
    if (near.distance == 0) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_ARG, "no weight range '%s'; did you mean '%s'?", name, near.name);
}

oct_status oct_weight_range(oct_ctx *ctx, const char *kind, const oct_qspec *spec, const float *w,
                            int64_t n, int64_t step, float *low, float *high)
{
    const oct_value_view sight = {w, n, 1, step, false};
    weights q = {.spec = spec, .n = n};
    oct_scan scan;
    size_t k;

    OCT_TRY(find_kind(ctx, kind, &k));
    if (n < 1) return oct_fail(ctx, OCT_ERR_ARG, "no weights");
    if (!oct_scan_all(&sight, &scan))
        return oct_fail(ctx, OCT_ERR_ARG, "weights are NaN or infinite");
    q.low = OCT_MIN(scan.low, 0);
    q.high = OCT_MAX(scan.high, 0);
    if (!kinds[k].solve || q.low == q.high) {
        *low = scan.low;
        *high = scan.high;
        return OCT_OK;
    }
    q.w = oct_calloc(ctx, (size_t)n + LANES, sizeof(*q.w));
    if (!q.w) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++)
        q.w[i] = w[i * step];
    kinds[k].solve(&q, low, high);
    oct_free(ctx, q.w);
    return OCT_OK;
}
