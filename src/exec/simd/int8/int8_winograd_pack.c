/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of 3x3 filters transformed for Winograd's method in integers, and when it is worth it. */
#include <string.h>

#include "exec/simd/int8/int8_winograd.h"

/*
 * Cost in instructions on whole vectors. Without the instruction that adds four products of bytes,
 * direct convolution needs four for them, and Winograd two for two.
 */
bool oct_int8_winograd_pays(const oct_int8 *set, const oct_int8_conv *c)
{
    const int64_t vecs = oct_ceil_div(c->c_out, set->width);
    const int64_t tiles = oct_ceil_div(c->out_h, 4) * oct_ceil_div(c->out_w, 4);
    const double per_quad = set->quad_bytes == 4 ? 1 : 4, per_pair = set->quad_bytes == 4 ? 1 : 2;
    double plain, tiled;

    if (!set->winograd || c->depthwise || c->c_in > 1024 || c->c_out > 4096) return false;
    for (int i = 0; i < 2; i++)
        if (c->kernel[i] != 3 || c->stride[i] != 1 || c->dilation[i] != 1 || c->pad[i] > 2)
            return false;
    plain = (double)(c->out_h * c->out_w * vecs) * (double)oct_ceil_div(c->c_in * 9, 4) * per_quad;
    tiled = (double)(OCT_INT8_POINTS * oct_ceil_div(c->c_in, 2) * vecs) * per_pair;
    tiled += (double)(90 * oct_ceil_div(c->c_in, set->width) + 150 * vecs);
    return tiled * (double)tiles < plain;
}

size_t oct_int8_winograd_size(const oct_int8 *set, const oct_int8_conv *c)
{
    return (size_t)(OCT_INT8_POINTS * oct_ceil_div(c->c_in, 2) *
                    oct_ceil_div(c->c_out, set->width) * set->width * 4);
}

/* Sums of the positive and of the negative of n weights, `step` apart. */
static void add_up(const int8_t *w, int64_t n, int64_t step, int32_t *plus, int32_t *minus)
{
    int32_t p = 0, m = 0;

    for (int64_t i = 0; i < n; i++) {
        p += OCT_MAX(w[i * step], 0);
        m += OCT_MIN(w[i * step], 0);
    }
    *plus += p;
    *minus += m;
}

/* 64 times an accumulator must fit into 32 bits; with its base, it may. */
static bool accumulators_fit(const oct_int8_weights *w, oct_int8_conv *c)
{
    const bool dense = w->c == 9 && w->t == 1;
    const int64_t most = (int64_t)1 << 25;

    c->base_fits = true;
    for (int64_t o = 0; o < c->c_out; o++) {
        const int8_t *from = w->w + o * w->o;
        int32_t plus = 0, minus = 0;

        if (dense) add_up(from, c->c_in * 9, 1, &plus, &minus);
        for (int64_t i = 0; i < c->c_in && !dense; i++)
            add_up(from + i * w->c, 9, w->t, &plus, &minus);
        if ((int64_t)OCT_MAX(plus, -minus) * 255 >= most) return false;
        if (c->base[o] + (int64_t)plus * 255 >= most || c->base[o] + (int64_t)minus * 255 < -most)
            c->base_fits = false;
    }
    return true;
}

#define LANES 32 /* 16-bit elements of the largest vector: two channels of as many filters */

/* A line of taps as a polynomial, evaluated at 0, 1, -1, 2, -2 and infinity; the ends times six. */
static void line(const int16_t a[LANES], const int16_t b[LANES], const int16_t c[LANES],
                 int16_t to[6][LANES])
{
    for (int i = 0; i < LANES; i++) {
        to[0][i] = (int16_t)(6 * a[i]);
        to[1][i] = (int16_t)(a[i] + c[i] + b[i]);
        to[2][i] = (int16_t)(a[i] + c[i] - b[i]);
        to[3][i] = (int16_t)(a[i] + 4 * c[i] + 2 * b[i]);
        to[4][i] = (int16_t)(a[i] + 4 * c[i] - 2 * b[i]);
        to[5][i] = (int16_t)(6 * c[i]);
    }
}

/* The points of the filters of a vector, side by side; n lanes of each, `step` apart. */
static void transform(int16_t taps[9][LANES], int64_t n, int8_t *to, int64_t step)
{
    int16_t rows[3][6][LANES], points[6][LANES];

    for (int i = 0; i < 3; i++)
        line(taps[i * 3], taps[i * 3 + 1], taps[i * 3 + 2], rows[i]);
    for (int64_t j = 0; j < 6; j++) {
        line(rows[0][j], rows[1][j], rows[2][j], points);
        for (int64_t i = 0; i < 6; i++)
            memcpy(to + (i * 6 + j) * step, points[i], (size_t)n * sizeof(points[i][0]));
    }
}

/* Point by point, pairs of channels, vectors of filters. */
static void pack_block(const oct_int8 *set, const oct_int8_weights *w, const oct_int8_conv *c,
                       const oct_int8_block *b, int8_t *to)
{
    const int64_t vw = set->width, row = b->n_vec * vw * 4, point = oct_ceil_div(c->c_in, 2) * row;

    for (int64_t i = 0; i < c->c_in; i += 2)
        for (int64_t v = 0; v < b->n_vec; v++) {
            int16_t taps[9][LANES] = {{0}};

            for (int64_t k = 0; k < 2 * OCT_MIN(vw, b->n - v * vw); k++) {
                const int64_t o = b->first + v * vw + k / 2, channel = i + k % 2;
                const int8_t *from = w->w + o * w->o + channel * w->c;

                for (int64_t t = 0; t < 9 && channel < c->c_in; t++)
                    taps[t][k] = from[t * w->t];
            }
            transform(taps, 2 * vw, to + i / 2 * row + v * vw * 4, point);
        }
}

bool oct_int8_winograd_pack(const oct_int8 *set, const oct_int8_weights *w, int8_t *to,
                            oct_int8_conv *c)
{
    int64_t most = 0;

    if (!accumulators_fit(w, c)) return false;
    for (oct_int8_block *b = c->blocks; b < c->blocks + c->n_blocks; b++) {
        b->w = to;
        pack_block(set, w, c, b, to);
        to += OCT_INT8_POINTS * oct_ceil_div(c->c_in, 2) * b->n_vec * set->width * 4;
        most = OCT_MAX(most, b->n_vec);
    }
    c->winograd = true;
    c->tiles[0] = oct_ceil_div(c->out_h, 4);
    c->tiles[1] = oct_ceil_div(c->out_w, 4);
    c->scratch_size = (size_t)(OCT_INT8_MAX_TILES * OCT_INT8_POINTS *
                               (oct_int8_winograd_row(set, c) + most * set->width * 4));
    return true;
}
