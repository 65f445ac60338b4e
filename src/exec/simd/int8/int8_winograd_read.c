/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms codes to the points of Winograd's tiles of 4x4 results. Compiled once for each
 * instruction set; all of it is exact.
 */
#include "exec/simd/int8/int8_part.h"
#include "exec/simd/int8/int8_winograd.h"

#define TILES OCT_INT8_MAX_TILES
#define RUN   4 /* tiles beside each other that are read together */

/* Addresses of the six rows of the tiles that begin at column x. */
typedef struct rows {
    const oct_int8_conv *c;
    const uint8_t *at[6]; /* NULL: outside the image */
    const uint8_t *pad;
    int64_t x;
} rows;

#define LANES       (VW * 2)
#define LANED(name) full_##name
#include "exec/simd/int8/int8_winograd_lanes.h"
#undef LANES
#undef LANED

/* First layers have few channels: a vector of half the length takes half the time. */
#if VW == 16
#define LANES       VW
#define LANED(name) half_##name
#include "exec/simd/int8/int8_winograd_lanes.h"
#endif

/* n tiles beside each other; the first result of the first is (y, x). */
static void read_run(rows *w, const uint8_t *in, int64_t y, int64_t x, int64_t n, uint16_t *to,
                     int64_t row)
{
    const oct_int8_conv *c = w->c;
    int64_t k = 0;

    w->x = x - c->pad[1];
    for (int64_t i = 0; i < 6; i++) {
        const int64_t iy = y + i - c->pad[0];

        w->at[i] = iy >= 0 && iy < c->in_h ? in + iy * c->in_w * c->in_pitch : NULL;
    }
    for (; k + VW * 2 <= c->c_in; k += VW * 2)
        full_read_channels(w, n, k, VW * 2, to, row);
#if VW == 16
    if (k + VW == c->c_in) {
        half_read_channels(w, n, k, VW, to, row);
        return;
    }
#endif
    if (k < c->c_in) full_read_channels(w, n, k, c->c_in - k, to, row);
}

void INT8_SYM(points)(const oct_int8_conv *c, const oct_int8_io *io, int64_t first, int64_t n,
                      uint16_t *to)
{
    const int64_t row = oct_int8_winograd_row(c->set, c) / 2;
    rows w = {.c = c, .pad = io->pad_pixel ? io->pad_pixel : c->pad_pixel};

    for (int64_t i = 0, k; i < n; i += k) {
        const int64_t y = (first + i) / c->tiles[1], x = (first + i) % c->tiles[1];

        k = OCT_MIN(OCT_MIN(n - i, RUN), c->tiles[1] - x);
        read_run(&w, io->x, y * 4, x * 4, k, to + i * row, row);
    }
}
