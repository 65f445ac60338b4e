/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From sums to codes while they are in the first-level cache: scale, activation, residual,
 * rounding. Compiled once for each instruction set.
 */
#include "exec/simd/finish.h"
#include "exec/simd/int8_part.h"

/* Rows of sums, and where they go. */
typedef struct rows {
    int32_t *sum;
    int64_t sum_pitch, n, count;
    void *y;
    int64_t y_pitch;
} rows;

/*
 * 1 / (1 + 2^t), within 2e-6: a quarter of the relative error of 2^t at most. The power is built
 * from a polynomial of the fraction; t is cut where the sum would leave the range of floats.
 */
INLINE vf sigmoid_2(vf t)
{
    vf f, p, e, r;

    t = vmin(t, splat(126.0f));
#if VW == 16 && defined(__AVX512F__)
    f = (vf)_mm512_reduce_ps((__m512)t, _MM_FROUND_TO_NEG_INF);
    p = multiply_add(splat(0.013534168f), f, splat(0.0520114623f));
    p = multiply_add(p, f, splat(0.241442754f));
    p = multiply_add(p, f, splat(0.693003835f));
    p = multiply_add(p, f, splat(1.00000259f));
    e = vscale(p, t) + 1.0f;
    r = (vf)_mm512_rcp14_ps((__m512)e);
    return r * (vf)_mm512_fnmadd_ps((__m512)e, (__m512)r, _mm512_set1_ps(2.0f));
#else
    t = vmax(t, splat(-126.0f));
    r = vround(t);
    f = t - r;
    p = multiply_add(splat(0.00957010195f), f, splat(0.0559178616f));
    p = multiply_add(p, f, splat(0.240247448f));
    p = multiply_add(p, f, splat(0.693121815f));
    p = multiply_add(p, f, splat(0.999999261f));
    e = vscale(p, r) + 1.0f;
    return 1.0f / e;
#endif
}

/* -log2(e): the exponent of Swish as a power of 2 */
#define MINUS_LOG2_E (-1.44269504f)

INLINE vf activate(oct_act_kind kind, vf x, vf a, vf b)
{
    switch (kind) {
    case OCT_ACT_SWISH:
        return x * sigmoid_2(x * a * MINUS_LOG2_E);
    case OCT_ACT_SIGMOID:
        return sigmoid_2(x * MINUS_LOG2_E);
    default:
        return apply(kind, x, a, b);
    }
}

/* Vectors of channels outside, so that what belongs to a channel stays in registers. */
#define FOR_VECTORS(n_) for (int64_t v = 0, lanes; lanes = OCT_MIN((n_)-v, VW), v < (n_); v += VW)

/* --- the two short forms --- */

static void direct(const oct_int8_finish *f, int64_t first, const rows *r)
{
    FOR_VECTORS(r->n)
    {
        const vf scale = load(f->scale + first + v);
        const vf low = load(f->low + first + v), high = load(f->high + first + v);
        const vi zero = load_vi(f->zero + first + v);
        const int32_t *s = r->sum + v;
        uint8_t *y = (uint8_t *)r->y + v;

        if (lanes == VW)
            for (int64_t i = 0; i < r->count; i++, s += r->sum_pitch, y += r->y_pitch)
                store_codes(y, code_of(to_float(load_vi(s)) * scale, low, high, zero));
        else
            for (int64_t i = 0; i < r->count; i++, s += r->sum_pitch, y += r->y_pitch)
                store_codes_part(y, code_of(to_float(load_vi(s)) * scale, low, high, zero), lanes);
    }
}

INLINE vi swish_code(const int32_t *s, vf scale, vf slope, vf low, vf high, vi zero)
{
    const vf x = to_float(load_vi(s));

    return code_of(x * scale * sigmoid_2(x * slope), low, high, zero);
}

static void swish(const oct_int8_finish *f, int64_t first, const rows *r)
{
    FOR_VECTORS(r->n)
    {
        const vf scale = load(f->scale + first + v), slope = load(f->slope + first + v);
        const vf low = load(f->low + first + v), high = load(f->high + first + v);
        const vi zero = load_vi(f->zero + first + v);
        const int32_t *s = r->sum + v;
        uint8_t *y = (uint8_t *)r->y + v;

        if (lanes == VW)
            for (int64_t i = 0; i < r->count; i++, s += r->sum_pitch, y += r->y_pitch)
                store_codes(y, swish_code(s, scale, slope, low, high, zero));
        else
            for (int64_t i = 0; i < r->count; i++, s += r->sum_pitch, y += r->y_pitch)
                store_codes_part(y, swish_code(s, scale, slope, low, high, zero), lanes);
    }
}

/* --- the long form --- */

/* y = act(scale * sum + bias) as codes or floats */
INLINE void first_act(const oct_int8_finish *f, int64_t first, const rows *r, oct_act_kind kind,
                      bool codes)
{
    const vf a = splat(f->act[0].a), b = splat(f->act[0].b);

    FOR_VECTORS(r->n)
    {
        const vf scale = load(f->scale + first + v), bias = load(f->bias + first + v);
        const vf inv = load(f->inv + first + v);
        const vf low = load(f->low + first + v), high = load(f->high + first + v);
        const vi zero = load_vi(f->zero + first + v);

        for (int64_t i = 0; i < r->count; i++) {
            const vf s = to_float(load_vi(r->sum + i * r->sum_pitch + v));
            const vf x = activate(kind, s * scale + bias, a, b);
            const int64_t at = i * r->y_pitch + v;

            if (codes && lanes == VW)
                store_codes((uint8_t *)r->y + at, code_of(x * inv, low, high, zero));
            else if (codes)
                store_codes_part((uint8_t *)r->y + at, code_of(x * inv, low, high, zero), lanes);
            else if (lanes == VW)
                store((float *)r->y + at, x);
            else
                store_part((float *)r->y + at, x, lanes);
        }
    }
}

static void first_act_to_codes(const oct_int8_finish *f, int64_t first, const rows *r)
{
#define TO_CODES(kind) first_act(f, first, r, kind, true)
    if (!f->act[0].kind) TO_CODES(OCT_ACT_NONE);
    FOR_ACT(f->act[0].kind, TO_CODES)
#undef TO_CODES
}

static void first_act_to_floats(const oct_int8_finish *f, int64_t first, const rows *r)
{
#define TO_FLOATS(kind) first_act(f, first, r, kind, false)
    if (!f->act[0].kind) TO_FLOATS(OCT_ACT_NONE);
    FOR_ACT(f->act[0].kind, TO_FLOATS)
#undef TO_FLOATS
}

/* x += residual, in place */
static void add_residual(const oct_int8_finish *f, int64_t first, const rows *r, const void *more,
                         int64_t more_pitch)
{
    FOR_VECTORS(r->n)
    {
        const vf scale = load(f->r_scale + first + v), zero = load(f->r_zero + first + v);

        for (int64_t i = 0; i < r->count; i++) {
            float *x = (float *)r->y + i * r->y_pitch + v;
            const int64_t at = i * more_pitch + v;
            vf m;

            if (f->residual == OCT_INT8_U8)
                m = (lanes == VW ? load_codes((const uint8_t *)more + at)
                                 : load_codes_part((const uint8_t *)more + at, lanes)) -
                    zero;
            else
                m = lanes == VW ? load((const float *)more + at)
                                : load_part((const float *)more + at, lanes);
            store(x, load(x) + m * scale);
        }
    }
}

static void to_result(const oct_int8_finish *f, int64_t first, const rows *r)
{
    const float *x = (const float *)(const void *)r->sum;

    FOR_VECTORS(r->n)
    {
        const vf inv = load(f->inv + first + v);
        const vf low = load(f->low + first + v), high = load(f->high + first + v);
        const vi zero = load_vi(f->zero + first + v);

        for (int64_t i = 0; i < r->count; i++) {
            const vf value = load(x + i * r->sum_pitch + v);
            const int64_t at = i * r->y_pitch + v;

            if (f->out == OCT_INT8_F32)
                store_part_or_all((float *)r->y + at, value, lanes);
            else if (lanes == VW)
                store_codes((uint8_t *)r->y + at, code_of(value * inv, low, high, zero));
            else
                store_codes_part((uint8_t *)r->y + at, code_of(value * inv, low, high, zero),
                                 lanes);
        }
    }
}

static void copy_sums(const rows *r)
{
    for (int64_t i = 0; i < r->count; i++)
        memcpy((int32_t *)r->y + i * r->y_pitch, r->sum + i * r->sum_pitch,
               (size_t)r->n * sizeof(int32_t));
}

void INT8_SYM(finish)(const oct_int8_finish *f, int32_t *sum, int64_t sum_pitch, int64_t first,
                      int64_t n, int64_t count, const void *more, int64_t more_pitch, void *y,
                      int64_t y_pitch)
{
    const rows r = {sum, sum_pitch, n, count, y, y_pitch};
    rows floats = r; /* in place of the sums */

    if (f->out == OCT_INT8_S32) {
        copy_sums(&r);
    } else if (f->way == OCT_INT8_DIRECT) {
        direct(f, first, &r);
    } else if (f->way == OCT_INT8_SWISH) {
        swish(f, first, &r);
    } else if (f->residual) {
        floats.y = sum;
        floats.y_pitch = sum_pitch;
        floats.n = (n + VW - 1) / VW * VW; /* the sums' rows are whole vectors */
        first_act_to_floats(f, first, &floats);
        floats.n = n;
        add_residual(f, first, &floats, more, more_pitch);
        if (f->act[1].kind) act_rows(&f->act[1], floats.y, sum_pitch, count, n);
        to_result(f, first, &r);
    } else if (f->out == OCT_INT8_U8) {
        first_act_to_codes(f, first, &r);
    } else {
        first_act_to_floats(f, first, &r);
    }
}
