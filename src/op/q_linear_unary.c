/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft QLinearSigmoid, QLinearLeakyRelu and QLinearSoftmax on 8-bit tensors. */
#include "op/q_linear_unary.h"

#include <math.h>

#include "op/softmax_codes.h"

oct_status oct_q_linear_check(const oct_infer *q)
{
    const oct_type *x;

    OCT_TRY(oct_infer_need(q, OCT_QX, &x));
    OCT_TRY(oct_infer_check(q, OCT_QX, OCT_SET_8BIT));
    OCT_TRY(oct_quant_check_scale(q, OCT_QX_SCALE, 0));
    OCT_TRY(oct_quant_check_zero(q, OCT_QX_ZERO, x->dtype, 0));
    OCT_TRY(oct_quant_check_scale(q, OCT_QY_SCALE, 0));
    return oct_quant_check_zero(q, OCT_QY_ZERO, x->dtype, 0);
}

static oct_status shape(const oct_infer *q)
{
    OCT_TRY(oct_q_linear_check(q));
    return oct_shape_same(q);
}

/* Every code through a table: there are only 256. */
static oct_status look_up(const oct_args *a, float (*fn)(const void *p, float x), const void *p)
{
    const oct_dtype t = a->in[OCT_QX]->type.dtype;
    const uint8_t *x = a->in[OCT_QX]->data;
    uint8_t *y = a->out[0]->data;
    oct_quant_table table;

    oct_quant_table_init(&table, t, oct_quant_scale(a, OCT_QX_SCALE),
                         oct_quant_zero(a, OCT_QX_ZERO), t, oct_quant_scale(a, OCT_QY_SCALE),
                         oct_quant_zero(a, OCT_QY_ZERO), fn, p);
    for (int64_t i = 0, n = oct_tensor_len(a->out[0]); i < n; i++)
        y[i] = table.code[x[i]];
    return OCT_OK;
}

static float sigmoid(const void *p, float x)
{
    (void)p;
    return 1 / (1 + expf(-x));
}

static oct_status ref_sigmoid(const oct_args *a)
{
    return look_up(a, sigmoid, NULL);
}

enum { ALPHA };

static float leaky_relu(const void *p, float x)
{
    return x < 0 ? oct_f32(p, ALPHA) * x : x;
}

static oct_status ref_leaky_relu(const oct_args *a)
{
    return look_up(a, leaky_relu, a->node);
}

static const oct_attr_def leaky_attrs[] = {[ALPHA] = {"alpha", OCT_ATTR_F32, .def.f = 0.01f}, {0}};

#define ROW(sym, onnx, attrs_, shape_, ref_)                                                       \
    const oct_op oct_op_##sym = {                                                                  \
        .name = onnx,                                                                              \
        .domain = "com.microsoft",                                                                 \
        .since = 1,                                                                                \
        .min_in = 2,                                                                               \
        .max_in = 5,                                                                               \
        .attrs = attrs_,                                                                           \
        .shape = shape_,                                                                           \
        .ref = ref_,                                                                               \
        .flow = OCT_FLOW_PASS,                                                                     \
    }

ROW(q_linear_sigmoid, "QLinearSigmoid", NULL, shape, ref_sigmoid);
ROW(q_linear_leaky_relu, "QLinearLeakyRelu", leaky_attrs, shape, ref_leaky_relu);

/* --- Softmax: over one axis, or over all from that axis on in the form before opset 13 --- */

enum { AXIS, OPSET };

static oct_status shape_softmax(const oct_infer *q)
{
    int32_t axis;

    OCT_TRY(oct_q_linear_check(q));
    if (q->in[OCT_QX]->rank >= 0)
        OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), q->in[OCT_QX]->rank, &axis));
    return oct_shape_same(q);
}

static oct_status ref_softmax(const oct_args *a)
{
    const oct_type *t = &a->in[OCT_QX]->type;
    const uint8_t *x = a->in[OCT_QX]->data;
    uint8_t *y = a->out[0]->data;
    oct_softmax_codes s;
    int64_t n, inner;
    int32_t axis;

    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), t->rank, &axis));
    n = oct_int(a->node, OPSET) < 13 ? oct_type_span(t, axis, t->rank) : t->dim[axis];
    inner = oct_int(a->node, OPSET) < 13 ? 1 : oct_type_span(t, axis + 1, t->rank);
    if (oct_tensor_len(a->out[0]) == 0) return OCT_OK;
    oct_softmax_codes_init(&s, t->dtype, n, oct_quant_scale(a, OCT_QX_SCALE),
                           oct_quant_scale(a, OCT_QY_SCALE), oct_quant_zero(a, OCT_QY_ZERO));
    for (int64_t i = 0, rows = oct_tensor_len(a->out[0]) / n; i < rows; i++) {
        const int64_t at = i / inner * n * inner + i % inner;

        oct_softmax_codes_row(&s, x + at, y + at, n, inner);
    }
    return OCT_OK;
}

static const oct_attr_def softmax_attrs[] = {
    [AXIS] = {"axis", OCT_ATTR_INT, .def.i = -1},
    [OPSET] = {"opset", OCT_ATTR_INT, .no_default = true, .required = true},
    {0},
};

ROW(q_linear_softmax, "QLinearSoftmax", softmax_attrs, shape_softmax, ref_softmax);
