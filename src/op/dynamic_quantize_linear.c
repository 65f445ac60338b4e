/* SPDX-License-Identifier: Apache-2.0 */
/* DynamicQuantizeLinear: to uint8, with a scale and zero point from the data's own range. */
#include "op/dynamic_quantize.h"

#include <math.h>

#include "op/quant.h"

void oct_dynamic_range(const float *x, int64_t n, float *scale, uint8_t *zero)
{
    float low = 0, high = 0, z;

    for (int64_t i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *scale = high == low ? 1.0f : (high - low) / 255.0f;
    z = oct_round_even(0.0f - low / *scale);
    *zero = z > 0 ? z < 255 ? (uint8_t)z : 255 : 0;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET(OCT_DTYPE_F32)));
    q->out[0] = *x;
    q->out[0].dtype = OCT_DTYPE_U8;
    if (q->node->n_out > 1) q->out[1] = oct_type_make(OCT_DTYPE_F32, 0, NULL);
    if (q->node->n_out > 2) q->out[2] = oct_type_make(OCT_DTYPE_U8, 0, NULL);
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_tensor *x = a->in[0];
    oct_tensor *y = oct_args_out(a, 0), *y_scale = oct_args_out(a, 1), *y_zero = oct_args_out(a, 2);
    const int64_t n = oct_tensor_len(x);
    float scale;
    uint8_t zero;

    oct_dynamic_range(x->data, n, &scale, &zero);
    if (y) oct_quantize_codes(x->data, n, scale, zero, OCT_DTYPE_U8, y->data);
    if (y_scale) *(float *)y_scale->data = scale;
    if (y_zero) *(uint8_t *)y_zero->data = zero;
    return OCT_OK;
}

const oct_op oct_op_dynamic_quantize_linear = {
    .name = "DynamicQuantizeLinear",
    .since = 11,
    .min_in = 1,
    .max_in = 1,
    .min_out = 3,
    .max_out = 3,
    .shape = shape,
    .ref = ref,
};
