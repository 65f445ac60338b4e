/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft QGemm: alpha * a * b + c on 8-bit matrices, to 8 bits or to float. */
#include "op/elementwise.h"
#include "op/mm_integer.h"
#include "op/quant.h"

enum { ALPHA, TRANS_A, TRANS_B };
enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };

/* The two dims of a matrix after transposition; -1: not known. */
static oct_status read_dims(const oct_infer *q, int i, bool trans, int64_t *rows, int64_t *cols)
{
    const oct_type *t;

    OCT_TRY(oct_infer_need(q, i, &t));
    OCT_TRY(oct_infer_check(q, i, OCT_SET_8BIT));
    if (t->rank >= 0 && t->rank != 2)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d has rank %d, expected 2", i, t->rank);
    *rows = t->rank < 0 ? -1 : t->dim[trans ? 1 : 0];
    *cols = t->rank < 0 ? -1 : t->dim[trans ? 0 : 1];
    return OCT_OK;
}

static oct_status check_sides(const oct_infer *q, int64_t n)
{
    OCT_TRY(oct_quant_check_scale(q, A_SCALE, 0));
    OCT_TRY(oct_quant_check_zero(q, A_ZERO, q->in[A]->dtype, 0));
    OCT_TRY(oct_quant_check_scale(q, B_SCALE, n));
    OCT_TRY(oct_quant_check_zero(q, B_ZERO, q->in[B]->dtype, n));
    OCT_TRY(oct_infer_check(q, C, OCT_SET(OCT_DTYPE_I32)));
    OCT_TRY(oct_infer_check(q, Y_ZERO, OCT_SET_8BIT));
    if (oct_infer_in(q, Y_SCALE)) OCT_TRY(oct_quant_check_scale(q, Y_SCALE, 0));
    return oct_quant_check_zero(q, Y_ZERO, OCT_DTYPE_NONE, 0);
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *c = oct_infer_in(q, C), *y_zero = oct_infer_in(q, Y_ZERO);
    oct_type both;
    int64_t m = -1, n = -1, k = -1, k_b = -1;

    OCT_TRY(read_dims(q, A, oct_int(q->node, TRANS_A) != 0, &m, &k));
    OCT_TRY(read_dims(q, B, oct_int(q->node, TRANS_B) != 0, &k_b, &n));
    OCT_TRY(check_sides(q, n));
    if (k >= 0 && k_b >= 0 && k != k_b)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "%lld columns on the left, %lld rows on the right",
                              (long long)k, (long long)k_b);
    q->out[0] = oct_type_make(OCT_DTYPE_F32, 2, (int64_t[]){m, n});
    if (oct_infer_in(q, Y_SCALE)) q->out[0].dtype = y_zero ? y_zero->dtype : q->in[A]->dtype;
    if (!c || c->rank < 0) return OCT_OK;
    both = q->out[0];
    OCT_TRY(oct_broadcast(q->node, &q->out[0], c, &both));
    if (both.rank != 2 || (m >= 0 && both.dim[0] >= 0 && both.dim[0] != m) ||
        (n >= 0 && both.dim[1] >= 0 && both.dim[1] != n))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "c does not broadcast to the product");
    return OCT_OK;
}

static void add_row(void *arg, int64_t at, const int64_t off[], int64_t n)
{
    int32_t *const *rows = arg; /* the product, c, and how c goes along */
    int32_t *y = rows[0] + at;
    const int32_t *c = rows[1] + off[0];
    const int64_t step = rows[2] != NULL;

    for (int64_t i = 0; i < n; i++)
        y[i] = (int32_t)((uint32_t)y[i] + (uint32_t)c[i * step]);
}

static void add_c(const oct_args *a, const oct_mm_integer *p)
{
    const oct_tensor *c = oct_args_in(a, C);
    int32_t *rows[3] = {p->c, c ? c->data : NULL, NULL};
    oct_bcast b;

    if (!c) return;
    oct_bcast_init(&b, &a->out[0]->type, 1, (const oct_type *const[]){&c->type});
    if (b.stride[0][b.rank - 1]) rows[2] = rows[1];
    oct_bcast_walk(&b, 0, p->m * p->n, add_row, rows);
}

static oct_status ref(const oct_args *a)
{
    const bool trans_a = oct_int(a->node, TRANS_A) != 0, trans_b = oct_int(a->node, TRANS_B) != 0;
    const bool to_float = !oct_args_in(a, Y_SCALE);
    oct_tensor *y = a->out[0];
    oct_mm_integer p = {.c = NULL};
    int32_t *a_zero, *b_zero;
    float *b_scale, a_scale;

    oct_mm_integer_sizes(&a->in[A]->type, &a->in[B]->type, trans_a, trans_b, &p);
    OCT_TRY(oct_quant_zeros(a, A_ZERO, p.m, &a_zero));
    OCT_TRY(oct_quant_zeros(a, B_ZERO, p.n, &b_zero));
    OCT_TRY(oct_quant_scales(a, B_SCALE, p.n, 1, &b_scale));
    OCT_TRY(oct_mm_integer_run(a, a->in[A], a_zero, a->in[B], b_zero, trans_a, trans_b, &p));
    add_c(a, &p);
    a_scale = oct_f32(a->node, ALPHA) * oct_quant_scale(a, A_SCALE);
    for (int64_t i = 0; i < p.m * p.n; i++) {
        const float scale = a_scale * b_scale[i % p.n];

        if (to_float)
            ((float *)y->data)[i] = (float)p.c[i] * scale;
        else
            oct_requantize(&p.c[i], 1, scale / oct_quant_scale(a, Y_SCALE),
                           oct_quant_zero(a, Y_ZERO), y->type.dtype, (uint8_t *)y->data + i);
    }
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [ALPHA] = {"alpha", OCT_ATTR_F32, .def.f = 1.0f},
    [TRANS_A] = {"transA", OCT_ATTR_INT, .def.i = 0},
    [TRANS_B] = {"transB", OCT_ATTR_INT, .def.i = 0},
    {0},
};

const oct_op oct_op_q_gemm = {
    .name = "QGemm",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 6,
    .max_in = 9,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .flow = OCT_FLOW_SOURCE,
};
