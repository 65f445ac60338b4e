/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantization of IR: FakeQuantize is QuantizeLinear and DequantizeLinear; a Multiply that ends
 * "codes, Convert, (Subtract,) Multiply" is DequantizeLinear of constant codes.
 */
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "openvino/read.h"

/* The constant that v is, or that a Cast of a constant gives; the caller releases it. NULL: none.
 */
static oct_status constant(const oct_value *v, oct_tensor **out)
{
    oct_tensor *in[2] = {NULL};

    *out = NULL;
    if (v->data) {
        *out = oct_tensor_ref(v->data);
        return OCT_OK;
    }
    if (!oct_node_is(v->producer, &oct_op_cast) || !v->producer->in[0]->data) return OCT_OK;
    in[0] = v->producer->in[0]->data;
    return oct_node_eval(v->producer, in, out, NULL);
}

/* --- parameters along one axis --- */

/* Numbers that broadcast against a tensor: one, or one for each index of an axis. */
typedef struct along {
    int64_t n;
    int axis; /* -1: one */
} along;

static bool find_axis(const oct_type *p, int32_t rank, along *out)
{
    *out = (along){oct_type_len(p), -1};
    if (p->rank > rank || out->n < 1) return false;
    for (int32_t i = 0; i < p->rank; i++) {
        if (p->dim[i] == 1) continue;
        if (out->axis >= 0) return false;
        out->axis = i + rank - p->rank;
    }
    return true;
}

static oct_value *floats(oct_from_ir *r, const float *v, int64_t n, int axis)
{
    const oct_type t = oct_type_make(OCT_DTYPE_F32, axis >= 0, &n);
    oct_tensor *c = NULL;

    if (!r->b.status) r->b.status = oct_tensor_make(r->ctx, &t, &c);
    if (r->b.status) return NULL;
    memcpy(c->data, v, (size_t)n * sizeof(*v));
    return oct_value_const(r->g, NULL, c);
}

static oct_value *codes_of(oct_from_ir *r, const int64_t *v, int64_t n, int axis, oct_dtype dtype)
{
    const oct_type t = oct_type_make(dtype, axis >= 0, &n);
    oct_tensor *c = NULL;

    if (!r->b.status) r->b.status = oct_tensor_make(r->ctx, &t, &c);
    if (r->b.status) return NULL;
    oct_store_i64(dtype, c->data, 0, n, v);
    return oct_value_const(r->g, NULL, c);
}

static oct_value *linear(oct_from_ir *r, const oct_op *op, oct_value *x, oct_value *scale,
                         oct_value *zero, int axis)
{
    oct_node *n = oct_emit_node(&r->b, op, (oct_value *[]){x, scale, zero}, zero ? 3 : 2, 1);

    if (axis >= 0) oct_emit_int(&r->b, n, "axis", axis);
    return oct_emitted(&r->b, n);
}

/* --- weights --- */

/*
 * Weights of groups are [g x a x b ..] with scales [g x a x 1 ..] or [1 x 1 x b ..]: as [g * a x b
 * ..] they have one axis. The result has the shape of the codes.
 */
typedef struct weights {
    oct_tensor *codes, *scale, *zero; /* zero NULL: 0 */
} weights;

static float at(const oct_tensor *p, const oct_type *codes, int64_t first, int64_t second,
                int64_t third)
{
    const int64_t index[3] = {first, second, third};
    const int32_t shift = codes->rank - p->type.rank;
    int64_t k = 0;

    for (int32_t i = 0; i < p->type.rank; i++) {
        const int32_t axis = i + shift;

        k = k * p->type.dim[i] + (p->type.dim[i] > 1 && axis < 3 ? index[axis] : 0);
    }
    return (float)oct_tensor_get_f64(p, k);
}

static bool varies(const oct_tensor *p, int32_t rank, int32_t axis)
{
    const int32_t i = axis - (rank - p->type.rank);

    return p && i >= 0 && i < p->type.rank && p->type.dim[i] > 1;
}

/* Groups merged: DequantizeLinear of [g * a x b ..], and a Reshape back. */
static oct_value *merged(oct_from_ir *r, const weights *w)
{
    const oct_type *t = &w->codes->type;
    const bool by_third = varies(w->scale, t->rank, 2);
    const int64_t n = by_third ? t->dim[2] : t->dim[0] * t->dim[1];
    float *scale = oct_arena_array(r->ir.arena, (size_t)n, sizeof(*scale));
    int64_t *zero = oct_arena_array(r->ir.arena, (size_t)n, sizeof(*zero));
    oct_tensor *view = NULL;
    oct_type flat = *t;
    oct_value *y;

    for (int32_t i = 3; i < t->rank; i++)
        if (varies(w->scale, t->rank, i)) return NULL;
    if (by_third && (varies(w->scale, t->rank, 0) || varies(w->scale, t->rank, 1))) return NULL;
    if (!scale || !zero) {
        r->b.status = OCT_ERR_MEMORY;
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = by_third ? 0 : i / t->dim[1], b = by_third ? 0 : i % t->dim[1],
                      c = by_third ? i : 0;

        scale[i] = at(w->scale, t, a, b, c);
        zero[i] = w->zero ? (int64_t)at(w->zero, t, a, b, c) : 0;
    }
    flat.rank--;
    flat.dim[0] = t->dim[0] * t->dim[1];
    for (int32_t i = 1; i < flat.rank; i++)
        flat.dim[i] = t->dim[i + 1];
    if ((r->b.status = oct_tensor_view(r->ctx, w->codes, &flat, &view))) return NULL;
    y = linear(r, &oct_op_dequantize_linear, oct_value_const(r->g, NULL, view),
               floats(r, scale, n, by_third), codes_of(r, zero, n, by_third, t->dtype), by_third);
    return oct_emit(&r->b, &oct_op_reshape, y, oct_ints(&r->b, t->dim, t->rank), NULL);
}

/* One axis or none, as it is in ONNX. */
static oct_value *plain(oct_from_ir *r, const weights *w)
{
    const oct_type *t = &w->codes->type;
    along a;
    int64_t *zero;
    float *scale;

    if (!find_axis(&w->scale->type, t->rank, &a)) return NULL;
    if (w->zero) {
        along z;

        if (!find_axis(&w->zero->type, t->rank, &z) || (z.n > 1 && z.axis != a.axis)) return NULL;
    }
    scale = oct_arena_array(r->ir.arena, (size_t)a.n, sizeof(*scale));
    zero = oct_arena_array(r->ir.arena, (size_t)a.n, sizeof(*zero));
    if (!scale || !zero) {
        r->b.status = OCT_ERR_MEMORY;
        return NULL;
    }
    for (int64_t i = 0; i < a.n; i++) {
        const int64_t k = w->zero && oct_tensor_len(w->zero) > 1 ? i : 0;

        scale[i] = (float)oct_tensor_get_f64(w->scale, i);
        zero[i] = w->zero ? (int64_t)oct_tensor_get_f64(w->zero, k) : 0;
    }
    return linear(r, &oct_op_dequantize_linear,
                  oct_value_const(r->g, NULL, oct_tensor_ref(w->codes)),
                  floats(r, scale, a.n, a.axis), codes_of(r, zero, a.n, a.axis, t->dtype), a.axis);
}

static oct_value *dequantized(oct_from_ir *r, const weights *w)
{
    oct_value *y = plain(r, w);

    if (y || r->b.status || w->codes->type.rank < 4) return y;
    return merged(r, w);
}

/* codes, Convert, (Subtract); false: x is something else. */
static oct_status find_codes(const oct_value *x, weights *w)
{
    const oct_node *n = x->producer;

    if (oct_node_is(n, &oct_op_sub)) {
        OCT_TRY(constant(n->in[1], &w->zero));
        if (!w->zero) return OCT_OK;
        n = n->in[0]->producer;
    }
    if (oct_node_is(n, &oct_op_cast) && n->in[0]->data && oct_dtype_is_int(n->in[0]->type.dtype) &&
        oct_dtype_get(n->in[0]->type.dtype)->bits <= 8)
        w->codes = oct_tensor_ref(n->in[0]->data);
    return OCT_OK;
}

oct_status oct_from_ir_multiply(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *x = oct_from_ir_in(r, l, 0), *s = oct_from_ir_in(r, l, 1), *y = NULL;
    weights w = {0};
    oct_status st = OCT_OK;

    if (l->n_in != 2) return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "not two operands");
    if (x->producer) st = find_codes(x, &w);
    if (!st && w.codes) st = constant(s, &w.scale);
    if (!st && w.codes && w.scale) y = dequantized(r, &w);
    oct_tensor_unref(w.codes);
    oct_tensor_unref(w.scale);
    oct_tensor_unref(w.zero);
    if (st || r->b.status) return st ? st : r->b.status;
    return oct_from_ir_done(r, l, 0, y ? y : oct_emit(&r->b, &oct_op_mul, x, s, NULL));
}

/* --- FakeQuantize --- */

typedef struct ranges {
    oct_tensor *end[4]; /* low and high of input and output */
    double levels;
} ranges;

/* Are the ranges of input and output the same? Then the values that have codes are kept. */
static bool keeps_range(const ranges *q)
{
    for (int k = 0; k < 2; k++) {
        if (!oct_type_equal(&q->end[k]->type, &q->end[k + 2]->type)) return false;
        for (int64_t i = 0; i < oct_tensor_len(q->end[k]); i++)
            if (oct_tensor_get_f64(q->end[k], i) != oct_tensor_get_f64(q->end[k + 2], i))
                return false;
    }
    return oct_type_equal(&q->end[0]->type, &q->end[1]->type);
}

/* Signed codes if 0 is their middle everywhere. */
static bool is_signed(const ranges *q, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double low = oct_tensor_get_f64(q->end[0], i),
                     high = oct_tensor_get_f64(q->end[1], i);
        const double zero = rint(-low / ((high - low) / (q->levels - 1)));

        if (zero != floor(q->levels / 2)) return false;
    }
    return true;
}

static oct_value *limited(oct_from_ir *r, oct_value *x, const ranges *q, const along *a)
{
    oct_value *low = oct_value_const(r->g, NULL, oct_tensor_ref(q->end[0])),
              *high = oct_value_const(r->g, NULL, oct_tensor_ref(q->end[1]));

    if (a->axis < 0 && q->end[0]->type.rank == 0)
        return oct_emit(&r->b, &oct_op_clip, x, low, high);
    return oct_emit(&r->b, &oct_op_min, oct_emit(&r->b, &oct_op_max, x, low, NULL), high, NULL);
}

/* A constant's codes are computed here, so that the file has integers. */
static oct_value *quantized(oct_from_ir *r, oct_value *x, oct_value *scale, oct_value *zero,
                            int axis)
{
    oct_value *q = linear(r, &oct_op_quantize_linear, x, scale, zero, axis);
    oct_tensor *in[3] = {x->data, scale ? scale->data : NULL, zero ? zero->data : NULL},
               *out = NULL;

    if (!q || !x->data) return q;
    r->b.status = oct_node_eval(q->producer, in, &out, NULL);
    return r->b.status ? NULL : oct_value_const(r->g, NULL, out);
}

static oct_value *as_codes(oct_from_ir *r, oct_value *x, const ranges *q, const along *a)
{
    const bool has_sign = is_signed(q, a->n);
    float *scale = oct_arena_array(r->ir.arena, (size_t)a->n, sizeof(*scale));
    int64_t *zero = oct_arena_array(r->ir.arena, (size_t)a->n, sizeof(*zero));
    const oct_dtype dtype = has_sign ? OCT_DTYPE_I8 : OCT_DTYPE_U8;
    oct_value *s, *z;

    if (!scale || !zero) {
        r->b.status = OCT_ERR_MEMORY;
        return NULL;
    }
    for (int64_t i = 0; i < a->n; i++) {
        const double low = oct_tensor_get_f64(q->end[0], i),
                     high = oct_tensor_get_f64(q->end[1], i);

        scale[i] = (float)((high - low) / (q->levels - 1));
        zero[i] = has_sign ? 0 : (int64_t)fmin(fmax(rint(-low / (double)scale[i]), 0), 255);
        if (!(scale[i] > 0 && isfinite(scale[i]))) {
            r->b.status =
                oct_from_ir_fail(r, r->layer, OCT_ERR_FORMAT, "a range from %g to %g", low, high);
            return NULL;
        }
    }
    if (q->levels < 256 && !x->data) x = limited(r, x, q, a);
    s = floats(r, scale, a->n, a->axis);
    z = codes_of(r, zero, a->n, a->axis, dtype);
    return linear(r, &oct_op_dequantize_linear, quantized(r, x, s, z, a->axis), s, z, a->axis);
}

/* round((x - low) / (high - low) * (levels - 1)) to the range of the output, spelt out. */
static oct_value *spelt_out(oct_from_ir *r, oct_value *x, const ranges *q, const along *a)
{
    oct_value *end[4], *step = oct_scalar(&r->b, (float)(q->levels - 1)), *width, *y;

    for (int i = 0; i < 4; i++)
        end[i] = oct_value_const(r->g, NULL, oct_tensor_ref(q->end[i]));
    y = limited(r, x, q, a);
    width = oct_emit(&r->b, &oct_op_sub, end[1], end[0], NULL);
    y = oct_emit(&r->b, &oct_op_sub, y, end[0], NULL);
    y = oct_emit(&r->b, &oct_op_div, y, width, NULL);
    y = oct_emit(&r->b, &oct_op_round, oct_emit(&r->b, &oct_op_mul, y, step, NULL), NULL, NULL);
    width = oct_emit(&r->b, &oct_op_sub, end[3], end[2], NULL);
    y = oct_emit(&r->b, &oct_op_mul, oct_emit(&r->b, &oct_op_div, y, step, NULL), width, NULL);
    return oct_emit(&r->b, &oct_op_add, y, end[2], NULL);
}

oct_status oct_from_ir_fake_quantize(oct_from_ir *r, const oct_ir_layer *l)
{
    ranges q = {.levels = oct_from_ir_f64(l, "levels", 0)};
    oct_value *x = oct_from_ir_in(r, l, 0), *y = NULL;
    oct_status st = OCT_OK;
    bool all = true;
    along a = {1, 0};

    if (l->n_in != 5) return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "not five operands");
    if (!(q.levels >= 2 && q.levels <= 65536))
        return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "%g levels", q.levels);
    for (int i = 0; i < 4 && !st; i++) {
        st = constant(oct_from_ir_in(r, l, i + 1), &q.end[i]);
        all = all && q.end[i];
    }
    if (!st && !all)
        st = oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "its ranges are not constant");
    if (!st && x->type.rank >= 0 && find_axis(&q.end[0]->type, x->type.rank, &a) &&
        keeps_range(&q) && q.levels <= 256)
        y = as_codes(r, x, &q, &a);
    else if (!st)
        y = spelt_out(r, x, &q, &a);
    for (int i = 0; i < 4; i++)
        oct_tensor_unref(q.end[i]);
    return st ? st : oct_from_ir_done(r, l, 0, y);
}
