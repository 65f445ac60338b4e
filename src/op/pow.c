/* SPDX-License-Identifier: Apache-2.0 */
/* Pow: base and exponent may differ in type; the result has the base's. */
#include <tgmath.h>

#include "op/elementwise.h"
#include "op/grad/rules.h"

/* Wraps like repeated multiplication; a negative exponent leaves only what 1 / b^e leaves. */
static int64_t int_pow(int64_t base, int64_t exponent)
{
    uint64_t b = (uint64_t)base, y = 1;

    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    for (; exponent > 0; exponent >>= 1, b *= b)
        if (exponent & 1) y *= b;
    return (int64_t)y;
}

OCT_BINARY_FLOATS(pow, y == 2 ? x * x : pow(x, y))
OCT_BINARY_FN(pow_i64, int64_t, int64_t, int_pow(x, y))

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *y;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &y));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_NUMERIC));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_NUMERIC));
    q->out[0].dtype = x->dtype;
    return oct_broadcast(q->node, x, y, &q->out[0]);
}

/* A tensor of type `t` in scratch memory, with x's shape and, if `fill`, its elements. */
static oct_status convert(const oct_args *a, const oct_tensor *x, oct_dtype t, bool fill,
                          oct_tensor *out)
{
    const int64_t n = oct_tensor_len(x);

    out->type = x->type;
    out->type.dtype = t;
    out->data = oct_args_scratch(a, (size_t)OCT_MAX(n, 1), oct_dtype_size(t));
    if (!out->data) return OCT_ERR_MEMORY;
    if (fill) oct_convert(x->type.dtype, x->data, t, out->data, n, true);
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    static const oct_binary f = {.f32 = pow_f32, .f64 = pow_f64, .i64 = pow_i64};
    const oct_dtype base = a->in[0]->type.dtype, exponent = a->in[1]->type.dtype;
    oct_tensor x = {.ctx = a->ctx}, y = {.ctx = a->ctx}, z = {.ctx = a->ctx};
    oct_args wide = *a;

    if (base == exponent) return oct_binary_run(a, &f, NULL);
    if (!oct_dtype_is_int(base) || !oct_dtype_is_float(exponent)) {
        OCT_TRY(convert(a, a->in[1], base, true, &y));
        return oct_binary_apply(a, &f, NULL, a->in[0], &y);
    }
    /* An integer to a power that is not one goes through double. */
    OCT_TRY(convert(a, a->in[0], OCT_DTYPE_F64, true, &x));
    OCT_TRY(convert(a, a->in[1], OCT_DTYPE_F64, true, &y));
    OCT_TRY(convert(a, a->out[0], OCT_DTYPE_F64, false, &z));
    wide.out = (oct_tensor *[]){&z};
    OCT_TRY(oct_binary_apply(&wide, &f, NULL, &x, &y));
    oct_convert(OCT_DTYPE_F64, z.data, base, a->out[0]->data, oct_tensor_len(&z), true);
    return OCT_OK;
}

/* --- gradients --- */

/* One constant exponent: dx = p x^(p - 1) dy */
static void grad_power(const oct_grad_args *a, double p)
{
    oct_value *x = a->node->in[0], *slope = oct_grad_scale(a->b, a->dy[0], p);

    if (p == 0) return;
    if (p != 1) {
        if (p != 2) x = OCT_EMIT2(pow, x, oct_grad_number(a, 0, p - 1));
        slope = OCT_EMIT2(mul, slope, x);
    }
    a->dx[0] = oct_grad_sum_to(a->b, slope, a->node->in[0]);
}

/* Zero where the exponent is, also at x = 0. */
static void grad_base(const oct_grad_args *a, oct_value *p)
{
    oct_value *x = a->node->in[0], *zero = oct_grad_number(a, 0, 0);
    oct_value *less = OCT_EMIT2(sub, p, oct_grad_number(a, 0, 1));
    oct_value *slope = OCT_EMIT2(mul, p, OCT_EMIT2(pow, x, less));

    slope = OCT_EMIT3(where, OCT_EMIT2(equal, p, zero), zero, OCT_EMIT2(mul, a->dy[0], slope));
    a->dx[0] = oct_grad_sum_to(a->b, slope, x);
}

/* dp = x^p log(x) dy, and zero at x = 0 */
static void grad_exponent(const oct_grad_args *a)
{
    oct_value *x = a->node->in[0], *p = a->node->in[1], *zero = oct_grad_number(a, 0, 0);
    oct_value *slope = OCT_EMIT2(mul, a->node->out[0], OCT_EMIT1(log, x));

    slope = OCT_EMIT3(where, OCT_EMIT2(equal, x, zero), zero, OCT_EMIT2(mul, a->dy[0], slope));
    if (!a->b->status)
        a->dx[1] = oct_grad_cast(a->b, oct_grad_sum_to(a->b, slope, p), p->type.dtype);
}

static oct_status grad(const oct_grad_args *a)
{
    const oct_tensor *p = oct_node_const(a->node, 1);

    if (a->wanted[0] && p && oct_tensor_len(p) == 1)
        grad_power(a, oct_tensor_get_f64(p, 0));
    else if (a->wanted[0])
        grad_base(a, oct_grad_cast(a->b, a->node->in[1], a->node->in[0]->type.dtype));
    if (a->wanted[1]) grad_exponent(a);
    return OCT_OK;
}

const oct_op oct_op_pow = {
    .name = "Pow",
    .since = 7,
    .min_in = 2,
    .max_in = 2,
    .shape = shape,
    .ref = ref,
    .grad = grad,
    .flow = OCT_FLOW_TIE,
    .flags = OCT_OP_ELEMENTWISE,
};
