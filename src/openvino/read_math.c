/* SPDX-License-Identifier: Apache-2.0 */
/* Activations, normalizations and reductions of IR. */
#include <string.h>

#include "op/op.h"
#include "openvino/read.h"

#define IN(i) oct_from_ir_in(r, l, i)

/* One node with operand 0 and float attributes that have the same names. */
static oct_node *start(oct_from_ir *r, const oct_ir_layer *l, const oct_op *op, int32_t n_in)
{
    oct_value *in[5];

    if ((r->b.status = oct_from_ir_need(r, l, n_in))) return NULL;
    for (int32_t i = 0; i < n_in; i++)
        in[i] = IN(i);
    return oct_emit_node(&r->b, op, in, n_in, 1);
}

static oct_status finish(oct_from_ir *r, const oct_ir_layer *l, oct_node *n)
{
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

/* The number of a scalar constant. */
static oct_status number(oct_from_ir *r, const oct_ir_layer *l, int32_t i, double *out)
{
    const oct_tensor *t = oct_from_ir_const(r, l, i);

    if (!t || oct_tensor_len(t) != 1)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "operand %d is not a constant number",
                                (int)i);
    *out = oct_tensor_get_f64(t, 0);
    return OCT_OK;
}

/* --- activations --- */

oct_status oct_from_ir_clamp(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *low = oct_scalar(&r->b, (float)oct_from_ir_f64(l, "min", 0)),
              *high = oct_scalar(&r->b, (float)oct_from_ir_f64(l, "max", 0));

    OCT_TRY(oct_from_ir_need(r, l, 1));
    return oct_from_ir_done(r, l, 0, oct_emit(&r->b, &oct_op_clip, IN(0), low, high));
}

/* A slope of shape [C] is taken along axis 1. */
oct_status oct_from_ir_prelu(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_tensor *slope = oct_from_ir_const(r, l, 1);
    oct_value *s = IN(1);
    int64_t shape[OCT_MAX_RANK];
    oct_node *n;

    OCT_TRY(oct_from_ir_need(r, l, 2));
    if (slope && oct_tensor_len(slope) == 1) {
        n = start(r, l, &oct_op_leaky_relu, 1);
        oct_emit_f32(&r->b, n, "alpha", (float)oct_tensor_get_f64(slope, 0));
        return finish(r, l, n);
    }
    if (s->type.rank == 1 && IN(0)->type.rank > 1) {
        for (int32_t i = 0; i < IN(0)->type.rank - 1; i++)
            shape[i] = i ? 1 : -1;
        s = oct_emit(&r->b, &oct_op_reshape, s, oct_ints(&r->b, shape, IN(0)->type.rank - 1), NULL);
    }
    return oct_from_ir_done(r, l, 0, oct_emit(&r->b, &oct_op_p_relu, IN(0), s, NULL));
}

oct_status oct_from_ir_elu(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_node *n = start(r, l, &oct_op_elu, 1);

    oct_emit_f32(&r->b, n, "alpha", (float)oct_from_ir_f64(l, "alpha", 1));
    return finish(r, l, n);
}

/* Ties away from zero: the sign times floor(|x| + 1/2). */
oct_status oct_from_ir_round(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *x, *y;

    OCT_TRY(oct_from_ir_need(r, l, 1));
    x = IN(0);
    if (strcmp(oct_from_ir_str(l, "mode", "half_to_even"), "half_away_from_zero") != 0)
        return oct_from_ir_done(r, l, 0, oct_emit(&r->b, &oct_op_round, x, NULL, NULL));
    y = oct_emit(&r->b, &oct_op_abs, x, NULL, NULL);
    y = oct_emit(&r->b, &oct_op_floor,
                 oct_emit(&r->b, &oct_op_add, y, oct_scalar(&r->b, 0.5f), NULL), NULL, NULL);
    x = oct_emit(&r->b, &oct_op_sign, x, NULL, NULL);
    return oct_from_ir_done(r, l, 0, oct_emit(&r->b, &oct_op_mul, x, y, NULL));
}

oct_status oct_from_ir_gelu(oct_from_ir *r, const oct_ir_layer *l)
{
    const char *mode = oct_from_ir_str(l, "approximation_mode", "ERF");
    oct_node *n = start(r, l, &oct_op_gelu, 1);

    oct_emit_str(&r->b, n, "approximate",
                 strcmp(mode, "TANH") == 0 || strcmp(mode, "tanh") == 0 ? "tanh" : "none");
    return finish(r, l, n);
}

oct_status oct_from_ir_hard_sigmoid(oct_from_ir *r, const oct_ir_layer *l)
{
    double alpha = 0, beta = 0;
    oct_node *n;

    OCT_TRY(oct_from_ir_need(r, l, 3));
    OCT_TRY(number(r, l, 1, &alpha));
    OCT_TRY(number(r, l, 2, &beta));
    n = start(r, l, &oct_op_hard_sigmoid, 1);
    oct_emit_f32(&r->b, n, "alpha", (float)alpha);
    oct_emit_f32(&r->b, n, "beta", (float)beta);
    return finish(r, l, n);
}

/* min(max(x + 3, 0), 6) / 6 */
oct_status oct_from_ir_h_sigmoid(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_node *n = start(r, l, &oct_op_hard_sigmoid, 1);

    oct_emit_f32(&r->b, n, "alpha", 1.0f / 6);
    oct_emit_f32(&r->b, n, "beta", 0.5f);
    return finish(r, l, n);
}

/* x * sigmoid(beta x), which every runtime reads. */
oct_status oct_from_ir_swish(oct_from_ir *r, const oct_ir_layer *l)
{
    double beta = 1;
    oct_value *y;

    OCT_TRY(oct_from_ir_need(r, l, 1));
    if (l->n_in > 1) OCT_TRY(number(r, l, 1, &beta));
    y = IN(0);
    if (beta != 1) y = oct_emit(&r->b, &oct_op_mul, y, oct_scalar(&r->b, (float)beta), NULL);
    y = oct_emit(&r->b, &oct_op_sigmoid, y, NULL, NULL);
    return oct_from_ir_done(r, l, 0, oct_emit(&r->b, &oct_op_mul, IN(0), y, NULL));
}

oct_status oct_from_ir_softmax(oct_from_ir *r, const oct_ir_layer *l)
{
    const bool is_log = strcmp(l->type, "LogSoftmax") == 0;
    oct_node *n = start(r, l, is_log ? &oct_op_log_softmax : &oct_op_softmax, 1);

    oct_emit_int(&r->b, n, "axis", oct_from_ir_int(l, "axis", is_log ? -1 : 1));
    return finish(r, l, n);
}

/* --- normalizations --- */

oct_status oct_from_ir_batch_norm(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_node *n = start(r, l, &oct_op_batch_normalization, 5);

    oct_emit_f32(&r->b, n, "epsilon", (float)oct_from_ir_f64(l, "epsilon", 1e-5));
    return finish(r, l, n);
}

/* (x - mean) / sqrt(variance + eps), spelt out; simplifying finds the normalization. */
oct_status oct_from_ir_mvn(oct_from_ir *r, const oct_ir_layer *l)
{
    const float eps = (float)oct_from_ir_f64(l, "eps", 1e-5);
    const char *mode = oct_from_ir_str(l, "eps_mode", "INSIDE_SQRT");
    oct_value *x = IN(0), *mean, *square;

    OCT_TRY(oct_from_ir_need(r, l, 2));
    mean = oct_emit(&r->b, &oct_op_reduce_mean, x, IN(1), NULL);
    x = oct_emit(&r->b, &oct_op_sub, x, mean, NULL);
    if (!oct_from_ir_bool(l, "normalize_variance", true)) return oct_from_ir_done(r, l, 0, x);
    if (mode[0] != 'I' && mode[0] != 'i')
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "octet cannot read eps_mode %.40s",
                                mode);
    square = oct_emit(&r->b, &oct_op_mul, x, x, NULL);
    square = oct_emit(&r->b, &oct_op_reduce_mean, square, IN(1), NULL);
    square = oct_emit(&r->b, &oct_op_add, square, oct_scalar(&r->b, eps), NULL);
    square = oct_emit(&r->b, &oct_op_sqrt, square, NULL, NULL);
    return oct_from_ir_done(r, l, 0, oct_emit(&r->b, &oct_op_div, x, square, NULL));
}

oct_status oct_from_ir_group_norm(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_node *n = start(r, l, &oct_op_group_normalization, 3);

    oct_emit_int(&r->b, n, "num_groups", oct_from_ir_int(l, "num_groups", 1));
    oct_emit_f32(&r->b, n, "epsilon", (float)oct_from_ir_f64(l, "epsilon", 1e-5));
    return finish(r, l, n);
}

oct_status oct_from_ir_lrn(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_tensor *axes = oct_from_ir_const(r, l, 1);
    oct_node *n;

    if (!axes || oct_tensor_len(axes) != 1 || oct_tensor_get_i64(axes, 0) != 1)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "octet reads it across channels only");
    n = start(r, l, &oct_op_lrn, 1);
    oct_emit_f32(&r->b, n, "alpha", (float)oct_from_ir_f64(l, "alpha", 1e-4));
    oct_emit_f32(&r->b, n, "beta", (float)oct_from_ir_f64(l, "beta", 0.75));
    oct_emit_f32(&r->b, n, "bias", (float)oct_from_ir_f64(l, "bias", 1));
    oct_emit_int(&r->b, n, "size", oct_from_ir_int(l, "size", 1));
    return finish(r, l, n);
}

/* --- reductions --- */

oct_status oct_from_ir_reduce(oct_from_ir *r, const oct_ir_layer *l)
{
    const oct_op *op = oct_op_find("", l->type);
    const oct_tensor *axes = oct_from_ir_const(r, l, 1);
    oct_value *in[2];
    oct_node *n;
    int64_t axis;

    OCT_TRY(oct_from_ir_need(r, l, 2));
    in[0] = IN(0);
    in[1] = IN(1);
    if (axes && axes->type.rank == 0) {
        axis = oct_tensor_get_i64(axes, 0);
        in[1] = oct_ints(&r->b, &axis, 1);
    }
    n = oct_emit_node(&r->b, op, in, 2, 1);
    oct_emit_int(&r->b, n, "keepdims", oct_from_ir_bool(l, "keep_dims", false));
    return finish(r, l, n);
}
