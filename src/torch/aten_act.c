/* SPDX-License-Identifier: Apache-2.0 */
/* Activations and softmax. */
#include <string.h>

#include "torch/aten.h"

static oct_value *self(oct_aten *a)
{
    return oct_aten_tensor(a, "self");
}

/* A number of the type of x. */
static oct_value *number(oct_aten *a, const oct_value *x, double v)
{
    return x ? oct_aten_scalar(a, x->type.dtype, v) : NULL;
}

static oct_value *with_f32(oct_aten *a, const oct_op *op, oct_value *x, const char *name, double v)
{
    oct_node *n = oct_aten_node(a, op, &x, 1, 1);

    oct_emit_f32(a->b, n, name, (float)v);
    return oct_aten_done(a, n);
}

static oct_value *clip(oct_aten *a, oct_value *x, oct_value *low, oct_value *high)
{
    oct_value *const in[] = {x, low, high};

    return oct_aten_done(a, oct_aten_node(a, &oct_op_clip, in, high ? 3 : low ? 2 : 1, 1));
}

void oct_aten_silu(oct_aten *a)
{
    oct_value *x = self(a);

    a->out[0] = ATEN2(mul, x, ATEN1(sigmoid, x));
}

void oct_aten_gelu(oct_aten *a)
{
    oct_value *x = self(a);
    oct_node *n = oct_aten_node(a, &oct_op_gelu, &x, 1, 1);

    oct_emit_str(a->b, n, "approximate", oct_aten_text(a, "approximate", "none"));
    a->out[0] = oct_aten_done(a, n);
}

void oct_aten_hardtanh(oct_aten *a)
{
    oct_value *x = self(a);

    a->out[0] = clip(a, x, number(a, x, oct_aten_f64(a, "min_val", -1)),
                     number(a, x, oct_aten_f64(a, "max_val", 1)));
}

void oct_aten_relu6(oct_aten *a)
{
    oct_value *x = self(a);

    a->out[0] = clip(a, x, number(a, x, 0), number(a, x, 6));
}

/* Bounds may be numbers or tensors; Clip takes single numbers. */
void oct_aten_clamp(oct_aten *a)
{
    const oct_arg *low = oct_aten_arg(a, "min"), *high = oct_aten_arg(a, "max");
    const oct_dtype type = a->meta->type.dtype;
    oct_value *x = oct_aten_cast(a, self(a), type);
    oct_value *lo = low ? oct_aten_operand(a, "min", type) : NULL;
    oct_value *hi = high ? oct_aten_operand(a, "max", type) : NULL;

    if (a->b->status) return;
    if ((!lo || lo->type.rank == 0) && (!hi || hi->type.rank == 0)) {
        a->out[0] = clip(a, x, lo, hi);
        return;
    }
    if (lo) x = ATEN2(max, x, lo);
    a->out[0] = hi ? ATEN2(min, x, hi) : x;
}

void oct_aten_hardswish(oct_aten *a)
{
    a->out[0] = ATEN1(hard_swish, self(a));
}

void oct_aten_hardsigmoid(oct_aten *a)
{
    oct_value *x = self(a);
    oct_node *n = oct_aten_node(a, &oct_op_hard_sigmoid, &x, 1, 1);

    oct_emit_f32(a->b, n, "alpha", 1.0f / 6.0f);
    oct_emit_f32(a->b, n, "beta", 0.5f);
    a->out[0] = oct_aten_done(a, n);
}

void oct_aten_leaky_relu(oct_aten *a)
{
    a->out[0] =
        with_f32(a, &oct_op_leaky_relu, self(a), "alpha", oct_aten_f64(a, "negative_slope", 0.01));
}

/* scale * (x > 0 ? x : alpha * (exp(input_scale * x) - 1)) */
void oct_aten_elu(oct_aten *a)
{
    const double scale = oct_aten_f64(a, "scale", 1), inner = oct_aten_f64(a, "input_scale", 1);
    const double alpha = oct_aten_f64(a, "alpha", 1);
    oct_value *x = self(a), *y = x;

    if (inner != 1) y = ATEN2(mul, y, number(a, x, inner));
    y = with_f32(a, &oct_op_elu, y, "alpha", alpha);
    if (inner != 1) y = ATEN3(where, ATEN2(greater, x, number(a, x, 0)), x, y);
    a->out[0] = scale == 1 ? y : ATEN2(mul, y, number(a, x, scale));
}

void oct_aten_celu(oct_aten *a)
{
    a->out[0] = with_f32(a, &oct_op_celu, self(a), "alpha", oct_aten_f64(a, "alpha", 1));
}

/* log(1 + exp(beta x)) / beta; above the threshold both torch and Softplus give x. */
void oct_aten_softplus(oct_aten *a)
{
    const double beta = oct_aten_f64(a, "beta", 1);
    oct_value *x = self(a);

    if (beta == 1) {
        a->out[0] = ATEN1(softplus, x);
        return;
    }
    x = ATEN1(softplus, ATEN2(mul, x, number(a, x, beta)));
    a->out[0] = ATEN2(div, x, number(a, x, beta));
}

void oct_aten_prelu(oct_aten *a)
{
    oct_value *x = self(a), *w = oct_aten_tensor(a, "weight");
    const int32_t rank = oct_aten_rank(a, x);
    int64_t dims[OCT_MAX_RANK];

    if (a->b->status) return;
    if (rank > 1 && oct_aten_dim(w, 0) != 1) {
        for (int32_t i = 0; i < rank; i++)
            dims[i] = i == 1 ? -1 : 1;
        w = oct_aten_reshape(a, w, dims + 1, rank - 1);
    }
    a->out[0] = ATEN2(p_relu, x, w);
}

void oct_aten_glu(oct_aten *a)
{
    oct_value *x = self(a);
    const int32_t axis = oct_aten_axis(a, oct_aten_int(a, "dim", -1), oct_aten_rank(a, x));
    const int64_t half = oct_aten_dim(x, axis) / 2;

    if (half < 1) oct_aten_fail(a, OCT_ERR_SHAPE, "the size it halves is not known");
    a->out[0] = ATEN2(mul, oct_aten_slice(a, x, axis, 0, half),
                      ATEN1(sigmoid, oct_aten_slice(a, x, axis, half, 2 * half)));
}

void oct_aten_log_sigmoid(oct_aten *a)
{
    a->out[0] = ATEN1(log, ATEN1(sigmoid, self(a)));
}

void oct_aten_hardshrink(oct_aten *a)
{
    oct_value *x = self(a);
    oct_node *n = oct_aten_node(a, &oct_op_shrink, &x, 1, 1);

    oct_emit_f32(a->b, n, "lambd", (float)oct_aten_f64(a, "lambd", 0.5));
    a->out[0] = oct_aten_done(a, n);
}

/* threshold(x, t, value): x where x > t. */
void oct_aten_threshold(oct_aten *a)
{
    oct_value *x = self(a);

    a->out[0] = ATEN3(where, ATEN2(greater, x, number(a, x, oct_aten_f64(a, "threshold", 0))), x,
                      number(a, x, oct_aten_f64(a, "value", 0)));
}

/* --- softmax --- */

static void softmax_by(oct_aten *a, const oct_op *op)
{
    oct_value *x = oct_aten_cast(a, self(a), a->meta->type.dtype);
    const int32_t axis = oct_aten_axis(a, oct_aten_int(a, "dim", -1), oct_aten_rank(a, x));

    if (oct_aten_rank(a, x) == 0) { /* one number */
        a->out[0] = oct_aten_squeeze(a, oct_aten_softmax(a, op, oct_aten_unsqueeze(a, x, 0), 0), 0);
        return;
    }
    a->out[0] = oct_aten_softmax(a, op, x, axis);
}

void oct_aten_softmax_int(oct_aten *a)
{
    softmax_by(a, &oct_op_softmax);
}

void oct_aten_log_softmax(oct_aten *a)
{
    softmax_by(a, &oct_op_log_softmax);
}
