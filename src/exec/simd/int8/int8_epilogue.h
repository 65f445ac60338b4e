/* SPDX-License-Identifier: Apache-2.0 */
/* The epilogue in registers: accumulators to codes. Shared by the loops of one instruction set. */
#ifndef OCT_EXEC_SIMD_INT8_INT8_EPILOGUE_H
#define OCT_EXEC_SIMD_INT8_INT8_EPILOGUE_H

#include "exec/simd/int8/int8_part.h"
#include "exec/simd/simd_epilogue.h"

/* -log2(e): the exponent of Swish as a power of 2 */
#define MINUS_LOG2_E (-1.44269504f)
#define MAX_POWER    120.0f

/* The power of the last four bits of each lane: 2^(i / 16), less what the index adds to its bits.
 */
INLINE vi power_at(vi i)
{
    static const int32_t powers[16] = {0x3f800000, 0x3f7daac3, 0x3f7b95c2, 0x3f79c3d3,
                                       0x3f7837f0, 0x3f76f532, 0x3f75fed7, 0x3f75583f,
                                       0x3f7504f3, 0x3f7508a4, 0x3f75672a, 0x3f76248c,
                                       0x3f7744fd, 0x3f78ccdf, 0x3f7ac0c7, 0x3f7d257d};
#if VW == 16 && defined(__AVX512F__)
    return (vi)_mm512_permutexvar_epi32((__m512i)i, (__m512i)load_vi(powers));
#elif VW == 8 && defined(__AVX2__)
    const __m256i low = _mm256_permutevar8x32_epi32((__m256i)load_vi(powers), (__m256i)i);
    const __m256i high = _mm256_permutevar8x32_epi32((__m256i)load_vi(powers + 8), (__m256i)i);
    const __m256i fourth = _mm256_slli_epi32((__m256i)i, 28);

    return (vi)_mm256_blendv_ps((__m256)low, (__m256)high, (__m256)fourth);
#else
    vi v;

    for (int k = 0; k < VW; k++)
        v[k] = powers[i[k] & 15];
    return v;
#endif
}

/* What 2^(x * slope) is multiplied by, also in its polynomial. */
typedef struct unit {
    vf one, linear, square;
} unit;

INLINE unit unit_of(vf one)
{
    return (unit){one, one * 0.693147182f, one * 0.240226507f};
}

/*
 * one * (1 + 2^(x * slope)) to 1e-6 relative; the caller keeps |x * slope| <= MAX_POWER. The power
 * is rounded to sixteenths, which a table holds; a short polynomial gives the rest. The same
 * operations on every set: codes may not depend on the machine.
 */
INLINE vf one_plus_power(vf x, vf slope, const unit *u)
{
    const vf magic = splat(786432.0f); /* 1.5 * 2^19: four bits are left */
    const vf m = fused(x, slope, magic), f = fused(x, slope, magic - m);
    vf p = fused(u->square, f, u->linear), power;
    vi i;

    memcpy(&i, &m, sizeof(i));
    i = power_at(i) + (vi)((vu)i << 19);
    memcpy(&power, &i, sizeof(power));
    p = fused(p, f, u->one);
    return fused(power, p, u->one);
}

/* x between -limit and limit */
INLINE vf cut(vf x, vf limit)
{
#if VW == 16 && defined(__AVX512DQ__)
    return (vf)_mm512_range_ps((__m512)x, (__m512)limit, 2);
#else
    return vmin(vmax(x, -limit), limit);
#endif
}

/* The quotient of act.h, in its order of operations. */
INLINE vf rational_sigmoid(vf x)
{
    static const float odd[] = OCT_ACT_LOGISTIC_ODD, even[] = OCT_ACT_LOGISTIC_EVEN;
    const vf y = cut(x, splat(OCT_ACT_LOGISTIC_LIMIT)), z = y * y;
    vf p = splat(odd[0]), q = splat(even[0]);

    UNROLL for (size_t i = 1; i < OCT_COUNT(odd); i++) p = fused(p, z, splat(odd[i]));
    UNROLL for (size_t i = 1; i < OCT_COUNT(even); i++) q = fused(q, z, splat(even[i]));
    return vmin(vmax(p * y / q + 0.5f, splat(0)), splat(1.0f));
}

INLINE vf activate(oct_act_kind kind, vf x, vf a, vf b)
{
    const unit one = unit_of(splat(1.0f));
    vf slope, t;

    switch (kind) {
    case OCT_ACT_SWISH: /* the power is clamped, not x: its slope may be anything */
        t = cut(x * a * MINUS_LOG2_E, splat(MAX_POWER));
        return x / one_plus_power(t, splat(1.0f), &one);
    case OCT_ACT_SIGMOID:
        slope = splat(MINUS_LOG2_E);
        return 1.0f / one_plus_power(cut(x, splat(MAX_POWER / -MINUS_LOG2_E)), slope, &one);
    case OCT_ACT_RATIONAL_SIGMOID:
        return rational_sigmoid(x);
    case OCT_ACT_RATIONAL_SWISH:
        return x * rational_sigmoid(x * a);
    default:
        return apply(kind, x, a, b);
    }
}

/* The parameters of a vector of channels. */
typedef struct channel_params {
    vf scale, bias, slope, limit, r_scale, r_zero, inv, low, high, a, b;
    vi zero;
    unit swish; /* 1 / scale */
} channel_params;

INLINE channel_params load_params(const oct_int8_epilogue *f, int64_t at)
{
    return (channel_params){load(f->scale + at),       load(f->bias + at),    load(f->slope + at),
                            load(f->limit + at),       load(f->r_scale + at), load(f->r_zero + at),
                            load(f->inv + at),         load(f->low + at),     load(f->high + at),
                            splat(f->act[0].a),        splat(f->act[0].b),    load_vi(f->zero + at),
                            unit_of(load(f->inv + at))};
}

/* Constants where this is used, so that each form gets its own loop. */
typedef struct form {
    oct_int8_way way;
    oct_act_kind kind; /* of the general form */
    bool residual;     /* a residual of codes is added */
    bool clamp;        /* a result may be too large to be rounded: clamp it first */
} form;

/* The result above its zero point, not yet rounded; r: codes of the residual, if any. */
INLINE vf value_of(const form w, const channel_params *k, vi sum, vf r)
{
    const vf s = to_float(sum);
    vf x;

    if (w.way == OCT_INT8_DIRECT) {
        x = s * k->scale;
    } else if (w.way == OCT_INT8_SWISH) {
        x = s / one_plus_power(cut(s, k->limit), k->slope, &k->swish);
    } else if (w.way == OCT_INT8_HARD_SWISH) {
        x = vmin(vmax(fused(s, k->slope, splat(0.5f)), splat(0)), splat(1.0f));
        x = s * k->scale * x;
    } else if (w.way == OCT_INT8_LEAKY) {
        x = s * k->scale;
        x = pick(x < 0.0f, x * k->a, x);
    } else {
        x = activate(w.kind, s * k->scale + k->bias, k->a, k->b);
        if (w.residual) x += (r - k->r_zero) * k->r_scale;
        x = x * k->inv;
    }
    return w.clamp ? vmin(vmax(x, k->low), k->high) : x;
}

INLINE vi code_of_value(const channel_params *k, vf x)
{
    return code_of(x, k->low, k->high, k->zero);
}

#if VW == 16 && defined(__AVX512BW__)
#define ROWS_TOGETHER 4

/* Limits and zero points in the order in which four rows are packed. */
typedef struct row_limits {
    __m512i zero, low, high; /* 16 bits; bytes */
    __m512i middle;          /* zero points less 128, of 32 bits */
} row_limits;

INLINE row_limits pack_limits(const channel_params *k)
{
    const __m512i low = (__m512i)(round_vi(k->low) + k->zero);
    const __m512i high = (__m512i)(round_vi(k->high) + k->zero);
    const __m512i l = _mm512_packs_epi32(low, low), h = _mm512_packs_epi32(high, high);

    return (row_limits){_mm512_packs_epi32((__m512i)k->zero, (__m512i)k->zero),
                        _mm512_packus_epi16(l, l), _mm512_packus_epi16(h, h),
                        (__m512i)(k->zero - 128)};
}

/* Four rows of 16 results to codes: packing saturates, so no row is clamped by itself. */
INLINE void store_rows(const row_limits *k, const vf x[4], uint8_t *y, int64_t pitch)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i q[4], a, b;

    UNROLL for (int i = 0; i < 4; i++) q[i] = _mm512_cvtps_epi32((__m512)x[i]);
    a = _mm512_adds_epi16(_mm512_packs_epi32(q[0], q[1]), k->zero);
    b = _mm512_adds_epi16(_mm512_packs_epi32(q[2], q[3]), k->zero);
    a = _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(a, b), k->low), k->high);
    a = _mm512_permutexvar_epi32(order, a);
    _mm_storeu_si128((__m128i *)(void *)y, _mm512_castsi512_si128(a));
    _mm_storeu_si128((__m128i *)(void *)(y + pitch), _mm512_extracti32x4_epi32(a, 1));
    _mm_storeu_si128((__m128i *)(void *)(y + 2 * pitch), _mm512_extracti32x4_epi32(a, 2));
    _mm_storeu_si128((__m128i *)(void *)(y + 3 * pitch), _mm512_extracti32x4_epi32(a, 3));
}

/*
 * The same for one form. Swish is limited only by the range of a byte, where narrowing saturates;
 * beside its long chains of operations four short ones are faster than one for all.
 */
INLINE void store_form_rows(const form w, const row_limits *k, const vf x[4], uint8_t *y,
                            int64_t pitch)
{
    if (w.way != OCT_INT8_SWISH) {
        store_rows(k, x, y, pitch);
        return;
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m512i q = _mm512_add_epi32(_mm512_cvtps_epi32((__m512)x[i]), k->middle);

        _mm_storeu_si128((__m128i *)(void *)(y + i * pitch),
                         _mm_xor_si128(_mm512_cvtsepi32_epi8(q), _mm_set1_epi8(-128)));
    }
}
#endif

#endif
