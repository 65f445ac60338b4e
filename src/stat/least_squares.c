/* SPDX-License-Identifier: Apache-2.0 */
#include "stat/least_squares.h"

#include <math.h>

#include "base/ctx.h"
#include "base/parallel.h"

enum { ROWS = 4 }; /* rows of x x' that a pass over the samples fills */

typedef struct gram {
    const float *x;
    int64_t n, k;
    double *a;
} gram;

/* The lower half of some rows. */
static void fill_rows(void *arg, int64_t begin, int64_t end)
{
    const gram *g = arg;

    for (int64_t i = 0; i < g->n; i++) {
        const float *x = g->x + i * g->k;

        for (int64_t row = begin; row < end; row++) {
            const double v = (double)x[row];
            double *a = g->a + row * g->k;

            if (v == 0) continue;
            for (int64_t c = 0; c <= row; c++)
                a[c] += v * (double)x[c];
        }
    }
}

void oct_gram(oct_ctx *ctx, const float *x, int64_t n, int64_t k, double *a)
{
    gram g = {x, n, k, a};

    for (int64_t i = 0; i < k * k; i++)
        a[i] = 0;
    oct_parallel_for(oct_ctx_threads(ctx), k, ROWS, fill_rows, &g);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++)
            a[j * k + i] = a[i * k + j] /= (double)OCT_MAX(n, 1);
}

bool oct_factorize(double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double *row = a + i * n, sum = row[i];

        for (int64_t j = 0; j < i; j++) {
            const double *other = a + j * n;
            double dot = row[j];

            for (int64_t c = 0; c < j; c++)
                dot -= row[c] * other[c];
            row[j] = dot / other[j];
            sum -= row[j] * row[j];
        }
        if (!(sum > 0) || !isfinite(sum)) return false;
        row[i] = sqrt(sum);
    }
    return true;
}

void oct_substitute(const double *l, int64_t n, double *b, int64_t m)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++)
            for (int64_t c = 0; c < m; c++)
                b[i * m + c] -= l[i * n + j] * b[j * m + c];
        for (int64_t c = 0; c < m; c++)
            b[i * m + c] /= l[i * n + i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t j = i + 1; j < n; j++)
            for (int64_t c = 0; c < m; c++)
                b[i * m + c] -= l[j * n + i] * b[j * m + c];
        for (int64_t c = 0; c < m; c++)
            b[i * m + c] /= l[i * n + i];
    }
}
