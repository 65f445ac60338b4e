/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantization as IR has it: FakeQuantize for an activation that is quantized and dequantized;
 * codes, Convert, Subtract and Multiply for weights. And constants under other shapes.
 */
#include <string.h>

#include "op/op.h"
#include "op/quant.h"
#include "openvino/write.h"

enum { X, SCALE, ZERO };

/* Codes of a constant that are dequantized as a whole; wide ones are biases, which are floats. */
static bool has_const_codes(const oct_node *n)
{
    return oct_node_is(n, &oct_op_dequantize_linear) && oct_node_const(n, X) &&
           oct_node_const(n, SCALE) && (!oct_node_in(n, ZERO) || oct_node_const(n, ZERO));
}

static bool has_const_params(const oct_node *n)
{
    return oct_node_const(n, SCALE) && (!oct_node_in(n, ZERO) || oct_node_const(n, ZERO)) &&
           !oct_to_ir_int(n, "block_size", 0);
}

static int64_t axis_of(const oct_node *n)
{
    const int64_t axis = oct_to_ir_int(n, "axis", 1), rank = n->in[X]->type.rank;

    return axis < 0 ? axis + rank : axis;
}

static double zero_of(const oct_node *n, int64_t i)
{
    const oct_tensor *z = oct_node_const(n, ZERO);

    return z ? oct_tensor_get_f64(z, oct_tensor_len(z) > 1 ? i : 0) : 0;
}

static bool has_zeros(const oct_node *n)
{
    const oct_tensor *z = oct_node_const(n, ZERO);
    bool any = false;

    for (int64_t i = 0; z && i < oct_tensor_len(z); i++)
        any |= oct_tensor_get_f64(z, i) != 0;
    return any;
}

/* One number, or one for each index of the axis, so that it broadcasts against `rank` axes. */
static oct_type params_type(const oct_node *n, int32_t rank, int64_t axis)
{
    const int64_t len = oct_tensor_len(oct_node_const(n, SCALE));
    oct_type t = {.dtype = OCT_DTYPE_F32};

    if (len == 1) return t;
    t.rank = rank;
    for (int32_t i = 0; i < rank; i++)
        t.dim[i] = i == axis ? len : 1;
    return t;
}

/* --- constants --- */

/* The constant floats of a value, which may be codes that are dequantized; NULL: it is none. The
 * caller releases it. */
static oct_status floats_of(const oct_value *v, oct_tensor **out)
{
    oct_tensor *in[3] = {NULL}, *y = NULL;

    *out = NULL;
    if (v->data) {
        *out = oct_tensor_ref(v->data);
        return OCT_OK;
    }
    if (!v->producer || !has_const_codes(v->producer)) return OCT_OK;
    for (int32_t i = 0; i < v->producer->n_in; i++)
        in[i] = oct_node_const(v->producer, i);
    OCT_TRY(oct_node_eval(v->producer, in, &y, NULL));
    *out = y;
    return OCT_OK;
}

/* scale or zero point, as a constant that broadcasts against the codes. */
static oct_ir_at param(oct_to_ir *w, const oct_node *n, bool is_zero, const oct_type *type)
{
    const oct_tensor *scale = oct_node_const(n, SCALE);
    oct_tensor *t = NULL;

    if (!w->ir.status) w->ir.status = oct_tensor_make(w->ir.ctx, type, &t);
    if (w->ir.status) return (oct_ir_at){-1, 0};
    for (int64_t i = 0; i < oct_tensor_len(t); i++)
        ((float *)t->data)[i] = (float)(is_zero ? zero_of(n, i) : oct_tensor_get_f64(scale, i));
    return oct_ir_const(&w->ir, oct_ir_name(&w->ir, n->name, is_zero ? "zero_point" : "scale"), t);
}

/* x - zero, times scale; the last layer is named as the node. */
static oct_ir_at dequantized(oct_to_ir *w, const oct_node *n, oct_ir_at codes, oct_type type,
                             const oct_type *params)
{
    oct_ir_at y;

    type.dtype = OCT_DTYPE_F32;
    y = oct_to_ir_emit(w, n, "convert", "Convert", "opset1", &codes, 1, &type);
    oct_ir_attr_str(&w->ir, "destination_type", "f32");
    if (has_zeros(n))
        y = oct_to_ir_binary(w, n, "centred", "Subtract", y, param(w, n, true, params), &type);
    return oct_to_ir_binary(w, n, NULL, "Multiply", y, param(w, n, false, params), &type);
}

/* Weights [M x ..] as [g x M/g x ..]: where the axis of the scales goes. */
static oct_type grouped_params(const oct_node *n, const oct_type *to)
{
    const int64_t axis = axis_of(n);
    oct_type t = params_type(n, to->rank, axis + 1);

    if (t.rank == 0 || axis != 0) return t;
    t.dim[0] = to->dim[0];
    t.dim[1] = to->dim[1];
    return t;
}

static oct_ir_at const_codes(oct_to_ir *w, const oct_node *n, const oct_type *to,
                             const oct_type *params)
{
    oct_tensor *t = NULL;
    oct_type type = *to;

    type.dtype = n->in[X]->type.dtype;
    if (!w->ir.status) w->ir.status = oct_tensor_view(w->ir.ctx, n->in[X]->data, &type, &t);
    if (w->ir.status) return (oct_ir_at){-1, 0};
    return dequantized(w, n, oct_ir_const(&w->ir, n->in[X]->name, t), type, params);
}

static bool is_wide(const oct_node *n)
{
    return oct_dtype_get(n->in[X]->type.dtype)->bits > 8;
}

/* Floats under this shape. */
static oct_ir_at float_const(oct_to_ir *w, const oct_value *v, const oct_type *to)
{
    oct_tensor *t = NULL, *view = NULL;
    oct_type type = *to;

    if (!w->ir.status) w->ir.status = floats_of(v, &t);
    if (w->ir.status) return (oct_ir_at){-1, 0};
    type.dtype = t->type.dtype;
    w->ir.status = oct_tensor_view(w->ir.ctx, t, &type, &view);
    oct_tensor_unref(t);
    return w->ir.status ? (oct_ir_at){-1, 0} : oct_to_ir_const(w, v->name, view);
}

oct_ir_at oct_to_ir_reshaped(oct_to_ir *w, const oct_node *n, const oct_value *v,
                             const oct_type *to)
{
    const oct_node *by = v->producer;
    oct_ir_at in[2];
    oct_type params;

    if (v->data || (by && has_const_codes(by) && is_wide(by))) return float_const(w, v, to);
    if (by && has_const_codes(by) && to->rank == v->type.rank + 1) {
        params = grouped_params(by, to);
        return const_codes(w, by, to, &params);
    }
    in[0] = oct_to_ir_value(w, v);
    in[1] = oct_ir_ints(&w->ir, oct_ir_name(&w->ir, v->name, "shape"), to->dim, to->rank, false);
    in[0] = oct_to_ir_emit(w, n, "reshaped", "Reshape", "opset1", in, 2, to);
    oct_ir_attr_bool(&w->ir, "special_zero", false);
    return in[0];
}

/* --- activations --- */

/* Does DequantizeLinear n give back what its producer quantized? */
static bool is_pair(const oct_node *n)
{
    const oct_node *q = n->in[X]->producer;

    if (!oct_node_is(q, &oct_op_quantize_linear) || !has_const_params(q) || !has_const_params(n))
        return false;
    if (axis_of(q) != axis_of(n) || !oct_tensor_equal(q->in[SCALE]->data, n->in[SCALE]->data))
        return false;
    if (!oct_node_in(q, ZERO) || !oct_node_in(n, ZERO)) return !has_zeros(q) && !has_zeros(n);
    return oct_tensor_equal(q->in[ZERO]->data, n->in[ZERO]->data);
}

/* One end of the codes, as values. */
static oct_ir_at end_of_range(oct_to_ir *w, const oct_node *q, const oct_type *type, int32_t code,
                              const char *suffix)
{
    const oct_tensor *scale = oct_node_const(q, SCALE);
    oct_tensor *t = NULL;

    if (!w->ir.status) w->ir.status = oct_tensor_make(w->ir.ctx, type, &t);
    if (w->ir.status) return (oct_ir_at){-1, 0};
    for (int64_t i = 0; i < oct_tensor_len(t); i++)
        ((float *)t->data)[i] =
            (float)(((double)code - zero_of(q, i)) * oct_tensor_get_f64(scale, i));
    return oct_ir_const(&w->ir, oct_ir_name(&w->ir, q->name, suffix), t);
}

/* FakeQuantize of what q quantizes; to codes, or to values. */
static oct_ir_at fake_quantize(oct_to_ir *w, const oct_node *q, const char *name, bool to_codes)
{
    const oct_dtype dtype = q->out[0]->type.dtype;
    const oct_type *x = &q->in[X]->type;
    const oct_type params = params_type(q, x->rank, axis_of(q));
    oct_ir_at in[5] = {oct_to_ir_in(w, q, X)}, y;
    int32_t low, high;

    oct_quant_limits(dtype, &low, &high);
    in[1] = end_of_range(w, q, &params, low, "input_low");
    in[2] = end_of_range(w, q, &params, high, "input_high");
    in[3] =
        to_codes ? oct_ir_scalar(&w->ir, oct_ir_name(&w->ir, q->name, "output_low"), low) : in[1];
    in[4] =
        to_codes ? oct_ir_scalar(&w->ir, oct_ir_name(&w->ir, q->name, "output_high"), high) : in[2];
    y = oct_ir_add(&w->ir, name, "FakeQuantize", "opset1", in, 5, x, 1);
    oct_ir_attr_int(&w->ir, "levels", (int64_t)high - low + 1);
    oct_ir_attr_str(&w->ir, "auto_broadcast", "numpy");
    return y;
}

/* Codes are needed only where something else than DequantizeLinear reads them. */
oct_status oct_to_ir_quantize(oct_to_ir *w, const oct_node *n)
{
    const oct_dtype dtype = n->out[0]->type.dtype;
    bool needed = n->out[0]->is_output;
    oct_ir_at y;

    for (int32_t i = 0; i < n->out[0]->n_users; i++) {
        const oct_node *u = n->out[0]->users[i];

        needed |= !oct_node_is(u, &oct_op_dequantize_linear) || !is_pair(u);
    }
    if (!needed) return OCT_OK;
    if (!has_const_params(n) || oct_dtype_get(dtype)->bits > 8)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "octet can write it as OpenVINO IR only with constant scales and at "
                             "most 8 bits");
    y = fake_quantize(w, n, oct_ir_name(&w->ir, n->name, "codes"), true);
    y = oct_to_ir_emit(w, n, NULL, "Convert", "opset1", &y, 1, &n->out[0]->type);
    oct_ir_attr_str(&w->ir, "destination_type", oct_ir_element(dtype));
    return oct_to_ir_done(w, n, 0, y);
}

oct_status oct_to_ir_dequantize(oct_to_ir *w, const oct_node *n)
{
    const oct_type *t = &n->in[X]->type;
    oct_type params;

    if (n->out[0]->n_users == 0 && !n->out[0]->is_output) return OCT_OK;
    if (!has_const_params(n))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "octet can write it as OpenVINO IR only with constant scales, and not "
                             "in blocks");
    if (is_pair(n))
        return oct_to_ir_done(w, n, 0, fake_quantize(w, n->in[X]->producer, n->name, false));
    if (has_const_codes(n) && is_wide(n))
        return oct_to_ir_done(w, n, 0, float_const(w, n->out[0], &n->out[0]->type));
    params = params_type(n, t->rank, axis_of(n));
    if (has_const_codes(n)) return oct_to_ir_done(w, n, 0, const_codes(w, n, t, &params));
    return oct_to_ir_done(w, n, 0, dequantized(w, n, oct_to_ir_in(w, n, X), *t, &params));
}
