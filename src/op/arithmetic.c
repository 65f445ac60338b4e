/* SPDX-License-Identifier: Apache-2.0 */
/* Add, Sub, Mul, Div, and Sum and Mean of any number of operands. */
#include "op/elementwise.h"
#include "op/grad/rules.h"

/* Integers wrap, which signed C arithmetic may not. */
#define WRAP(op) ((uint64_t)x op(uint64_t) y)

OCT_BINARY_FLOATS(add, x + y)
OCT_BINARY_FN(add_i64, int64_t, int64_t, WRAP(+))
OCT_BINARY_FLOATS(sub, x - y)
OCT_BINARY_FN(sub_i64, int64_t, int64_t, WRAP(-))
OCT_BINARY_FLOATS(mul, x *y)
OCT_BINARY_FN(mul_i64, int64_t, int64_t, WRAP(*))
OCT_BINARY_FLOATS(div, x / y)
/* Towards zero; by zero is 0, since integers have no infinity; -1 apart, for INT64_MIN. */
OCT_BINARY_FN(div_i64, int64_t, int64_t, y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y)
OCT_BINARY_FN(div_u64, uint64_t, uint64_t, y == 0 ? 0 : x / y)

/* --- gradients: where an operand was broadcast, its gradient is the sum over its copies --- */

static oct_status grad_add(const oct_grad_args *a)
{
    for (int i = 0; i < 2; i++)
        if (a->wanted[i]) a->dx[i] = oct_grad_sum_to(a->b, a->dy[0], a->node->in[i]);
    return OCT_OK;
}

static oct_status grad_sub(const oct_grad_args *a)
{
    if (a->wanted[0]) a->dx[0] = oct_grad_sum_to(a->b, a->dy[0], a->node->in[0]);
    if (a->wanted[1]) {
        oct_value *sum = oct_grad_sum_to(a->b, a->dy[0], a->node->in[1]);

        a->dx[1] = oct_emit(a->b, &oct_op_neg, sum, NULL, NULL);
    }
    return OCT_OK;
}

static oct_status grad_mul(const oct_grad_args *a)
{
    for (int i = 0; i < 2; i++)
        if (a->wanted[i])
            a->dx[i] = oct_grad_sum_to(
                a->b, oct_emit(a->b, &oct_op_mul, a->dy[0], a->node->in[1 - i], NULL),
                a->node->in[i]);
    return OCT_OK;
}

/* z = x / y: dx = dz / y, dy = -dz z / y */
static oct_status grad_div(const oct_grad_args *a)
{
    oct_value *x = a->node->in[0], *y = a->node->in[1];
    oct_value *by_y = oct_emit(a->b, &oct_op_div, a->dy[0], y, NULL);

    if (a->wanted[0]) a->dx[0] = oct_grad_sum_to(a->b, by_y, x);
    if (a->wanted[1]) {
        oct_value *zd = oct_emit(a->b, &oct_op_mul, by_y, a->node->out[0], NULL);

        a->dx[1] = oct_emit(a->b, &oct_op_neg, oct_grad_sum_to(a->b, zd, y), NULL, NULL);
    }
    return OCT_OK;
}

static oct_status grad_sum(const oct_grad_args *a)
{
    for (int i = 0; i < a->node->n_in; i++)
        if (a->wanted[i]) a->dx[i] = oct_grad_sum_to(a->b, a->dy[0], a->node->in[i]);
    return OCT_OK;
}

static oct_status grad_mean(const oct_grad_args *a)
{
    oct_value *share = oct_grad_scale(a->b, a->dy[0], 1.0 / a->node->n_in);

    for (int i = 0; i < a->node->n_in; i++)
        if (a->wanted[i]) a->dx[i] = oct_grad_sum_to(a->b, share, a->node->in[i]);
    return OCT_OK;
}

/* --- rows --- */

#define ROW(sym, onnx, u64_fn, fuses_, more_flags)                                                 \
    static oct_status ref_##sym(const oct_args *a)                                                 \
    {                                                                                              \
        static const oct_binary f = {sym##_f32, sym##_f64, sym##_i64, u64_fn, false};              \
                                                                                                   \
        return oct_binary_run(a, &f, NULL);                                                        \
    }                                                                                              \
                                                                                                   \
    const oct_op oct_op_##sym = {                                                                  \
        .name = onnx,                                                                              \
        .since = 7,                                                                                \
        .min_in = 2,                                                                               \
        .max_in = 2,                                                                               \
        .shape = oct_shape_broadcast_numeric,                                                      \
        .ref = ref_##sym,                                                                          \
        .grad = grad_##sym,                                                                        \
        .quant = {.in = {OCT_QROLE_ACT, OCT_QROLE_ACT}},                                           \
        .flow = OCT_FLOW_TIE,                                                                      \
        .fuses = fuses_,                                                                           \
        .flags = OCT_OP_ELEMENTWISE | (more_flags),                                                \
    }

ROW(add, "Add", NULL, OCT_FUSES_ACT, OCT_OP_COMMUTES);
ROW(sub, "Sub", NULL, OCT_FUSES_ACT, 0);
ROW(mul, "Mul", NULL, OCT_FUSES_ACT, OCT_OP_COMMUTES);
ROW(div, "Div", div_u64, 0, 0);

static const oct_binary sum_fns = {.f32 = add_f32, .f64 = add_f64};

static oct_status ref_sum(const oct_args *a)
{
    return oct_variadic_run(a, &sum_fns, NULL);
}

const oct_op oct_op_sum = {
    .name = "Sum",
    .since = 8,
    .min_in = 1,
    .max_in = -1,
    .shape = oct_shape_broadcast_float,
    .ref = ref_sum,
    .grad = grad_sum,
    .quant = {.in = {OCT_QROLE_ACT, OCT_QROLE_ACT}},
    .flow = OCT_FLOW_TIE,
    .flags = OCT_OP_ELEMENTWISE | OCT_OP_COMMUTES,
};

OCT_UNARY_FLOATS(divide, x / (real) * (const int32_t *)p)

static oct_status ref_mean(const oct_args *a)
{
    static const oct_unary f = {.f32 = divide_f32, .f64 = divide_f64};
    oct_args sum = *a;

    OCT_TRY(oct_variadic_run(a, &sum_fns, NULL));
    sum.in = a->out;
    return oct_unary_run(&sum, &f, &a->node->n_in);
}

const oct_op oct_op_mean = {
    .name = "Mean",
    .since = 8,
    .min_in = 1,
    .max_in = -1,
    .shape = oct_shape_broadcast_float,
    .ref = ref_mean,
    .grad = grad_mean,
    .flow = OCT_FLOW_TIE,
    .flags = OCT_OP_ELEMENTWISE | OCT_OP_COMMUTES,
};
