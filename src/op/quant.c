/* SPDX-License-Identifier: Apache-2.0 */
/* Scales, zero points and requantization, for all operators on integers. */
#include "op/quant.h"

#include <math.h>

void oct_quant_limits(oct_dtype t, int32_t *low, int32_t *high)
{
    const oct_dtype_info *info = oct_dtype_get(t);
    const bool is_signed = info->kind == OCT_DKIND_INT;

    *low = is_signed ? (int32_t)(-((int64_t)1 << (info->bits - 1))) : 0;
    *high = (int32_t)(((int64_t)1 << (info->bits - (is_signed ? 1 : 0))) - 1);
}

/* A single number, or a list of n; an unknown length passes. */
static oct_status check_length(const oct_infer *q, int i, int64_t n)
{
    const oct_type *t = oct_infer_in(q, i);
    const int64_t len = t ? oct_type_len(t) : -1;

    if (!t || !oct_type_is_static(t) || len == 1) return OCT_OK;
    if (t->rank == 1 && n != 0 && (n < 0 || n == len)) return OCT_OK;
    return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d has %lld elements, expected %s%lld", i,
                          (long long)len, n > 1 ? "1 or " : "", (long long)(n > 1 ? n : 1));
}

oct_status oct_quant_check_scale(const oct_infer *q, int i, int64_t n)
{
    const oct_type *scale;

    OCT_TRY(oct_infer_need(q, i, &scale));
    OCT_TRY(oct_infer_check(q, i, OCT_SET_SCALE));
    return check_length(q, i, n);
}

oct_status oct_quant_check_zero(const oct_infer *q, int i, oct_dtype like, int64_t n)
{
    const oct_type *t = oct_infer_in(q, i);

    if (!t) return OCT_OK;
    if (t->dtype != like && t->dtype != OCT_DTYPE_NONE && like != OCT_DTYPE_NONE)
        return oct_infer_fail(q, OCT_ERR_TYPE, "zero point %s for elements of type %s",
                              oct_dtype_name(t->dtype), oct_dtype_name(like));
    return check_length(q, i, n);
}

/* How many numbers operand i really has: n or 1. */
static oct_status count(const oct_args *a, int i, int64_t n, int64_t *out)
{
    const oct_tensor *t = oct_args_in(a, i);
    const int64_t len = t ? oct_tensor_len(t) : 0;

    if (t && len != 1 && len != n)
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "operand %d has %lld elements, expected %lld",
                             i, (long long)len, (long long)n);
    *out = len;
    return OCT_OK;
}

oct_status oct_quant_scales(const oct_args *a, int i, int64_t n, float fallback, float **out)
{
    const oct_tensor *t = oct_args_in(a, i);
    float *s = oct_args_scratch(a, (size_t)OCT_MAX(n, 1), sizeof(*s));
    int64_t len;

    if (!s) return OCT_ERR_MEMORY;
    OCT_TRY(count(a, i, n, &len));
    s[0] = fallback;
    if (t) oct_load_f32(t->type.dtype, t->data, 0, len, s);
    for (int64_t k = OCT_MAX(len, 1); k < n; k++)
        s[k] = s[0];
    *out = s;
    return OCT_OK;
}

oct_status oct_quant_zeros(const oct_args *a, int i, int64_t n, int32_t **out)
{
    const oct_tensor *t = oct_args_in(a, i);
    int32_t *z = oct_args_scratch(a, (size_t)OCT_MAX(n, 1), sizeof(*z));
    int64_t len, v;

    if (!z) return OCT_ERR_MEMORY;
    OCT_TRY(count(a, i, n, &len));
    for (int64_t k = 0; k < len; k++) {
        oct_load_i64(t->type.dtype, t->data, k, 1, &v);
        z[k] = (int32_t)v;
    }
    for (int64_t k = OCT_MAX(len, 1); k < n; k++)
        z[k] = z[0];
    *out = z;
    return OCT_OK;
}

float oct_quant_scale(const oct_args *a, int i)
{
    return (float)oct_tensor_get_f64(a->in[i], 0);
}

int32_t oct_quant_zero(const oct_args *a, int i)
{
    const oct_tensor *t = oct_args_in(a, i);

    return t ? (int32_t)oct_tensor_get_i64(t, 0) : 0;
}

#define CODES(T, value)                                                                            \
    do {                                                                                           \
        T *codes = y;                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            codes[i] = (T)oct_quant_code(value, zero, low, high);                                  \
    } while (0)

/* clang-format off */
#define ALL_CODES(value)                                                                           \
    switch (t) {                                                                                   \
    case OCT_DTYPE_U8: CODES(uint8_t, value); break;                                               \
    case OCT_DTYPE_I8: CODES(int8_t, value); break;                                                \
    case OCT_DTYPE_U16: CODES(uint16_t, value); break;                                             \
    case OCT_DTYPE_I16: CODES(int16_t, value); break;                                              \
    default: break;                                                                                \
    }
/* clang-format on */

void oct_requantize(const int32_t *x, int64_t n, float scale, int32_t zero, oct_dtype t, void *y)
{
    int32_t low, high;

    oct_quant_limits(t, &low, &high);
    ALL_CODES((float)x[i] * scale)
}

void oct_quantize_codes(const float *x, int64_t n, float scale, int32_t zero, oct_dtype t, void *y)
{
    int32_t low, high;

    oct_quant_limits(t, &low, &high);
    ALL_CODES(x[i] / scale)
}

void oct_quant_table_init(oct_quant_table *t, oct_dtype in, float in_scale, int32_t in_zero,
                          oct_dtype out, float out_scale, int32_t out_zero,
                          float (*fn)(const void *p, float x), const void *p)
{
    for (int i = 0; i < 256; i++) {
        const int code = in == OCT_DTYPE_I8 ? (int8_t)i : i;
        const float x = fn(p, (float)(code - in_zero) * in_scale);

        oct_quantize_codes(&x, 1, out_scale, out_zero, out, &t->code[i]);
    }
}
