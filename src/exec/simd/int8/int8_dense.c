/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dense convolution of codes: the accumulators of a tile of pixels times a block of output channels
 * stay in registers while all taps and input channels are added, four at a time. Compiled once for
 * each instruction set.
 */
#include "exec/simd/int8/int8_epilogue.h"

#define MAX_VEC    3
#define MAX_PIXELS 14

/* What a tile reads: quads of codes, all inside memory. */
typedef struct source {
    const uint8_t *x;    /* first tap of the first pixel */
    const int32_t *quad; /* offset of each quad of taps from there */
    int64_t n_quads;
    int64_t pixel; /* from pixel to pixel */
} source;

/* What a tile writes: accumulators, or codes if the epilogue has a short form. */
typedef struct target {
    int32_t *sum;
    const oct_int8_epilogue *f;
    int64_t first; /* channel */
    uint8_t *y;
    int64_t pitch;
} target;

#if defined(ROWS_TOGETHER)
/* Codes from registers: storing and loading the accumulators would cost as much as a short
 * product. */
INLINE void tile_codes(oct_int8_way way, const target *to, vi acc[][MAX_VEC], const int MR,
                       const int NV)
{
    const form w = {.way = way};

    UNROLL for (int v = 0; v < NV; v++)
    {
        const channel_params k = load_params(to->f, to->first + v * VW);
        const row_limits limits = pack_limits(&k);

        UNROLL for (int i = 0; i < MR; i += ROWS_TOGETHER)
        {
            const int at = i < MR - ROWS_TOGETHER ? i : MR - ROWS_TOGETHER;
            vf x[ROWS_TOGETHER];

            UNROLL for (int j = 0; j < ROWS_TOGETHER; j++) x[j] =
                value_of(w, &k, acc[at + j][v], splat(0));
            store_form_rows(w, &limits, x, to->y + at * to->pitch + v * VW, to->pitch);
        }
    }
}
#else
INLINE void tile_codes(oct_int8_way way, const target *to, vi acc[][MAX_VEC], const int MR,
                       const int NV)
{
    (void)way, (void)to, (void)acc, (void)MR, (void)NV; /* not worth it with fewer registers */
}
#endif

/* MR pixels, NV vectors; MR, NV and the form are constants where this is called. */
INLINE void tile(oct_int8_way way, const source *s, const int8_t *w, const int32_t *base,
                 const target *to, const int MR, const int NV)
{
    vi acc[MAX_PIXELS][MAX_VEC];
    const int64_t p = s->pixel;

    UNROLL for (int v = 0; v < NV; v++)
    {
        const vi b = load_vi(base + v * VW);

        UNROLL for (int i = 0; i < MR; i++) acc[i][v] = b;
    }
    for (int64_t q = 0; q < s->n_quads; q++, w += (int64_t)NV * VW * QUAD_BYTES) {
        const uint8_t *const x = s->x + s->quad[q];
        /* one address for three pixels: so many fit in registers */
        const uint8_t *const at[5] = {x, x + 3 * p, x + 6 * p, x + 9 * p, x + 12 * p};
        quads wv[MAX_VEC];

        UNROLL for (int v = 0; v < NV; v++) wv[v] = load_weights(w + (int64_t)v * VW * QUAD_BYTES);
        UNROLL for (int i = 0; i < MR; i++)
        {
            const quads xv = splat_quad(at[i / 3] + i % 3 * p);

            UNROLL for (int v = 0; v < NV; v++) acc[i][v] = dot(acc[i][v], xv, wv[v]);
        }
    }
    if (way != OCT_INT8_GENERAL) {
        tile_codes(way, to, acc, MR, NV);
        return;
    }
    UNROLL for (int i = 0; i < MR; i++) UNROLL for (int v = 0; v < NV; v++)
        store_vi(to->sum + (i * NV + v) * VW, acc[i][v]);
}

typedef void (*tile_fn)(const source *s, const int8_t *w, const int32_t *base, const target *to);

#define TILE_AS(name, way, MR, NV)                                                                 \
    static void name(const source *s, const int8_t *w, const int32_t *base, const target *to)      \
    {                                                                                              \
        tile(way, s, w, base, to, MR, NV);                                                         \
    }
#define TILE(MR, NV) TILE_AS(tile_##MR##_##NV, OCT_INT8_GENERAL, MR, NV)

/* clang-format off */
TILE(1, 1) TILE(2, 1) TILE(3, 1) TILE(4, 1) TILE(5, 1) TILE(6, 1)
TILE(1, 2) TILE(2, 2) TILE(3, 2) TILE(4, 2)
#if VW == 16 || QUAD_BYTES == 4
TILE(7, 1) TILE(8, 1)
TILE(5, 2) TILE(6, 2)
TILE(1, 3) TILE(2, 3) TILE(3, 3) TILE(4, 3)
#endif
#if VW == 16
TILE(9, 1) TILE(10, 1) TILE(11, 1) TILE(12, 1) TILE(13, 1) TILE(14, 1)
TILE(7, 2) TILE(8, 2) TILE(9, 2) TILE(10, 2) TILE(11, 2) TILE(12, 2)
TILE(5, 3) TILE(6, 3) TILE(7, 3) TILE(8, 3)
#endif

static const tile_fn tiles[MAX_VEC][MAX_PIXELS] = {
#if VW == 16
    {tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1, tile_7_1, tile_8_1, tile_9_1,
     tile_10_1, tile_11_1, tile_12_1, tile_13_1, tile_14_1},
    {tile_1_2, tile_2_2, tile_3_2, tile_4_2, tile_5_2, tile_6_2, tile_7_2, tile_8_2, tile_9_2,
     tile_10_2, tile_11_2, tile_12_2},
    {tile_1_3, tile_2_3, tile_3_3, tile_4_3, tile_5_3, tile_6_3, tile_7_3, tile_8_3},
#elif QUAD_BYTES == 4
    {tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1, tile_7_1, tile_8_1},
    {tile_1_2, tile_2_2, tile_3_2, tile_4_2, tile_5_2, tile_6_2},
    {tile_1_3, tile_2_3, tile_3_3, tile_4_3},
#else
    {tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1},
    {tile_1_2, tile_2_2, tile_3_2, tile_4_2},
#endif
};
/* clang-format on */

#if defined(ROWS_TOGETHER)
/* The usual sizes and forms write codes directly. */
/* clang-format off */
#define CODES(MR, NV)                                                                              \
    TILE_AS(direct_##MR##_##NV, OCT_INT8_DIRECT, MR, NV)                                           \
    TILE_AS(swish_##MR##_##NV, OCT_INT8_SWISH, MR, NV)
CODES(12, 1) CODES(13, 1) CODES(14, 1)
CODES(8, 2) CODES(9, 2) CODES(10, 2) CODES(11, 2) CODES(12, 2)

#define ENTRY(name, MR, NV) [NV - 1][MR - 1] = name##_##MR##_##NV
#define TABLE(name)                                                                                \
    {ENTRY(name, 12, 1), ENTRY(name, 13, 1), ENTRY(name, 14, 1), ENTRY(name, 8, 2),                \
     ENTRY(name, 9, 2), ENTRY(name, 10, 2), ENTRY(name, 11, 2), ENTRY(name, 12, 2)}
static const tile_fn direct_tiles[MAX_VEC][MAX_PIXELS] = TABLE(direct);
static const tile_fn swish_tiles[MAX_VEC][MAX_PIXELS] = TABLE(swish);
/* clang-format on */

static tile_fn straight_tile(const oct_int8_epilogue *f, const oct_int8_block *b, int64_t pixels)
{
    if (!f->no_overflow || b->n != (int64_t)b->n_vec * VW) return NULL;
    if (f->way == OCT_INT8_DIRECT) return direct_tiles[b->n_vec - 1][pixels - 1];
    return f->way == OCT_INT8_SWISH ? swish_tiles[b->n_vec - 1][pixels - 1] : NULL;
}
#else
static tile_fn straight_tile(const oct_int8_epilogue *f, const oct_int8_block *b, int64_t pixels)
{
    (void)f, (void)b, (void)pixels;
    return NULL;
}
#endif

/* pixels of the largest tile for each number of vectors */
#if VW == 16
static const uint32_t max_pixels[MAX_VEC] = {14, 12, 8};
#elif QUAD_BYTES == 4
static const uint32_t max_pixels[MAX_VEC] = {8, 6, 4};
#else
static const uint32_t max_pixels[MAX_VEC] = {6, 4, 0};
#endif

/* The inputs of one output pixel: one image, and the padding pixel. */
typedef struct view {
    const oct_int8_conv *c;
    const uint8_t *x, *end, *pad;
} view;

/* Copies the codes of `n` pixels of row iy from ix on, `step` apart, one after the other. */
static uint8_t *copy_pixels(const view *in, int64_t iy, int64_t ix, int64_t n, int64_t step,
                            uint8_t *to)
{
    const oct_int8_conv *c = in->c;
    const bool outside = iy < 0 || iy >= c->in_h;
    const uint8_t *row = in->x + iy * c->in_w * c->in_pitch;

    for (int64_t i = 0, k; i < n; i += k, ix += k * step) {
        k = 1;
        if (outside || ix < 0 || ix >= c->in_w) {
            memcpy(to, in->pad, (size_t)c->c_in);
            to += c->c_in;
        } else {
            if (step == 1 && c->in_pitch == c->c_in) k = OCT_MIN(n - i, c->in_w - ix);
            to = copy_run(to, row + ix * c->in_pitch, k * c->c_in, in->end);
        }
    }
    return to;
}

/* im2col: all taps of each pixel side by side, so that a matrix product is left. */
static void gather(const view *in, int64_t y0, int64_t x0, int64_t n, uint8_t *to, source *s)
{
    const oct_int8_conv *c = in->c;

    for (int64_t i = 0; i < n; i++) {
        uint8_t *p = to + i * c->k_pad;

        for (int64_t ky = 0; ky < c->kernel[0]; ky++)
            p = copy_pixels(in, y0 + ky * c->dilation[0], x0 + i * c->stride[1], c->kernel[1],
                            c->dilation[1], p);
        while (p < to + (i + 1) * c->k_pad)
            *p++ = 0;
    }
    s->x = to;
    s->quad = c->quads_patch;
    s->pixel = c->k_pad;
}

/* Points at the input of n output pixels from (y, x) on; copies it where there is padding or an
 * odd size. */
static void find_source(const view *in, int64_t y, int64_t x, int64_t n, uint8_t *patch, source *s)
{
    const oct_int8_conv *c = in->c;
    const int64_t y0 = y * c->stride[0] - c->pad[0], x0 = x * c->stride[1] - c->pad[1];
    const int64_t columns = (n - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;
    const int64_t down = (c->kernel[0] - 1) * c->dilation[0] + 1;
    /* whole quads are read: up to three codes residual than there are taps, none after the end of
     * the image */
    const int64_t end = ((y0 + down - 1) * c->in_w + x0 + columns - 1) * c->in_pitch +
                        c->k_pad / c->kernel[0] - (c->kernel[1] - 1) * c->c_in;

    s->n_quads = c->k_pad / 4;
    if (c->gather) {
        gather(in, y0, x0, n, patch, s);
        return;
    }
    if (x0 < 0 || x0 + columns > c->in_w || y0 < 0 || y0 + down > c->in_h ||
        end > in->end - in->x) {
        for (int64_t ky = 0; ky < c->kernel[0]; ky++)
            copy_pixels(in, y0 + ky * c->dilation[0], x0, columns, 1, patch + ky * c->patch_row);
        s->x = patch;
        s->quad = c->quads_patch;
        s->pixel = c->stride[1] * c->c_in;
    } else {
        s->x = in->x + (y0 * c->in_w + x0) * c->in_pitch;
        s->quad = c->quads;
        s->pixel = c->stride[1] * c->in_pitch;
    }
}

/* n / size of a few pixels, rounded up: short divisions are the fast ones. */
static uint32_t parts(int64_t n, uint32_t size)
{
    return ((uint32_t)n + size - 1) / size;
}

/* Prefetches results that will be written: floats are many, and rarely in the cache. */
INLINE void fetch(const uint8_t *y, int64_t pitch, int64_t n, int64_t bytes)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t at = 0; at < bytes; at += 64)
            __builtin_prefetch(y + i * pitch + at, 1);
}

/* What all blocks of a row share. */
typedef struct layer {
    const oct_int8_conv *c;
    const oct_int8_epilogue *f;
    const int32_t *base;
    int64_t y_pitch, r_pitch; /* bytes from pixel to pixel, of the result and the residual */
} layer;

/* One block of channels of n pixels; `out` and `residual` are those of its first channel. */
static void run_block(const layer *l, const oct_int8_block *b, const source *s, int64_t n,
                      uint8_t *out, const uint8_t *residual)
{
    const oct_int8_conv *c = l->c;
    const oct_int8_epilogue *f = l->f;
    int32_t sum[MAX_PIXELS * MAX_VEC * VW] __attribute__((aligned(64)));
    const int64_t width = (int64_t)b->n_vec * VW;
    const int64_t bytes = f->out == OCT_INT8_F32 ? b->n * 4 : 0;
    uint32_t left = parts(n, max_pixels[b->n_vec - 1]);

    for (int64_t i = 0; i < n;) {
        /* as even as possible, so that no tile is left with one pixel */
        const int64_t k = parts(n - i, left--);
        const tile_fn straight = straight_tile(f, b, k);
        const target to = {sum, f, b->first, out + i * l->y_pitch, c->out_pitch};
        source part = *s;

        part.x += i * s->pixel;
        if (!straight) fetch(to.y, l->y_pitch, k, bytes);
        (straight ? straight : tiles[b->n_vec - 1][k - 1])(&part, b->w, l->base + b->first, &to);
        i += k;
        if (straight) continue;
        INT8_SYM(epilogue)
        (f, &(oct_int8_rows){sum, width, b->first, b->n, k, to.y, c->out_pitch,
                             residual ? residual + (i - k) * l->r_pitch : NULL, c->residual_pitch});
    }
}

/*
 * Number of pixels from x on whose input is prepared together: whole tiles, as even as possible.
 * Those that touch the padding are copied, so their number is kept small.
 */
static int64_t chunk_at(const oct_int8_conv *c, int64_t x, int64_t x1, uint32_t step)
{
    const int64_t all = oct_ceil_div(x1 - x, step);
    int64_t together = OCT_MIN(OCT_MAX(c->chunk / step, 1), all);

    if (x * c->stride[1] < c->pad[1]) together = 1;
    return OCT_MIN(oct_ceil_div((x1 - x) * together, all), c->chunk);
}

void INT8_SYM(dense)(const oct_int8_conv *c, const oct_int8_epilogue *f, const oct_int8_io *io,
                     int64_t y, int64_t x0, int64_t x1, int32_t b0, int32_t b1)
{
    const int64_t y_size = f->out == OCT_INT8_U8 ? 1 : 4,
                  r_size = f->residual == OCT_INT8_U8 ? 1 : 4;
    const layer l = {c, f, io->base ? io->base : c->base, c->out_pitch * y_size,
                     c->residual_pitch * r_size};
    const uint32_t step = max_pixels[c->blocks[b0].n_vec - 1];
    const view in = {c, io->x, io->x + ((c->in_h * c->in_w - 1) * c->in_pitch + c->c_in),
                     io->pad_pixel ? io->pad_pixel : c->pad_pixel};

    for (int64_t x = x0; x < x1;) {
        const int64_t n = chunk_at(c, x, x1, step), at = y * c->out_w + x;
        source s;

        find_source(&in, y, x, n, io->scratch, &s);
        for (int32_t b = b0; b < b1; b++) {
            const int64_t first = c->blocks[b].first;

            run_block(&l, &c->blocks[b], &s, n, (uint8_t *)io->y + at * l.y_pitch + first * y_size,
                      io->residual ? (const uint8_t *)io->residual + at * l.r_pitch + first * r_size
                                   : NULL);
        }
        x += n;
    }
}
