/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger and QLinearConv: convolutions of 8-bit tensors, to int32 and back to 8 bits. */
#include "base/parallel.h"
#include "op/conv_integer.h"
#include "op/quant.h"

/* Filters of a weight; -1: not known. */
static int64_t filters_of(const oct_type *w)
{
    return w->rank > 0 ? w->dim[0] : -1;
}

static int64_t macs_of(const oct_node *n, int w)
{
    oct_conv_geometry g;

    if (!oct_node_in(n, 0) || !oct_node_in(n, w)) return 0;
    if (!oct_type_is_static(&n->in[0]->type) || !oct_type_is_static(&n->in[w]->type)) return 0;
    if (oct_conv_geometry_conv(n, &n->in[0]->type, &n->in[w]->type, &g)) return 0;
    return oct_conv_geometry_macs(&g, false);
}

/* --- ConvInteger --- */

static oct_status shape_integer(const oct_infer *q)
{
    const oct_type *x, *w;
    oct_conv_geometry g;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &w));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_8BIT));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_8BIT));
    OCT_TRY(oct_quant_check_zero(q, 2, x->dtype, 0));
    OCT_TRY(oct_quant_check_zero(q, 3, w->dtype, filters_of(w)));
    OCT_TRY(oct_conv_geometry_conv(q->node, x, w, &g));
    q->out[0] = oct_conv_geometry_type(&g, OCT_DTYPE_I32);
    return OCT_OK;
}

static oct_status ref_integer(const oct_args *a)
{
    oct_conv_geometry g;
    int32_t *w_zero;

    OCT_TRY(oct_conv_geometry_conv(a->node, &a->in[0]->type, &a->in[1]->type, &g));
    OCT_TRY(oct_quant_zeros(a, 3, g.c_out, &w_zero));
    return oct_conv_integer(a, &g, a->in[0], oct_quant_zero(a, 2), a->in[1], w_zero,
                            a->out[0]->data);
}

static int64_t macs_integer(const oct_node *n)
{
    return macs_of(n, 1);
}

const oct_op oct_op_conv_integer = {
    .name = "ConvInteger",
    .since = 10,
    .min_in = 2,
    .max_in = 4,
    .attrs = oct_conv_attrs,
    .shape = shape_integer,
    .ref = ref_integer,
    .macs = macs_integer,
    .flow = OCT_FLOW_SOURCE,
};

/* --- QLinearConv --- */

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };

static oct_status check_bias(const oct_infer *q, int64_t filters)
{
    const oct_type *b = oct_infer_in(q, BIAS);

    OCT_TRY(oct_infer_check(q, BIAS, OCT_SET(OCT_DTYPE_I32)));
    if (b && b->rank >= 0 &&
        (b->rank != 1 || (b->dim[0] >= 0 && filters >= 0 && b->dim[0] != filters)))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "the bias does not have one number per filter");
    return OCT_OK;
}

static oct_status shape_qlinear(const oct_infer *q)
{
    const oct_type *x, *w, *y_zero;
    oct_conv_geometry g;

    OCT_TRY(oct_infer_need(q, X, &x));
    OCT_TRY(oct_infer_need(q, W, &w));
    OCT_TRY(oct_infer_need(q, Y_ZERO, &y_zero));
    OCT_TRY(oct_infer_check(q, X, OCT_SET_8BIT));
    OCT_TRY(oct_infer_check(q, W, OCT_SET_8BIT));
    OCT_TRY(oct_infer_check(q, Y_ZERO, OCT_SET_8BIT));
    OCT_TRY(oct_quant_check_scale(q, X_SCALE, 0));
    OCT_TRY(oct_quant_check_zero(q, X_ZERO, x->dtype, 0));
    OCT_TRY(oct_quant_check_scale(q, W_SCALE, filters_of(w)));
    OCT_TRY(oct_quant_check_zero(q, W_ZERO, w->dtype, filters_of(w)));
    OCT_TRY(oct_quant_check_scale(q, Y_SCALE, 0));
    OCT_TRY(oct_quant_check_zero(q, Y_ZERO, y_zero->dtype, 0));
    OCT_TRY(check_bias(q, filters_of(w)));
    OCT_TRY(oct_conv_geometry_conv(q->node, x, w, &g));
    q->out[0] = oct_conv_geometry_type(&g, y_zero->dtype);
    return OCT_OK;
}

typedef struct job {
    const oct_conv_geometry *g;
    int32_t *acc;
    const int32_t *bias; /* may be NULL */
    const float *scale;  /* of each filter */
    int32_t zero;
    int64_t size; /* of one channel */
    oct_tensor *y;
} job;

/* Channels of all images. */
static void requantize(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t i = begin; i < end; i++) {
        const int64_t m = i % j->g->c_out;
        int32_t *acc = j->acc + i * j->size;

        for (int64_t k = 0; k < j->size && j->bias; k++)
            acc[k] = (int32_t)((uint32_t)acc[k] + (uint32_t)j->bias[m]);
        oct_requantize(acc, j->size, j->scale[m], j->zero, j->y->type.dtype,
                       (uint8_t *)j->y->data + i * j->size);
    }
}

static oct_status ref_qlinear(const oct_args *a)
{
    const oct_tensor *bias = oct_args_in(a, BIAS);
    const size_t len = (size_t)OCT_MAX(oct_tensor_len(a->out[0]), 1);
    oct_conv_geometry g;
    job j = {.g = &g, .y = a->out[0], .zero = oct_quant_zero(a, Y_ZERO)};
    int32_t *w_zero;
    float *scale;

    OCT_TRY(oct_conv_geometry_conv(a->node, &a->in[X]->type, &a->in[W]->type, &g));
    OCT_TRY(oct_quant_zeros(a, W_ZERO, g.c_out, &w_zero));
    OCT_TRY(oct_quant_scales(a, W_SCALE, g.c_out, 1, &scale));
    for (int64_t m = 0; m < g.c_out; m++)
        scale[m] = oct_quant_scale(a, X_SCALE) * scale[m] / oct_quant_scale(a, Y_SCALE);
    if (!(j.acc = oct_args_scratch(a, len, sizeof(*j.acc)))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_conv_integer(a, &g, a->in[X], oct_quant_zero(a, X_ZERO), a->in[W], w_zero, j.acc));
    j.bias = bias ? bias->data : NULL;
    j.scale = scale;
    j.size = oct_conv_geometry_out_size(&g);
    oct_parallel_for(a->n_threads, g.batch * g.c_out, 4, requantize, &j);
    return OCT_OK;
}

static int64_t macs_qlinear(const oct_node *n)
{
    return macs_of(n, W);
}

const oct_op oct_op_q_linear_conv = {
    .name = "QLinearConv",
    .since = 10,
    .min_in = 8,
    .max_in = 9,
    .attrs = oct_conv_attrs,
    .shape = shape_qlinear,
    .ref = ref_qlinear,
    .macs = macs_qlinear,
    .flow = OCT_FLOW_SOURCE,
};
