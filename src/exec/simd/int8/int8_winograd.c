/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dense 3x3 convolution of codes by Winograd's method: tiles of 4x4 results. Compiled once for
 * each instruction set; all of it is exact.
 */
#include "exec/simd/int8/int8_winograd.h"
#include "exec/simd/int8/int8_epilogue.h"

#define POINTS  OCT_INT8_POINTS
#define TILES   OCT_INT8_MAX_TILES
#define MAX_VEC 3
#define AHEAD   16384      /* bytes of weights that are prefetched: there are many */
#define INV_9   954437177u /* modulo 2^32 */

/* One image of a run, and the scratch memory of this thread. */
typedef struct work {
    const oct_int8_conv *c;
    const oct_int8_epilogue *f;
    const uint8_t *residual;
    uint8_t *y;
    const int32_t *base;
    bool base_fits;
    int64_t y_size, r_size; /* of an element */
    int64_t row;            /* 16-bit elements of a tile's point */
    uint16_t *v;            /* [POINTS][TILES][row] */
    int32_t *m;             /* [TILES][vectors of a block][POINTS][VW] */
} work;

/* --- products --- */

INLINE vi dot_pairs(vi sum, vi x, vi w)
{
#if VW == 16 && QUAD_BYTES == 4
    return (vi)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
#elif VW == 8 && QUAD_BYTES == 4
    return (vi)_mm256_dpwssd_avx_epi32((__m256i)sum, (__m256i)x, (__m256i)w);
#else
    return (vi)((vu)sum + (vu)multiply_pairs(x, w));
#endif
}

/* m[MR][NV vectors] = x[MR][pairs] w[pairs][NV vectors] of one point. */
INLINE void product(const uint16_t *x, int64_t row, int64_t pairs, const int8_t *w, int32_t *m,
                    const int MR, const int NV)
{
    vi acc[TILES][MAX_VEC];

    UNROLL for (int i = 0; i < MR; i++) UNROLL for (int v = 0; v < NV; v++) acc[i][v] = (vi){0};
    for (int64_t k = 0; k < pairs; k++, x += 2, w += (int64_t)NV * BW) {
        /* one address for three tiles: so many fit in registers */
        const uint16_t *const at[5] = {x, x + 3 * row, x + 6 * row, x + 9 * row, x + 12 * row};
        vi wv[MAX_VEC];

        UNROLL for (int v = 0; v < NV; v++)
        {
            memcpy(&wv[v], w + v * BW, BW);
            __builtin_prefetch(w + v * BW + AHEAD, 0, 2); /* the first cache waits for so many */
        }
        UNROLL for (int i = 0; i < MR; i++)
        {
            int32_t pair;
            vi xv;

            memcpy(&pair, at[i / 3] + i % 3 * row, sizeof(pair));
            xv = splat_vi(pair);
            UNROLL for (int v = 0; v < NV; v++) acc[i][v] = dot_pairs(acc[i][v], xv, wv[v]);
        }
    }
    UNROLL for (int i = 0; i < MR; i++) UNROLL for (int v = 0; v < NV; v++)
        store_vi(m + ((int64_t)i * NV + v) * POINTS * VW, acc[i][v]);
}

typedef void (*product_fn)(const uint16_t *x, int64_t row, int64_t pairs, const int8_t *w,
                           int32_t *m);

#define PRODUCT(MR, NV)                                                                            \
    static void product_##MR##_##NV(const uint16_t *x, int64_t row, int64_t pairs,                 \
                                    const int8_t *w, int32_t *m)                                   \
    {                                                                                              \
        product(x, row, pairs, w, m, MR, NV);                                                      \
    }

/* clang-format off */
PRODUCT(1, 1) PRODUCT(2, 1) PRODUCT(3, 1) PRODUCT(4, 1) PRODUCT(5, 1) PRODUCT(6, 1)
PRODUCT(1, 2) PRODUCT(2, 2) PRODUCT(3, 2) PRODUCT(4, 2) PRODUCT(5, 2)
#if VW == 16 || QUAD_BYTES == 4
PRODUCT(1, 3) PRODUCT(2, 3) PRODUCT(3, 3) PRODUCT(4, 3)
#endif
#if VW == 16
PRODUCT(6, 2) PRODUCT(7, 2) PRODUCT(8, 2) PRODUCT(9, 2) PRODUCT(10, 2) PRODUCT(11, 2)
PRODUCT(12, 2) PRODUCT(13, 2)
PRODUCT(5, 3) PRODUCT(6, 3) PRODUCT(7, 3) PRODUCT(8, 3) PRODUCT(9, 3)
#endif

static const product_fn products[MAX_VEC][TILES] = {
    {product_1_1, product_2_1, product_3_1, product_4_1, product_5_1, product_6_1},
#if VW == 16
    {product_1_2, product_2_2, product_3_2, product_4_2, product_5_2, product_6_2, product_7_2,
     product_8_2, product_9_2, product_10_2, product_11_2, product_12_2, product_13_2},
    {product_1_3, product_2_3, product_3_3, product_4_3, product_5_3, product_6_3, product_7_3,
     product_8_3, product_9_3},
#else
    {product_1_2, product_2_2, product_3_2, product_4_2, product_5_2},
#if QUAD_BYTES == 4
    {product_1_3, product_2_3, product_3_3, product_4_3},
#endif
#endif
};
/* clang-format on */

/* tiles of the largest product for each number of vectors */
#if VW == 16
static const int max_tiles[MAX_VEC] = {6, 13, 9};
#else
static const int max_tiles[MAX_VEC] = {6, 5, 4};
#endif

/* All points of n tiles, one block of channels. */
static void multiply(const work *w, const oct_int8_block *b, int64_t n)
{
    const int64_t pairs = oct_ceil_div(w->c->c_in, 2), size = pairs * b->n_vec * BW;

    for (int64_t p = 0; p < POINTS; p++)
        for (int64_t i = 0, k; i < n; i += k) {
            k = oct_ceil_div(n - i, oct_ceil_div(n - i, max_tiles[b->n_vec - 1]));
            products[b->n_vec - 1][k - 1](w->v + (p * TILES + i) * w->row, w->row, pairs,
                                          b->w + p * size, w->m + (i * b->n_vec * POINTS + p) * VW);
        }
}

/* --- points to accumulators --- */

/*
 * Six points of a line to four accumulators, times 24, 12, 6 and 6: the first and the third, or the
 * others.
 */
INLINE void from_points(const vu m[6], const int odd, vu y[2])
{
    const vu s = m[1] + m[2], t = m[3] + m[4], d = m[2] - m[1], e = m[3] - m[4];

    y[0] = odd ? (d + d) + e : (m[0] + t) - (s << 2);
    y[1] = odd ? (d + m[5]) + (e + e) : t - s;
}

/*
 * Two lines of accumulators of a vector of channels, times 64: the first and the third, or the
 * others. All four would not fit in registers. What is added to the second point of the second line
 * adds a 36th of itself to each.
 */
INLINE void tile_accumulators(const int32_t *m, vu more, const int odd, vi sum[2][4])
{
    static const int shift[4] = {3, 2, 1, 1};
    vu t[2][6];

    UNROLL for (int j = 0; j < 6; j++)
    {
        vu d[6], r[2];

        UNROLL for (int i = 0; i < 6; i++) d[i] = (vu)load_vi(m + (i * 6 + j) * VW);
        if (j == 1) d[1] += more;
        from_points(d, odd, r);
        UNROLL for (int i = 0; i < 2; i++) t[i][j] = r[i];
    }
    UNROLL for (int i = 0; i < 2; i++) UNROLL for (int k = 0; k < 2; k++)
    {
        vu r[2];

        from_points(t[i], k, r);
        UNROLL for (int j = 0; j < 2; j++) sum[i][2 * j + k] =
            (vi)(r[j] * (INV_9 << (6 - shift[2 * i + odd] - shift[2 * j + k])));
    }
}

/* First pixel of a tile of results; the last row or column may have fewer than 4. */
typedef struct place {
    int64_t y, x, rows, columns;
} place;

static place place_of(const oct_int8_conv *c, int64_t tile)
{
    const int64_t y = tile / c->tiles[1] * 4, x = tile % c->tiles[1] * 4;

    return (place){y, x, OCT_MIN(c->out_h - y, 4), OCT_MIN(c->out_w - x, 4)};
}

/* Any form, any size: through a buffer. */
static void write_tile(const work *w, const oct_int8_block *b, const int32_t *m, const place *at)
{
    const oct_int8_conv *c = w->c;
    const int64_t width = (int64_t)b->n_vec * VW;
    int32_t buffer[16 * MAX_VEC * VW] __attribute__((aligned(64)));

    for (int64_t v = 0; v < b->n_vec; v++) {
        const vu base = (vu)load_vi(w->base + b->first + v * VW);

        UNROLL for (int odd = 0; odd < 2; odd++)
        {
            vi sum[2][4];

            tile_accumulators(m + v * POINTS * VW, (vu){0}, odd, sum);
            UNROLL for (int i = 0; i < 8; i++)
                store_vi(buffer + ((2 * (i / 4) + odd) * 4 + i % 4) * width + v * VW,
                         (vi)((vu)(sum[i / 4][i % 4] >> 6) + base));
        }
    }
    for (int64_t i = 0; i < at->rows; i++) {
        const int64_t pixel = (at->y + i) * c->out_w + at->x;

        INT8_SYM(epilogue)
        (w->f,
         &(oct_int8_rows){
             buffer + i * 4 * width, width, b->first, b->n, at->columns,
             w->y + (pixel * c->out_pitch + b->first) * w->y_size, c->out_pitch,
             w->residual ? w->residual + (pixel * c->residual_pitch + b->first) * w->r_size : NULL,
             c->residual_pitch});
    }
}

#if defined(ROWS_TOGETHER)
/* Parameters for accumulators that are 64 times as large; a power of two changes no result. */
INLINE channel_params of_larger_accumulators(channel_params k)
{
    k.scale *= 1.0f / 64;
    k.slope *= 1.0f / 64;
    k.limit *= 64;
    k.swish.one *= 64;
    k.swish.linear *= 64;
    k.swish.square *= 64;
    return k;
}

/* One vector of channels of a whole tile to codes, from registers. */
INLINE void write_codes(const form how, const channel_params *k, const row_limits *limits, vu base,
                        const int32_t *m, const uint8_t *r, const int64_t r_pitch[2], uint8_t *y,
                        const int64_t y_pitch[2])
{
    UNROLL for (int odd = 0; odd < 2; odd++)
    {
        vi sum[2][4];

        tile_accumulators(m, base, odd, sum);
        UNROLL for (int i = 0; i < 2; i++)
        {
            const uint8_t *res = how.residual ? r + (2 * i + odd) * r_pitch[0] : NULL;
            vf x[4];

            UNROLL for (int j = 0; j < 4; j++) x[j] = value_of(
                how, k, sum[i][j], how.residual ? load_codes(res + j * r_pitch[1]) : splat(0));
            store_form_rows(how, limits, x, y + (2 * i + odd) * y_pitch[0], y_pitch[1]);
        }
    }
}

/* n whole tiles. */
INLINE void write_form(const form how, const work *w, const oct_int8_block *b, int64_t first,
                       int64_t n)
{
    const oct_int8_conv *c = w->c;
    const int64_t r_pitch[2] = {c->out_w * c->residual_pitch, c->residual_pitch};
    const int64_t y_pitch[2] = {c->out_w * c->out_pitch, c->out_pitch};

    for (int64_t v = 0; v < b->n_vec; v++) {
        const int64_t channel = b->first + v * VW;
        const channel_params k = of_larger_accumulators(load_params(w->f, channel));
        const row_limits limits = pack_limits(&k);
        const vu base = (vu)load_vi(w->base + channel) * 36;
        const int32_t *m = w->m + v * POINTS * VW;
        place at = place_of(c, first);

        for (int64_t t = 0; t < n; t++, m += b->n_vec * POINTS * VW) {
            const int64_t pixel = at.y * c->out_w + at.x;

            write_codes(how, &k, &limits, base, m,
                        how.residual ? w->residual + pixel * c->residual_pitch + channel : NULL,
                        r_pitch, w->y + pixel * c->out_pitch + channel, y_pitch);
            if ((at.x += 4) == c->out_w) {
                at.x = 0;
                at.y += 4;
            }
        }
    }
}

/* The usual forms; false: not one of them. */
static bool write_whole_tiles(const work *w, const oct_int8_block *b, int64_t first, int64_t n)
{
    const oct_int8_epilogue *f = w->f;

    if (w->c->out_h % 4 || w->c->out_w % 4 || b->n != (int64_t)b->n_vec * VW) return false;
    if (f->out != OCT_INT8_U8 || !w->base_fits) return false;
    if (f->way == OCT_INT8_SWISH && f->no_overflow)
        write_form((form){.way = OCT_INT8_SWISH}, w, b, first, n);
    else if (f->way == OCT_INT8_DIRECT && f->no_overflow)
        write_form((form){.way = OCT_INT8_DIRECT}, w, b, first, n);
    else if (f->way == OCT_INT8_GENERAL && f->residual == OCT_INT8_U8 && !f->act[1].kind &&
             f->act[0].kind == OCT_ACT_SWISH)
        write_form((form){OCT_INT8_GENERAL, OCT_ACT_SWISH, true, true}, w, b, first, n);
    else
        return false;
    return true;
}
#else
static bool write_whole_tiles(const work *w, const oct_int8_block *b, int64_t first, int64_t n)
{
    (void)w, (void)b, (void)first, (void)n;
    return false;
}
#endif

void INT8_SYM(winograd)(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                        int64_t first, int64_t n, int32_t b0, int32_t b1)
{
    const int64_t row = oct_int8_winograd_row(c->set, c) / 2;
    const work w = {.c = c,
                    .f = f,
                    .residual = io->residual,
                    .y = io->y,
                    .base = io->base ? io->base : c->base,
                    .base_fits = !io->base && c->base_fits,
                    .y_size = f->out == OCT_INT8_U8 ? 1 : 4,
                    .r_size = f->residual == OCT_INT8_U8 ? 1 : 4,
                    .row = row,
                    .v = io->scratch,
                    .m = (int32_t *)io->scratch + POINTS * TILES * row / 2};

    INT8_SYM(points)(c, io, first, n, w.v);
    for (int32_t k = b0; k < b1; k++) {
        const oct_int8_block *b = &c->blocks[k];

        multiply(&w, b, n);
        if (write_whole_tiles(&w, b, first, n)) continue;
        for (int64_t t = 0; t < n; t++) {
            const place at = place_of(c, first + t);

            write_tile(&w, b, w.m + t * b->n_vec * POINTS * VW, &at);
        }
    }
}
