/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lengths with small factors are split by them, the smallest first; other lengths become a
 * convolution with a chirp (Bluestein), done with transforms of a power of two.
 */
#include "op/fft.h"

#include <math.h>

#define MAX_LENGTH ((int64_t)1 << 30)
#define MAX_FACTOR 64 /* larger ones cost more than the chirp */

static const double pi = 3.14159265358979323846;

/* exp(-2 pi i k / n), exact where it is 1, -i, -1 or i. */
static oct_complex root(int64_t k, int64_t n)
{
    static const oct_complex quarters[] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
    const double angle = -2 * pi * (double)k / (double)n;

    if (4 * k % n == 0) return quarters[4 * k / n % 4];
    return (oct_complex){cos(angle), sin(angle)};
}

/* A sum or product of two floats, computed in double and rounded here, is the float one. */
static double rounded(const oct_fft *f, double x)
{
    /* Not a plain cast: gcc 12 drops a pair of casts to float and back when it vectorises. */
    const volatile float y = (float)x;

    return f->single ? (double)y : x;
}

static oct_complex plus(const oct_fft *f, oct_complex x, oct_complex y)
{
    return (oct_complex){rounded(f, x.re + y.re), rounded(f, x.im + y.im)};
}

static oct_complex times(const oct_fft *f, oct_complex x, oct_complex y)
{
    return (oct_complex){rounded(f, rounded(f, x.re * y.re) - rounded(f, x.im * y.im)),
                         rounded(f, rounded(f, x.re * y.im) + rounded(f, x.im * y.re))};
}

static int64_t smallest_factor(int64_t n)
{
    for (int64_t p = 2; p <= MAX_FACTOR; p++)
        if (n % p == 0) return p;
    return n;
}

static bool has_small_factors(int64_t n)
{
    for (int64_t p; n > 1; n /= p)
        if ((p = smallest_factor(n)) > MAX_FACTOR) return false;
    return true;
}

/* Forward transform of x[n], n dividing m, with room for as much in tmp. */
static void transform(const oct_fft *f, oct_complex *x, oct_complex *tmp, int64_t n)
{
    const int64_t p = smallest_factor(n), part = n / p, step = f->m / n;

    if (n == 1) return;
    for (int64_t i = 0; i < part; i++)
        for (int64_t u = 0; u < p; u++) {
            oct_complex sum = x[i];

            for (int64_t j = 1; j < p; j++)
                sum = plus(f, sum, times(f, x[i + part * j], f->roots[u * j % p * part * step]));
            tmp[u * part + i] = times(f, sum, f->roots[u * i * step]);
        }
    for (int64_t u = 0; u < p; u++) {
        transform(f, tmp + u * part, x + u * part, part);
    }
    for (int64_t u = 0; u < p; u++)
        for (int64_t k = 0; k < part; k++)
            x[u + p * k] = tmp[u * part + k];
}

/* The chirp exp(-pi i k^2 / n), and the transform of its conjugate, laid out as a ring. */
static oct_status init_chirp(oct_fft *f, const oct_args *a)
{
    f->chirp = oct_args_scratch(a, (size_t)f->n, sizeof(*f->chirp));
    f->kernel = oct_args_scratch(a, (size_t)f->m, sizeof(*f->kernel));
    f->signal = oct_args_scratch(a, (size_t)f->m, sizeof(*f->signal));
    if (!f->chirp || !f->kernel || !f->signal) return OCT_ERR_MEMORY;
    for (int64_t k = 0; k < f->n; k++) {
        /* The angle only matters modulo a full turn, where it is exact. */
        f->chirp[k] = root(k * k % (2 * f->n), 2 * f->n);
        f->kernel[k] = (oct_complex){f->chirp[k].re, -f->chirp[k].im};
        if (k > 0) f->kernel[f->m - k] = f->kernel[k];
    }
    transform(f, f->kernel, f->work, f->m);
    return OCT_OK;
}

oct_status oct_fft_init(oct_fft *f, const oct_args *a, int64_t n, bool inverse, bool single)
{
    *f = (oct_fft){.n = n, .m = n, .inverse = inverse};
    if (n < 1 || n > MAX_LENGTH)
        return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED, "cannot transform %lld elements",
                             (long long)n);
    f->single = single && has_small_factors(n);
    if (!has_small_factors(n))
        for (f->m = 1; f->m < 2 * n - 1;)
            f->m *= 2;
    f->roots = oct_args_scratch(a, (size_t)f->m, sizeof(*f->roots));
    f->work = oct_args_scratch(a, (size_t)f->m, sizeof(*f->work));
    if (!f->roots || !f->work) return OCT_ERR_MEMORY;
    for (int64_t k = 0; k < f->m; k++) {
        const oct_complex r = root(k, f->m);

        f->roots[k] = (oct_complex){rounded(f, r.re), rounded(f, r.im)};
    }
    return f->m == n ? OCT_OK : init_chirp(f, a);
}

static void bluestein(const oct_fft *f, oct_complex *x)
{
    const double scale = 1 / (double)f->m;

    for (int64_t k = 0; k < f->m; k++)
        f->signal[k] = k < f->n ? times(f, x[k], f->chirp[k]) : (oct_complex){0, 0};
    transform(f, f->signal, f->work, f->m);
    /* Back again: the inverse transform is the forward one of the conjugate, conjugated. */
    for (int64_t k = 0; k < f->m; k++) {
        f->signal[k] = times(f, f->signal[k], f->kernel[k]);
        f->signal[k].im = -f->signal[k].im;
    }
    transform(f, f->signal, f->work, f->m);
    for (int64_t k = 0; k < f->n; k++) {
        const oct_complex y = {f->signal[k].re * scale, -f->signal[k].im * scale};

        x[k] = times(f, y, f->chirp[k]);
    }
}

void oct_fft_run(const oct_fft *f, oct_complex *x)
{
    const double scale = rounded(f, f->inverse ? 1 / (double)f->n : 1);
    const double sign = f->inverse ? -1 : 1;

    for (int64_t k = 0; k < f->n; k++)
        x[k].im *= sign;
    if (f->m == f->n)
        transform(f, x, f->work, f->n);
    else
        bluestein(f, x);
    for (int64_t k = 0; k < f->n; k++)
        x[k] = (oct_complex){rounded(f, x[k].re * scale), rounded(f, x[k].im * scale * sign)};
}
