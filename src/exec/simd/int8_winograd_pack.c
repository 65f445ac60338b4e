/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of 3x3 filters as Winograd's method in integers wants them, and when it is worth it. */
#include <string.h>

#include "exec/simd/int8_winograd.h"

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/*
 * In instructions on whole vectors. Without the instruction that adds four products of bytes, the
 * plain method needs four for them, and this one two for two.
 */
bool oct_int8_winograd_pays(const oct_int8 *set, const oct_int8_conv *c)
{
    const int64_t vecs = ceil_div(c->c_out, set->width);
    const int64_t tiles = ceil_div(c->out_h, 4) * ceil_div(c->out_w, 4);
    const double per_quad = set->quad_bytes == 4 ? 1 : 4, per_pair = set->quad_bytes == 4 ? 1 : 2;
    double plain, tiled;

    if (!set->winograd || c->depthwise || c->c_in > 1024 || c->c_out > 4096) return false;
    for (int i = 0; i < 2; i++)
        if (c->kernel[i] != 3 || c->stride[i] != 1 || c->dilation[i] != 1 || c->pad[i] > 2)
            return false;
    plain = (double)(c->out_h * c->out_w * vecs) * (double)ceil_div(c->c_in * 9, 4) * per_quad;
    tiled = (double)(OCT_INT8_POINTS * ceil_div(c->c_in, 2) * vecs) * per_pair;
    tiled += (double)(280 * ceil_div(c->c_in, 2 * set->width) + 200 * vecs);
    return tiled * (double)tiles < plain;
}

size_t oct_int8_winograd_size(const oct_int8 *set, const oct_int8_conv *c)
{
    return (size_t)(OCT_INT8_POINTS * ceil_div(c->c_in, 2) * ceil_div(c->c_out, set->width) *
                    set->width * 4);
}

/* 64 times a sum of codes and weights must fit into 32 bits; with its base, it may. */
static bool sums_fit(const oct_int8_weights *w, oct_int8_conv *c)
{
    const int64_t most = (int64_t)1 << 25;

    c->base_fits = true;
    for (int64_t o = 0; o < c->c_out; o++) {
        int64_t plus = 0, minus = 0;

        for (int64_t i = 0; i < c->c_in; i++)
            for (int64_t t = 0; t < 9; t++) {
                const int8_t x = w->w[o * w->o + i * w->c + t * w->t];

                plus += OCT_MAX(x, 0);
                minus += OCT_MIN(x, 0);
            }
        if (OCT_MAX(plus, -minus) * 255 >= most) return false;
        if (c->base[o] + plus * 255 >= most || c->base[o] + minus * 255 < -most)
            c->base_fits = false;
    }
    return true;
}

/* A line of taps as a polynomial, at 0, 1, -1, 2, -2 and infinity; the ends six times. */
static void line(int a, int b, int c, int to[6])
{
    to[0] = 6 * a;
    to[1] = a + c + b;
    to[2] = a + c - b;
    to[3] = a + 4 * c + 2 * b;
    to[4] = a + 4 * c - 2 * b;
    to[5] = 6 * c;
}

/* The points of one filter's channel. */
static void transform(const int8_t *w, int64_t t, int16_t to[OCT_INT8_POINTS])
{
    int rows[3][6], points[6];

    for (int i = 0; i < 3; i++)
        line(w[i * 3 * t], w[(i * 3 + 1) * t], w[(i * 3 + 2) * t], rows[i]);
    for (int j = 0; j < 6; j++) {
        line(rows[0][j], rows[1][j], rows[2][j], points);
        for (int i = 0; i < 6; i++)
            to[i * 6 + j] = (int16_t)points[i];
    }
}

/* Point by point, pairs of channels, vectors of filters. */
static void pack_block(const oct_int8 *set, const oct_int8_weights *w, const oct_int8_conv *c,
                       const oct_int8_block *b, int8_t *to)
{
    const int64_t row = b->n_vec * set->width * 4, point = ceil_div(c->c_in, 2) * row;

    for (int64_t o = 0; o < b->n; o++)
        for (int64_t i = 0; i < c->c_in; i++) {
            int16_t u[OCT_INT8_POINTS];

            transform(w->w + (b->first + o) * w->o + i * w->c, w->t, u);
            for (int64_t p = 0; p < OCT_INT8_POINTS; p++)
                memcpy(to + p * point + i / 2 * row + o * 4 + i % 2 * 2, &u[p], sizeof(u[p]));
        }
}

bool oct_int8_winograd_pack(const oct_int8 *set, const oct_int8_weights *w, int8_t *to,
                            oct_int8_conv *c)
{
    const int64_t n_vec = ceil_div(c->c_out, set->width);
    int64_t most = 0;

    if (!sums_fit(w, c)) return false;
    for (int32_t b = 0; b < c->n_blocks; b++) {
        const int64_t v0 = n_vec * b / c->n_blocks, vecs = n_vec * (b + 1) / c->n_blocks - v0;
        const int64_t first = v0 * set->width, n = OCT_MIN(vecs * set->width, c->c_out - first);

        c->blocks[b] = (oct_int8_block){(int)vecs, first, n, to};
        pack_block(set, w, c, &c->blocks[b], to);
        to += OCT_INT8_POINTS * ceil_div(c->c_in, 2) * vecs * set->width * 4;
        most = OCT_MAX(most, vecs);
    }
    c->winograd = true;
    c->tiles[0] = ceil_div(c->out_h, 4);
    c->tiles[1] = ceil_div(c->out_w, 4);
    c->scratch_size = (size_t)(OCT_INT8_MAX_TILES * OCT_INT8_POINTS *
                               (oct_int8_winograd_row(set, c) + most * set->width * 4));
    return true;
}
