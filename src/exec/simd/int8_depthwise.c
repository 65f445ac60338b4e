/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of codes. Four rows of input are first interleaved, so that each lane has
 * four taps of one channel; a column made once serves all output pixels it belongs to. Compiled
 * once for each instruction set.
 */
#include "exec/simd/int8_part.h"

#define CHUNK    OCT_INT8_DW_PIXELS
#define MAX_HOLD 10 /* quads of weights that are kept in registers */

/* One picture and one group of at most BW channels. */
typedef struct group {
    const oct_int8_conv *c;
    const uint8_t *x, *pad; /* of the group's first channel */
    int64_t n;              /* channels */
    int64_t quads;          /* of taps down */
} group;

INLINE vb load_group(const uint8_t *p, int64_t n)
{
    return n == BW ? load_bytes(p) : load_bytes_part(p, n);
}

/* Columns from x0 on, rows of quad q: to[column][BW channels][4 rows] */
static void make_columns(const group *g, int64_t y0, int64_t x0, int64_t columns, int64_t q,
                         uint8_t *to)
{
    const oct_int8_conv *c = g->c;
    const vb pad = load_group(g->pad, g->n), none = {0};
    const uint8_t *row[4];
    bool in[4];

    for (int64_t i = 0; i < 4; i++) {
        const int64_t ky = q * 4 + i, iy = y0 + ky * c->dilation[0];

        in[i] = ky < c->kernel[0] && iy >= 0 && iy < c->in_h;
        row[i] = in[i] ? g->x + iy * c->in_w * c->in_pitch : NULL;
    }
    for (int64_t k = 0; k < columns; k++, to += (int64_t)4 * BW) {
        const int64_t ix = x0 + k;
        vb r[4], out[4];

        UNROLL for (int i = 0; i < 4; i++)
        {
            r[i] = q * 4 + i < c->kernel[0] ? pad : none;
            if (in[i] && ix >= 0 && ix < c->in_w)
                r[i] = load_group(row[i] + ix * c->in_pitch, g->n);
        }
        interleave(r, out);
        UNROLL for (int i = 0; i < 4; i++) store_bytes(to + i * BW, out[i]);
    }
}

/* n pixels of one vector of channels; KW x KQ quads of weights are constants where called. */
INLINE void pixels(const uint8_t *x, int64_t step, int64_t column, int64_t quad, const int8_t *w,
                   vi base, int32_t *sum, int64_t n, const int KW, const int KQ)
{
    quads wv[MAX_HOLD];

    UNROLL for (int i = 0; i < KW * KQ; i++) wv[i] = load_weights(w + (int64_t)i * VW * QUAD_BYTES);
    for (int64_t i = 0; i < n; i++, x += step, sum += BW) {
        vi acc = base;

        UNROLL for (int k = 0; k < KW; k++) UNROLL for (int q = 0; q < KQ; q++) acc =
            dot(acc, load_quads(x + k * column + q * quad), wv[k * KQ + q]);
        store_vi(sum, acc);
    }
}

static void pixels_of_any(const uint8_t *x, int64_t step, int64_t column, int64_t quad,
                          const int8_t *w, vi base, int32_t *sum, int64_t n, int64_t kw, int64_t kq)
{
    for (int64_t i = 0; i < n; i++, x += step, sum += BW) {
        const int8_t *at = w;
        vi acc = base;

        for (int64_t k = 0; k < kw; k++)
            for (int64_t q = 0; q < kq; q++, at += VW * QUAD_BYTES)
                acc = dot(acc, load_quads(x + k * column + q * quad), load_weights(at));
        store_vi(sum, acc);
    }
}

/* Sums of n pixels of a group, from columns. */
static void sum_up(const oct_int8_conv *c, const uint8_t *columns, int64_t quad, int64_t first,
                   const int32_t *base, int32_t *sum, int64_t n)
{
    const int64_t step = c->stride[1] * 4 * BW, column = c->dilation[1] * 4 * BW;
    const int64_t kw = c->kernel[1], kq = ceil_div(c->kernel[0], 4);

    for (int64_t v = 0; v < 4 && first + v * VW < c->c_out; v++) {
        const int8_t *w = c->dw_w + (first / VW + v) * kw * kq * VW * QUAD_BYTES;
        const uint8_t *x = columns + v * BW;
        const vi b = load_vi(base + first + v * VW);

        if (kw == 3 && kq == 1)
            pixels(x, step, column, quad, w, b, sum + v * VW, n, 3, 1);
        else if (kw == 5 && kq == 2)
            pixels(x, step, column, quad, w, b, sum + v * VW, n, 5, 2);
        else
            pixels_of_any(x, step, column, quad, w, b, sum + v * VW, n, kw, kq);
    }
}

void INT8_SYM(depthwise)(const oct_int8_conv *c, const oct_int8_finish *f, const oct_int8_io *io,
                         int64_t y)
{
    const int64_t y_size = f->out == OCT_INT8_U8 ? 1 : 4,
                  r_size = f->residual == OCT_INT8_U8 ? 1 : 4;
    const int64_t y0 = y * c->stride[0] - c->pad[0], kq = ceil_div(c->kernel[0], 4);
    const int32_t *base = io->base ? io->base : c->base;
    const uint8_t *pad = io->pad_pixel ? io->pad_pixel : c->pad_pixel;
    int32_t *sum = io->scratch;
    uint8_t *columns = (uint8_t *)(sum + CHUNK * BW);

    for (int64_t first = 0; first < c->c_out; first += BW) {
        const group g = {c, io->x + first, pad + first, OCT_MIN(c->c_out - first, BW), kq};

        for (int64_t x = 0, n; x < c->out_w; x += n) {
            const int64_t at = y * c->out_w + x, rest = c->out_w - x;
            int64_t count, quad;

            n = ceil_div(rest, ceil_div(rest, c->chunk));
            count = (n - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;
            quad = count * 4 * BW;
            for (int64_t q = 0; q < kq; q++)
                make_columns(&g, y0, x * c->stride[1] - c->pad[1], count, q, columns + q * quad);
            sum_up(c, columns, quad, first, base, sum, n);
            INT8_SYM(finish)
            (f, sum, BW, first, g.n, n,
             io->residual
                 ? (const uint8_t *)io->residual + (at * c->residual_pitch + first) * r_size
                 : NULL,
             c->residual_pitch, (uint8_t *)io->y + (at * c->out_pitch + first) * y_size,
             c->out_pitch);
        }
    }
}
