/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft QLinearAdd and QLinearMul: sums and products of 8-bit tensors that broadcast. */
#include <math.h>

#include "base/parallel.h"
#include "op/elementwise.h"
#include "op/quant.h"

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C_SCALE, C_ZERO };

static oct_status shape(const oct_infer *q)
{
    const oct_type *a, *b;

    OCT_TRY(oct_infer_need(q, A, &a));
    OCT_TRY(oct_infer_need(q, B, &b));
    OCT_TRY(oct_infer_check(q, A, OCT_SET_8BIT));
    OCT_TRY(oct_infer_check(q, B, OCT_SET_8BIT));
    if (a->dtype != b->dtype && a->dtype != OCT_DTYPE_NONE && b->dtype != OCT_DTYPE_NONE)
        return oct_infer_fail(q, OCT_ERR_TYPE, "operands are %s and %s", oct_dtype_name(a->dtype),
                              oct_dtype_name(b->dtype));
    for (int i = A_SCALE; i <= C_SCALE; i += i == B_SCALE ? 2 : 3) {
        OCT_TRY(oct_quant_check_scale(q, i, 0));
        OCT_TRY(oct_quant_check_zero(q, i + 1, a->dtype, 0));
    }
    q->out[0] = oct_type_unknown(a->dtype);
    return oct_broadcast(q->node, a, b, &q->out[0]);
}

typedef struct job {
    oct_bcast bcast;
    oct_dtype dtype;
    const uint8_t *a, *b;
    uint8_t *c;
    int32_t a_zero, b_zero, c_zero, low, high;
    float a_scale, b_scale; /* divided by c's; of a product: both in one, and 1 */
    float shift;            /* of a sum: what the zero points add up to */
    bool is_product;
} job;

static int32_t value(const job *j, const uint8_t *x, int64_t i)
{
    return j->dtype == OCT_DTYPE_I8 ? (int8_t)x[i] : x[i];
}

/* The order of the float operations is ONNX Runtime's: it decides ties. What repeats comes first,
 * or the second operand. */
static int32_t code(const job *j, int32_t a, int32_t b, bool a_repeats)
{
    const float fa = (float)a, fb = (float)b;
    float x;

    if (j->is_product)
        x = (float)((a - j->a_zero) * (b - j->b_zero)) * j->a_scale + (float)j->c_zero;
    else if (a_repeats)
        x = fmaf(fb, j->b_scale, fmaf(fa, j->a_scale, j->shift));
    else
        x = fmaf(fa, j->a_scale, fmaf(fb, j->b_scale, j->shift));
    return oct_quant_code(x, 0, j->low, j->high);
}

static void row(void *arg, int64_t at, const int64_t off[], int64_t n)
{
    const job *j = arg;
    const int inner = j->bcast.rank - 1;
    const int64_t sa = j->bcast.stride[0][inner], sb = j->bcast.stride[1][inner];

    for (int64_t i = 0; i < n; i++) {
        const int32_t a = value(j, j->a, off[0] + i * sa);
        const int32_t b = value(j, j->b, off[1] + i * sb);

        j->c[at + i] = (uint8_t)code(j, a, b, sa == 0 && sb != 0);
    }
}

static void range(void *arg, int64_t begin, int64_t end)
{
    job *j = arg;

    oct_bcast_walk(&j->bcast, begin, end, row, j);
}

static oct_status run(const oct_args *a, bool is_product)
{
    const oct_type *const types[] = {&a->in[A]->type, &a->in[B]->type};
    const float sa = oct_quant_scale(a, A_SCALE), sb = oct_quant_scale(a, B_SCALE);
    const float sc = oct_quant_scale(a, C_SCALE);
    job j = {.dtype = a->out[0]->type.dtype,
             .a = a->in[A]->data,
             .b = a->in[B]->data,
             .c = a->out[0]->data,
             .a_zero = oct_quant_zero(a, A_ZERO),
             .b_zero = oct_quant_zero(a, B_ZERO),
             .c_zero = oct_quant_zero(a, C_ZERO),
             .a_scale = is_product ? sa * sb / sc : sa / sc,
             .b_scale = sb / sc,
             .is_product = is_product};

    j.shift = (float)j.c_zero - fmaf(j.a_scale, (float)j.a_zero, j.b_scale * (float)j.b_zero);
    oct_quant_limits(j.dtype, &j.low, &j.high);
    oct_bcast_init(&j.bcast, &a->out[0]->type, 2, types);
    oct_parallel_for(a->n_threads, oct_tensor_len(a->out[0]), OCT_MAP_GRAIN, range, &j);
    return OCT_OK;
}

static oct_status ref_add(const oct_args *a)
{
    return run(a, false);
}

static oct_status ref_mul(const oct_args *a)
{
    return run(a, true);
}

#define ROW(sym, onnx, ref_)                                                                       \
    const oct_op oct_op_##sym = {                                                                  \
        .name = onnx,                                                                              \
        .domain = "com.microsoft",                                                                 \
        .since = 1,                                                                                \
        .min_in = 2,                                                                               \
        .max_in = 8,                                                                               \
        .shape = shape,                                                                            \
        .ref = ref_,                                                                               \
        .flow = OCT_FLOW_TIE,                                                                      \
    }

ROW(q_linear_add, "QLinearAdd", ref_add);
ROW(q_linear_mul, "QLinearMul", ref_mul);
