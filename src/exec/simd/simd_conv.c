/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution in f32: the accumulators of a tile of pixels times a block of output channels stay in
 * registers while all taps and input channels are added. Compiled once for each instruction set.
 */
#include "exec/simd/simd_conv.h"

#include "exec/simd/simd_epilogue.h"
#include "exec/simd/tile.h"
#include "exec/simd/vec.h"

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* What a tile reads: [ky] rows of pixels with a step, all inside memory. */
typedef struct source {
    const float *x;      /* first tap of the first pixel */
    int64_t row, column; /* from tap to tap, down and across */
    int64_t pixel;       /* from pixel to pixel */
    int64_t ky0, ky1;    /* taps down that lie inside the image */
    int64_t kw, c_in;
} source;

/*
 * Products that are summed on their own before they join the sum so far. One long sum in float
 * would lose a bit with every fourfold number of products; normalization over the batch, which
 * takes off the mean, magnifies what is lost.
 */
#define MAX_RUN 64
#define MIN_RUN 24

/* MR pixels, NV vectors; MR and NV are constants where this is called. */
INLINE void tile(const source *s, const oct_conv_block *b, float *y, int64_t pitch, const int MR,
                 const int NV)
{
    vf sum[OCT_CONV_PIXELS][OCT_CONV_MAX_VEC], acc[OCT_CONV_PIXELS][OCT_CONV_MAX_VEC] = {0};
    const int64_t width = (int64_t)NV * VW;
    int64_t run = 0;

    UNROLL for (int v = 0; v < NV; v++)
    {
        const vf bias = load(b->bias + v * VW);

        UNROLL for (int i = 0; i < MR; i++) sum[i][v] = bias;
    }
    for (int64_t ky = s->ky0; ky < s->ky1; ky++)
        for (int64_t kx = 0; kx < s->kw; kx++) {
            const float *x = s->x + ky * s->row + kx * s->column;
            const float *w = b->w + (ky * s->kw + kx) * s->c_in * width;

            for (int64_t c = 0; c < s->c_in;) {
                const int64_t end = OCT_MIN(c + MAX_RUN, s->c_in);

                run += end - c;
                for (; c < end; c++, w += width) {
                    vf wv[OCT_CONV_MAX_VEC];

                    UNROLL for (int v = 0; v < NV; v++) wv[v] = load(w + v * VW);
                    UNROLL for (int i = 0; i < MR; i++)
                    {
                        const vf xv = splat(x[i * s->pixel + c]);

                        UNROLL for (int v = 0; v < NV; v++) acc[i][v] += xv * wv[v];
                    }
                }
                if (run < MIN_RUN && kx < s->kw - 1) continue;
                run = 0;
                UNROLL for (int i = 0; i < MR; i++) UNROLL for (int v = 0; v < NV; v++)
                {
                    sum[i][v] += acc[i][v];
                    acc[i][v] = (vf){0};
                }
            }
        }
    UNROLL for (int i = 0; i < MR; i++)
    {
        UNROLL for (int v = 0; v < NV - 1; v++) store(y + i * pitch + v * VW, sum[i][v]);
        const int64_t rest = b->n - (NV - 1) * VW;
        if (rest == VW)
            store(y + i * pitch + (NV - 1) * VW, sum[i][NV - 1]);
        else
            store_part(y + i * pitch + (NV - 1) * VW, sum[i][NV - 1], rest);
    }
}

typedef void (*tile_fn)(const source *s, const oct_conv_block *b, float *y, int64_t pitch);

#define TILE(MR, NV)                                                                               \
    static void tile_##MR##_##NV(const source *s, const oct_conv_block *b, float *y,               \
                                 int64_t pitch)                                                    \
    {                                                                                              \
        tile(s, b, y, pitch, MR, NV);                                                              \
    }

/* clang-format off */
TILE(1, 1) TILE(2, 1) TILE(3, 1) TILE(4, 1) TILE(5, 1) TILE(6, 1) TILE(7, 1) TILE(8, 1)
TILE(9, 1) TILE(10, 1) TILE(11, 1) TILE(12, 1)
TILE(1, 2) TILE(2, 2) TILE(3, 2) TILE(4, 2) TILE(5, 2) TILE(6, 2)
TILE(1, 3) TILE(2, 3) TILE(3, 3) TILE(4, 3)
#if VW == 16
TILE(13, 1) TILE(14, 1)
TILE(7, 2) TILE(8, 2) TILE(9, 2) TILE(10, 2) TILE(11, 2) TILE(12, 2)
TILE(5, 3) TILE(6, 3) TILE(7, 3) TILE(8, 3)
TILE(1, 4) TILE(2, 4) TILE(3, 4) TILE(4, 4) TILE(5, 4) TILE(6, 4)
#endif

static const tile_fn tiles[OCT_CONV_MAX_VEC][OCT_CONV_PIXELS] = {
    {tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1, tile_7_1, tile_8_1, tile_9_1,
     tile_10_1, tile_11_1, tile_12_1,
#if VW == 16
     tile_13_1, tile_14_1},
    {tile_1_2, tile_2_2, tile_3_2, tile_4_2, tile_5_2, tile_6_2, tile_7_2, tile_8_2, tile_9_2,
     tile_10_2, tile_11_2, tile_12_2},
    {tile_1_3, tile_2_3, tile_3_3, tile_4_3, tile_5_3, tile_6_3, tile_7_3, tile_8_3},
    {tile_1_4, tile_2_4, tile_3_4, tile_4_4, tile_5_4, tile_6_4},
#else
    },
    {tile_1_2, tile_2_2, tile_3_2, tile_4_2, tile_5_2, tile_6_2},
    {tile_1_3, tile_2_3, tile_3_3, tile_4_3},
#endif
};
/* clang-format on */

/* pixels of the largest tile for each number of vectors */
static const int max_pixels[OCT_CONV_MAX_VEC] = {VW == 16 ? OCT_CONV_PIXELS : 12, VW == 16 ? 12 : 6,
                                                 VW == 16 ? 8 : 4, VW == 16 ? 6 : 0};

static int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* Copies what the tile reads, with zeros for the padding. */
static void copy_patch(const oct_conv *c, const oct_conv_io *io, int64_t y0, int64_t x0,
                       int64_t columns, source *s)
{
    const int64_t from = clamp(x0, 0, c->in_w), to = clamp(x0 + columns, 0, c->in_w);
    const size_t size = (size_t)c->c_in * sizeof(float);

    for (int64_t ky = s->ky0; ky < s->ky1; ky++) {
        const float *row = io->x + (y0 + ky * c->dilation[0]) * c->in_w * c->in_pitch;
        float *p = io->patch + ky * columns * c->c_in;

        for (int64_t i = x0; i < x0 + columns; i++, p += c->c_in) {
            if (i < from || i >= to)
                memset(p, 0, size);
            else
                memcpy(p, row + i * c->in_pitch, size);
        }
    }
    s->x = io->patch;
    s->row = columns * c->c_in;
    s->column = c->dilation[1] * c->c_in;
    s->pixel = c->stride[1] * c->c_in;
}

static void find_source(const oct_conv *c, const oct_conv_io *io, int64_t y, int64_t x, int64_t n,
                        source *s)
{
    const int64_t y0 = y * c->stride[0] - c->pad[0], x0 = x * c->stride[1] - c->pad[1];
    const int64_t columns = (n - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;

    s->kw = c->kernel[1];
    s->c_in = c->c_in;
    s->ky0 = clamp(oct_ceil_div(OCT_MAX(-y0, 0), c->dilation[0]), 0, c->kernel[0]);
    s->ky1 = clamp(oct_ceil_div(OCT_MAX(c->in_h - y0, 0), c->dilation[0]), s->ky0, c->kernel[0]);
    if (x0 < 0 || x0 + columns > c->in_w) {
        copy_patch(c, io, y0, x0, columns, s);
    } else {
        s->row = c->dilation[0] * c->in_w * c->in_pitch;
        s->column = c->dilation[1] * c->in_pitch;
        s->pixel = c->stride[1] * c->in_pitch;
        s->x = io->x + (y0 * c->in_w + x0) * c->in_pitch;
    }
    /* Contiguous taps across are one long tap. */
    if (s->column == s->c_in) {
        s->c_in *= s->kw;
        s->kw = 1;
    }
}

static void dense(const oct_conv *c, const oct_conv_io *io, int64_t y, int64_t x0, int64_t x1,
                  int32_t b0, int32_t b1)
{
    int64_t most = 1;

    for (int32_t b = b0; b < b1; b++)
        most = OCT_MAX(most, max_pixels[c->blocks[b].n_vec - 1]);
    for (int64_t x = x0; x < x1;) {
        /* as even as possible, so that no tile is left with one pixel */
        const int64_t n = oct_ceil_div(x1 - x, oct_ceil_div(x1 - x, most));
        source s;

        find_source(c, io, y, x, n, &s);
        for (int32_t b = b0; b < b1; b++) {
            const oct_conv_block *block = &c->blocks[b];
            const int64_t at = y * c->out_w + x, step = max_pixels[block->n_vec - 1];
            float *out = io->y + at * c->out_pitch + block->first;

            for (int64_t i = 0; i < n;) {
                const int64_t k = oct_ceil_div(n - i, oct_ceil_div(n - i, step));
                source part = s;

                part.x += i * s.pixel;
                tiles[block->n_vec - 1][k - 1](&part, block, out + i * c->out_pitch, c->out_pitch);
                i += k;
            }
            apply_epilogue(c->act, c->residual_scale,
                           io->residual ? io->residual + at * c->residual_pitch + block->first
                                        : NULL,
                           c->residual_pitch, out, c->out_pitch, n, block->n);
        }
        x += n;
    }
}

void OCT_SIMD_PRODUCT(const float *x, int64_t k, int64_t n, const float *w, int n_vec, float *y)
{
    static const float zeros[OCT_CONV_MAX_VEC * VW];
    const oct_conv_block b = {.n_vec = n_vec, .n = (int64_t)n_vec * VW, .w = w, .bias = zeros};
    const int64_t most = max_pixels[n_vec - 1];

    for (int64_t i = 0; i < n;) {
        const int64_t now = oct_ceil_div(n - i, oct_ceil_div(n - i, most));
        const source s = {.x = x + i * k, .pixel = k, .ky1 = 1, .kw = 1, .c_in = k};

        tiles[n_vec - 1][now - 1](&s, &b, y + i * b.n, b.n);
        i += now;
    }
}

/* --- depthwise --- */

/* Pixels [x0, x1) of one vector of channels; no padding across. K is a constant: 3 or 5. */
INLINE void dw_inside(const oct_conv *c, const float *x, const float *w, vf bias, float *y,
                      int64_t n, int64_t ky0, int64_t ky1, const int K)
{
    const int64_t step = c->stride[1] * c->in_pitch, row = c->in_w * c->in_pitch;

    if (ky0 == 0 && ky1 == K) {
        vf wv[25];

        UNROLL for (int k = 0; k < K * K; k++) wv[k] = load(w + k * c->dw_pitch);
        for (int64_t i = 0; i < n; i++, x += step, y += c->out_pitch) {
            vf acc = bias, acc2 = {0};

            UNROLL for (int ky = 0; ky < K; ky++)
            {
                UNROLL for (int kx = 0; kx < K; kx++)
                {
                    const vf xv = load(x + ky * row + kx * c->in_pitch);

                    if (kx & 1)
                        acc2 += xv * wv[ky * K + kx];
                    else
                        acc += xv * wv[ky * K + kx];
                }
            }
            acc += acc2;
            store(y, acc);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++, x += step, y += c->out_pitch) {
        vf acc = bias;

        for (int64_t ky = ky0; ky < ky1; ky++)
            UNROLL for (int kx = 0; kx < K; kx++) acc +=
                load(x + ky * row + kx * c->in_pitch) * load(w + (ky * K + kx) * c->dw_pitch);
        store(y, acc);
    }
}

/* Any kernel, any position: taps in the padding are skipped one by one. */
static void dw_anywhere(const oct_conv *c, const float *image, const float *w, vf bias, float *y,
                        int64_t oy, int64_t x0, int64_t x1, int64_t lanes)
{
    for (int64_t ox = x0; ox < x1; ox++) {
        vf acc = bias;

        for (int64_t ky = 0; ky < c->kernel[0]; ky++) {
            const int64_t iy = oy * c->stride[0] - c->pad[0] + ky * c->dilation[0];

            if (iy < 0 || iy >= c->in_h) continue;
            for (int64_t kx = 0; kx < c->kernel[1]; kx++) {
                const int64_t ix = ox * c->stride[1] - c->pad[1] + kx * c->dilation[1];
                const float *p = image + (iy * c->in_w + ix) * c->in_pitch;

                if (ix < 0 || ix >= c->in_w) continue;
                acc += (lanes == VW ? load(p) : load_part(p, lanes)) *
                       load(w + (ky * c->kernel[1] + kx) * c->dw_pitch);
            }
        }
        if (lanes == VW)
            store(y + ox * c->out_pitch, acc);
        else
            store_part(y + ox * c->out_pitch, acc, lanes);
    }
}

static void dw_vector(const oct_conv *c, const oct_conv_io *io, int64_t oy, int64_t first,
                      int64_t lanes, int64_t in0, int64_t in1)
{
    const float *image = io->x + first, *w = c->dw_w + first;
    const int64_t iy = oy * c->stride[0] - c->pad[0], k = c->kernel[0];
    const int64_t ky0 = clamp(-iy, 0, k), ky1 = clamp(c->in_h - iy, ky0, k);
    const vf bias = load(c->dw_bias + first);
    float *y = io->y + oy * c->out_w * c->out_pitch + first;

    dw_anywhere(c, image, w, bias, y, oy, 0, in0, lanes);
    if (in1 > in0) {
        const float *x = image + (iy * c->in_w + in0 * c->stride[1] - c->pad[1]) * c->in_pitch;

        if (k == 3)
            dw_inside(c, x, w, bias, y + in0 * c->out_pitch, in1 - in0, ky0, ky1, 3);
        else
            dw_inside(c, x, w, bias, y + in0 * c->out_pitch, in1 - in0, ky0, ky1, 5);
    }
    dw_anywhere(c, image, w, bias, y, oy, in1, c->out_w, lanes);
}

static void depthwise(const oct_conv *c, const oct_conv_io *io, int64_t y)
{
    const bool fast = c->kernel[0] == c->kernel[1] && (c->kernel[0] == 3 || c->kernel[0] == 5) &&
                      c->dilation[0] == 1 && c->dilation[1] == 1;
    /* pixels whose taps across are all inside the image */
    int64_t in0 = clamp(oct_ceil_div(c->pad[1], c->stride[1]), 0, c->out_w);
    int64_t in1 = c->in_w + c->pad[1] - c->kernel[1] < 0
                      ? 0
                      : (c->in_w + c->pad[1] - c->kernel[1]) / c->stride[1] + 1;

    in1 = clamp(in1, in0, c->out_w);
    if (!fast) in0 = in1 = 0;
    for (int64_t k = 0; k < c->c_out; k += VW) {
        /* the last vector starts early enough to be whole: some channels are computed twice */
        const int64_t first = OCT_MAX(OCT_MIN(k, c->c_out - VW), 0);
        const int64_t lanes = OCT_MIN(VW, c->c_out), at = y * c->out_w;
        const bool whole = lanes == VW;

        dw_vector(c, io, y, first, lanes, whole ? in0 : 0, whole ? in1 : 0);
        apply_epilogue(c->act, c->residual_scale,
                       io->residual ? io->residual + at * c->residual_pitch + first : NULL,
                       c->residual_pitch, io->y + at * c->out_pitch + first, c->out_pitch, c->out_w,
                       lanes);
    }
}

const oct_conv_simd OCT_SIMD_CONV = {
    .max_vec = VW == 16 ? 4 : 3,
    .dense = dense,
    .depthwise = depthwise,
    .winograd = OCT_SIMD_WINOGRAD,
    .winograd_filters = OCT_SIMD_WINOGRAD_FILTERS,
    .winograd_x = OCT_SIMD_WINOGRAD_X,
    .winograd_dy = OCT_SIMD_WINOGRAD_DY,
    .winograd_weights = OCT_SIMD_WINOGRAD_WEIGHTS,
};
