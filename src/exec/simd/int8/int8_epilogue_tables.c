/* SPDX-License-Identifier: Apache-2.0 */
/* The epilogue's parameters by channel, as vectors load them: scales, zero points and limits. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "exec/simd/int8/simd_int8.h"
#include "op/quant.h"

static size_t arrays_size(int64_t c, int n)
{
    return (size_t)oct_int8_padded(c) * sizeof(float) * (size_t)n;
}

/* n arrays for c channels, all zero. The last one holds integers: it is returned. */
static int32_t *take_arrays(void *memory, int64_t c, int n, float **list)
{
    const int64_t padded = oct_int8_padded(c);

    memset(memory, 0, arrays_size(c, n));
    for (int i = 0; i < n; i++)
        list[i] = (float *)memory + i * padded;
    return (int32_t *)memory + (n - 1) * padded;
}

/* --- epilogue --- */

enum { SCALE, BIAS, SLOPE, LIMIT, R_SCALE, R_ZERO, INV, LOW, HIGH, ZERO, N_ARRAYS };

size_t oct_int8_epilogue_size(int64_t c)
{
    return arrays_size(c, N_ARRAYS);
}

static float scale_of(const oct_int8_codes *q, int64_t i)
{
    return q->scale[q->n > 1 ? i : 0];
}

static int32_t zero_of(const oct_int8_codes *q, int64_t i)
{
    return q->zero ? q->zero[q->n > 1 ? i : 0] : 0;
}

/* The code of a limit of Relu or Clip. */
static int32_t limit(float x, float scale, int32_t zero, int32_t last)
{
    return oct_quant_code(x / scale, zero, 0, last);
}

static bool is_linear(const oct_act *a)
{
    return a->kind == OCT_ACT_NONE || a->kind == OCT_ACT_RELU || a->kind == OCT_ACT_CLIP;
}

/* Limits of a result above its zero point, including those of Relu and Clip. */
static void limits(const oct_act *act, float scale, int32_t zero, int32_t last, float *low,
                   float *high)
{
    int32_t lo = 0, hi = last;

    if (act->kind == OCT_ACT_RELU) lo = zero;
    if (act->kind == OCT_ACT_CLIP) {
        lo = limit(act->a, scale, zero, last);
        hi = limit(act->b, scale, zero, last);
    }
    *low = (float)(lo - zero);
    *high = (float)(hi - zero);
}

static oct_int8_way way_of(const oct_int8_epilogue_spec *s)
{
    if (s->out != OCT_INT8_U8 || s->residual || s->bias || s->act[1].kind) return OCT_INT8_GENERAL;
    if (is_linear(&s->act[0])) return OCT_INT8_DIRECT;
    switch (s->act[0].kind) {
    case OCT_ACT_LEAKY:
        return fabsf(s->act[0].a) <= 1 ? OCT_INT8_LEAKY : OCT_INT8_GENERAL;
    case OCT_ACT_SWISH:
        return s->y.last ? OCT_INT8_GENERAL : OCT_INT8_SWISH; /* saturates at the byte's end */
    case OCT_ACT_HARD_SWISH:
        return OCT_INT8_HARD_SWISH;
    default:
        return OCT_INT8_GENERAL;
    }
}

/* Swish divides by it; a scale this small makes every result zero. */
static float swish_scale(float scale)
{
    return fabsf(scale) < 1e-30f ? 1e-30f : scale;
}

void oct_int8_epilogue_pack(const oct_int8_epilogue_spec *s, void *memory, oct_int8_epilogue *f)
{
    const int32_t last = oct_int8_last(&s->y);
    const oct_act none = {0};
    float *list[N_ARRAYS];
    int32_t *zeros = take_arrays(memory, s->c, N_ARRAYS, list);

    *f = (oct_int8_epilogue){
        .way = way_of(s), .out = s->out, .residual = s->residual, .no_overflow = true};
    for (int i = 0; i < 2; i++)
        f->act[i] = s->act[i];
    for (int64_t i = 0; i < s->c; i++) {
        const float unit = s->out == OCT_INT8_U8 ? scale_of(&s->y, i) : 1.0f;

        zeros[i] = s->out == OCT_INT8_U8 ? zero_of(&s->y, i) : 0;
        list[SCALE][i] = s->scale ? s->scale[i] : 1.0f;
        if (s->act[0].kind == OCT_ACT_SWISH)
            list[SLOPE][i] = -1.44269504f * s->act[0].a * list[SCALE][i];
        if (s->act[0].kind == OCT_ACT_HARD_SWISH) list[SLOPE][i] = list[SCALE][i] / 6.0f;
        list[LIMIT][i] = fminf(120.0f / fabsf(list[SLOPE][i]), FLT_MAX);
        if (f->way != OCT_INT8_GENERAL) list[SCALE][i] = list[SCALE][i] / unit;
        if (!(fabsf(list[SCALE][i]) < 0.25f)) f->no_overflow = false;
        list[BIAS][i] = s->bias ? s->bias[i] : 0.0f;
        list[INV][i] = 1.0f / (f->way == OCT_INT8_SWISH ? swish_scale(list[SCALE][i]) : unit);
        limits(f->way == OCT_INT8_DIRECT ? &s->act[0] : &none, unit, zeros[i], last, &list[LOW][i],
               &list[HIGH][i]);
        if (s->residual == OCT_INT8_U8) {
            list[R_SCALE][i] = scale_of(&s->r, i);
            list[R_ZERO][i] = (float)zero_of(&s->r, i);
        } else {
            list[R_SCALE][i] = s->residual_scale;
        }
    }
    f->scale = list[SCALE];
    f->bias = list[BIAS];
    f->slope = list[SLOPE];
    f->limit = list[LIMIT];
    f->r_scale = list[R_SCALE];
    f->r_zero = list[R_ZERO];
    f->inv = list[INV];
    f->low = list[LOW];
    f->high = list[HIGH];
    f->zero = zeros;
}

/* --- two operands --- */

enum { A_SCALE, B_SCALE, A_ZERO, B_ZERO, SHIFT, B_INV, B_LOW, B_HIGH, B_OUT_ZERO, N_BINARY };

size_t oct_int8_binary_size(int64_t c)
{
    return arrays_size(c, N_BINARY);
}

/* The zero point of the result less the operands' zero-point terms. The order of the operations
 * is ONNX Runtime's: it decides ties. */
static float shift_of(const oct_int8_binary_spec *s, float zero, float a, float sa, float b,
                      float sb)
{
    const float offset = (float)s->offset;

    a -= offset;
    b -= offset;
    if (s->op == OCT_INT8_MUL) return zero - offset;
    return zero - offset - (s->swapped ? fmaf(sb, b, sa * a) : fmaf(sa, a, sb * b));
}

void oct_int8_binary_pack(const oct_int8_binary_spec *s, void *memory, oct_int8_binary *b)
{
    const int64_t padded = oct_int8_padded(s->c);
    const bool direct = s->out == OCT_INT8_U8 && is_linear(&s->act);
    const oct_act none = {0};
    float *list[N_BINARY];
    int32_t *zeros = take_arrays(memory, s->c, N_BINARY, list);

    for (int64_t k = 0; k < padded; k++) { /* one for all: as many as a vector may have */
        const int64_t i = OCT_MIN(k, s->c - 1);
        const float unit = s->out == OCT_INT8_U8 ? scale_of(&s->y, i) : 1.0f;
        const int32_t zero = s->out == OCT_INT8_U8 ? zero_of(&s->y, i) : 0;
        const float sa = scale_of(&s->a, i), sb = scale_of(&s->b, i);

        list[A_ZERO][k] = (float)zero_of(&s->a, i);
        list[B_ZERO][k] = (float)zero_of(&s->b, i);
        list[B_SCALE][k] = direct ? sb / unit : sb;
        if (s->op == OCT_INT8_SUB) list[B_SCALE][k] = -list[B_SCALE][k];
        list[A_SCALE][k] = s->op == OCT_INT8_MUL ? sa * sb : sa;
        if (direct) list[A_SCALE][k] = list[A_SCALE][k] / unit;
        list[SHIFT][k] = shift_of(s, (float)zero, list[A_ZERO][k], list[A_SCALE][k],
                                  list[B_ZERO][k], list[B_SCALE][k]);
        list[B_INV][k] = 1.0f / unit;
        limits(direct ? &s->act : &none, unit, zero, oct_int8_last(&s->y), &list[B_LOW][k],
               &list[B_HIGH][k]);
        zeros[k] = zero;
        if (direct) { /* the zero point is part of the shift */
            list[B_LOW][k] += (float)(zero - s->offset);
            list[B_HIGH][k] += (float)(zero - s->offset);
            zeros[k] = s->offset;
        }
    }
    *b = (oct_int8_binary){.op = s->op,
                           .each = s->c > 1,
                           .direct = direct,
                           .out = s->out,
                           .act = s->act,
                           .offset = (float)s->offset,
                           .a_scale = list[A_SCALE],
                           .b_scale = list[B_SCALE],
                           .a_zero = list[A_ZERO],
                           .b_zero = list[B_ZERO],
                           .shift = list[SHIFT],
                           .inv = list[B_INV],
                           .low = list[B_LOW],
                           .high = list[B_HIGH],
                           .zero = zeros};
}
