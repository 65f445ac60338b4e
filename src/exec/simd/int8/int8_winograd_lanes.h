/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms codes to points with vectors of LANES channels; LANED(name) names the variant for this
 * length. Included once for each length, so it has no guard.
 */

/* Unsigned: they wrap around. */
typedef uint16_t LANED(vh) __attribute__((vector_size(LANES * 2)));

INLINE LANED(vh) LANED(load_wide)(const uint8_t *p)
{
#if LANES == 32 && defined(__AVX512BW__)
    return (LANED(vh))_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif LANES == 16 && defined(__AVX2__)
    return (LANED(vh))_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
    uint8_t q __attribute__((vector_size(LANES)));

    memcpy(&q, p, sizeof(q));
    return __builtin_convertvector(q, LANED(vh));
#endif
}

/* The first n codes; the others are zero. */
INLINE LANED(vh) LANED(load_part)(const uint8_t *p, const int64_t n)
{
#if LANES == 32 && defined(__AVX512BW__)
    return (LANED(vh))_mm512_cvtepu8_epi16(
        _mm256_maskz_loadu_epi8((__mmask32)((1ull << n) - 1), p));
#else
    uint8_t some[LANES] = {0};

    memcpy(some, p, (size_t)n);
    return LANED(load_wide)(some);
#endif
}

INLINE LANED(vh) LANED(load)(const uint8_t *p, const int64_t n)
{
    return n == LANES ? LANED(load_wide)(p) : LANED(load_part)(p, n);
}

/* Six codes in a line to six points. */
INLINE void LANED(to_points)(const LANED(vh) d[6], LANED(vh) r[6])
{
    const LANED(vh) a = d[4] - (d[2] << 2), b = d[3] - (d[1] << 2);
    const LANED(vh) c = d[4] - d[2], e = d[3] - d[1];

    r[0] = ((d[0] - d[2]) << 2) + c;
    r[1] = a + b;
    r[2] = a - b;
    r[3] = c + (e + e);
    r[4] = c - (e + e);
    r[5] = (d[5] - d[3]) - (e << 2);
}

/* Six points of column ix. */
INLINE void LANED(column_points)(const rows *w, int64_t ix, int64_t channel, const int64_t n,
                                 LANED(vh) r[6])
{
    const oct_int8_conv *c = w->c;
    const int64_t pitch = c->in_w * c->in_pitch, at = ix * c->in_pitch + channel;
    const bool inside = ix >= 0 && ix < c->in_w;
    LANED(vh) d[6];

    if (inside && w->at[0] && w->at[5])
        UNROLL for (int i = 0; i < 6; i++) d[i] = LANED(load)(w->at[0] + at + i * pitch, n);
    else
        UNROLL for (int i = 0; i < 6; i++) d[i] =
            LANED(load)(inside && w->at[i] ? w->at[i] + at : w->pad + channel, n);
    LANED(to_points)(d, r);
}

/* All points of a tile of six columns. */
INLINE void LANED(tile_points)(LANED(vh) (*column)[6], uint16_t *to, int64_t step)
{
    for (int i = 0; i < 6; i++, to += 6 * step) {
        LANED(vh) d[6], r[6];

        UNROLL for (int j = 0; j < 6; j++) d[j] = column[j][i];
        LANED(to_points)(d, r);
        UNROLL for (int j = 0; j < 6; j++) memcpy(to + j * step, &r[j], sizeof(r[j]));
    }
}

/* n channels of some neighbouring tiles: two columns of each are shared with the next. */
INLINE void LANED(read_channels)(const rows *w, int64_t tiles, int64_t channel, const int64_t n,
                                 uint16_t *to, int64_t row)
{
    LANED(vh) column[4 * RUN + 2][6];

    for (int64_t j = 0; j < 4 * tiles + 2; j++)
        LANED(column_points)(w, w->x + j, channel, n, column[j]);
    for (int64_t t = 0; t < tiles; t++)
        LANED(tile_points)(column + 4 * t, to + t * row + channel, TILES * row);
}
