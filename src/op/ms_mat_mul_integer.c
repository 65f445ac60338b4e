/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft DynamicQuantizeMatMul, MatMulIntegerToFloat and QGemm. */
#include "op/dynamic_quantize.h"
#include "op/mm_integer.h"
#include "op/quant.h"

static int64_t cols_of(const oct_type *b)
{
    return b->rank < 0 ? -1 : b->rank < 2 ? 0 : b->dim[b->rank - 1];
}

/* One float for each column. */
static oct_status check_bias(const oct_infer *q, int i, int64_t n)
{
    const oct_type *t = oct_infer_in(q, i);

    OCT_TRY(oct_infer_check(q, i, OCT_SET(OCT_DTYPE_F32)));
    if (t && t->rank >= 0 && (t->rank != 1 || (t->dim[0] >= 0 && n >= 0 && t->dim[0] != n)))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "the bias does not have one number per column");
    return OCT_OK;
}

/* y = c * a_scale * b_scale[column] + bias[column] */
static void scale_product(const oct_mm_integer *p, float a_scale, const float *b_scale,
                          const oct_tensor *bias, float *y)
{
    const float *add = bias ? bias->data : NULL;

    for (int64_t i = 0; i < p->batch * p->m; i++)
        for (int64_t j = 0; j < p->n; j++)
            y[i * p->n + j] =
                (float)p->c[i * p->n + j] * (a_scale * b_scale[j]) + (add ? add[j] : 0);
}

/* --- DynamicQuantizeMatMul: the left side is quantized on the way in --- */

enum { DQ_A, DQ_B, DQ_B_SCALE, DQ_B_ZERO, DQ_BIAS };

static oct_status shape_dynamic(const oct_infer *q)
{
    const oct_type *a, *b;

    OCT_TRY(oct_infer_need(q, DQ_A, &a));
    OCT_TRY(oct_infer_need(q, DQ_B, &b));
    OCT_TRY(oct_infer_check(q, DQ_A, OCT_SET(OCT_DTYPE_F32)));
    OCT_TRY(oct_infer_check(q, DQ_B, OCT_SET_8BIT));
    OCT_TRY(oct_quant_check_scale(q, DQ_B_SCALE, cols_of(b)));
    OCT_TRY(oct_quant_check_zero(q, DQ_B_ZERO, b->dtype, cols_of(b)));
    OCT_TRY(check_bias(q, DQ_BIAS, cols_of(b)));
    return oct_mm_integer_shape(q->node, a, b, OCT_DTYPE_F32, &q->out[0]);
}

static oct_status ref_dynamic(const oct_args *a)
{
    const oct_tensor *x = a->in[DQ_A], *b = a->in[DQ_B];
    const int64_t len = oct_tensor_len(x);
    oct_tensor codes = {.ctx = a->ctx, .type = x->type};
    oct_mm_integer p = {.c = NULL};
    int32_t *a_zero, *b_zero;
    float a_scale, *b_scale;
    uint8_t zero;

    oct_mm_integer_sizes(&x->type, &b->type, false, false, &p);
    OCT_TRY(oct_quant_zeros(a, DQ_B_ZERO, p.n, &b_zero));
    OCT_TRY(oct_quant_scales(a, DQ_B_SCALE, p.n, 1, &b_scale));
    a_zero = oct_args_scratch(a, (size_t)OCT_MAX(p.m, 1), sizeof(*a_zero));
    codes.type.dtype = OCT_DTYPE_U8;
    codes.data = oct_args_scratch(a, (size_t)OCT_MAX(len, 1), 1);
    if (!a_zero || !codes.data) return OCT_ERR_MEMORY;
    oct_dynamic_range(x->data, len, &a_scale, &zero);
    oct_quantize_codes(x->data, len, a_scale, zero, OCT_DTYPE_U8, codes.data);
    for (int64_t i = 0; i < p.m; i++)
        a_zero[i] = zero;
    OCT_TRY(oct_mm_integer_run(a, &codes, a_zero, b, b_zero, false, false, &p));
    scale_product(&p, a_scale, b_scale, oct_args_in(a, DQ_BIAS), a->out[0]->data);
    return OCT_OK;
}

const oct_op oct_op_dynamic_quantize_mat_mul = {
    .name = "DynamicQuantizeMatMul",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 3,
    .max_in = 5,
    .shape = shape_dynamic,
    .ref = ref_dynamic,
    .flow = OCT_FLOW_SOURCE,
};

/* --- MatMulIntegerToFloat --- */

enum { A, B, A_SCALE, B_SCALE, A_ZERO, B_ZERO, BIAS };

static oct_status shape_to_float(const oct_infer *q)
{
    const oct_type *a, *b;

    OCT_TRY(oct_infer_need(q, A, &a));
    OCT_TRY(oct_infer_need(q, B, &b));
    OCT_TRY(oct_infer_check(q, A, OCT_SET_8BIT));
    OCT_TRY(oct_infer_check(q, B, OCT_SET_8BIT));
    OCT_TRY(oct_quant_check_scale(q, A_SCALE, 0));
    OCT_TRY(oct_quant_check_scale(q, B_SCALE, cols_of(b)));
    OCT_TRY(oct_quant_check_zero(q, A_ZERO, a->dtype, 0));
    OCT_TRY(oct_quant_check_zero(q, B_ZERO, b->dtype, cols_of(b)));
    OCT_TRY(check_bias(q, BIAS, cols_of(b)));
    return oct_mm_integer_shape(q->node, a, b, OCT_DTYPE_F32, &q->out[0]);
}

static oct_status ref_to_float(const oct_args *a)
{
    oct_mm_integer p = {.c = NULL};
    int32_t *a_zero, *b_zero;
    float *b_scale;

    oct_mm_integer_sizes(&a->in[A]->type, &a->in[B]->type, false, false, &p);
    OCT_TRY(oct_quant_zeros(a, A_ZERO, p.m, &a_zero));
    OCT_TRY(oct_quant_zeros(a, B_ZERO, p.n, &b_zero));
    OCT_TRY(oct_quant_scales(a, B_SCALE, p.n, 1, &b_scale));
    OCT_TRY(oct_mm_integer_run(a, a->in[A], a_zero, a->in[B], b_zero, false, false, &p));
    scale_product(&p, oct_quant_scale(a, A_SCALE), b_scale, oct_args_in(a, BIAS), a->out[0]->data);
    return OCT_OK;
}

const oct_op oct_op_mat_mul_integer_to_float = {
    .name = "MatMulIntegerToFloat",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 4,
    .max_in = 7,
    .shape = shape_to_float,
    .ref = ref_to_float,
    .flow = OCT_FLOW_SOURCE,
};
