/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the parameters of QuantizeLinear and DequantizeLinear. */
#include "op/qparams.h"

#include <math.h>

#include "op/op.h"
#include "op/quant.h"

bool oct_node_is_quantize(const oct_node *n)
{
    return oct_node_is(n, &oct_op_quantize_linear) || oct_node_is(n, &oct_op_ms_quantize_linear);
}

bool oct_node_is_dequantize(const oct_node *n)
{
    return oct_node_is(n, &oct_op_dequantize_linear) ||
           oct_node_is(n, &oct_op_ms_dequantize_linear);
}

static int64_t attr_int(const oct_node *n, const char *name)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->kind == OCT_ATTR_INT ? a->i : 0;
}

static bool is_code_type(oct_dtype t)
{
    const oct_dtype_info *info = oct_dtype_get(t);

    return (info->kind == OCT_DKIND_INT || info->kind == OCT_DKIND_UINT) && info->bits <= 32;
}

/*
 * An integer kernel multiplies a sum of 31 bits by the scales of two operands over that of its
 * result. Within these limits that is a finite number; without, it is infinity, and no sum times it
 * is no number.
 */
#define MAX_SCALE     0x1p18f
#define MIN_OUT_SCALE 0x1p-60f

static bool all_in_range(const oct_tensor *scale, bool to_codes)
{
    const float *s = scale->data, low = to_codes ? MIN_OUT_SCALE : 0;

    for (int64_t i = 0, n = oct_tensor_len(scale); i < n; i++)
        if (!(s[i] > 0 && s[i] >= low && s[i] <= MAX_SCALE)) return false;
    return true;
}

int32_t oct_codes_last(const oct_node *n, oct_dtype t)
{
    const int64_t last = attr_int(n, "last_code");
    int32_t low, high;

    if (!is_code_type(t)) return 0;
    oct_quant_limits(t, &low, &high);
    return last > 0 && last < high ? (int32_t)last : 0;
}

void oct_codes_limits(const oct_codes *c, int32_t *low, int32_t *high)
{
    oct_quant_limits(c->dtype, low, high);
    if (c->last) *high = c->last;
}

bool oct_codes_of(const oct_node *n, oct_codes *out)
{
    const bool to_codes = oct_node_is_quantize(n);
    oct_codes c = {.axis = -1, .n = 1};
    const oct_type *x;
    int64_t axis;

    if (!to_codes && !oct_node_is_dequantize(n)) return false;
    if (!n->in[0] || !n->out[0] || !(c.scale = oct_node_const(n, 1))) return false;
    x = &n->in[0]->type;
    c.zero = oct_node_const(n, 2);
    if (oct_node_in(n, 2) && !c.zero) return false;
    c.dtype = to_codes ? n->out[0]->type.dtype : x->dtype;
    c.was_signed = attr_int(n, "was_signed") != 0;
    c.last = oct_codes_last(n, c.dtype);
    if (!is_code_type(c.dtype) || c.scale->type.dtype != OCT_DTYPE_F32) return false;
    if ((to_codes ? x->dtype : n->out[0]->type.dtype) != OCT_DTYPE_F32) return false;
    if (attr_int(n, "block_size") || !all_in_range(c.scale, to_codes)) return false;
    if (attr_int(n, "precision") && attr_int(n, "precision") != OCT_DTYPE_F32) return false;
    if (oct_tensor_len(c.scale) != 1) {
        axis = attr_int(n, "axis");
        if (axis < 0) axis += x->rank;
        if (c.scale->type.rank != 1 || axis < 0 || axis >= x->rank) return false;
        if (x->dim[axis] != c.scale->type.dim[0]) return false;
        c.axis = (int32_t)axis;
        c.n = c.scale->type.dim[0];
    }
    if (c.zero && oct_tensor_len(c.zero) != c.n) return false;
    *out = c;
    return true;
}

bool oct_codes_equal(const oct_codes *a, const oct_codes *b)
{
    if (a->dtype != b->dtype || a->last != b->last) return false;
    if (a->axis != b->axis || a->n != b->n) return false;
    for (int64_t i = 0; i < a->n; i++)
        if (oct_codes_scale(a, i) != oct_codes_scale(b, i) ||
            oct_codes_zero(a, i) != oct_codes_zero(b, i))
            return false;
    return true;
}

oct_status oct_codes_check(const oct_node *n)
{
    const oct_tensor *scale = oct_node_const(n, 1);

    if (!scale || (!oct_node_is_quantize(n) && !oct_node_is_dequantize(n))) return OCT_OK;
    for (int64_t i = 0, len = oct_tensor_len(scale); i < len; i++) {
        const double s = oct_tensor_get_f64(scale, i);

        if (!(fabs(s) > 0 && fabs(s) < INFINITY))
            return oct_node_fail(n, OCT_ERR_FORMAT,
                                 "scale %lld is %g; it must be a finite number "
                                 "other than zero",
                                 (long long)i, s);
    }
    return OCT_OK;
}
