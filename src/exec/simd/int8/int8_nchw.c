/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NHWC codes to and from f32 NCHW, block by block through a small buffer of bytes. Compiled once
 * for each instruction set.
 */
#include "exec/simd/int8/int8_part.h"

#define PIXELS   64 /* of a block */
#define CHANNELS 64

typedef struct block {
    uint8_t code[CHANNELS][PIXELS]; /* channel by channel */
} block;

static int32_t zero_at(const oct_int8_codes *q, int64_t k)
{
    return q->zero ? q->zero[q->n > 1 ? k : 0] : 0;
}

#if VW >= 8 && defined(__AVX2__)
/* Which of 16 codes of channel `which` go where in the part'th 16 of 48 bytes. */
INLINE __m128i thirds(int which, int part)
{
    int8_t at[16];

    for (int i = 0; i < 16; i++)
        at[i] = (int8_t)((part * 16 + i) % 3 == which ? (part * 16 + i) / 3 : -1);
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* Three contiguous channels (an RGB image), 16 pixels at a time. */
static void put_rgb(const block *b, uint8_t *y)
{
    __m128i order[3][3];

    for (int k = 0; k < 3; k++)
        for (int part = 0; part < 3; part++)
            order[k][part] = thirds(k, part);
    for (int64_t i = 0; i < PIXELS; i += 16)
        for (int part = 0; part < 3; part++) {
            __m128i v = _mm_setzero_si128();

            for (int k = 0; k < 3; k++) {
                const void *from = b->code[k] + i;

                v = _mm_or_si128(
                    v, _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)from), order[k][part]));
            }
            _mm_storeu_si128((__m128i *)(void *)(y + i * 3 + part * 16), v);
        }
}
#endif

/* 4 x 4 codes at a time: a word of each pixel. */
static void put_pixels(const block *b, int64_t c, int64_t pixels, uint8_t *y, int64_t pitch)
{
    int64_t k = 0;

#if VW >= 8 && defined(__AVX2__)
    if (c == 3 && pitch == 3 && pixels == PIXELS) {
        put_rgb(b, y);
        return;
    }
#endif
    for (; k + 4 <= c; k += 4)
        for (int64_t i = 0; i < pixels; i++) {
            const uint8_t word[4] = {b->code[k][i], b->code[k + 1][i], b->code[k + 2][i],
                                     b->code[k + 3][i]};

            memcpy(y + i * pitch + k, word, 4);
        }
    for (; k < c; k++)
        for (int64_t i = 0; i < pixels; i++)
            y[i * pitch + k] = b->code[k][i];
}

#if VW == 16 && defined(__AVX512BW__)
#define AHEAD 1024 /* floats that are fetched before they are read */

/* rint(x / scale), clamped from above here; packing saturates below. */
INLINE __m512i steps(const float *x, vf scale, vf high)
{
    _mm_prefetch((const char *)(x + AHEAD), _MM_HINT_T0);
    return _mm512_cvtps_epi32(_mm512_min_ps((__m512)high, (__m512)(load(x) / scale)));
}

/* Three contiguous channels, 16 pixels at a time; returns the number of pixels done. */
static int64_t quantize_rgb(const oct_int8_codes *q, const float *x, int64_t plane, int64_t pixels,
                            uint8_t *y)
{
    const __m512i pick =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, -1, -1, -1, -1));
    const __m512i order = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
    __m512i zero[3], two, one;
    vf scale[3], high[3];
    int64_t i = 0;

    for (int k = 0; k < 3; k++) {
        scale[k] = splat(q->scale[q->n > 1 ? k : 0]);
        high[k] = splat((float)(oct_int8_last(q) - zero_at(q, k)));
        zero[k] = _mm512_set1_epi32(zero_at(q, k));
    }
    two = _mm512_packs_epi32(zero[0], zero[1]);
    one = _mm512_packs_epi32(zero[2], zero[2]);
    for (; i + 16 <= pixels; i += 16) {
        const __m512i r = steps(x + i, scale[0], high[0]);
        const __m512i g = steps(x + plane + i, scale[1], high[1]);
        const __m512i b = steps(x + 2 * plane + i, scale[2], high[2]);
        const __m512i rg = _mm512_adds_epi16(_mm512_packs_epi32(r, g), two);
        const __m512i bb = _mm512_adds_epi16(_mm512_packs_epi32(b, b), one);
        const __m512i v =
            _mm512_permutexvar_epi32(order, _mm512_shuffle_epi8(_mm512_packus_epi16(rg, bb), pick));

        _mm256_storeu_si256((__m256i *)(void *)(y + i * 3), _mm512_castsi512_si256(v));
        _mm_storeu_si128((__m128i *)(void *)(y + i * 3 + 32), _mm512_extracti32x4_epi32(v, 2));
    }
    return i;
}
#else
static int64_t quantize_rgb(const oct_int8_codes *q, const float *x, int64_t plane, int64_t pixels,
                            uint8_t *y)
{
    (void)q, (void)x, (void)plane, (void)pixels, (void)y; /* block by block is as fast */
    return 0;
}
#endif

void INT8_SYM(quantize_nchw)(const oct_int8_codes *q, const float *x, int64_t plane, int64_t c,
                             int64_t pixels, uint8_t *y, int64_t pitch)
{
    block b;

    for (int64_t i = c == 3 && pitch == 3 ? quantize_rgb(q, x, plane, pixels, y) : 0; i < pixels;
         i += PIXELS)
        for (int64_t first = 0; first < c; first += CHANNELS) {
            const int64_t n = OCT_MIN(pixels - i, PIXELS), channels = OCT_MIN(c - first, CHANNELS);

            for (int64_t k = 0; k < channels; k++) {
                const int32_t z = zero_at(q, first + k);
                const vf scale = splat(q->scale[q->n > 1 ? first + k : 0]);
                const vf low = splat((float)-z), high = splat((float)(oct_int8_last(q) - z));
                const float *from = x + (first + k) * plane + i;

                for (int64_t p = 0; p < n; p += VW) {
                    const vf v = n - p >= VW ? load(from + p) : load_part(from + p, n - p);

                    store_codes(b.code[k] + p, code_of(v / scale, low, high, splat_vi(z)));
                }
            }
            put_pixels(&b, channels, n, y + i * pitch + first, pitch);
        }
}

void INT8_SYM(dequantize_nchw)(const oct_int8_codes *q, const uint8_t *x, int64_t pitch, int64_t c,
                               int64_t pixels, float *y, int64_t plane)
{
    block b;

    for (int64_t i = 0; i < pixels; i += PIXELS)
        for (int64_t first = 0; first < c; first += CHANNELS) {
            const int64_t n = OCT_MIN(pixels - i, PIXELS), channels = OCT_MIN(c - first, CHANNELS);

            for (int64_t p = 0; p < n; p++) {
                const uint8_t *from = x + (i + p) * pitch + first;

                for (int64_t k = 0; k < channels; k++)
                    b.code[k][p] = from[k];
            }
            for (int64_t k = 0; k < channels; k++) {
                const vf zero = splat((float)zero_at(q, first + k));
                const vf scale = splat(q->scale[q->n > 1 ? first + k : 0]);
                float *to = y + (first + k) * plane + i;

                for (int64_t p = 0; p < n; p += VW)
                    store_part_or_all(to + p, (load_codes(b.code[k] + p) - zero) * scale,
                                      OCT_MIN(n - p, VW));
            }
        }
}
