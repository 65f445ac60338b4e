/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes to the points of Winograd's tiles of 4x4 results. Compiled once for each instruction set;
 * all of it is exact.
 */
#include "exec/simd/int8_part.h"
#include "exec/simd/int8_winograd.h"

#define TILES OCT_INT8_MAX_TILES
#define RUN   4 /* tiles beside each other that are read together */

typedef uint16_t vh __attribute__((vector_size(BW))); /* unsigned: they wrap around */

INLINE vh load_wide(const uint8_t *p)
{
#if VW == 16 && defined(__AVX512BW__)
    return (vh)_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif VW == 8 && defined(__AVX2__)
    return (vh)_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
    uint8_t q __attribute__((vector_size(VW * 2)));

    memcpy(&q, p, sizeof(q));
    return __builtin_convertvector(q, vh);
#endif
}

/* The first n codes; the others are zero. */
INLINE vh load_wide_part(const uint8_t *p, int64_t n)
{
#if VW == 16 && defined(__AVX512BW__)
    return (vh)_mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8((__mmask32)((1ull << n) - 1), p));
#else
    uint8_t some[VW * 2] = {0};

    memcpy(some, p, (size_t)n);
    return load_wide(some);
#endif
}

/* Six codes in a line to six points. */
INLINE void to_points(const vh d[6], vh r[6])
{
    const vh a = d[4] - (d[2] << 2), b = d[3] - (d[1] << 2);
    const vh c = d[4] - d[2], e = d[3] - d[1];

    r[0] = ((d[0] - d[2]) << 2) + c;
    r[1] = a + b;
    r[2] = a - b;
    r[3] = c + (e + e);
    r[4] = c - (e + e);
    r[5] = (d[5] - d[3]) - (e << 2);
}

INLINE vh load_lanes(const uint8_t *p, const int64_t n)
{
    return n == VW * 2 ? load_wide(p) : load_wide_part(p, n);
}

/* Where the six rows of tiles lie that begin at column x. */
typedef struct rows {
    const oct_int8_conv *c;
    const uint8_t *at[6]; /* NULL: outside the picture */
    const uint8_t *pad;
    int64_t x;
} rows;

/* Six points of column ix. */
INLINE void column_points(const rows *w, int64_t ix, int64_t channel, const int64_t n, vh r[6])
{
    const oct_int8_conv *c = w->c;
    const int64_t pitch = c->in_w * c->in_pitch, at = ix * c->in_pitch + channel;
    const bool inside = ix >= 0 && ix < c->in_w;
    vh d[6];

    if (inside && w->at[0] && w->at[5])
        UNROLL for (int i = 0; i < 6; i++) d[i] = load_lanes(w->at[0] + at + i * pitch, n);
    else
        UNROLL for (int i = 0; i < 6; i++) d[i] =
            load_lanes(inside && w->at[i] ? w->at[i] + at : w->pad + channel, n);
    to_points(d, r);
}

/* All points of a tile of six columns. */
INLINE void tile_points(vh (*column)[6], uint16_t *to, int64_t step)
{
    for (int i = 0; i < 6; i++, to += 6 * step) {
        vh d[6], r[6];

        UNROLL for (int j = 0; j < 6; j++) d[j] = column[j][i];
        to_points(d, r);
        UNROLL for (int j = 0; j < 6; j++) memcpy(to + j * step, &r[j], sizeof(vh));
    }
}

/* Some channels of n tiles beside each other: two columns of each are those of the next. */
INLINE void read_channels(const rows *w, int64_t n, int64_t channel, const int64_t lanes,
                          uint16_t *to, int64_t row)
{
    vh column[4 * RUN + 2][6];

    for (int64_t j = 0; j < 4 * n + 2; j++)
        column_points(w, w->x + j, channel, lanes, column[j]);
    for (int64_t t = 0; t < n; t++)
        tile_points(column + 4 * t, to + t * row + channel, TILES * row);
}

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
        read_channels(w, n, k, VW * 2, to, row);
    if (k < c->c_in) read_channels(w, n, k, c->c_in - k, to, row);
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
