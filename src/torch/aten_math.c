/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic, comparison and logic, with torch's promotion of types. */
#include <string.h>

#include "torch/aten.h"

/* The type of the result, which is the one it is computed in; by the operands if the file is mute.
 */
static oct_dtype result_type(oct_aten *a)
{
    return a->meta->type.dtype ? a->meta->type.dtype : oct_aten_common(a, "self", "other");
}

static oct_value *scaled(oct_aten *a, oct_value *v, const char *factor)
{
    const double f = oct_aten_f64(a, factor, 1);

    return f == 1 || !v ? v : ATEN2(mul, v, oct_aten_scalar(a, v->type.dtype, f));
}

static void binary(oct_aten *a, const oct_op *op)
{
    const oct_dtype type = result_type(a);
    oct_value *x = oct_aten_operand(a, "self", type);

    a->out[0] = oct_aten_emit(a, op, x, oct_aten_operand(a, "other", type), NULL);
}

void oct_aten_mul(oct_aten *a)
{
    binary(a, result_type(a) == OCT_DTYPE_BOOL ? &oct_op_and : &oct_op_mul);
}

void oct_aten_add(oct_aten *a)
{
    const oct_dtype type = result_type(a);
    oct_value *x = oct_aten_operand(a, "self", type);

    if (type == OCT_DTYPE_BOOL)
        a->out[0] = ATEN2(or, x, oct_aten_operand(a, "other", type));
    else
        a->out[0] = ATEN2(add, x, scaled(a, oct_aten_operand(a, "other", type), "alpha"));
}

void oct_aten_sub(oct_aten *a)
{
    const oct_dtype type = result_type(a);
    oct_value *x = oct_aten_operand(a, "self", type);

    a->out[0] = ATEN2(sub, x, scaled(a, oct_aten_operand(a, "other", type), "alpha"));
}

/* other - alpha * self */
void oct_aten_rsub(oct_aten *a)
{
    const oct_dtype type = result_type(a);
    oct_value *x = scaled(a, oct_aten_operand(a, "self", type), "alpha");

    a->out[0] = ATEN2(sub, oct_aten_operand(a, "other", type), x);
}

/* Integers are divided downwards, or towards zero: in float64, which holds what networks count. */
static oct_value *divide(oct_aten *a, const char *rounding)
{
    const oct_dtype type = result_type(a);
    const bool is_int = *rounding && oct_dtype_is_int(type);
    const oct_dtype in = is_int ? OCT_DTYPE_F64 : type;
    oct_value *x = oct_aten_operand(a, "self", in), *y, *sign;

    y = ATEN2(div, x, oct_aten_operand(a, "other", in));
    if (strcmp(rounding, "floor") == 0) y = ATEN1(floor, y);
    if (strcmp(rounding, "trunc") == 0) {
        sign = ATEN1(sign, y);
        y = ATEN2(mul, sign, ATEN1(floor, ATEN1(abs, y)));
    }
    return oct_aten_cast(a, y, type);
}

void oct_aten_div(oct_aten *a)
{
    a->out[0] = divide(a, oct_aten_text(a, "rounding_mode", ""));
}

void oct_aten_floor_divide(oct_aten *a)
{
    a->out[0] = divide(a, "floor");
}

/* The sign is the divisor's, as in Python. */
void oct_aten_remainder(oct_aten *a)
{
    const oct_dtype type = result_type(a);
    oct_value *x = oct_aten_operand(a, "self", type), *y = oct_aten_operand(a, "other", type);

    if (oct_dtype_is_int(type))
        a->out[0] = ATEN2(mod, x, y);
    else
        a->out[0] = ATEN2(sub, x, ATEN2(mul, ATEN1(floor, ATEN2(div, x, y)), y));
}

/* The sign is the dividend's, as in C. */
void oct_aten_fmod(oct_aten *a)
{
    const oct_dtype type = result_type(a);
    oct_value *x = oct_aten_operand(a, "self", type);
    oct_node *n =
        oct_aten_node(a, &oct_op_mod, (oct_value *[]){x, oct_aten_operand(a, "other", type)}, 2, 1);

    oct_emit_int(a->b, n, "fmod", 1);
    a->out[0] = oct_aten_done(a, n);
}

void oct_aten_maximum(oct_aten *a)
{
    binary(a, &oct_op_max);
}

void oct_aten_minimum(oct_aten *a)
{
    binary(a, &oct_op_min);
}

/* self ** exponent */
void oct_aten_pow(oct_aten *a)
{
    const oct_dtype type =
        a->meta->type.dtype ? a->meta->type.dtype : oct_aten_common(a, "self", "exponent");
    const oct_arg *arg = oct_aten_arg(a, "exponent");
    oct_value *x = oct_aten_operand(a, "self", type);
    const double e = arg && arg->kind != OCT_ARG_TENSOR ? oct_aten_f64(a, "exponent", 1) : 0;

    if (e == 2)
        a->out[0] = ATEN2(mul, x, x);
    else if (e == 0.5)
        a->out[0] = ATEN1(sqrt, x);
    else
        a->out[0] = ATEN2(pow, x, oct_aten_operand(a, "exponent", type));
}

/* self + value * tensor1 * tensor2 */
static void add_product(oct_aten *a, const oct_op *op)
{
    oct_value *x = oct_aten_tensor(a, "self"), *y = oct_aten_tensor(a, "tensor1");

    y = oct_aten_emit(a, op, y, oct_aten_tensor(a, "tensor2"), NULL);
    a->out[0] = ATEN2(add, x, scaled(a, y, "value"));
}

void oct_aten_addcmul(oct_aten *a)
{
    add_product(a, &oct_op_mul);
}

void oct_aten_addcdiv(oct_aten *a)
{
    add_product(a, &oct_op_div);
}

/* self + weight * (end - self) */
void oct_aten_lerp(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self"), *d = ATEN2(sub, oct_aten_tensor(a, "end"), x);

    a->out[0] = ATEN2(add, x, ATEN2(mul, d, oct_aten_operand(a, "weight", a->meta->type.dtype)));
}

/* --- comparison and logic --- */

static void compare(oct_aten *a, const oct_op *op)
{
    const oct_dtype type = oct_aten_common(a, "self", "other");
    oct_value *x = oct_aten_operand(a, "self", type);

    a->out[0] = oct_aten_emit(a, op, x, oct_aten_operand(a, "other", type), NULL);
}

void oct_aten_eq(oct_aten *a)
{
    compare(a, &oct_op_equal);
}

void oct_aten_ne(oct_aten *a)
{
    compare(a, &oct_op_equal);
    a->out[0] = ATEN1(not, a->out[0]);
}

void oct_aten_lt(oct_aten *a)
{
    compare(a, &oct_op_less);
}

void oct_aten_le(oct_aten *a)
{
    compare(a, &oct_op_less_or_equal);
}

void oct_aten_gt(oct_aten *a)
{
    compare(a, &oct_op_greater);
}

void oct_aten_ge(oct_aten *a)
{
    compare(a, &oct_op_greater_or_equal);
}

static void logic(oct_aten *a, const oct_op *on_bools, const oct_op *on_bits)
{
    const bool by_bits = on_bits && result_type(a) != OCT_DTYPE_BOOL;
    const oct_dtype type = by_bits ? result_type(a) : OCT_DTYPE_BOOL;
    oct_value *x = oct_aten_operand(a, "self", type);

    a->out[0] =
        oct_aten_emit(a, by_bits ? on_bits : on_bools, x, oct_aten_operand(a, "other", type), NULL);
}

void oct_aten_logical_and(oct_aten *a)
{
    logic(a, &oct_op_and, NULL);
}

void oct_aten_logical_or(oct_aten *a)
{
    logic(a, &oct_op_or, NULL);
}

void oct_aten_logical_xor(oct_aten *a)
{
    logic(a, &oct_op_xor, NULL);
}

void oct_aten_logical_not(oct_aten *a)
{
    a->out[0] = ATEN1(not, oct_aten_operand(a, "self", OCT_DTYPE_BOOL));
}

void oct_aten_bitwise_and(oct_aten *a)
{
    logic(a, &oct_op_and, &oct_op_bitwise_and);
}

void oct_aten_bitwise_or(oct_aten *a)
{
    logic(a, &oct_op_or, &oct_op_bitwise_or);
}

void oct_aten_bitwise_not(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self");

    if (x) a->out[0] = x->type.dtype == OCT_DTYPE_BOOL ? ATEN1(not, x) : ATEN1(bitwise_not, x);
}

void oct_aten_where(oct_aten *a)
{
    oct_value *c = oct_aten_operand(a, "condition", OCT_DTYPE_BOOL);
    const oct_dtype type = a->meta->type.dtype;
    oct_value *x = oct_aten_operand(a, "self", type);

    a->out[0] = ATEN3(where, c, x, oct_aten_operand(a, "other", type));
}

void oct_aten_masked_fill(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "self"), *mask = oct_aten_tensor(a, "mask");

    if (x) a->out[0] = ATEN3(where, mask, oct_aten_operand(a, "value", x->type.dtype), x);
}

/* --- functions of one operand --- */

static oct_value *self_float(oct_aten *a)
{
    return oct_aten_cast(a, oct_aten_tensor(a, "self"), a->meta->type.dtype);
}

void oct_aten_rsqrt(oct_aten *a)
{
    a->out[0] = ATEN1(reciprocal, ATEN1(sqrt, self_float(a)));
}

void oct_aten_square(oct_aten *a)
{
    oct_value *x = self_float(a);

    a->out[0] = ATEN2(mul, x, x);
}

void oct_aten_expm1(oct_aten *a)
{
    oct_value *x = ATEN1(exp, self_float(a));

    if (x) a->out[0] = ATEN2(sub, x, oct_aten_scalar(a, x->type.dtype, 1));
}

void oct_aten_log1p(oct_aten *a)
{
    oct_value *x = self_float(a);

    if (x) a->out[0] = ATEN1(log, ATEN2(add, x, oct_aten_scalar(a, x->type.dtype, 1)));
}

static void log_by(oct_aten *a, double factor)
{
    oct_value *x = ATEN1(log, self_float(a));

    if (x) a->out[0] = ATEN2(mul, x, oct_aten_scalar(a, x->type.dtype, factor));
}

void oct_aten_log2(oct_aten *a)
{
    log_by(a, 1.4426950408889634);
}

void oct_aten_log10(oct_aten *a)
{
    log_by(a, 0.4342944819032518);
}

void oct_aten_trunc(oct_aten *a)
{
    oct_value *x = self_float(a);

    a->out[0] = ATEN2(mul, ATEN1(sign, x), ATEN1(floor, ATEN1(abs, x)));
}
