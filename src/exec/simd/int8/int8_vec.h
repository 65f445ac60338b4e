/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of codes and accumulators, beside the floats of vec.h: all that differs between
 * instruction sets in the integer loops.
 *
 * Four products are added to an accumulator at once. With VNNI one instruction does it; without,
 * codes and weights are widened to 16 bits first, since the 8-bit multiply-add of older sets
 * saturates.
 */
#ifndef OCT_EXEC_SIMD_INT8_INT8_VEC_H
#define OCT_EXEC_SIMD_INT8_INT8_VEC_H

#include "exec/simd/int8/simd_int8.h"
#include "exec/simd/vec.h"

#define INT8_JOIN_(a, b) a##b
#define INT8_JOIN(a, b)  INT8_JOIN_(a, b)
/* The name of a symbol of this instruction set that another file uses. */
#define INT8_SYM(name) INT8_JOIN(INT8_JOIN(oct_int8_, OCT_INT8_SET), _##name)

#if defined(OCT_INT8_ROLLED) /* for sanitizers and coverage */
#define UNROLL
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

#define BW (VW * 4) /* bytes of a vector */

typedef uint8_t vb __attribute__((vector_size(BW)));
typedef uint8_t vq __attribute__((vector_size(VW))); /* one code for each lane */
typedef uint32_t vu __attribute__((vector_size(BW)));
typedef int16_t vs __attribute__((vector_size(BW)));
typedef double vd __attribute__((vector_size(VW * 8)));

#if (VW == 16 && defined(__AVX512VNNI__)) || (VW == 8 && defined(__AVXVNNI__))
#define QUAD_BYTES 4
#else
#define QUAD_BYTES 8
#endif
#define QUAD_VECS (QUAD_BYTES / 4)

/* Quads of codes or of weights, one for each lane. */
typedef struct quads {
    vi v[QUAD_VECS];
} quads;

INLINE vi load_vi(const int32_t *p)
{
    vi v;

    memcpy(&v, p, sizeof(v));
    return v;
}

INLINE void store_vi(int32_t *p, vi v)
{
    memcpy(p, &v, sizeof(v));
}

INLINE vi splat_vi(int32_t x)
{
    return x - (vi){0};
}

/* Packed weights. */
INLINE quads load_weights(const int8_t *p)
{
    quads q; /* vector by vector: a struct would be copied through memory */

    for (int i = 0; i < QUAD_VECS; i++)
        memcpy(&q.v[i], p + i * BW, BW);
    return q;
}

/*
 * Codes in bytes 0 and 2 of each lane, and in 1 and 3, as pairs of 16 bits. The bytes are selected
 * by intrinsics that compilers leave alone: masks would be moved to scalar registers.
 */
INLINE quads widen(vi x)
{
#if QUAD_BYTES == 4
    return (quads){{x}};
#elif VW == 16 && defined(__AVX512BW__)
    return (quads){{(vi)_mm512_maskz_mov_epi8(0x5555555555555555u, (__m512i)x),
                    (vi)_mm512_srli_epi16((__m512i)x, 8)}};
#elif VW == 8 && defined(__AVX2__)
    const __m256i even = _mm256_set1_epi64x((int64_t)0xff06ff04ff02ff00u);
    const __m256i high = _mm256_set1_epi64x((int64_t)0xff0eff0cff0aff08u);

    return (quads){{(vi)_mm256_shuffle_epi8((__m256i)x, _mm256_unpacklo_epi64(even, high)),
                    (vi)_mm256_srli_epi16((__m256i)x, 8)}};
#else
    return (quads){{x & 0x00ff00ff, (x >> 8) & 0x00ff00ff}};
#endif
}

/* The same four codes in each lane. */
INLINE quads splat_quad(const uint8_t *p)
{
    int32_t x;

    memcpy(&x, p, sizeof(x));
    return widen(splat_vi(x));
}

INLINE quads load_quads(const uint8_t *p)
{
    vi x;

    memcpy(&x, p, sizeof(x));
    return widen(x);
}

#if QUAD_BYTES == 8
INLINE vi multiply_pairs(vi a, vi b)
{
#if VW == 16 && defined(__AVX512BW__)
    return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif VW == 8 && defined(__AVX2__)
    return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif VW == 4 && defined(__SSE2__)
    return (vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}
#endif

/* accumulator + the four products of each lane */
INLINE vi dot(vi sum, quads x, quads w)
{
#if VW == 16 && QUAD_BYTES == 4
    return (vi)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x.v[0], (__m512i)w.v[0]);
#elif VW == 8 && QUAD_BYTES == 4
    return (vi)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)x.v[0], (__m256i)w.v[0]);
#else
    return sum + (multiply_pairs(x.v[0], w.v[0]) + multiply_pairs(x.v[1], w.v[1]));
#endif
}

/* --- bytes --- */

INLINE vb load_bytes(const uint8_t *p)
{
    vb v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* The first n (< BW) bytes; the others are zero. */
INLINE vb load_bytes_part(const uint8_t *p, int64_t n)
{
#if VW == 16 && defined(__AVX512BW__)
    return (vb)_mm512_maskz_loadu_epi8(((__mmask64)1 << n) - 1, p);
#else
    vb v = {0};

    memcpy(&v, p, (size_t)n);
    return v;
#endif
}

INLINE void store_bytes(uint8_t *p, vb v)
{
    memcpy(p, &v, sizeof(v));
}

/* Lane i of out[j] has the bytes of channel j * VW + i from four rows. */
INLINE void interleave(const vb row[4], vb out[4])
{
#if VW == 16 && defined(__AVX512BW__)
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i r[4], a, b, c, d;

    UNROLL for (int i = 0; i < 4; i++) r[i] = _mm512_permutexvar_epi32(order, (__m512i)row[i]);
    a = _mm512_unpacklo_epi8(r[0], r[1]);
    b = _mm512_unpackhi_epi8(r[0], r[1]);
    c = _mm512_unpacklo_epi8(r[2], r[3]);
    d = _mm512_unpackhi_epi8(r[2], r[3]);
    out[0] = (vb)_mm512_unpacklo_epi16(a, c);
    out[1] = (vb)_mm512_unpackhi_epi16(a, c);
    out[2] = (vb)_mm512_unpacklo_epi16(b, d);
    out[3] = (vb)_mm512_unpackhi_epi16(b, d);
#elif VW == 8 && defined(__AVX2__)
    const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    __m256i r[4], a, b, c, d;

    UNROLL for (int i = 0; i < 4; i++) r[i] = _mm256_permutevar8x32_epi32((__m256i)row[i], order);
    a = _mm256_unpacklo_epi8(r[0], r[1]);
    b = _mm256_unpackhi_epi8(r[0], r[1]);
    c = _mm256_unpacklo_epi8(r[2], r[3]);
    d = _mm256_unpackhi_epi8(r[2], r[3]);
    out[0] = (vb)_mm256_unpacklo_epi16(a, c);
    out[1] = (vb)_mm256_unpackhi_epi16(a, c);
    out[2] = (vb)_mm256_unpacklo_epi16(b, d);
    out[3] = (vb)_mm256_unpackhi_epi16(b, d);
#elif VW == 4 && defined(__SSE2__)
    const __m128i a = _mm_unpacklo_epi8((__m128i)row[0], (__m128i)row[1]);
    const __m128i b = _mm_unpackhi_epi8((__m128i)row[0], (__m128i)row[1]);
    const __m128i c = _mm_unpacklo_epi8((__m128i)row[2], (__m128i)row[3]);
    const __m128i d = _mm_unpackhi_epi8((__m128i)row[2], (__m128i)row[3]);

    out[0] = (vb)_mm_unpacklo_epi16(a, c);
    out[1] = (vb)_mm_unpackhi_epi16(a, c);
    out[2] = (vb)_mm_unpacklo_epi16(b, d);
    out[3] = (vb)_mm_unpackhi_epi16(b, d);
#else
    for (int i = 0; i < BW; i++)
        for (int r = 0; r < 4; r++)
            out[i / VW][i % VW * 4 + r] = row[r][i];
#endif
}

/* --- one code for each lane --- */

INLINE vf to_float(vi x)
{
    return __builtin_convertvector(x, vf);
}

/* Codes 0..255 as floats. */
INLINE vf load_codes(const uint8_t *p)
{
#if VW == 16 && defined(__AVX512F__)
    return to_float((vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
#elif VW == 8 && defined(__AVX2__)
    return to_float((vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
#else
    vq q;

    memcpy(&q, p, sizeof(q));
    return __builtin_convertvector(q, vf);
#endif
}

/* The first n (< VW). */
INLINE vf load_codes_part(const uint8_t *p, int64_t n)
{
    uint8_t some[VW] = {0};

    memcpy(some, p, (size_t)n);
    return load_codes(some);
}

/* rint, ties to even; |x| < 2^22 */
INLINE vi round_vi(vf x)
{
#if VW == 16 && defined(__AVX512F__)
    return (vi)_mm512_cvtps_epi32((__m512)x);
#elif VW == 8 && defined(__AVX2__)
    return (vi)_mm256_cvtps_epi32((__m256)x);
#elif VW == 4 && defined(__SSE2__)
    return (vi)_mm_cvtps_epi32((__m128)x);
#else
    return __builtin_convertvector(vround(x), vi);
#endif
}

/* Lanes are in 0..255. */
INLINE vq to_codes(vi x)
{
#if VW == 16 && defined(__AVX512F__)
    return (vq)_mm512_cvtepi32_epi8((__m512i)x);
#elif VW == 8 && defined(__AVX2__)
    const __m256i s = _mm256_packs_epi32((__m256i)x, (__m256i)x);
    const __m256i b = _mm256_packus_epi16(s, s);
    const __m128i h = _mm_unpacklo_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
    const int64_t low = _mm_cvtsi128_si64(h);
    vq q;

    memcpy(&q, &low, sizeof(q));
    return q;
#else
    return __builtin_convertvector(x, vq);
#endif
}

INLINE void store_codes(uint8_t *p, vi x)
{
    const vq q = to_codes(x);

    memcpy(p, &q, sizeof(q));
}

INLINE void store_codes_part(uint8_t *p, vi x, int64_t n)
{
    const vq q = to_codes(x);

    memcpy(p, &q, (size_t)n);
}

/* rint(x) + zero between limits given above the zero point; NaN gives the lower one. */
INLINE vi code_of(vf x, vf low, vf high, vi zero)
{
    return round_vi(vmin(vmax(x, low), high)) + zero;
}

/* a * b + c with one rounding, on every set */
INLINE vf fused(vf a, vf b, vf c)
{
#if VW == 16 && defined(__AVX512F__)
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif VW == 8 && defined(__FMA__)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    /* the product is exact, and nearly always the sum is too */
    const vd x = __builtin_convertvector(a, vd) * __builtin_convertvector(b, vd);

    return __builtin_convertvector(x + __builtin_convertvector(c, vd), vf);
#endif
}

#endif
