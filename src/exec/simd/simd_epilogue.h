/* SPDX-License-Identifier: Apache-2.0 */
/* Activations on vectors, and the epilogue of a convolution while its result is still in cache. */
#ifndef OCT_EXEC_SIMD_SIMD_EPILOGUE_H
#define OCT_EXEC_SIMD_SIMD_EPILOGUE_H

#include "exec/simd/vec.h"
#include "op/act.h"

/* x * sigmoid(p). The exponential is cut where it would not fit: what is left of it then, 1e-38, is
 * not nothing to an x of 1e38. */
INLINE vf gate(vf x, vf p)
{
    const vf zero = {0};

    return pick(p < -87.0f, zero, x * vsigmoid(p));
}

INLINE vf apply(oct_act_kind kind, vf x, vf a, vf b)
{
    const vf zero = {0};
    vf t;

    switch (kind) {
    case OCT_ACT_RELU:
        return vmax(x, zero);
    case OCT_ACT_CLIP:
        return vmin(vmax(x, a), b);
    case OCT_ACT_LEAKY:
        return pick(x < zero, x * a, x);
    case OCT_ACT_SWISH:
        return gate(x, x * a);
    case OCT_ACT_HARD_SWISH:
        return x * vmin(vmax(x * (1.0f / 6.0f) + 0.5f, zero), splat(1.0f));
    case OCT_ACT_SIGMOID:
        return vsigmoid(x);
    case OCT_ACT_HARD_SIGMOID:
        return vmin(vmax(x * a + b, zero), splat(1.0f));
    case OCT_ACT_TANH:
        return vtanh(x);
    case OCT_ACT_GELU:
        return 0.5f * x * (1.0f + verf(x * 0.70710678f));
    case OCT_ACT_GELU_TANH:
        return gate(x, 1.59576912f * (x + 0.044715f * x * x * x));
    case OCT_ACT_ELU:
        return pick(x < zero, a * (vexp(x) - 1.0f), x);
    case OCT_ACT_MISH: /* tanh(log(1 + e^x)) without the logarithm; x itself where e^x is large */
        t = vexp(vmin(x, splat(30.0f)));
        t = t * t + 2.0f * t;
        return pick(x > 30.0f, x, pick(x < -87.0f, zero, x * (t / (t + 2.0f))));
    default:
        return x;
    }
}

/* Calls F(kind) with a constant, so that each activation gets its own loop. */
#define FOR_ACT(kind_, F)                                                                          \
    switch (kind_) {                                                                               \
    case OCT_ACT_RELU:                                                                             \
        F(OCT_ACT_RELU);                                                                           \
        break;                                                                                     \
    case OCT_ACT_CLIP:                                                                             \
        F(OCT_ACT_CLIP);                                                                           \
        break;                                                                                     \
    case OCT_ACT_LEAKY:                                                                            \
        F(OCT_ACT_LEAKY);                                                                          \
        break;                                                                                     \
    case OCT_ACT_SWISH:                                                                            \
        F(OCT_ACT_SWISH);                                                                          \
        break;                                                                                     \
    case OCT_ACT_HARD_SWISH:                                                                       \
        F(OCT_ACT_HARD_SWISH);                                                                     \
        break;                                                                                     \
    case OCT_ACT_SIGMOID:                                                                          \
        F(OCT_ACT_SIGMOID);                                                                        \
        break;                                                                                     \
    case OCT_ACT_HARD_SIGMOID:                                                                     \
        F(OCT_ACT_HARD_SIGMOID);                                                                   \
        break;                                                                                     \
    case OCT_ACT_TANH:                                                                             \
        F(OCT_ACT_TANH);                                                                           \
        break;                                                                                     \
    case OCT_ACT_GELU:                                                                             \
        F(OCT_ACT_GELU);                                                                           \
        break;                                                                                     \
    case OCT_ACT_GELU_TANH:                                                                        \
        F(OCT_ACT_GELU_TANH);                                                                      \
        break;                                                                                     \
    case OCT_ACT_ELU:                                                                              \
        F(OCT_ACT_ELU);                                                                            \
        break;                                                                                     \
    case OCT_ACT_MISH:                                                                             \
        F(OCT_ACT_MISH);                                                                           \
        break;                                                                                     \
    default:                                                                                       \
        break;                                                                                     \
    }

INLINE void act_row(oct_act_kind kind, const oct_act *act, const float *x, float *y, int64_t n)
{
    const vf a = splat(act->a), b = splat(act->b);
    int64_t i = 0;

    for (; i + VW <= n; i += VW)
        store(y + i, apply(kind, load(x + i), a, b));
    if (i < n) store_part(y + i, apply(kind, load_part(x + i, n - i), a, b), n - i);
}

/* rows x n values, in place */
static inline void act_rows(const oct_act *act, float *y, int64_t pitch, int64_t rows, int64_t n)
{
#define ROWS(kind)                                                                                 \
    for (int64_t r = 0; r < rows; r++)                                                             \
    act_row(kind, act, y + r * pitch, y + r * pitch, n)
    FOR_ACT(act->kind, ROWS)
#undef ROWS
}

/* y = act[1](act[0](y) + scale * residual) for rows x n values */
static inline void apply_epilogue(const oct_act act[2], float scale, const float *residual,
                                  int64_t residual_pitch, float *y, int64_t pitch, int64_t rows,
                                  int64_t n)
{
    if (act[0].kind) act_rows(&act[0], y, pitch, rows, n);
    if (!residual) return;
    for (int64_t r = 0; r < rows; r++) {
        const float *x = residual + r * residual_pitch;
        float *to = y + r * pitch;
        int64_t i = 0;

        for (; i + VW <= n; i += VW)
            store(to + i, load(to + i) + load(x + i) * scale);
        if (i < n)
            store_part(to + i, load_part(to + i, n - i) + load_part(x + i, n - i) * scale, n - i);
    }
    if (act[1].kind) act_rows(&act[1], y, pitch, rows, n);
}

#endif
