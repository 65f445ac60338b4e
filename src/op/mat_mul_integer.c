/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulInteger and QLinearMatMul: products of 8-bit matrices, to int32 and back to 8 bits. */
#include "op/mm_integer.h"
#include "op/quant.h"

/* Length of a list with one number for each row of the left or column of the right; 0: none. */
static int64_t rows_of(const oct_type *a)
{
    return a->rank < 0 ? -1 : a->rank < 2 ? 0 : a->dim[a->rank - 2];
}

static int64_t cols_of(const oct_type *b)
{
    return b->rank < 0 ? -1 : b->rank < 2 ? 0 : b->dim[b->rank - 1];
}

/* --- MatMulInteger --- */

static oct_status shape_integer(const oct_infer *q)
{
    const oct_type *a, *b;

    OCT_TRY(oct_infer_need(q, 0, &a));
    OCT_TRY(oct_infer_need(q, 1, &b));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_8BIT));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_8BIT));
    OCT_TRY(oct_quant_check_zero(q, 2, a->dtype, rows_of(a)));
    OCT_TRY(oct_quant_check_zero(q, 3, b->dtype, cols_of(b)));
    return oct_mm_integer_shape(q->node, a, b, OCT_DTYPE_I32, &q->out[0]);
}

static oct_status ref_integer(const oct_args *a)
{
    oct_mm_integer p = {.c = a->out[0]->data};
    int32_t *a_zero, *b_zero;

    oct_mm_integer_sizes(&a->in[0]->type, &a->in[1]->type, false, false, &p);
    OCT_TRY(oct_quant_zeros(a, 2, p.m, &a_zero));
    OCT_TRY(oct_quant_zeros(a, 3, p.n, &b_zero));
    return oct_mm_integer_run(a, a->in[0], a_zero, a->in[1], b_zero, false, false, &p);
}

static int64_t macs(const oct_node *n)
{
    oct_mm_integer p;
    int64_t v;

    for (int i = 0; i < 2; i++)
        if (!n->in[n->n_in > 4 ? 3 * i : i] ||
            !oct_type_is_static(&n->in[n->n_in > 4 ? 3 * i : i]->type))
            return 0;
    oct_mm_integer_sizes(&n->in[0]->type, &n->in[n->n_in > 4 ? 3 : 1]->type, false, false, &p);
    if (!oct_mul_i64(p.batch, p.m, &v) || !oct_mul_i64(v, p.n, &v) || !oct_mul_i64(v, p.k, &v))
        return 0;
    return v;
}

const oct_op oct_op_mat_mul_integer = {
    .name = "MatMulInteger",
    .since = 10,
    .min_in = 2,
    .max_in = 4,
    .shape = shape_integer,
    .ref = ref_integer,
    .macs = macs,
    .flow = OCT_FLOW_SOURCE,
};

/* --- QLinearMatMul --- */

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };

static oct_status shape_qlinear(const oct_infer *q)
{
    const oct_type *a, *b, *y_zero;

    OCT_TRY(oct_infer_need(q, A, &a));
    OCT_TRY(oct_infer_need(q, B, &b));
    OCT_TRY(oct_infer_need(q, Y_ZERO, &y_zero));
    OCT_TRY(oct_infer_check(q, A, OCT_SET_8BIT));
    OCT_TRY(oct_infer_check(q, B, OCT_SET_8BIT));
    OCT_TRY(oct_infer_check(q, Y_ZERO, OCT_SET_8BIT));
    OCT_TRY(oct_quant_check_scale(q, A_SCALE, rows_of(a)));
    OCT_TRY(oct_quant_check_zero(q, A_ZERO, a->dtype, rows_of(a)));
    OCT_TRY(oct_quant_check_scale(q, B_SCALE, cols_of(b)));
    OCT_TRY(oct_quant_check_zero(q, B_ZERO, b->dtype, cols_of(b)));
    OCT_TRY(oct_quant_check_scale(q, Y_SCALE, 0));
    OCT_TRY(oct_quant_check_zero(q, Y_ZERO, y_zero->dtype, 0));
    return oct_mm_integer_shape(q->node, a, b, y_zero->dtype, &q->out[0]);
}

static oct_status ref_qlinear(const oct_args *a)
{
    oct_tensor *y = a->out[0];
    oct_mm_integer p = {.c = NULL};
    int32_t *a_zero, *b_zero;
    float *a_scale, *b_scale;

    oct_mm_integer_sizes(&a->in[A]->type, &a->in[B]->type, false, false, &p);
    OCT_TRY(oct_quant_zeros(a, A_ZERO, p.m, &a_zero));
    OCT_TRY(oct_quant_zeros(a, B_ZERO, p.n, &b_zero));
    OCT_TRY(oct_quant_scales(a, A_SCALE, p.m, 1, &a_scale));
    OCT_TRY(oct_quant_scales(a, B_SCALE, p.n, 1, &b_scale));
    OCT_TRY(oct_mm_integer_run(a, a->in[A], a_zero, a->in[B], b_zero, false, false, &p));
    for (int64_t i = 0; i < p.batch * p.m; i++)
        for (int64_t j = 0; j < p.n; j++)
            oct_requantize(
                &p.c[i * p.n + j], 1, a_scale[i % p.m] * b_scale[j] / oct_quant_scale(a, Y_SCALE),
                oct_quant_zero(a, Y_ZERO), y->type.dtype, (uint8_t *)y->data + i * p.n + j);
    return OCT_OK;
}

const oct_op oct_op_q_linear_mat_mul = {
    .name = "QLinearMatMul",
    .since = 10,
    .min_in = 8,
    .max_in = 8,
    .shape = shape_qlinear,
    .ref = ref_qlinear,
    .macs = macs,
    .flow = OCT_FLOW_SOURCE,
};
