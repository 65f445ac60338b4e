/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 3x3 convolution with stride 1 by Winograd's method F(4x4, 3x3): 36 products instead of 144 for
 * each 4x4 tile of the result. Tiles of 6x6 pixels are transformed, multiplied as 36 matrix
 * products, and transformed back. Compiled once for each instruction set.
 */
#include "exec/simd/simd_epilogue.h"
#include "exec/simd/tile.h"
#include "exec/simd/vec.h"

/* d[0], d[s], .. d[5s] to t[0], t[r], .. t[5r] */
INLINE void into(const vf *d, int s, vf *t, int r)
{
    const vf a = d[4 * s] - 4.0f * d[2 * s], b = d[3 * s] - 4.0f * d[s];
    const vf c = d[4 * s] - d[2 * s], e = 2.0f * (d[3 * s] - d[s]);

    t[0] = 4.0f * d[0] - 5.0f * d[2 * s] + d[4 * s];
    t[r] = a + b;
    t[2 * r] = a - b;
    t[3 * r] = c + e;
    t[4 * r] = c - e;
    t[5 * r] = 4.0f * d[s] - 5.0f * d[3 * s] + d[5 * s];
}

/* m[0], m[s], .. m[5s] to o[0], o[r], .. o[3r] */
INLINE void back(const vf *m, int s, vf *o, int r)
{
    const vf s1 = m[s] + m[2 * s], d1 = m[s] - m[2 * s];
    const vf s2 = m[3 * s] + m[4 * s], d2 = m[3 * s] - m[4 * s];

    o[0] = m[0] + s1 + s2;
    o[r] = d1 + 2.0f * d2;
    o[2 * r] = s1 + 4.0f * s2;
    o[3 * r] = d1 + 8.0f * d2 + m[5 * s];
}

typedef struct place {
    int64_t image, y, x; /* first pixel of the tile in the result */
} place;

static place place_of(const oct_conv *c, int64_t t)
{
    const int64_t across = (c->out_w + 3) / 4, down = (c->out_h + 3) / 4;

    return (place){t / (across * down), t / across % down * 4, t % across * 4};
}

static void transform_input(const oct_conv *c, const float *x, place at, float *v, int64_t step)
{
    const int64_t y0 = at.y - c->pad[0], x0 = at.x - c->pad[1];
    const bool inside = y0 >= 0 && x0 >= 0 && y0 + 6 <= c->in_h && x0 + 6 <= c->in_w;
    const float *base = x + ((at.image * c->in_h + y0) * c->in_w + x0) * c->in_pitch;

    for (int64_t ch = 0; ch < c->c_in; ch += VW) {
        const int64_t n = OCT_MIN(VW, c->c_in - ch);
        vf d[36], t[36];

        for (int i = 0; i < 6; i++)
            for (int k = 0; k < 6; k++) {
                const float *p = base + (i * c->in_w + k) * c->in_pitch + ch;
                const bool in =
                    inside || (y0 + i >= 0 && y0 + i < c->in_h && x0 + k >= 0 && x0 + k < c->in_w);

                d[i * 6 + k] = !in ? (vf){0} : n == VW ? load(p) : load_part(p, n);
            }
        for (int i = 0; i < 6; i++)
            into(d + i, 6, t + i, 6);
        for (int i = 0; i < 6; i++)
            into(t + i * 6, 1, d + i * 6, 1);
        for (int i = 0; i < 36; i++) {
            if (n == VW)
                store(v + i * step + ch, d[i]);
            else
                store_part(v + i * step + ch, d[i], n);
        }
    }
}

static void transform_output(const oct_conv *c, const oct_conv_block *b, const float *m,
                             int64_t step, place at, float *y)
{
    float *out = y + ((at.image * c->out_h + at.y) * c->out_w + at.x) * c->out_pitch + b->first;
    const int64_t rows = OCT_MIN(4, c->out_h - at.y), columns = OCT_MIN(4, c->out_w - at.x);

    for (int64_t ch = 0; ch < b->n; ch += VW) {
        const int64_t n = OCT_MIN(VW, b->n - ch);
        const vf bias = load(b->bias + ch);
        vf d[36], t[24];

        for (int i = 0; i < 36; i++)
            d[i] = load(m + i * step + ch);
        for (int i = 0; i < 6; i++)
            back(d + i, 6, t + i, 6);
        for (int i = 0; i < 4; i++)
            back(t + i * 6, 1, d + i * 4, 1);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = 0; k < columns; k++) {
                float *p = out + (i * c->out_w + k) * c->out_pitch + ch;

                if (n == VW)
                    store(p, d[i * 4 + k] + bias);
                else
                    store_part(p, d[i * 4 + k] + bias, n);
            }
    }
}

static void epilogue_tile(const oct_conv *c, const oct_conv_io *io, const oct_conv_block *b,
                          place at)
{
    const int64_t columns = OCT_MIN(4, c->out_w - at.x);

    if (!c->act[0].kind && !io->residual) return;
    for (int64_t i = 0; i < OCT_MIN(4, c->out_h - at.y); i++) {
        const int64_t pixel = (at.image * c->out_h + at.y + i) * c->out_w + at.x;

        apply_epilogue(c->act, c->residual_scale,
                       io->residual ? io->residual + pixel * c->residual_pitch + b->first : NULL,
                       c->residual_pitch, io->y + pixel * c->out_pitch + b->first, c->out_pitch,
                       columns, b->n);
    }
}

void OCT_SIMD_WINOGRAD(const oct_conv *c, const oct_conv_io *io, int64_t first, int64_t n)
{
    const int64_t v_step = n * c->c_in;
    float *v = io->patch, *m = io->patch + 36 * OCT_WINOGRAD_TILES * c->c_in;

    for (int64_t t = 0; t < n; t++)
        transform_input(c, io->x, place_of(c, first + t), v + t * c->c_in, v_step);
    for (int32_t k = 0; k < c->n_blocks; k++) {
        const oct_conv_block *b = &c->blocks[k];
        const int64_t width = (int64_t)b->n_vec * VW, m_step = n * width;

        for (int i = 0; i < 36; i++)
            OCT_SIMD_PRODUCT(v + i * v_step, c->c_in, n, b->w + i * c->c_in * width, b->n_vec,
                             m + i * m_step);
        for (int64_t t = 0; t < n; t++) {
            const place at = place_of(c, first + t);

            transform_output(c, b, m + t * width, m_step, at, io->y);
            epilogue_tile(c, io, b, at);
        }
    }
}

/* d[0], d[s], d[2s] to t[0], t[r], .. t[5r]: G */
INLINE void widen(const vf *d, int s, vf *t, int r)
{
    const vf even = d[0] + d[2 * s], far = d[0] + 4.0f * d[2 * s], twice = 2.0f * d[s];

    t[0] = 0.25f * d[0];
    t[r] = (even + d[s]) * (-1.0f / 6.0f);
    t[2 * r] = (even - d[s]) * (-1.0f / 6.0f);
    t[3 * r] = (far + twice) * (1.0f / 24.0f);
    t[4 * r] = (far - twice) * (1.0f / 24.0f);
    t[5 * r] = d[2 * s];
}

void OCT_SIMD_WINOGRAD_FILTERS(const float *w, int64_t o, int64_t y, int64_t x, float *u,
                               int64_t step, int64_t n)
{
    for (int64_t l = 0; l < n; l += VW) {
        const int64_t left = OCT_MIN(VW, n - l);
        float taps[9][VW] = {{0}};
        vf d[9], t[18], out[36];

        for (int64_t i = 0; i < left; i++)
            for (int k = 0; k < 9; k++)
                taps[k][i] = w[(l + i) * o + k / 3 * y + k % 3 * x];
        for (int k = 0; k < 9; k++)
            d[k] = load(taps[k]);
        for (int k = 0; k < 3; k++)
            widen(d + k, 3, t + k, 3);
        for (int i = 0; i < 6; i++)
            widen(t + i * 3, 1, out + i * 6, 1);
        for (int k = 0; k < 36; k++) {
            if (left == VW)
                store(u + k * step + l, out[k]);
            else
                store_part(u + k * step + l, out[k], left);
        }
    }
}

/* --- the gradient of weights: 3x3 sums of products of 6x6 pixels of x with 4x4 of dy --- */

void OCT_SIMD_WINOGRAD_X(const oct_conv *c, const float *x, int64_t tile, float *v, int64_t step)
{
    transform_input(c, x, place_of(c, tile), v, step);
}

/* d[0], d[s], .. d[3s] to t[0], t[r], .. t[5r] */
INLINE void spread(const vf *d, int s, vf *t, int r)
{
    const vf even = d[0] + d[2 * s], odd = d[s] + d[3 * s];
    const vf far = d[0] + 4.0f * d[2 * s], far_odd = 2.0f * d[s] + 8.0f * d[3 * s];

    t[0] = 0.25f * d[0];
    t[r] = (even + odd) * (-1.0f / 6.0f);
    t[2 * r] = (even - odd) * (-1.0f / 6.0f);
    t[3 * r] = (far + far_odd) * (1.0f / 24.0f);
    t[4 * r] = (far - far_odd) * (1.0f / 24.0f);
    t[5 * r] = d[3 * s];
}

void OCT_SIMD_WINOGRAD_DY(const oct_conv *c, const float *dy, int64_t tile, float *u, int64_t step)
{
    const place at = place_of(c, tile);
    const int64_t rows = OCT_MIN(4, c->out_h - at.y), columns = OCT_MIN(4, c->out_w - at.x);
    const float *base = dy + ((at.image * c->out_h + at.y) * c->out_w + at.x) * c->out_pitch;

    for (int64_t ch = 0; ch < c->c_out; ch += VW) {
        const int64_t n = OCT_MIN(VW, c->c_out - ch);
        vf d[16], t[24], out[36];

        for (int i = 0; i < 4; i++)
            for (int k = 0; k < 4; k++) {
                const float *p = base + (i * c->out_w + k) * c->out_pitch + ch;

                d[i * 4 + k] = i >= rows || k >= columns ? (vf){0}
                               : n == VW                 ? load(p)
                                                         : load_part(p, n);
            }
        for (int k = 0; k < 4; k++)
            spread(d + k, 4, t + k, 4);
        for (int i = 0; i < 6; i++)
            spread(t + i * 4, 1, out + i * 6, 1);
        for (int i = 0; i < 36; i++)
            store(u + i * step + ch, out[i]);
    }
}

/* m[0], m[s], .. m[5s] to o[0], o[r], o[2r] */
INLINE void gather(const vf *m, int s, vf *o, int r)
{
    const vf s1 = m[s] + m[2 * s], d1 = m[s] - m[2 * s];
    const vf s2 = m[3 * s] + m[4 * s], d2 = m[3 * s] - m[4 * s];

    o[0] = m[0] + s1 + s2;
    o[r] = d1 + 2.0f * d2;
    o[2 * r] = s1 + 4.0f * s2 + m[5 * s];
}

void OCT_SIMD_WINOGRAD_WEIGHTS(const float *m, int64_t step, int64_t part, int64_t n_parts,
                               float *w, int64_t lanes)
{
    for (int64_t l = 0; l < lanes; l += VW) {
        vf d[36], t[18], out[9];

        for (int i = 0; i < 36; i++) {
            d[i] = load(m + i * step + l);
            for (int64_t p = 1; p < n_parts; p++)
                d[i] += load(m + p * part + i * step + l);
        }
        for (int k = 0; k < 6; k++)
            gather(d + k, 6, t + k, 6);
        for (int i = 0; i < 3; i++)
            gather(t + i * 6, 1, out + i * 3, 1);
        for (int k = 0; k < 9; k++) {
            if (lanes - l >= VW)
                store(w + k * lanes + l, out[k]);
            else
                store_part(w + k * lanes + l, out[k], lanes - l);
        }
    }
}
