/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ways to resize, each in the fixed-point arithmetic of the tool it follows. Both work on rows
 * first and on columns then, with rounding in between, so the order must stay as it is.
 */
#include "data/image/resample.h"

#include <math.h>
#include <string.h>

/*
 * linear: weights of 11 bits; a row between the passes keeps 15 bits (its lowest 4 are dropped, so
 * that 16-bit products suffice).
 * antialias: weights of 22 bits; a row between the passes is rounded to 8 bits.
 */
#define LINEAR_BITS    11
#define LINEAR_DROP    4
#define ANTIALIAS_BITS 22

/* For each output pixel: the first source pixel, how many, and their weights. */
typedef struct taps {
    int32_t n_out, stride; /* stride: the most taps of any output */
    int32_t *first, *count;
    int32_t *weight; /* n_out * stride */
    bool identity;   /* every output is one source pixel, as it is */
} taps;

struct oct_resampler {
    oct_ctx *ctx;
    const oct_image *im;
    oct_interpolation interpolation;
    taps x, y;
    int32_t n_ring;   /* rows held: slot = source row % n_ring */
    int32_t computed; /* source rows below this are in the ring, or were never needed */
    int32_t next;     /* output row */
    size_t row_size;  /* bytes of a ring row */
    uint8_t *ring;
    int32_t *sums; /* one output row */
    uint8_t *out;
};

/* --- weights --- */

/* Position of output pixel i between two neighbours; at the border only one counts. */
static void linear_taps(taps *t, const oct_span *s)
{
    const double scale = (double)s->from / s->to;

    for (int32_t i = 0; i < s->count; i++) {
        const float at = (float)((s->first + i + 0.5) * scale - 0.5);
        int32_t left = (int32_t)floorf(at);
        float part = at - (float)left;
        int32_t w;

        if (left < 0) left = 0, part = 0;
        if (left >= s->from - 1) left = s->from - 1, part = 0;
        w = (int32_t)lrintf(part * (1 << LINEAR_BITS));
        t->first[i] = left;
        t->count[i] = left + 1 < s->from ? 2 : 1;
        t->weight[i * t->stride] = (1 << LINEAR_BITS) - w;
        if (t->stride > 1) t->weight[i * t->stride + 1] = w;
    }
}

/* A triangle as wide as an output pixel (never narrower than two source pixels), summing to one. */
static void antialias_taps(taps *t, const oct_span *s)
{
    const double scale = (double)s->from / s->to;
    const double wide = OCT_MAX(scale, 1.0);
    const double one = (double)(1 << ANTIALIAS_BITS);

    for (int32_t i = 0; i < s->count; i++) {
        const double centre = (s->first + i + 0.5) * scale;
        const int32_t lo = OCT_MAX((int32_t)(centre - wide + 0.5), 0);
        const int32_t hi = OCT_MIN((int32_t)(centre + wide + 0.5), s->from);
        int32_t *w = t->weight + (size_t)i * (size_t)t->stride;
        double sum = 0;

        for (int32_t k = lo; k < hi; k++)
            sum += OCT_MAX(1.0 - fabs((k - centre + 0.5) / wide), 0.0);
        for (int32_t k = lo; k < hi; k++) {
            const double v = OCT_MAX(1.0 - fabs((k - centre + 0.5) / wide), 0.0) / sum;

            w[k - lo] = (int32_t)(0.5 + v * one);
        }
        t->first[i] = lo;
        t->count[i] = hi - lo;
    }
}

static oct_status make_taps(oct_ctx *ctx, oct_interpolation interpolation, const oct_span *s,
                            taps *t)
{
    const double wide = OCT_MAX((double)s->from / s->to, 1.0);
    const int64_t most =
        interpolation == OCT_INTERPOLATION_LINEAR ? 2 : (int64_t)ceil(wide) * 2 + 1;
    size_t n;

    t->n_out = s->count;
    t->stride = (int32_t)OCT_MIN(most, s->from);
    t->identity = s->from == s->to;
    if (!oct_mul_size((size_t)s->count, (size_t)t->stride, &n) ||
        !oct_add_size(n, 2 * (size_t)s->count, &n))
        return oct_fail(ctx, OCT_ERR_MEMORY, "out of memory: weights for %d pixels", s->count);
    t->first = oct_calloc(ctx, n, sizeof(int32_t));
    if (!t->first) return OCT_ERR_MEMORY;
    t->count = t->first + s->count;
    t->weight = t->count + s->count;
    if (interpolation == OCT_INTERPOLATION_LINEAR)
        linear_taps(t, s);
    else
        antialias_taps(t, s);
    return OCT_OK;
}

/* --- rows --- */

static void split_u8(const uint8_t *src, uint8_t *dst, const taps *t)
{
    const int32_t n = t->n_out;
    const uint8_t *p = src + 3 * (size_t)t->first[0];

    for (int32_t i = 0; i < n; i++) {
        dst[i] = p[3 * i];
        dst[n + i] = p[3 * i + 1];
        dst[2 * n + i] = p[3 * i + 2];
    }
}

static void antialias_row(const uint8_t *src, uint8_t *dst, const taps *t)
{
    const int32_t n = t->n_out, half = 1 << (ANTIALIAS_BITS - 1);
    const int32_t *w = t->weight;

    for (int32_t i = 0; i < n; i++, w += t->stride) {
        const uint8_t *p = src + 3 * (size_t)t->first[i];
        int32_t r = half, g = half, b = half;

        for (int32_t k = 0; k < t->count[i]; k++, p += 3) {
            r += p[0] * w[k];
            g += p[1] * w[k];
            b += p[2] * w[k];
        }
        /* Rounding of the weights may exceed white: clamp. */
        dst[i] = (uint8_t)OCT_MIN(r >> ANTIALIAS_BITS, 255);
        dst[n + i] = (uint8_t)OCT_MIN(g >> ANTIALIAS_BITS, 255);
        dst[2 * n + i] = (uint8_t)OCT_MIN(b >> ANTIALIAS_BITS, 255);
    }
}

static void linear_row(const uint8_t *src, int16_t *dst, const taps *t)
{
    const int32_t n = t->n_out;

    for (int32_t i = 0; i < n; i++) {
        const uint8_t *p = src + 3 * (size_t)t->first[i];
        const uint8_t *q = p + (t->count[i] > 1 ? 3 : 0);
        const int32_t a = t->weight[i * t->stride], b = (1 << LINEAR_BITS) - a;

        dst[i] = (int16_t)((p[0] * a + q[0] * b) >> LINEAR_DROP);
        dst[n + i] = (int16_t)((p[1] * a + q[1] * b) >> LINEAR_DROP);
        dst[2 * n + i] = (int16_t)((p[2] * a + q[2] * b) >> LINEAR_DROP);
    }
}

static void *ring_row(const oct_resampler *r, int32_t y)
{
    return r->ring + (size_t)(y % r->n_ring) * r->row_size;
}

/* The horizontal pass of source rows [lo, hi) that are not in the ring yet. */
static void fill_ring(oct_resampler *r, int32_t lo, int32_t hi)
{
    for (int32_t y = OCT_MAX(lo, r->computed); y < hi; y++) {
        const uint8_t *src = r->im->rgb + (size_t)y * (size_t)r->im->width * 3;

        if (r->interpolation == OCT_INTERPOLATION_LINEAR)
            linear_row(src, ring_row(r, y), &r->x);
        else if (r->x.identity)
            split_u8(src, ring_row(r, y), &r->x);
        else
            antialias_row(src, ring_row(r, y), &r->x);
    }
    r->computed = OCT_MAX(r->computed, hi);
}

/* --- columns --- */

static void linear_columns(oct_resampler *r, int32_t i)
{
    const int32_t n = 3 * r->x.n_out, y = r->y.first[i];
    const int16_t *top = ring_row(r, y);
    const int16_t *bottom = ring_row(r, r->y.count[i] > 1 ? y + 1 : y);
    const int16_t a = (int16_t)r->y.weight[i * r->y.stride];
    const int16_t b = (int16_t)((1 << LINEAR_BITS) - a);
    uint8_t *out = r->out;

    for (int32_t k = 0; k < n; k++) {
        const int32_t t = (top[k] * a) >> 16, u = (bottom[k] * b) >> 16;

        out[k] = (uint8_t)((t + u + 2) >> 2);
    }
}

static void add_row(const uint8_t *row_bytes, int32_t weight, int32_t *sums, int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        sums[k] += row_bytes[k] * weight;
}

static void antialias_columns(oct_resampler *r, int32_t i)
{
    const int32_t n = 3 * r->x.n_out, y = r->y.first[i];
    const int32_t *w = r->y.weight + (size_t)i * (size_t)r->y.stride;
    int32_t *sums = r->sums;
    uint8_t *out = r->out;

    for (int32_t k = 0; k < n; k++)
        sums[k] = 1 << (ANTIALIAS_BITS - 1);
    for (int32_t k = 0; k < r->y.count[i]; k++)
        add_row(ring_row(r, y + k), w[k], sums, n);
    for (int32_t k = 0; k < n; k++)
        out[k] = (uint8_t)OCT_MIN(sums[k] >> ANTIALIAS_BITS, 255);
}

const uint8_t *oct_resampler_next(oct_resampler *r)
{
    const int32_t i = r->next++, y = r->y.first[i];

    if (r->interpolation == OCT_INTERPOLATION_LINEAR) {
        fill_ring(r, y, y + r->y.count[i]);
        linear_columns(r, i);
        return r->out;
    }
    if (r->y.identity) {
        fill_ring(r, y, y + 1);
        return ring_row(r, y);
    }
    fill_ring(r, y, y + r->y.count[i]);
    antialias_columns(r, i);
    return r->out;
}

/* --- life --- */

static oct_status make_buffers(oct_resampler *r)
{
    const size_t n = 3 * (size_t)r->x.n_out;
    size_t size;

    r->n_ring = r->y.stride;
    r->row_size = (n * (r->interpolation == OCT_INTERPOLATION_LINEAR ? 2 : 1) + 63) / 64 * 64;
    if (!oct_mul_size(r->row_size, (size_t)r->n_ring, &size))
        return oct_fail(r->ctx, OCT_ERR_MEMORY, "out of memory: %d rows", r->n_ring);
    if (!(r->ring = oct_alloc(r->ctx, size))) return OCT_ERR_MEMORY;
    if (!(r->sums = oct_alloc(r->ctx, n * sizeof(*r->sums)))) return OCT_ERR_MEMORY;
    if (!(r->out = oct_alloc(r->ctx, n))) return OCT_ERR_MEMORY;
    return OCT_OK;
}

oct_status oct_resampler_new(oct_ctx *ctx, oct_interpolation interpolation, const oct_image *im,
                             oct_span x, oct_span y, oct_resampler **out)
{
    oct_resampler *r = oct_calloc(ctx, 1, sizeof(*r));
    oct_status st;

    if (!r) return OCT_ERR_MEMORY;
    r->ctx = ctx;
    r->im = im;
    /* No resizing: both methods give the picture itself, and this is faster. */
    r->interpolation =
        x.from == x.to && y.from == y.to ? OCT_INTERPOLATION_ANTIALIAS : interpolation;
    if ((st = make_taps(ctx, r->interpolation, &x, &r->x))) goto fail;
    if ((st = make_taps(ctx, r->interpolation, &y, &r->y))) goto fail;
    if ((st = make_buffers(r))) goto fail;
    *out = r;
    return OCT_OK;
fail:
    oct_resampler_free(r);
    return st;
}

void oct_resampler_free(oct_resampler *r)
{
    if (!r) return;
    oct_free(r->ctx, r->x.first);
    oct_free(r->ctx, r->y.first);
    oct_free(r->ctx, r->ring);
    oct_free(r->ctx, r->sums);
    oct_free(r->ctx, r->out);
    oct_free(r->ctx, r);
}
