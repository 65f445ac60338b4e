/* SPDX-License-Identifier: Apache-2.0 */
/* Scales, zero points and codes of one spec. */
#include "quant/spec.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "op/quant.h"

/*
 * An empty range does not determine a scale. This one is small enough that the int32 bias of a
 * layer with such weights is fine (scale = input scale * this), and large enough that biases up to
 * about 100 still fit into 32 bits with an input of scale 0.01.
 */
#define SCALE_OF_NOTHING 0x1p-18f

/* The product of two scales is a scale as well (of a bias), so it must not be subnormal either. */
#define SCALE_MIN 0x1p-60f

/* Only an infinite range is beyond it; the reciprocal must be finite and not subnormal. */
#define SCALE_MAX 0x1p120f

oct_status oct_qspec_check(oct_ctx *ctx, const oct_qspec *s)
{
    if ((s->bits < 2 || s->bits > 8) && s->bits != 16 && s->bits != 32)
        return oct_fail(ctx, OCT_ERR_ARG, "%d bits: codes have 2 to 8 or 16, biases 32", s->bits);
    if (s->bits == 32 && (!s->is_signed || !s->is_symmetric))
        return oct_fail(ctx, OCT_ERR_ARG, "32 bits are for biases: signed and symmetric");
    if (s->is_narrow && !s->is_signed)
        return oct_fail(ctx, OCT_ERR_ARG, "a narrow range has no meaning for unsigned codes");
    if ((int)s->rounding < 0 || s->rounding >= OCT_QROUND_COUNT)
        return oct_fail(ctx, OCT_ERR_ARG, "no such rounding: %d", (int)s->rounding);
    if (s->axis < OCT_QSPEC_PER_TENSOR || s->axis >= OCT_MAX_RANK)
        return oct_fail(ctx, OCT_ERR_ARG, "no such axis: %d", s->axis);
    return OCT_OK;
}

void oct_qspec_limits(const oct_qspec *s, int32_t *low, int32_t *high)
{
    const int64_t half = (int64_t)1 << (s->bits - 1);

    *low = s->is_signed ? (int32_t)(s->is_narrow ? 1 - half : -half) : 0;
    *high = (int32_t)(s->is_signed ? half - 1 : 2 * half - 1);
}

/* 2 bits are held in 4: a type of 2 bits came late, and few runtimes read it. */
oct_dtype oct_qspec_dtype(const oct_qspec *s)
{
    if (s->bits <= 4) return s->is_signed ? OCT_DTYPE_I4 : OCT_DTYPE_U4;
    if (s->bits <= 8) return s->is_signed ? OCT_DTYPE_I8 : OCT_DTYPE_U8;
    if (s->bits <= 16) return s->is_signed ? OCT_DTYPE_I16 : OCT_DTYPE_U16;
    return OCT_DTYPE_I32;
}

const char *oct_qspec_text(const oct_qspec *s, char *text, size_t size)
{
    snprintf(text, size, "%c%d%s %s%s per %s", s->is_signed ? 's' : 'u', s->bits,
             s->is_narrow ? " narrow" : "", s->is_symmetric ? "symmetric" : "asymmetric",
             s->is_pow2 ? " pow2" : "", s->axis == OCT_QSPEC_PER_TENSOR ? "tensor" : "channel");
    return text;
}

/* The smallest power of two that is not less; x > 0. */
static double power_above(double x)
{
    int e;
    const double m = frexp(x, &e); /* x = m * 2^e, m in [0.5, 1) */

    return ldexp(1.0, m > 0.5 ? e : e - 1);
}

/* A positive float near `wanted` that is allowed as a scale; NaN counts as no range at all. */
static float scale_of(const oct_qspec *s, double wanted)
{
    double scale = wanted > 0 ? wanted : SCALE_OF_NOTHING;

    scale = scale > SCALE_MIN ? scale : SCALE_MIN;
    scale = scale < SCALE_MAX ? scale : SCALE_MAX;
    return (float)(s->is_pow2 ? power_above(scale) : scale);
}

void oct_qspec_solve(const oct_qspec *s, float low, float high, float *scale, int32_t *zero)
{
    const double lo = low < 0 ? low : 0, hi = high > 0 ? high : 0;
    int32_t code_low, code_high;
    double z;

    oct_qspec_limits(s, &code_low, &code_high);
    if (s->is_symmetric) {
        double below, above;

        /* Unsigned codes have their zero at the bottom if nothing is below zero. */
        *zero = s->is_signed || !(lo < 0) ? 0 : (int32_t)((uint32_t)1 << (s->bits - 1));
        below = lo < 0 ? lo / ((double)code_low - *zero) : 0;
        above = hi / ((double)code_high - *zero);
        *scale = scale_of(s, below > above ? below : above);
        return;
    }
    *scale = scale_of(s, (hi - lo) / ((double)code_high - code_low));
    z = code_low - lo / (double)*scale;
    z = z > code_low ? z : code_low;
    z = z < code_high ? z : code_high;
    *zero = (int32_t)lrint(z);
}

void oct_qspec_range(const oct_qspec *s, float scale, int32_t zero, float *low, float *high)
{
    int32_t code_low, code_high;

    oct_qspec_limits(s, &code_low, &code_high);
    *low = (float)((double)scale * ((double)code_low - zero));
    *high = (float)((double)scale * ((double)code_high - zero));
}

static double round_as(oct_qround r, double x)
{
    switch (r) {
    case OCT_QROUND_HALF_AWAY:
        return round(x);
    case OCT_QROUND_HALF_UP:
        return floor(x + 0.5); /* x is a float's value: the sum is exact where it matters */
    default:
        return nearbyint(x);
    }
}

int32_t oct_qspec_code(const oct_qspec *s, float scale, int32_t zero, float x)
{
    int32_t code_low, code_high;
    double t = (double)(x / scale);
    double lo, hi;

    oct_qspec_limits(s, &code_low, &code_high);
    lo = (double)code_low - zero;
    hi = (double)code_high - zero;
    t = t > lo ? t : lo; /* not a number becomes the lowest code, as in QuantizeLinear's kernel */
    t = t < hi ? t : hi;
    return (int32_t)(round_as(s->rounding, t) + zero);
}

void oct_qspec_fake(const oct_qspec *s, float scale, int32_t zero, const float *x, float *y,
                    int64_t n)
{
    int32_t code_low, code_high;
    float lo, hi;

    if (s->rounding != OCT_QROUND_HALF_EVEN || s->bits > 16) {
        for (int64_t i = 0; i < n; i++)
            y[i] = oct_qspec_value(scale, zero, oct_qspec_code(s, scale, zero, x[i]));
        return;
    }
    oct_qspec_limits(s, &code_low, &code_high);
    lo = (float)(code_low - zero);
    hi = (float)(code_high - zero);
    for (int64_t i = 0; i < n; i++) {
        float t = x[i] / scale;

        t = t > lo ? t : lo;
        t = t < hi ? t : hi;
        y[i] = scale * oct_round_even(t);
    }
}
