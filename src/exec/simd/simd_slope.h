/* SPDX-License-Identifier: Apache-2.0 */
/* Slopes of activations on vectors. */
#ifndef OCT_EXEC_SIMD_SIMD_SLOPE_H
#define OCT_EXEC_SIMD_SIMD_SLOPE_H

#include "exec/simd/simd_epilogue.h"

INLINE vf all_if(vi mask, vf v)
{
    const vf zero = {0};

    return pick(mask, v, zero);
}

/* x * sigmoid(a x); far to the left the exponential would not fit, and the slope is zero. */
INLINE vf swish_slope(vf x, vf a)
{
    const vf p = x * a, s = vsigmoid(p);

    return all_if(p > -87.0f, s * (1.0f + p * (1.0f - s)));
}

/* x * tanh(softplus(x)), with t = e^x: softplus' = t / (1 + t), tanh = u / (u + 2). */
INLINE vf mish_slope(vf x)
{
    const vf t = vexp(vmin(x, splat(20.0f))), u = t * t + 2.0f * t, th = u / (u + 2.0f);
    const vf d = th + x * (t / (1.0f + t)) * (1.0f - th) * (1.0f + th);

    return pick(x > 20.0f, splat(1.0f), all_if(x > -87.0f, d));
}

INLINE vf gelu_tanh_slope(vf x)
{
    const vf x2 = x * x, p = 1.59576912f * x * (1.0f + 0.044715f * x2), s = vsigmoid(p);
    const vf dp = 1.59576912f + 0.21406859f * x2; /* 2c (1 + 3 * 0.044715 x^2) */
    const vf d = s + x * s * (1.0f - s) * dp;

    return pick(x > 10.0f, splat(1.0f), all_if(x > -10.0f, d));
}

INLINE vf slope(oct_act_kind kind, vf x, vf a, vf b)
{
    const vf one = splat(1.0f);
    vf t;

    switch (kind) {
    case OCT_ACT_RELU:
        return all_if(x > 0.0f, one);
    case OCT_ACT_CLIP:
        return all_if((x >= a) & (x <= b), one);
    case OCT_ACT_LEAKY:
        return pick(x > 0.0f, one, a);
    case OCT_ACT_SWISH:
        return swish_slope(x, a);
    case OCT_ACT_HARD_SWISH:
        return pick(x >= 3.0f, one, all_if(x > -3.0f, x * (1.0f / 3.0f) + 0.5f));
    case OCT_ACT_SIGMOID:
        t = vsigmoid(x);
        return t * (1.0f - t);
    case OCT_ACT_HARD_SIGMOID:
        t = x * a + b;
        return all_if((t > 0.0f) & (t < 1.0f), a);
    case OCT_ACT_TANH:
        t = vtanh(x);
        return 1.0f - t * t;
    case OCT_ACT_GELU:
        return 0.5f * (1.0f + verf(x * 0.70710678f)) + x * 0.39894228f * vexp(-0.5f * x * x);
    case OCT_ACT_GELU_TANH:
        return gelu_tanh_slope(x);
    case OCT_ACT_ELU:
        return pick(x > 0.0f, one, a * vexp(x));
    case OCT_ACT_MISH:
        return mish_slope(x);
    default:
        return one;
    }
}

#endif
