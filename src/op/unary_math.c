/* SPDX-License-Identifier: Apache-2.0 */
/* Abs, Neg, Sign, Ceil, Floor, Round, Sqrt, Exp, Log, Reciprocal, Erf. */
#include <tgmath.h>

#include "op/elementwise.h"
#include "op/grad/rules.h"

OCT_UNARY_FLOATS(abs, fabs(x))
OCT_UNARY_FN(abs_i64, int64_t, int64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
OCT_UNARY_FN(abs_u64, uint64_t, uint64_t, x)
OCT_UNARY_FLOATS(neg, -x)
OCT_UNARY_FN(neg_i64, int64_t, int64_t, 0 - (uint64_t)x)
/* Not a number stays one. */
OCT_UNARY_FLOATS(sign, x > 0 ? 1 : x < 0 ? -1 : x * 0)
OCT_UNARY_FN(sign_i64, int64_t, int64_t, (x > 0) - (x < 0))
OCT_UNARY_FN(sign_u64, uint64_t, uint64_t, x > 0)
OCT_UNARY_FLOATS(ceil, ceil(x))
OCT_UNARY_FLOATS(floor, floor(x))
OCT_UNARY_FLOATS(round, rint(x)) /* half to even: the mode C starts in */
OCT_UNARY_FLOATS(sqrt, sqrt(x))
OCT_UNARY_FLOATS(exp, exp(x))
OCT_UNARY_FLOATS(log, log(x))
OCT_UNARY_FLOATS(reciprocal, 1 / x)
OCT_UNARY_FLOATS(erf, erf(x))
OCT_UNARY_FN(erf_i64, int64_t, int64_t, erf((double)x))

/* --- gradients --- */

static oct_status grad_abs(const oct_grad_args *a)
{
    a->dx[0] = OCT_EMIT2(mul, a->dy[0], OCT_EMIT1(sign, a->node->in[0]));
    return OCT_OK;
}

static oct_status grad_neg(const oct_grad_args *a)
{
    a->dx[0] = OCT_EMIT1(neg, a->dy[0]);
    return OCT_OK;
}

static oct_status grad_sqrt(const oct_grad_args *a)
{
    a->dx[0] = OCT_EMIT2(div, oct_grad_scale(a->b, a->dy[0], 0.5), a->node->out[0]);
    return OCT_OK;
}

static oct_status grad_exp(const oct_grad_args *a)
{
    a->dx[0] = OCT_EMIT2(mul, a->dy[0], a->node->out[0]);
    return OCT_OK;
}

static oct_status grad_log(const oct_grad_args *a)
{
    a->dx[0] = OCT_EMIT2(div, a->dy[0], a->node->in[0]);
    return OCT_OK;
}

static oct_status grad_reciprocal(const oct_grad_args *a)
{
    oct_value *y = a->node->out[0];

    a->dx[0] = OCT_EMIT1(neg, OCT_EMIT2(mul, a->dy[0], OCT_EMIT2(mul, y, y)));
    return OCT_OK;
}

/* 2 / sqrt(pi) * exp(-x^2) */
static oct_status grad_erf(const oct_grad_args *a)
{
    oct_value *x = a->node->in[0];
    oct_value *e = OCT_EMIT1(exp, OCT_EMIT1(neg, OCT_EMIT2(mul, x, x)));

    a->dx[0] = OCT_EMIT2(mul, a->dy[0], oct_grad_scale(a->b, e, 1.12837916709551257390));
    return OCT_OK;
}

#define grad_sign  oct_grad_zero
#define grad_ceil  oct_grad_zero
#define grad_floor oct_grad_zero
#define grad_round oct_grad_zero

#define ROW(sym, onnx, since_, shape_, i64_fn, u64_fn)                                             \
    static oct_status ref_##sym(const oct_args *a)                                                 \
    {                                                                                              \
        static const oct_unary f = {sym##_f32, sym##_f64, i64_fn, u64_fn, false};                  \
                                                                                                   \
        return oct_unary_run(a, &f, NULL);                                                         \
    }                                                                                              \
                                                                                                   \
    const oct_op oct_op_##sym = {                                                                  \
        .name = onnx,                                                                              \
        .since = since_,                                                                           \
        .min_in = 1,                                                                               \
        .max_in = 1,                                                                               \
        .shape = shape_,                                                                           \
        .ref = ref_##sym,                                                                          \
        .grad = grad_##sym,                                                                        \
        .flow = OCT_FLOW_PASS,                                                                     \
        .flags = OCT_OP_ELEMENTWISE,                                                               \
    }

static oct_status shape_signed(const oct_infer *q)
{
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT | OCT_SET_SINT));
    return oct_shape_same(q);
}

ROW(abs, "Abs", 7, oct_shape_same_numeric, abs_i64, abs_u64);
ROW(neg, "Neg", 7, shape_signed, neg_i64, NULL);
ROW(sign, "Sign", 9, oct_shape_same_numeric, sign_i64, sign_u64);
ROW(ceil, "Ceil", 7, oct_shape_same_float, NULL, NULL);
ROW(floor, "Floor", 7, oct_shape_same_float, NULL, NULL);
ROW(round, "Round", 11, oct_shape_same_float, NULL, NULL);
ROW(sqrt, "Sqrt", 7, oct_shape_same_float, NULL, NULL);
ROW(exp, "Exp", 7, oct_shape_same_float, NULL, NULL);
ROW(log, "Log", 7, oct_shape_same_float, NULL, NULL);
ROW(reciprocal, "Reciprocal", 7, oct_shape_same_float, NULL, NULL);
ROW(erf, "Erf", 9, oct_shape_same_numeric, erf_i64, NULL);
