/* SPDX-License-Identifier: Apache-2.0 */
/* FakeQuantize of OpenVINO's domain, and layers of com.microsoft, spelt out. */
#include "onnx/foreign.h"

#include <math.h>
#include <string.h>

/* --- FakeQuantize: quantize and dequantize with ranges instead of scales --- */

enum { X, LOW, HIGH, OUT_LOW, OUT_HIGH, N_FAKE };

static bool same_numbers(const oct_tensor *a, const oct_tensor *b)
{
    if (!oct_type_equal(&a->type, &b->type)) return false;
    for (int64_t i = 0; i < oct_tensor_len(a); i++)
        if (oct_tensor_get_f64(a, i) != oct_tensor_get_f64(b, i)) return false;
    return true;
}

/* The one axis along which ranges differ; -1: one for all; -2: more than one, or not known. */
static int64_t range_axis(const oct_draft *d, const oct_type *t)
{
    const int rank = oct_draft_rank(d, X);
    int64_t axis = -1;

    for (int i = 0; i < t->rank; i++) {
        if (t->dim[i] == 1) continue;
        if (axis >= 0 || rank < t->rank) return -2;
        axis = rank - t->rank + i;
    }
    return axis;
}

/* Codes of 8 bits can hold what stays within its range in 255 or 256 levels. */
static bool is_codes(const oct_draft *d, int64_t levels, int64_t *axis)
{
    const oct_tensor *t[N_FAKE];

    for (int i = LOW; i < N_FAKE; i++)
        if (!(t[i] = d->in[i]->data)) return false;
    if (levels != 255 && levels != 256) return false;
    if (!same_numbers(t[LOW], t[OUT_LOW]) || !same_numbers(t[HIGH], t[OUT_HIGH])) return false;
    if (!oct_type_equal(&t[LOW]->type, &t[HIGH]->type)) return false;
    *axis = range_axis(d, &t[LOW]->type);
    for (int64_t i = 0; i < oct_tensor_len(t[LOW]); i++) {
        const double low = oct_tensor_get_f64(t[LOW], i), high = oct_tensor_get_f64(t[HIGH], i);

        if (!(low <= 0 && high >= 0 && high - low > 0 && isfinite((float)(high - low))))
            return false;
    }
    return *axis >= -1 && oct_tensor_len(t[LOW]) > 0;
}

static int64_t zero_of(const oct_draft *d, int64_t i, int64_t levels)
{
    const double low = oct_tensor_get_f64(d->in[LOW]->data, i),
                 high = oct_tensor_get_f64(d->in[HIGH]->data, i);

    return (int64_t)rint(-low / ((high - low) / (double)(levels - 1)));
}

static oct_status scales(oct_draft *d, int64_t levels, int64_t axis, oct_value *out[2])
{
    const int64_t n = oct_tensor_len(d->in[LOW]->data);
    oct_dtype dtype = OCT_DTYPE_I8;
    oct_tensor *s = NULL, *z = NULL;
    oct_status st;

    for (int64_t i = 0; i < n; i++)
        if (zero_of(d, i, levels) != levels / 2) dtype = OCT_DTYPE_U8;
    OCT_TRY(oct_tensor_new(d->s->r->ctx, OCT_DTYPE_F32, axis >= 0, &n, &s));
    st = oct_tensor_new(d->s->r->ctx, dtype, axis >= 0, &n, &z);
    for (int64_t i = 0; i < n && !st; i++) {
        const int64_t zero = dtype == OCT_DTYPE_I8 ? 0 : zero_of(d, i, levels);

        ((float *)s->data)[i] = (float)((oct_tensor_get_f64(d->in[HIGH]->data, i) -
                                         oct_tensor_get_f64(d->in[LOW]->data, i)) /
                                        (double)(levels - 1));
        oct_store_i64(dtype, z->data, i, 1, &zero);
    }
    if (!st) st = oct_draft_const(d, "scale", s, &out[0]);
    if (!st) return oct_draft_const(d, "zero_point", z, &out[1]);
    if (!z) oct_tensor_unref(s);
    oct_tensor_unref(z);
    return st;
}

static oct_value *limited(oct_builder *b, const oct_draft *d)
{
    oct_value *x = oct_emit(b, &oct_op_max, d->in[X], d->in[LOW], NULL);

    return b->status ? NULL : oct_emit(b, &oct_op_min, x, d->in[HIGH], NULL);
}

static oct_status to_codes(oct_draft *d, int64_t levels, int64_t axis)
{
    oct_builder b = oct_foreign_builder(d);
    oct_value *in[3] = {d->in[X]};
    oct_node *q;

    OCT_TRY(scales(d, levels, axis, in + 1));
    if (levels < 256) in[0] = limited(&b, d); /* 8 bits would hold one code more */
    OCT_TRY(b.status);
    q = oct_emit_node(&b, &oct_op_quantize_linear, in, 3, 1);
    if (q && axis >= 0) oct_emit_int(&b, q, "axis", axis);
    in[0] = oct_emitted(&b, q);
    OCT_TRY(b.status);
    OCT_TRY(oct_foreign_become(d, "DequantizeLinear", in, 3));
    return axis >= 0 ? oct_draft_set_int(d, "axis", axis) : OCT_OK;
}

/* round((x - low) / (high - low) * (levels - 1)) in the range of the output. */
static oct_status spell_out(oct_draft *d, int64_t levels)
{
    oct_builder b = oct_foreign_builder(d);
    oct_value *steps = oct_scalar(&b, (float)(levels - 1)), *y, *width;

    y = limited(&b, d);
    width = b.status ? NULL : oct_emit(&b, &oct_op_sub, d->in[HIGH], d->in[LOW], NULL);
    if (!b.status) y = oct_emit(&b, &oct_op_sub, y, d->in[LOW], NULL);
    if (!b.status) y = oct_emit(&b, &oct_op_div, y, width, NULL);
    if (!b.status) y = oct_emit(&b, &oct_op_mul, y, steps, NULL);
    if (!b.status) y = oct_emit(&b, &oct_op_round, y, NULL, NULL);
    if (!b.status) y = oct_emit(&b, &oct_op_div, y, steps, NULL);
    if (!b.status) width = oct_emit(&b, &oct_op_sub, d->in[OUT_HIGH], d->in[OUT_LOW], NULL);
    if (!b.status) y = oct_emit(&b, &oct_op_mul, y, width, NULL);
    OCT_TRY(b.status);
    return oct_foreign_become(d, "Add", (oct_value *[]){y, d->in[OUT_LOW]}, 2);
}

oct_status oct_foreign_fake_quantize(oct_draft *d)
{
    const int64_t levels = oct_draft_int(d, "levels", 0);
    int64_t axis = -1;

    if (d->n_in != N_FAKE || levels < 2 || levels > 65536) return OCT_OK;
    for (int i = 0; i < N_FAKE; i++)
        if (!d->in[i]) return OCT_OK;
    return is_codes(d, levels, &axis) ? to_codes(d, levels, axis) : spell_out(d, levels);
}

/* --- DynamicQuantizeLSTM: an LSTM whose weights are 8-bit and transposed --- */

/* Parameters of a direction, [dirs] or [dirs x columns], beside weights [dirs x rows x columns]. */
static oct_value *beside(oct_builder *b, oct_value *p)
{
    static const int64_t axes[] = {1, 2};

    p = p->type.dtype == OCT_DTYPE_F32 ? p : oct_foreign_cast(b, p, OCT_DTYPE_F32);
    return b->status ? NULL : oct_foreign_unsqueeze(b, p, axes, p->type.rank == 1 ? 2 : 1);
}

static oct_value *weights(oct_builder *b, oct_value *w, oct_value *scale, oct_value *zero)
{
    oct_value *x = oct_foreign_cast(b, w, OCT_DTYPE_F32), *z = b->status ? NULL : beside(b, zero);
    oct_node *n;

    if (!b->status) x = oct_emit(b, &oct_op_sub, x, z, NULL);
    z = b->status ? NULL : beside(b, scale);
    if (!b->status) x = oct_emit(b, &oct_op_mul, x, z, NULL);
    n = b->status ? NULL : oct_emit_node(b, &oct_op_transpose, &x, 1, 1);
    if (n) oct_emit_ints(b, n, "perm", (const int64_t[]){0, 2, 1}, 3);
    return oct_emitted(b, n);
}

/* Activations are not quantized: what comes out is nearer to the float network. */
oct_status oct_foreign_dynamic_lstm(oct_draft *d)
{
    enum { SEQUENCE, W, R, LAST = 7, W_SCALE, W_ZERO, R_SCALE, R_ZERO, N_IN };
    oct_builder b = oct_foreign_builder(d);
    oct_value **in;

    if (d->n_in != N_IN || !d->in[SEQUENCE] || !d->in[W] || !d->in[R]) return OCT_OK;
    for (int i = W_SCALE; i < N_IN; i++)
        if (!d->in[i] || (d->in[i]->type.rank != 1 && d->in[i]->type.rank != 2)) return OCT_OK;
    if (!(in = oct_arena_array(d->s->r->wire.arena, LAST + 1, sizeof(*in)))) return OCT_ERR_MEMORY;
    memcpy(in, d->in, (LAST + 1) * sizeof(*in));
    in[W] = weights(&b, d->in[W], d->in[W_SCALE], d->in[W_ZERO]);
    if (!b.status) in[R] = weights(&b, d->in[R], d->in[R_SCALE], d->in[R_ZERO]);
    OCT_TRY(b.status);
    d->domain = "";
    d->op = "LSTM"; /* attributes and outputs are the same */
    d->version = OCT_OPSET_INTERNAL;
    d->in = in;
    d->n_in = LAST + 1;
    return OCT_OK;
}

/* --- NhwcFusedConv --- */

static oct_value *moved(oct_builder *b, oct_value *x, const int64_t perm[4])
{
    oct_node *n = b->status ? NULL : oct_emit_node(b, &oct_op_transpose, &x, 1, 1);

    if (n) oct_emit_ints(b, n, "perm", perm, 4);
    return oct_emitted(b, n);
}

oct_status oct_foreign_nhwc_conv(oct_draft *d)
{
    enum { IMAGE, FILTERS, CONV_BIAS, ADDED, MAX };
    static const int64_t to_nchw[] = {0, 3, 1, 2}, to_nhwc[] = {0, 2, 3, 1};
    oct_builder b = oct_foreign_builder(d);
    oct_value *in[MAX] = {NULL}, *y;
    oct_node *n;

    if (d->n_in < 2 || d->n_in > MAX || !d->in[IMAGE] || oct_draft_rank(d, FILTERS) != 4)
        return OCT_OK;
    memcpy(in, d->in, (size_t)d->n_in * sizeof(*in));
    in[IMAGE] = moved(&b, in[IMAGE], to_nchw);
    if (in[ADDED]) in[ADDED] = moved(&b, in[ADDED], to_nchw);
    OCT_TRY(b.status);
    n = oct_emit_node(&b, &oct_op_fused_conv, in, d->n_in, 1);
    for (int32_t i = 0; n && i < d->n_attr; i++)
        for (const oct_attr_def *a = n->op->attrs; a->name; a++)
            if (strcmp(a->name, d->attr[i].name) == 0)
                OCT_TRY(oct_node_set_attr(n, a->name, &d->attr[i].value));
    y = oct_emitted(&b, n);
    OCT_TRY(b.status);
    OCT_TRY(oct_foreign_become(d, "Transpose", &y, 1));
    return oct_draft_set(d, "perm", &(oct_attr){.kind = OCT_ATTR_INTS, .n = 4, .is = to_nhwc});
}
