/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes channels-last to and from planes of f32, block by block through a small buffer of bytes.
 * Compiled once for each instruction set.
 */
#include "exec/simd/int8_part.h"

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

/* Three channels, nothing else between pixels: a picture. 16 pixels at a time. */
static void put_picture(const block *b, uint8_t *y)
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
        put_picture(b, y);
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

void INT8_SYM(quantize_planes)(const oct_int8_codes *q, const float *x, int64_t plane, int64_t c,
                               int64_t pixels, uint8_t *y, int64_t pitch)
{
    block b;

    for (int64_t i = 0; i < pixels; i += PIXELS)
        for (int64_t first = 0; first < c; first += CHANNELS) {
            const int64_t n = OCT_MIN(pixels - i, PIXELS), channels = OCT_MIN(c - first, CHANNELS);

            for (int64_t k = 0; k < channels; k++) {
                const int32_t z = zero_at(q, first + k);
                const vf scale = splat(q->scale[q->n > 1 ? first + k : 0]);
                const vf low = splat((float)-z), high = splat((float)(255 - z));
                const float *from = x + (first + k) * plane + i;

                for (int64_t p = 0; p < n; p += VW) {
                    const vf v = n - p >= VW ? load(from + p) : load_part(from + p, n - p);

                    store_codes(b.code[k] + p, code_of(v / scale, low, high, splat_vi(z)));
                }
            }
            put_pixels(&b, channels, n, y + i * pitch + first, pitch);
        }
}

void INT8_SYM(dequantize_planes)(const oct_int8_codes *q, const uint8_t *x, int64_t pitch,
                                 int64_t c, int64_t pixels, float *y, int64_t plane)
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
