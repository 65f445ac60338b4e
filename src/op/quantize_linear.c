/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear: y = saturate(round(x / scale) + zero point); two domains, one meaning. */
#include "base/parallel.h"
#include "op/elementwise.h"
#include "op/qparams.h"
#include "op/quant.h"
#include "op/quant_grid.h"

enum { SATURATE = OCT_GRID_N_ATTRS, PRECISION, WAS_SIGNED };

#define PIECE 512

enum {
    F8_SET = OCT_SET(OCT_DTYPE_F8E4M3FN) | OCT_SET(OCT_DTYPE_F8E4M3FNUZ) |
             OCT_SET(OCT_DTYPE_F8E5M2) | OCT_SET(OCT_DTYPE_F8E5M2FNUZ) | OCT_SET(OCT_DTYPE_F4E2M1),
    INT_SET = OCT_SET_8BIT | OCT_SET(OCT_DTYPE_U16) | OCT_SET(OCT_DTYPE_I16) |
              OCT_SET(OCT_DTYPE_U4) | OCT_SET(OCT_DTYPE_I4) | OCT_SET(OCT_DTYPE_U2) |
              OCT_SET(OCT_DTYPE_I2),
};

/* What the elements become: as said, else the zero point's type, else uint8. */
static oct_status out_dtype(const oct_infer *q, oct_dtype *out)
{
    const int64_t said = oct_int(q->node, OCT_GRID_OUTPUT_DTYPE);
    const oct_type *zero = oct_infer_in(q, 2);

    *out = zero ? zero->dtype : OCT_DTYPE_U8;
    if (said) {
        OCT_TRY(oct_dtype_attr(q->node, said, out));
        if (zero && zero->dtype != OCT_DTYPE_NONE && zero->dtype != *out)
            return oct_infer_fail(q, OCT_ERR_TYPE, "zero point %s for elements of type %s",
                                  oct_dtype_name(zero->dtype), oct_dtype_name(*out));
    }
    if (*out != OCT_DTYPE_NONE && !((INT_SET | F8_SET) >> *out & 1u))
        return oct_infer_fail(q, OCT_ERR_TYPE, "cannot quantize to %s", oct_dtype_name(*out));
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const int64_t precision = oct_int(q->node, PRECISION);
    oct_dtype t;

    OCT_TRY(oct_infer_check(q, 0, OCT_SET_SCALE | OCT_SET(OCT_DTYPE_I32)));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_SCALE | OCT_SET(OCT_DTYPE_I32)));
    OCT_TRY(oct_quant_grid_check(q));
    OCT_TRY(out_dtype(q, &t));
    if (precision && precision != OCT_DTYPE_F32 && precision != OCT_DTYPE_F16 &&
        precision != OCT_DTYPE_BF16)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "precision %lld is not a float type",
                              (long long)precision);
    q->out[0] = *q->in[0];
    q->out[0].dtype = t;
    return OCT_OK;
}

typedef struct job {
    oct_quant_grid grid;
    const oct_tensor *x;
    oct_tensor *y;
    const float *scale;
    const int32_t *zero;
    oct_dtype precision; /* what a quotient is rounded to */
    int32_t low, high;
    bool saturate;
    bool is_byte; /* all codes of a byte */
} job;

static void divide(const job *j, float *x, const float *scale, int64_t step, int64_t n)
{
    if (step)
        for (int64_t i = 0; i < n; i++)
            x[i] /= scale[i];
    else
        for (int64_t i = 0; i < n; i++)
            x[i] /= scale[0];
    if (j->precision == OCT_DTYPE_F16)
        for (int64_t i = 0; i < n; i++)
            x[i] = oct_f16_to_f32(oct_f32_to_f16(x[i]));
    if (j->precision == OCT_DTYPE_BF16)
        for (int64_t i = 0; i < n; i++)
            x[i] = oct_bf16_to_f32(oct_f32_to_bf16(x[i]));
}

/* Elements [at, at + n) of one row; scales and zero points from s on. */
static void piece(const job *j, int64_t at, int64_t n, int64_t s, int64_t step)
{
    const oct_dtype t = j->y->type.dtype;
    float x[PIECE];
    int64_t code[PIECE];

    oct_load_f32(j->x->type.dtype, j->x->data, at, n, x);
    divide(j, x, j->scale + s, step, n);
    if (F8_SET >> t & 1u) {
        if (oct_dtype_get(t)->bits == 8) {
            for (int64_t i = 0; i < n; i++)
                ((uint8_t *)j->y->data)[at + i] = oct_f32_to_f8(t, x[i], j->saturate);
        } else {
            oct_store_f32(t, j->y->data, at, n, x);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++)
        code[i] = oct_quant_code(x[i], j->zero[s + i * step], j->low, j->high);
    oct_store_i64(t, j->y->data, at, n, code);
}

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const oct_dtype t = j->y->type.dtype;
    const bool is_plain =
        j->is_byte && j->x->type.dtype == OCT_DTYPE_F32 && j->precision == OCT_DTYPE_F32;

    for (int64_t at = begin, n; at < end; at += n) {
        const int64_t row = at / j->grid.inner, col = at % j->grid.inner;
        int64_t step, s = oct_quant_grid_at(&j->grid, row, &step);

        n = OCT_MIN(j->grid.inner - col, end - at);
        if (is_plain && !step) {
            oct_quantize_codes((const float *)j->x->data + at, n, j->scale[s], j->zero[s], t,
                               (uint8_t *)j->y->data + at);
        } else {
            n = OCT_MIN(n, PIECE);
            piece(j, at, n, s + col * step, step);
        }
    }
}

static oct_status ref(const oct_args *a)
{
    const int64_t n_scales = oct_tensor_len(a->in[1]);
    const int64_t precision = oct_int(a->node, PRECISION);
    const int32_t last = oct_codes_last(a->node, a->out[0]->type.dtype);
    job j = {.x = a->in[0], .y = a->out[0], .saturate = oct_int(a->node, SATURATE) != 0};
    float *scale;
    int32_t *zero;

    OCT_TRY(oct_quant_grid_init(&j.grid, a));
    OCT_TRY(oct_quant_scales(a, 1, n_scales, 1, &scale));
    OCT_TRY(oct_quant_zeros(a, 2, n_scales, &zero));
    j.scale = scale;
    j.zero = zero;
    j.precision = precision ? (oct_dtype)precision : a->in[1]->type.dtype;
    if (j.precision == OCT_DTYPE_I32) j.precision = OCT_DTYPE_F32;
    if (!(F8_SET >> j.y->type.dtype & 1u)) oct_quant_limits(j.y->type.dtype, &j.low, &j.high);
    if (last) j.high = last;
    j.is_byte = !last && OCT_SET_8BIT >> j.y->type.dtype & 1u;
    oct_parallel_for(a->n_threads, oct_tensor_len(a->out[0]), OCT_MAP_GRAIN, range, &j);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    OCT_GRID_ATTRS,
    [SATURATE] = {"saturate", OCT_ATTR_INT, .def.i = 1},
    [PRECISION] = {"precision", OCT_ATTR_INT, .def.i = 0},
    [WAS_SIGNED] = {"was_signed", OCT_ATTR_INT, .def.i = 0}, /* set by expand-qlinear; in no file */
    {0},
};

#define ROW(sym, domain_, since_)                                                                  \
    const oct_op oct_op_##sym = {                                                                  \
        .name = "QuantizeLinear",                                                                  \
        .domain = domain_,                                                                         \
        .since = since_,                                                                           \
        .min_in = 2,                                                                               \
        .max_in = 3,                                                                               \
        .attrs = attrs,                                                                            \
        .shape = shape,                                                                            \
        .ref = ref,                                                                                \
        .flow = OCT_FLOW_PASS,                                                                     \
    }

ROW(quantize_linear, NULL, 10);
ROW(ms_quantize_linear, "com.microsoft", 1);
