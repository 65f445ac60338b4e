/* SPDX-License-Identifier: Apache-2.0 */
/* Sin, Cos, Tan, their hyperbolic sisters and the inverses of all six. */
#include <tgmath.h>

#include "op/elementwise.h"
#include "op/grad/rules.h"

/* --- gradients --- */

/* sign * x^2 + add */
static oct_value *square_plus(const oct_grad_args *a, oct_value *x, double sign, double add)
{
    oct_value *square = oct_grad_scale(a->b, OCT_EMIT2(mul, x, x), sign);

    return OCT_EMIT2(add, square, oct_grad_number(a, 0, add));
}

/* dx = dy / v, or with the other sign */
static oct_status divide_by(const oct_grad_args *a, oct_value *v, bool negative)
{
    a->dx[0] = OCT_EMIT2(div, a->dy[0], v);
    if (negative) a->dx[0] = OCT_EMIT1(neg, a->dx[0]);
    return OCT_OK;
}

static oct_status grad_sin(const oct_grad_args *a)
{
    a->dx[0] = OCT_EMIT2(mul, a->dy[0], OCT_EMIT1(cos, a->node->in[0]));
    return OCT_OK;
}

static oct_status grad_cos(const oct_grad_args *a)
{
    a->dx[0] = OCT_EMIT1(neg, OCT_EMIT2(mul, a->dy[0], OCT_EMIT1(sin, a->node->in[0])));
    return OCT_OK;
}

static oct_status grad_tan(const oct_grad_args *a)
{
    a->dx[0] = OCT_EMIT2(mul, a->dy[0], square_plus(a, a->node->out[0], 1, 1));
    return OCT_OK;
}

static oct_status grad_asin(const oct_grad_args *a)
{
    return divide_by(a, OCT_EMIT1(sqrt, square_plus(a, a->node->in[0], -1, 1)), false);
}

static oct_status grad_acos(const oct_grad_args *a)
{
    return divide_by(a, OCT_EMIT1(sqrt, square_plus(a, a->node->in[0], -1, 1)), true);
}

static oct_status grad_atan(const oct_grad_args *a)
{
    return divide_by(a, square_plus(a, a->node->in[0], 1, 1), false);
}

static oct_status grad_sinh(const oct_grad_args *a)
{
    a->dx[0] = OCT_EMIT2(mul, a->dy[0], OCT_EMIT1(cosh, a->node->in[0]));
    return OCT_OK;
}

static oct_status grad_cosh(const oct_grad_args *a)
{
    a->dx[0] = OCT_EMIT2(mul, a->dy[0], OCT_EMIT1(sinh, a->node->in[0]));
    return OCT_OK;
}

static oct_status grad_asinh(const oct_grad_args *a)
{
    return divide_by(a, OCT_EMIT1(sqrt, square_plus(a, a->node->in[0], 1, 1)), false);
}

static oct_status grad_acosh(const oct_grad_args *a)
{
    return divide_by(a, OCT_EMIT1(sqrt, square_plus(a, a->node->in[0], 1, -1)), false);
}

static oct_status grad_atanh(const oct_grad_args *a)
{
    return divide_by(a, square_plus(a, a->node->in[0], -1, 1), false);
}

#define ROW(sym, onnx, since_)                                                                     \
    OCT_UNARY_FLOATS(sym, sym(x))                                                                  \
                                                                                                   \
    static oct_status ref_##sym(const oct_args *a)                                                 \
    {                                                                                              \
        static const oct_unary f = {.f32 = sym##_f32, .f64 = sym##_f64};                           \
                                                                                                   \
        return oct_unary_run(a, &f, NULL);                                                         \
    }                                                                                              \
                                                                                                   \
    const oct_op oct_op_##sym = {                                                                  \
        .name = onnx,                                                                              \
        .since = since_,                                                                           \
        .min_in = 1,                                                                               \
        .max_in = 1,                                                                               \
        .shape = oct_shape_same_float,                                                             \
        .ref = ref_##sym,                                                                          \
        .grad = grad_##sym,                                                                        \
        .flow = OCT_FLOW_PASS,                                                                     \
        .flags = OCT_OP_ELEMENTWISE,                                                               \
    }

ROW(sin, "Sin", 7);
ROW(cos, "Cos", 7);
ROW(tan, "Tan", 7);
ROW(asin, "Asin", 7);
ROW(acos, "Acos", 7);
ROW(atan, "Atan", 7);
ROW(sinh, "Sinh", 9);
ROW(cosh, "Cosh", 9);
ROW(asinh, "Asinh", 9);
ROW(acosh, "Acosh", 9);
ROW(atanh, "Atanh", 9);
