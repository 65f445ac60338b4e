/* SPDX-License-Identifier: Apache-2.0 */
/* Affine warps of 8-bit pictures: bilinear, in fixed point. */
#include <math.h>

#include "augment/sample.h"

/* Coordinates have 16 bits behind the point, of which weights use the upper 8. */
#define POINT_BITS  16
#define WEIGHT_BITS 8

static int64_t fixed(double v)
{
    return (int64_t)floor(v * (1 << POINT_BITS) + 0.5);
}

/* Pixel (x, y) of `from`, or the level outside. */
static const uint8_t *tap(const oct_rgb *from, int64_t x, int64_t y, const uint8_t *outside)
{
    if (x < 0 || y < 0 || x >= from->width || y >= from->height) return outside;
    return from->at + ((size_t)y * (size_t)from->width + (size_t)x) * 3;
}

static void blend(const uint8_t *const p[4], int fx, int fy, uint8_t *to)
{
    const int one = 1 << WEIGHT_BITS, half = 1 << (2 * WEIGHT_BITS - 1);

    for (int c = 0; c < 3; c++) {
        const int top = p[0][c] * (one - fx) + p[1][c] * fx;
        const int bottom = p[2][c] * (one - fx) + p[3][c] * fx;

        to[c] = (uint8_t)((top * (one - fy) + bottom * fy + half) >> (2 * WEIGHT_BITS));
    }
}

/* One row from source position (u, v), which moves by (du, dv) a pixel. */
static void warp_row(const oct_rgb *from, int64_t u, int64_t v, int64_t du, int64_t dv,
                     const uint8_t *outside, uint8_t *to, int32_t n)
{
    const size_t pitch = (size_t)from->width * 3;
    const int mask = (1 << WEIGHT_BITS) - 1;

    for (int32_t i = 0; i < n; i++, u += du, v += dv, to += 3) {
        const int64_t x = u >> POINT_BITS, y = v >> POINT_BITS;
        const int fx = (int)(u >> (POINT_BITS - WEIGHT_BITS)) & mask;
        const int fy = (int)(v >> (POINT_BITS - WEIGHT_BITS)) & mask;

        if (x >= 0 && y >= 0 && x < from->width - 1 && y < from->height - 1) {
            const uint8_t *at = from->at + (size_t)y * pitch + (size_t)x * 3;
            const uint8_t *const p[4] = {at, at + 3, at + pitch, at + pitch + 3};

            blend(p, fx, fy, to);
        } else {
            const uint8_t *const p[4] = {tap(from, x, y, outside), tap(from, x + 1, y, outside),
                                         tap(from, x, y + 1, outside),
                                         tap(from, x + 1, y + 1, outside)};

            blend(p, fx, fy, to);
        }
    }
}

void oct_warp(const oct_rgb *from, const oct_matrix *m, uint8_t level, const oct_rgb *to)
{
    const double det = m->xx * m->yy - m->xy * m->yx;
    const uint8_t outside[3] = {level, level, level};
    oct_matrix back;

    if (!(fabs(det) > 1e-9)) { /* seen from the edge: nothing shows */
        oct_fill(to, level);
        return;
    }
    back =
        (oct_matrix){.xx = m->yy / det, .xy = -m->xy / det, .yx = -m->yx / det, .yy = m->xx / det};
    for (int32_t y = 0; y < to->height; y++) {
        /* Centres of pixels, at one half, are mapped to centres. */
        const double px = 0.5 - m->x0, py = y + 0.5 - m->y0;
        const double u = back.xx * px + back.xy * py - 0.5;
        const double v = back.yx * px + back.yy * py - 0.5;

        warp_row(from, fixed(u), fixed(v), fixed(back.xx), fixed(back.yx), outside,
                 to->at + (size_t)y * (size_t)to->width * 3, to->width);
    }
}
