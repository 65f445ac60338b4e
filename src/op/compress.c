/* SPDX-License-Identifier: Apache-2.0 */
/* Compress and NonZero: what is selected, and where what is not zero lies. */
#include "op/move.h"

enum { AXIS };

static oct_status compress_shape(const oct_infer *q)
{
    const oct_type *x, *c;
    int32_t axis;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &c));
    OCT_TRY(oct_infer_movable(q, 0));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_BOOL));
    if (c->rank >= 0 && c->rank != 1)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "the condition has rank %d", (int)c->rank);
    q->out[0] = oct_type_make(x->dtype, 1, (const int64_t[]){-1});
    if (!oct_has(q->node, AXIS)) return OCT_OK;
    q->out[0] = *x;
    if (x->rank < 0) return OCT_OK;
    OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), x->rank, &axis));
    q->out[0].dim[axis] = -1;
    return OCT_OK;
}

static oct_status compress_ref(const oct_args *a)
{
    const oct_tensor *x = a->in[0], *c = a->in[1];
    const uint8_t *take = c->data;
    oct_type y = oct_type_make(x->type.dtype, 1, (const int64_t[]){0});
    int64_t outer = 1, len = oct_type_len(&x->type), inner = 1, count = 0;
    int32_t axis = 0;

    if (oct_has(a->node, AXIS)) {
        OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), x->type.rank, &axis));
        y = x->type;
        outer = oct_type_span(&x->type, 0, axis);
        len = x->type.dim[axis];
        inner = oct_type_span(&x->type, axis + 1, x->type.rank);
    }
    const int64_t n = OCT_MIN(oct_tensor_len(c), len);
    for (int64_t i = 0; i < n; i++)
        count += take[i] != 0;
    y.dim[axis] = count;
    OCT_TRY(oct_args_alloc(a, 0, &y));
    for (int64_t o = 0, to = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++)
            if (take[i])
                oct_move_copy(y.dtype, x->data, (o * len + i) * inner, a->out[0]->data,
                              to++ * inner, inner);
    return OCT_OK;
}

static oct_status nonzero_shape(const oct_infer *q)
{
    const oct_type *x;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_NUMERIC | OCT_SET_BOOL));
    q->out[0] = oct_type_make(OCT_DTYPE_I64, 2, (const int64_t[]){x->rank, -1});
    return OCT_OK;
}

/* Integers are read as such: a large one must not round to zero, nor a tiny float. */
static bool is_nonzero(const oct_tensor *x, int64_t i)
{
    double f;
    int64_t v;

    if (oct_dtype_is_float(x->type.dtype)) {
        oct_load_f64(x->type.dtype, x->data, i, 1, &f);
        return f != 0;
    }
    oct_load_i64(x->type.dtype, x->data, i, 1, &v);
    return v != 0;
}

static oct_status nonzero_ref(const oct_args *a)
{
    const oct_tensor *x = a->in[0];
    const int64_t len = oct_tensor_len(x);
    int64_t count = 0, at = 0;

    for (int64_t i = 0; i < len; i++)
        count += is_nonzero(x, i);
    const oct_type y = oct_type_make(OCT_DTYPE_I64, 2, (const int64_t[]){x->type.rank, count});
    OCT_TRY(oct_args_alloc(a, 0, &y));
    int64_t *out = a->out[0]->data;
    for (int64_t i = 0; i < len; i++) {
        int64_t rest = i;

        if (!is_nonzero(x, i)) continue;
        for (int32_t d = x->type.rank - 1; d >= 0; d--) {
            out[d * count + at] = rest % x->type.dim[d];
            rest /= x->type.dim[d];
        }
        at++;
    }
    return OCT_OK;
}

static const oct_attr_def compress_attrs[] = {
    [AXIS] = {"axis", OCT_ATTR_INT, .def = {.i = 0}, .no_default = true},
    {0},
};

const oct_op oct_op_compress = {
    .name = "Compress",
    .since = 9,
    .min_in = 2,
    .max_in = 2,
    .attrs = compress_attrs,
    .shape = compress_shape,
    .ref = compress_ref,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .flags = OCT_OP_DATA_SHAPE,
};

const oct_op oct_op_non_zero = {
    .name = "NonZero",
    .since = 9,
    .min_in = 1,
    .max_in = 1,
    .shape = nonzero_shape,
    .ref = nonzero_ref,
    .flags = OCT_OP_DATA_SHAPE,
};
