/* SPDX-License-Identifier: Apache-2.0 */
/* DequantizeLinear: y = (x - zero point) * scale; two domains, one meaning. */
#include "base/parallel.h"
#include "op/elementwise.h"
#include "op/quant.h"
#include "op/quant_grid.h"

#define PIECE 512

enum {
    IN_SET = OCT_SET_8BIT | OCT_SET(OCT_DTYPE_U16) | OCT_SET(OCT_DTYPE_I16) |
             OCT_SET(OCT_DTYPE_I32) | OCT_SET(OCT_DTYPE_U4) | OCT_SET(OCT_DTYPE_I4) |
             OCT_SET(OCT_DTYPE_U2) | OCT_SET(OCT_DTYPE_I2) | OCT_SET(OCT_DTYPE_F8E4M3FN) |
             OCT_SET(OCT_DTYPE_F8E4M3FNUZ) | OCT_SET(OCT_DTYPE_F8E5M2) |
             OCT_SET(OCT_DTYPE_F8E5M2FNUZ) | OCT_SET(OCT_DTYPE_F4E2M1),
};

static oct_status shape(const oct_infer *q)
{
    const int64_t said = oct_int(q->node, OCT_GRID_OUTPUT_DTYPE);
    const oct_type *zero = oct_infer_in(q, 2);
    oct_dtype t;

    OCT_TRY(oct_infer_check(q, 0, IN_SET));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_SCALE | OCT_SET(OCT_DTYPE_F8E8M0)));
    OCT_TRY(oct_quant_grid_check(q));
    if (zero && zero->dtype != q->in[0]->dtype && zero->dtype != OCT_DTYPE_NONE &&
        q->in[0]->dtype != OCT_DTYPE_NONE)
        return oct_infer_fail(q, OCT_ERR_TYPE, "zero point %s for elements of type %s",
                              oct_dtype_name(zero->dtype), oct_dtype_name(q->in[0]->dtype));
    t = q->in[1]->dtype;
    if (said) OCT_TRY(oct_dtype_attr(q->node, said, &t));
    if (t != OCT_DTYPE_NONE && !((unsigned)OCT_SET_SCALE >> t & 1u))
        return oct_infer_fail(q, OCT_ERR_TYPE, "cannot dequantize to %s", oct_dtype_name(t));
    q->out[0] = *q->in[0];
    q->out[0].dtype = t;
    return OCT_OK;
}

typedef struct job {
    oct_quant_grid grid;
    const oct_tensor *x;
    oct_tensor *y;
    const float *scale, *zero;
} job;

/* Codes to float with one scale for all. */
#define DEQUANTIZE(T)                                                                              \
    do {                                                                                           \
        const T *x = (const T *)j->x->data + at;                                                   \
        float *y = (float *)j->y->data + at;                                                       \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = ((float)x[i] - zero) * scale;                                                   \
    } while (0)

static bool plain_row(const job *j, int64_t at, int64_t n, float scale, float zero)
{
    if (j->y->type.dtype != OCT_DTYPE_F32) return false;
    if (j->x->type.dtype == OCT_DTYPE_U8)
        DEQUANTIZE(uint8_t);
    else if (j->x->type.dtype == OCT_DTYPE_I8)
        DEQUANTIZE(int8_t);
    else
        return false;
    return true;
}

/* int32 needs all the bits a double has. */
static void piece(const job *j, int64_t at, int64_t n, int64_t s, int64_t step)
{
    double x[PIECE];
    float y[PIECE];

    oct_load_f64(j->x->type.dtype, j->x->data, at, n, x);
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)(x[i] - (double)j->zero[s + i * step]) * j->scale[s + i * step];
    oct_store_f32(j->y->type.dtype, j->y->data, at, n, y);
}

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t at = begin, n; at < end; at += n) {
        const int64_t row = at / j->grid.inner, col = at % j->grid.inner;
        int64_t step, s = oct_quant_grid_at(&j->grid, row, &step);

        n = OCT_MIN(j->grid.inner - col, end - at);
        if (!step && plain_row(j, at, n, j->scale[s], j->zero[s])) continue;
        n = OCT_MIN(n, PIECE);
        piece(j, at, n, s + col * step, step);
    }
}

static oct_status ref(const oct_args *a)
{
    const int64_t n_scales = oct_tensor_len(a->in[1]);
    job j = {.x = a->in[0], .y = a->out[0]};
    float *scale, *zero;

    OCT_TRY(oct_quant_grid_init(&j.grid, a));
    OCT_TRY(oct_quant_scales(a, 1, n_scales, 1, &scale));
    OCT_TRY(oct_quant_scales(a, 2, n_scales, 0, &zero)); /* f8 and f4 have zero points too */
    j.scale = scale;
    j.zero = zero;
    oct_parallel_for(a->n_threads, oct_tensor_len(a->out[0]), OCT_MAP_GRAIN, range, &j);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {OCT_GRID_ATTRS, {0}};

#define ROW(sym, domain_, since_)                                                                  \
    const oct_op oct_op_##sym = {                                                                  \
        .name = "DequantizeLinear",                                                                \
        .domain = domain_,                                                                         \
        .since = since_,                                                                           \
        .min_in = 2,                                                                               \
        .max_in = 3,                                                                               \
        .attrs = attrs,                                                                            \
        .shape = shape,                                                                            \
        .ref = ref,                                                                                \
        .flow = OCT_FLOW_PASS,                                                                     \
    }

ROW(dequantize_linear, NULL, 10);
ROW(ms_dequantize_linear, "com.microsoft", 1);
