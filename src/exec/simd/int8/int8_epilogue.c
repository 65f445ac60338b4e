/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epilogue: accumulators to codes while they are in the first-level cache: scale, activation,
 * residual, rounding. Compiled once for each instruction set.
 */
#include "exec/simd/int8/int8_epilogue.h"

/* Vectors of channels in the outer loop, so that channel parameters stay in registers. */
#define FOR_VECTORS(n_) for (int64_t v = 0, lanes; lanes = OCT_MIN((n_)-v, VW), v < (n_); v += VW)

INLINE vf residual_codes(const form w, const oct_int8_rows *r, int64_t i, int64_t v, int64_t lanes)
{
    const uint8_t *p = (const uint8_t *)r->residual + i * r->residual_pitch + v;

    if (!w.residual) return splat(0);
    return lanes == VW ? load_codes(p) : load_codes_part(p, lanes);
}

/* --- to codes, in one pass --- */

/* All rows of one vector of channels. */
INLINE void to_codes_vector(const form w, const oct_int8_epilogue *f, const oct_int8_rows *r,
                            int64_t v, int64_t lanes)
{
    const channel_params k = load_params(f, r->first + v);
    uint8_t *y = (uint8_t *)r->y + v;

#if defined(ROWS_TOGETHER)
    if (lanes == VW && r->count >= ROWS_TOGETHER) {
        const row_limits limits = pack_limits(&k);

        for (int64_t i = 0; i < r->count; i += ROWS_TOGETHER) {
            /* the last four may repeat some rows */
            const int64_t at = OCT_MIN(i, r->count - ROWS_TOGETHER);
            vf x[ROWS_TOGETHER];

            UNROLL for (int j = 0; j < ROWS_TOGETHER; j++) x[j] =
                value_of(w, &k, load_vi(r->sum + (at + j) * r->acc_pitch + v),
                         residual_codes(w, r, at + j, v, VW));
            store_form_rows(w, &limits, x, y + at * r->y_pitch, r->y_pitch);
        }
        return;
    }
#endif
    for (int64_t i = 0; i < r->count; i++) {
        const vf x = value_of(w, &k, load_vi(r->sum + i * r->acc_pitch + v),
                              residual_codes(w, r, i, v, lanes));

        if (lanes == VW)
            store_codes(y + i * r->y_pitch, code_of_value(&k, x));
        else
            store_codes_part(y + i * r->y_pitch, code_of_value(&k, x), lanes);
    }
}

INLINE void to_codes_rows(const form w, const oct_int8_epilogue *f, const oct_int8_rows *r)
{
    FOR_VECTORS(r->n) to_codes_vector(w, f, r, v, lanes);
}

static void short_form(const oct_int8_epilogue *f, const oct_int8_rows *r)
{
    switch (f->way) {
#define CASE(way_)                                                                                 \
    case way_:                                                                                     \
        if (f->no_overflow)                                                                        \
            to_codes_rows((form){.way = way_}, f, r);                                              \
        else                                                                                       \
            to_codes_rows((form){.way = way_, .clamp = true}, f, r);                               \
        break
        CASE(OCT_INT8_DIRECT);
        CASE(OCT_INT8_LEAKY);
        CASE(OCT_INT8_SWISH);
        CASE(OCT_INT8_HARD_SWISH);
#undef CASE
    default:
        break;
    }
}

#define WHOLE(kind_, residual_)                                                                    \
    to_codes_rows((form){OCT_INT8_GENERAL, kind_, residual_, true}, f, r)

static void general_form(const oct_int8_epilogue *f, const oct_int8_rows *r)
{
#define ALONE(kind) WHOLE(kind, false)
    if (!f->act[0].kind) ALONE(OCT_ACT_NONE);
    FOR_ACT(f->act[0].kind, ALONE)
#undef ALONE
}

static void general_form_with_residual(const oct_int8_epilogue *f, const oct_int8_rows *r)
{
#define AND_MORE(kind) WHOLE(kind, true)
    if (!f->act[0].kind) AND_MORE(OCT_ACT_NONE);
    FOR_ACT(f->act[0].kind, AND_MORE)
#undef AND_MORE
}

/* --- to floats, or in several steps --- */

/* y = act(scale * accumulator + bias) */
INLINE void first_act(oct_act_kind kind, const oct_int8_epilogue *f, const oct_int8_rows *r)
{
    const oct_int8_rows local = *r; /* a local copy: what is written cannot alias its fields */

    FOR_VECTORS(local.n)
    {
        const channel_params k = load_params(f, local.first + v);
        const int32_t *sum = local.sum + v;
        float *y = (float *)local.y + v;

        for (int64_t i = 0; i < local.count; i++) {
            const vf s = to_float(load_vi(sum + i * local.acc_pitch));

            store_part_or_all(y + i * local.y_pitch, activate(kind, s * k.scale + k.bias, k.a, k.b),
                              lanes);
        }
    }
}

static void to_floats(const oct_int8_epilogue *f, const oct_int8_rows *r)
{
#define TO_FLOATS(kind) first_act(kind, f, r)
    if (!f->act[0].kind) TO_FLOATS(OCT_ACT_NONE);
    if (f->act[0].kind == OCT_ACT_RATIONAL_SIGMOID) TO_FLOATS(OCT_ACT_RATIONAL_SIGMOID);
    if (f->act[0].kind == OCT_ACT_RATIONAL_SWISH) TO_FLOATS(OCT_ACT_RATIONAL_SWISH);
    FOR_ACT(f->act[0].kind, TO_FLOATS)
#undef TO_FLOATS
}

/* y += residual, in place */
static void add_residual(const oct_int8_epilogue *f, const oct_int8_rows *r)
{
    FOR_VECTORS(r->n)
    {
        const channel_params k = load_params(f, r->first + v);

        for (int64_t i = 0; i < r->count; i++) {
            float *x = (float *)r->y + i * r->y_pitch + v;
            const float *residual = (const float *)r->residual + i * r->residual_pitch + v;
            vf m;

            if (f->residual == OCT_INT8_U8)
                m = residual_codes((form){.residual = true}, r, i, v, lanes) - k.r_zero;
            else
                m = lanes == VW ? load(residual) : load_part(residual, lanes);
            store(x, load(x) + m * k.r_scale);
        }
    }
}

static void to_result(const oct_int8_epilogue *f, const oct_int8_rows *r)
{
    const float *x = (const float *)(const void *)r->sum;

    FOR_VECTORS(r->n)
    {
        const channel_params k = load_params(f, r->first + v);

        for (int64_t i = 0; i < r->count; i++) {
            const vf value = load(x + i * r->acc_pitch + v);
            const int64_t at = i * r->y_pitch + v;

            if (f->out == OCT_INT8_F32)
                store_part_or_all((float *)r->y + at, value, lanes);
            else if (lanes == VW)
                store_codes((uint8_t *)r->y + at, code_of_value(&k, value * k.inv));
            else
                store_codes_part((uint8_t *)r->y + at, code_of_value(&k, value * k.inv), lanes);
        }
    }
}

/* Floats replace the accumulators until the residual is added. */
static void in_steps(const oct_int8_epilogue *f, const oct_int8_rows *r)
{
    oct_int8_rows floats = *r;

    floats.y = r->sum;
    floats.y_pitch = r->acc_pitch;
    floats.n = oct_ceil_div(r->n, VW) * VW; /* rows of accumulators are whole vectors */
    to_floats(f, &floats);
    floats.n = r->n;
    add_residual(f, &floats);
    if (f->act[1].kind) act_rows(&f->act[1], floats.y, r->acc_pitch, r->count, r->n);
    to_result(f, r);
}

static void copy_accumulators(const oct_int8_rows *r)
{
    for (int64_t i = 0; i < r->count; i++)
        memcpy((int32_t *)r->y + i * r->y_pitch, r->sum + i * r->acc_pitch,
               (size_t)r->n * sizeof(int32_t));
}

/* No copy of *r here: wide loads of what the caller has just written in pieces would have to wait.
 */
void INT8_SYM(epilogue)(const oct_int8_epilogue *f, const oct_int8_rows *restrict r)
{
    const bool codes = f->out == OCT_INT8_U8;

    if (f->out == OCT_INT8_S32) {
        copy_accumulators(r);
    } else if (f->way != OCT_INT8_GENERAL) {
        short_form(f, r);
    } else if (!f->residual) {
        codes ? general_form(f, r) : to_floats(f, r);
    } else if (codes && f->residual == OCT_INT8_U8 && !f->act[1].kind) {
        general_form_with_residual(f, r);
    } else {
        in_steps(f, r);
    }
}
