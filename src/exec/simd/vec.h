/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of VW floats as the compiler's vector type, and the mathematics on them. */
#ifndef OCT_EXEC_SIMD_VEC_H
#define OCT_EXEC_SIMD_VEC_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define VW OCT_SIMD_WIDTH

typedef float vf __attribute__((vector_size(VW * 4)));
typedef int32_t vi __attribute__((vector_size(VW * 4)));

#define INLINE static inline __attribute__((always_inline))

#if VW == 8 && defined(__AVX2__)
INLINE __m256i first_lanes(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif

INLINE vf load(const float *p)
{
    vf v;

    memcpy(&v, p, sizeof(v));
    return v;
}

INLINE void store(float *p, vf v)
{
    memcpy(p, &v, sizeof(v));
}

/* The first n (< VW) floats; the others are zero. */
INLINE vf load_part(const float *p, int64_t n)
{
#if VW == 16 && defined(__AVX512F__)
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif VW == 8 && defined(__AVX2__)
    return (vf)_mm256_maskload_ps(p, first_lanes(n));
#else
    vf v = {0};

    memcpy(&v, p, (size_t)n * sizeof(float));
    return v;
#endif
}

INLINE void store_part(float *p, vf v, int64_t n)
{
#if VW == 16 && defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif VW == 8 && defined(__AVX2__)
    _mm256_maskstore_ps(p, first_lanes(n), (__m256)v);
#else
    memcpy(p, &v, (size_t)n * sizeof(float));
#endif
}

INLINE vf splat(float x)
{
    return x - (vf){0};
}

INLINE vf pick(vi mask, vf a, vf b)
{
    vi x, y;

    memcpy(&x, &a, sizeof(x));
    memcpy(&y, &b, sizeof(y));
    x = (x & mask) | (y & ~mask);
    memcpy(&a, &x, sizeof(a));
    return a;
}

/* Intrinsics where the compiler does not find the instruction in the general form. */
#if VW == 16 && defined(__AVX512F__)
INLINE vf vmax(vf a, vf b)
{
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
}

INLINE vf vmin(vf a, vf b)
{
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
}

INLINE vf vround(vf x)
{
    return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* p * 2^n for whole n */
INLINE vf vscale(vf p, vf n)
{
    return (vf)_mm512_scalef_ps((__m512)p, (__m512)n);
}

/* 1 / x to about 2^-23 relative, without the slow division */
INLINE vf vinverse(vf x)
{
    const vf r = (vf)_mm512_rcp14_ps((__m512)x);

    return r * (2.0f - x * r);
}
#else
#if VW == 8 && defined(__AVX2__)
INLINE vf vmax(vf a, vf b)
{
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
}

INLINE vf vmin(vf a, vf b)
{
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
}
#else
INLINE vf vmax(vf a, vf b)
{
    return pick(a > b, a, b);
}

INLINE vf vmin(vf a, vf b)
{
    return pick(a < b, a, b);
}
#endif

INLINE vf vround(vf x)
{
    const vf magic = splat(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */

    return (x + magic) - magic;
}

INLINE vf vscale(vf p, vf n)
{
    const vi e = (__builtin_convertvector(n, vi) + 127) << 23;

    memcpy(&n, &e, sizeof(n));
    return p * n;
}

INLINE vf vinverse(vf x)
{
    return 1.0f / x;
}
#endif

/* e^x to about 2e-7 relative (with fused multiply-add); x is clamped to [-87, 88]. */
INLINE vf vexp(vf x)
{
    const vf y = vmin(vmax(x, splat(-87.0f)), splat(88.0f)), n = vround(y * 1.44269502f);
    const vf f = (y * 1.44269502f - n) + y * 1.92596299e-8f; /* log2(e) in two parts */
    vf p = f * 0.0013276470f + 0.0096755413f;                /* 2^f on [-1/2, 1/2] */

    p = p * f + 0.0555071346f;
    p = p * f + 0.2402212024f;
    p = p * f + 0.6931469440f;
    p = p * f + 1.0000001192f;
    return vscale(p, n);
}

INLINE vf vsigmoid(vf x)
{
    return vinverse(1.0f + vexp(-x));
}

/* Near zero a polynomial keeps the relative error small. */
INLINE vf vtanh(vf x)
{
    const vf z = x * x, far = 1.0f - 2.0f / (vexp(2.0f * x) + 1.0f);
    vf p = z * -5.70498872745e-3f + 2.06390887954e-2f;

    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    p = p * z * x + x;
    return pick(z < 0.390625f, p, far);
}

/* Abramowitz and Stegun 7.1.26, absolute error below 1.5e-7. */
INLINE vf verf(vf x)
{
    const vi negative = x < 0.0f;
    const vf a = pick(negative, -x, x), t = 1.0f / (a * 0.3275911f + 1.0f);
    vf p = t * 1.061405429f - 1.453152027f;

    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    p = 1.0f - p * t * vexp(-a * a);
    return pick(negative, -p, p);
}

#endif
