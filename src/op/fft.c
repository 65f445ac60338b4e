/* SPDX-License-Identifier: Apache-2.0 */
/* Radix 2 for powers of two; other lengths become a convolution with a chirp (Bluestein). */
#include "op/fft.h"

#include <math.h>

#define MAX_LENGTH ((int64_t)1 << 30)

static const double pi = 3.14159265358979323846;

static oct_complex turn(double angle)
{
    return (oct_complex){cos(angle), sin(angle)};
}

static oct_complex times(oct_complex x, oct_complex y)
{
    return (oct_complex){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

static void swap_bits(oct_complex *x, int64_t m)
{
    for (int64_t i = 1, j = 0; i < m; i++) {
        int64_t bit = m >> 1;

        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            const oct_complex t = x[i];

            x[i] = x[j];
            x[j] = t;
        }
    }
}

/* Forward transform of m elements, a power of two; roots[k] = exp(-2 pi i k / m). */
static void radix2(oct_complex *x, int64_t m, const oct_complex *roots)
{
    swap_bits(x, m);
    for (int64_t half = 1; half < m; half *= 2)
        for (int64_t at = 0; at < m; at += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                const oct_complex u = x[at + k];
                const oct_complex v = times(x[at + k + half], roots[k * (m / 2 / half)]);

                x[at + k] = (oct_complex){u.re + v.re, u.im + v.im};
                x[at + k + half] = (oct_complex){u.re - v.re, u.im - v.im};
            }
}

/* The chirp exp(-pi i k^2 / n), and the transform of its conjugate, laid out as a ring. */
static oct_status init_chirp(oct_fft *f, const oct_args *a)
{
    f->chirp = oct_args_scratch(a, (size_t)f->n, sizeof(*f->chirp));
    f->kernel = oct_args_scratch(a, (size_t)f->m, sizeof(*f->kernel));
    f->work = oct_args_scratch(a, (size_t)f->m, sizeof(*f->work));
    if (!f->chirp || !f->kernel || !f->work) return OCT_ERR_MEMORY;
    for (int64_t k = 0; k < f->n; k++) {
        /* The angle only matters modulo a full turn, where it is exact. */
        const double angle = pi * (double)(k * k % (2 * f->n)) / (double)f->n;

        f->chirp[k] = turn(-angle);
        f->kernel[k] = turn(angle);
        if (k > 0) f->kernel[f->m - k] = f->kernel[k];
    }
    radix2(f->kernel, f->m, f->roots);
    return OCT_OK;
}

oct_status oct_fft_init(oct_fft *f, const oct_args *a, int64_t n, bool inverse)
{
    *f = (oct_fft){.n = n, .m = 1, .inverse = inverse};
    if (n < 1 || n > MAX_LENGTH)
        return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED, "cannot transform %lld elements",
                             (long long)n);
    while (f->m < n)
        f->m *= 2;
    if (f->m != n) f->m *= 2; /* at least 2 n - 1 */
    f->roots = oct_args_scratch(a, (size_t)OCT_MAX(f->m / 2, 1), sizeof(*f->roots));
    if (!f->roots) return OCT_ERR_MEMORY;
    for (int64_t k = 0; k < f->m / 2; k++)
        f->roots[k] = turn(-2 * pi * (double)k / (double)f->m);
    return f->m == n ? OCT_OK : init_chirp(f, a);
}

static void bluestein(const oct_fft *f, oct_complex *x)
{
    const double scale = 1 / (double)f->m;

    for (int64_t k = 0; k < f->m; k++)
        f->work[k] = k < f->n ? times(x[k], f->chirp[k]) : (oct_complex){0, 0};
    radix2(f->work, f->m, f->roots);
    /* Back again: the inverse transform is the forward one of the conjugate, conjugated. */
    for (int64_t k = 0; k < f->m; k++) {
        f->work[k] = times(f->work[k], f->kernel[k]);
        f->work[k].im = -f->work[k].im;
    }
    radix2(f->work, f->m, f->roots);
    for (int64_t k = 0; k < f->n; k++)
        x[k] = times((oct_complex){f->work[k].re * scale, -f->work[k].im * scale}, f->chirp[k]);
}

void oct_fft_run(const oct_fft *f, oct_complex *x)
{
    const double scale = f->inverse ? 1 / (double)f->n : 1, sign = f->inverse ? -1 : 1;

    for (int64_t k = 0; k < f->n; k++)
        x[k].im *= sign;
    if (f->m == f->n)
        radix2(x, f->m, f->roots);
    else
        bluestein(f, x);
    for (int64_t k = 0; k < f->n; k++)
        x[k] = (oct_complex){x[k].re * scale, x[k].im * scale * sign};
}
