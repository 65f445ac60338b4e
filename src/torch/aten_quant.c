/* SPDX-License-Identifier: Apache-2.0 */
/* quantized_decomposed: what PyTorch's own quantization (PT2E) writes. */
#include "torch/aten.h"

/* The codes an element type holds. */
static void range_of(oct_dtype t, double *low, double *high)
{
    const int bits = oct_dtype_get(t)->bits;
    const double n = bits < 63 ? (double)((int64_t)1 << bits) : 0;
    const bool is_signed = oct_dtype_get(t)->kind == OCT_DKIND_INT;

    *low = is_signed ? -n / 2 : 0;
    *high = is_signed ? n / 2 - 1 : n - 1;
}

static oct_dtype code_type(oct_aten *a)
{
    const oct_dtype t = oct_torch_dtype(oct_aten_int(a, "dtype", 0));

    if (!oct_dtype_is_int(t)) oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "codes that are no integers");
    return t;
}

/* Scale and zero point, one or one for each channel. */
static void read_scale(oct_aten *a, oct_dtype codes, oct_value **scale, oct_value **zero)
{
    const bool by_channel = oct_aten_has(a, "scales");

    *scale = oct_aten_operand(a, by_channel ? "scales" : "scale", OCT_DTYPE_F32);
    *zero = oct_aten_has(a, by_channel ? "zero_points" : "zero_point")
                ? oct_aten_operand(a, by_channel ? "zero_points" : "zero_point", codes)
                : NULL;
    if (!*zero && *scale) *zero = oct_aten_filled(a, oct_aten_shape_of(a, *scale), codes, 0);
    /* One number in a vector (.tensor) is one for all. */
    if (!by_channel && *scale && (*scale)->type.rank == 1) *scale = oct_aten_squeeze(a, *scale, 0);
    if (!by_channel && *zero && (*zero)->type.rank == 1) *zero = oct_aten_squeeze(a, *zero, 0);
}

/* The number that a code stands for, for each channel: (code - zero) * scale, to broadcast to x. */
static oct_value *number_of(oct_aten *a, oct_value *x, double code, oct_value *scale,
                            oct_value *zero)
{
    const int32_t rank = oct_aten_rank(a, x);
    oct_value *v =
        ATEN2(sub, oct_aten_scalar(a, OCT_DTYPE_F32, code), oct_aten_cast(a, zero, OCT_DTYPE_F32));
    int64_t dims[OCT_MAX_RANK];

    v = oct_aten_cast(a, ATEN2(mul, v, scale), x->type.dtype);
    if (!oct_aten_has(a, "axis")) return v;
    for (int32_t i = 0; i < rank; i++)
        dims[i] = 1;
    dims[oct_aten_axis(a, oct_aten_int(a, "axis", 0), rank)] = -1;
    return oct_aten_reshape(a, v, dims, rank);
}

/* Codes may be narrower than their type (0..127, -127..127): then x is clipped before. */
static oct_value *clip_to_codes(oct_aten *a, oct_value *x, oct_dtype codes, oct_value *scale,
                                oct_value *zero)
{
    double low, high, from, to;

    range_of(codes, &low, &high);
    from = oct_aten_f64(a, "quant_min", low);
    to = oct_aten_f64(a, "quant_max", high);
    if (a->b->status || (from <= low && to >= high)) return x;
    if (from > low) x = ATEN2(max, x, number_of(a, x, from, scale, zero));
    return to < high && x ? ATEN2(min, x, number_of(a, x, to, scale, zero)) : x;
}

static void convert(oct_aten *a, const oct_op *op)
{
    const oct_dtype codes = code_type(a);
    oct_value *x = oct_aten_tensor(a, "input"), *scale = NULL, *zero = NULL;
    oct_node *n;

    if (a->b->status) return;
    read_scale(a, codes, &scale, &zero);
    if (op == &oct_op_quantize_linear) x = clip_to_codes(a, x, codes, scale, zero);
    n = oct_aten_node(a, op, (oct_value *[]){x, scale, zero}, 3, 1);
    if (oct_aten_has(a, "axis")) oct_emit_int(a->b, n, "axis", oct_aten_int(a, "axis", 0));
    a->out[0] = oct_aten_done(a, n);
}

void oct_aten_quantize(oct_aten *a)
{
    convert(a, &oct_op_quantize_linear);
}

void oct_aten_dequantize(oct_aten *a)
{
    convert(a, &oct_op_dequantize_linear);
    if (a->b->status == OCT_OK && a->meta->type.dtype)
        a->out[0] = oct_aten_cast(a, a->out[0], a->meta->type.dtype);
}
