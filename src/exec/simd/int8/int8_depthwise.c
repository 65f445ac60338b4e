/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution of codes. Four rows of input are interleaved first, so that each lane has
 * four taps of one channel; a column is interleaved once for all output pixels that read it.
 * Compiled once for each instruction set.
 */
#include "exec/simd/int8/int8_epilogue.h"

#define CHUNK    OCT_INT8_DW_PIXELS
#define MAX_HOLD 10 /* quads of weights that are kept in registers */

/* One image and one group of at most BW channels. */
typedef struct group {
    const oct_int8_conv *c;
    const uint8_t *x, *pad; /* of the group's first channel */
    int64_t first, n;       /* channels */
} group;

/* --- columns: to[column][BW channels][4 rows] --- */

INLINE vb load_group(const uint8_t *p, int64_t n)
{
    return n == BW ? load_bytes(p) : load_bytes_part(p, n);
}

/* ROWS of the four are there; n is a constant if it is BW. */
INLINE uint8_t *make_columns(const uint8_t *const row[4], const int64_t step[4], int64_t columns,
                             int64_t n, uint8_t *to, const int ROWS)
{
    for (int64_t k = 0; k < columns; k++, to += (int64_t)4 * BW) {
        vb r[4], out[4];

        UNROLL for (int i = 0; i < 4; i++)
        {
            if (i < ROWS)
                r[i] = load_group(row[i] + k * step[i], n);
            else
                r[i] = (vb){0};
        }
        interleave(r, out);
        UNROLL for (int i = 0; i < 4; i++) store_bytes(to + i * BW, out[i]);
    }
    return to;
}

static uint8_t *make_some(const uint8_t *const row[4], const int64_t step[4], int64_t columns,
                          int64_t n, uint8_t *to, int64_t rows)
{
    if (n == BW && rows == 3) return make_columns(row, step, columns, BW, to, 3);
    if (n == BW && rows == 4) return make_columns(row, step, columns, BW, to, 4);
    if (rows == 1) return make_columns(row, step, columns, n, to, 1);
    if (rows == 2) return make_columns(row, step, columns, n, to, 2);
    return rows == 3 ? make_columns(row, step, columns, n, to, 3)
                     : make_columns(row, step, columns, n, to, 4);
}

/* Columns x0.. of the rows of quad q, padding included. */
static void make_quad(const group *g, int64_t y0, int64_t x0, int64_t columns, int64_t q,
                      uint8_t *to)
{
    static const int64_t still[4] = {0};
    const oct_int8_conv *c = g->c;
    const int64_t rows = OCT_MIN(c->kernel[0] - q * 4, 4);
    const int64_t from = clamp(-x0, 0, columns), until = clamp(c->in_w - x0, from, columns);
    const uint8_t *row[4], *pad[4] = {g->pad, g->pad, g->pad, g->pad};
    int64_t step[4] = {0};

    for (int64_t i = 0; i < 4; i++) {
        const int64_t iy = y0 + (q * 4 + i) * c->dilation[0];

        row[i] = g->pad;
        if (i >= rows || iy < 0 || iy >= c->in_h || from >= until) continue;
        row[i] = g->x + (iy * c->in_w + x0 + from) * c->in_pitch;
        step[i] = c->in_pitch;
    }
    to = make_some(pad, still, from, g->n, to, rows);
    to = make_some(row, step, until - from, g->n, to, rows);
    make_some(pad, still, columns - until, g->n, to, rows);
}

/* --- pixels of one vector of channels --- */

/* Their input and their weights. */
typedef struct taps {
    const uint8_t *x;
    int64_t step, column, quad; /* from pixel to pixel, tap to tap across, quad to quad down */
    const int8_t *w;
    int64_t kw, kq;
    const int32_t *base;
} taps;

/* KW x KQ quads are constants where this is called; next: the pixel stride equals the tap
 * stride. */
INLINE vi sum_of(const taps *t, const quads *w, const uint8_t *x, int j, vi base, const int KW,
                 const int KQ, bool next)
{
    vi acc = base;

    UNROLL for (int k = 0; k < KW; k++) UNROLL for (int q = 0; q < KQ; q++)
    {
        const int64_t at = next ? (j + k) * t->column : j * t->step + k * t->column;

        acc = dot(acc, load_quads(x + at + q * t->quad), w[k * KQ + q]);
    }
    return acc;
}

INLINE void accumulate(const taps *t, int32_t *sum, int64_t n, const int KW, const int KQ)
{
    const vi base = load_vi(t->base);
    quads w[MAX_HOLD];

    UNROLL for (int i = 0; i < KW * KQ; i++) w[i] =
        load_weights(t->w + (int64_t)i * VW * QUAD_BYTES);
    for (int64_t i = 0; i < n; i++)
        store_vi(sum + i * VW, sum_of(t, w, t->x + i * t->step, 0, base, KW, KQ, false));
}

static void accumulate_any(const taps *t, int32_t *sum, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *x = t->x + i * t->step;
        const int8_t *w = t->w;
        vi acc = load_vi(t->base);

        for (int64_t k = 0; k < t->kw; k++)
            for (int64_t q = 0; q < t->kq; q++, w += VW * QUAD_BYTES)
                acc = dot(acc, load_quads(x + k * t->column + q * t->quad), load_weights(w));
        store_vi(sum + i * VW, acc);
    }
}

#if defined(ROWS_TOGETHER)
/* The short forms of the epilogue, from registers; n is at least 4. */
INLINE void straight(const form f, const taps *t, const channel_params *k, uint8_t *y,
                     int64_t pitch, int64_t n, const int KW, const int KQ, bool next)
{
    const row_limits limits = pack_limits(k);
    const vi base = load_vi(t->base);
    quads w[MAX_HOLD];

    UNROLL for (int i = 0; i < KW * KQ; i++) w[i] =
        load_weights(t->w + (int64_t)i * VW * QUAD_BYTES);
    for (int64_t i = 0; i < n; i += ROWS_TOGETHER) {
        /* the last four may repeat some pixels */
        const int64_t at = OCT_MIN(i, n - ROWS_TOGETHER);
        vf v[ROWS_TOGETHER];

        UNROLL for (int j = 0; j < ROWS_TOGETHER; j++) v[j] =
            value_of(f, k, sum_of(t, w, t->x + at * t->step, j, base, KW, KQ, next), splat(0));
        store_rows(&limits, v, y + at * pitch, pitch);
    }
}

/* Returns false for other forms and sizes, which go through memory. */
static bool go_straight(const taps *t, const oct_int8_epilogue *f, int64_t first, int64_t lanes,
                        uint8_t *y, int64_t pitch, int64_t n)
{
    const bool next = t->step == t->column;
    const channel_params k = load_params(f, first);

    if (!f->no_overflow || f->way == OCT_INT8_GENERAL || lanes < VW || n < ROWS_TOGETHER)
        return false;
#define GO_AS(way_, KW, KQ, next_)                                                                 \
    case way_:                                                                                     \
        straight((form){.way = way_}, t, &k, y, pitch, n, KW, KQ, next_);                          \
        break
#define GO(KW, KQ, next_)                                                                          \
    switch (f->way) {                                                                              \
        GO_AS(OCT_INT8_DIRECT, KW, KQ, next_);                                                     \
        GO_AS(OCT_INT8_LEAKY, KW, KQ, next_);                                                      \
        GO_AS(OCT_INT8_SWISH, KW, KQ, next_);                                                      \
        GO_AS(OCT_INT8_HARD_SWISH, KW, KQ, next_);                                                 \
    default:                                                                                       \
        break;                                                                                     \
    }
    if (t->kw == 3 && t->kq == 1 && next) {
        GO(3, 1, true);
    } else if (t->kw == 3 && t->kq == 1) {
        GO(3, 1, false);
    } else if (t->kw == 5 && t->kq == 2 && next) {
        GO(5, 2, true);
    } else if (t->kw == 5 && t->kq == 2) {
        GO(5, 2, false);
    } else {
        return false;
    }
#undef GO
#undef GO_AS
    return true;
}
#endif

/* n pixels of a group; `y` and `residual` are those of its first channel. */
static void make_pixels(const group *g, const oct_int8_epilogue *f, const taps *all,
                        const int32_t *base, const uint8_t *residual, uint8_t *y, int64_t n)
{
    const int64_t y_size = f->out == OCT_INT8_U8 ? 1 : 4;
    const int64_t r_size = f->residual == OCT_INT8_U8 ? 1 : 4;
    int32_t sum[CHUNK * VW] __attribute__((aligned(64)));

    for (int64_t v = 0; v < g->n; v += VW) {
        const int64_t first = g->first + v, lanes = OCT_MIN(g->n - v, VW);
        taps t = *all;

        t.x += v * 4;
        t.w += first * t.kw * t.kq * QUAD_BYTES;
        t.base = base + first;
#if defined(ROWS_TOGETHER)
        if (go_straight(&t, f, first, lanes, y + v, g->c->out_pitch, n)) continue;
#endif
        if (t.kw == 3 && t.kq == 1)
            accumulate(&t, sum, n, 3, 1);
        else if (t.kw == 5 && t.kq == 2)
            accumulate(&t, sum, n, 5, 2);
        else
            accumulate_any(&t, sum, n);
        INT8_SYM(epilogue)
        (f, &(oct_int8_rows){sum, VW, first, lanes, n, y + v * y_size, g->c->out_pitch,
                             residual ? residual + v * r_size : NULL, g->c->residual_pitch});
    }
}

void INT8_SYM(depthwise)(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                         int64_t y)
{
    const int64_t y_size = f->out == OCT_INT8_U8 ? 1 : 4;
    const int64_t r_size = f->residual == OCT_INT8_U8 ? 1 : 4;
    const int64_t y0 = y * c->stride[0] - c->pad[0], kq = oct_ceil_div(c->kernel[0], 4);
    const uint8_t *pad = io->pad_pixel ? io->pad_pixel : c->pad_pixel;
    taps t = {.x = io->scratch,
              .step = c->stride[1] * 4 * BW,
              .column = c->dilation[1] * 4 * BW,
              .w = c->dw_w,
              .kw = c->kernel[1],
              .kq = kq};

    for (int64_t first = 0; first < c->c_out; first += BW) {
        const group g = {c, io->x + first, pad + first, first, OCT_MIN(c->c_out - first, BW)};

        for (int64_t x = 0, n; x < c->out_w; x += n) {
            const int64_t at = y * c->out_w + x, rest = c->out_w - x;
            const uint8_t *residual = io->residual;
            int64_t columns;

            n = oct_ceil_div(rest, oct_ceil_div(rest, c->chunk));
            columns = (n - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;
            t.quad = columns * 4 * BW;
            for (int64_t q = 0; q < kq; q++)
                make_quad(&g, y0, x * c->stride[1] - c->pad[1], columns, q,
                          (uint8_t *)io->scratch + q * t.quad);
            make_pixels(&g, f, &t, io->base ? io->base : c->base,
                        residual ? residual + (at * c->residual_pitch + first) * r_size : NULL,
                        (uint8_t *)io->y + (at * c->out_pitch + first) * y_size, n);
        }
    }
}
