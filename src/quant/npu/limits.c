/* SPDX-License-Identifier: Apache-2.0 */
/* The rows, what they measure, and which exponent they move. */
#include "quant/npu/limits.h"

#include <limits.h>
#include <math.h>

#include "op/op.h"
#include "pass/rewrite.h"

enum {
    SUM_BITS = 16,    /* that a bias may be shifted by, together with the shift to the result */
    SIGMOID_BITS = 14 /* of the fraction that a hard sigmoid multiplies by */
};

/* --- what rows apply to --- */

static bool has_all(const oct_npu_site *s)
{
    for (int32_t i = 0; i < s->n_in; i++)
        if (!s->in[i]) return false;
    return s->n_in > 0 && s->result;
}

static bool is_any(const oct_npu_site *s)
{
    return s->weight->state != OCT_QSTATE_OFF && s->weight->n > 0;
}

static bool is_no_bias(const oct_npu_site *s)
{
    return is_any(s) && s->weight->role != OCT_QROLE_BIAS;
}

static bool is_sum(const oct_npu_site *s)
{
    return (oct_node_is(s->node, &oct_op_add) || oct_node_is(s->node, &oct_op_sub)) &&
           s->n_in == 2 && has_all(s);
}

static bool is_any_product(const oct_npu_site *s)
{
    return oct_node_is(s->node, &oct_op_mul) && s->n_in == 2 && has_all(s);
}

/* x * hardsigmoid(x) or x * sigmoid(x), with both factors quantized. */
static bool is_gated(const oct_npu_site *s)
{
    if (!is_any_product(s)) return false;
    for (int32_t i = 0; i < 2; i++) {
        const oct_node *by = s->node->in[i]->producer;

        if ((oct_node_is(by, &oct_op_hard_sigmoid) || oct_node_is(by, &oct_op_sigmoid)) &&
            by->in[0] == s->node->in[1 - i])
            return true;
    }
    return false;
}

static bool is_product(const oct_npu_site *s)
{
    return is_any_product(s) && !is_gated(s);
}

static bool is_layer(const oct_npu_site *s)
{
    return s->is_layer &&
           (oct_node_is(s->node, &oct_op_conv) || oct_node_is(s->node, &oct_op_conv_transpose) ||
            oct_node_is(s->node, &oct_op_gemm) || oct_node_is(s->node, &oct_op_mat_mul));
}

static bool is_whole_layer(const oct_npu_site *s)
{
    return is_layer(s) && s->weight && has_all(s);
}

static bool is_biased_layer(const oct_npu_site *s)
{
    return is_whole_layer(s) && s->bias;
}

static bool is_concat(const oct_npu_site *s)
{
    return oct_node_is(s->node, &oct_op_concat) && s->result;
}

static bool is_whole_pool(const oct_npu_site *s)
{
    return oct_npu_is_pool(s->node) && has_all(s);
}

static bool is_move(const oct_npu_site *s)
{
    return (oct_node_is(s->node, &oct_op_pad) || oct_node_is(s->node, &oct_op_slice) ||
            oct_node_is(s->node, &oct_op_split)) &&
           s->n_in > 0 && s->in[0] && s->result;
}

static bool is_hard_sigmoid(const oct_npu_site *s)
{
    return oct_node_is(s->node, &oct_op_hard_sigmoid) && has_all(s);
}

static bool is_leaky(const oct_npu_site *s)
{
    return oct_node_is(s->node, &oct_op_leaky_relu) && s->result;
}

static bool is_mean(const oct_npu_site *s)
{
    return (oct_node_is(s->node, &oct_op_average_pool) ||
            oct_node_is(s->node, &oct_op_global_average_pool)) &&
           has_all(s) && oct_npu_mean_factor(s->node) > 0;
}

/* --- what rows measure --- */

static int bits_of(const oct_npu_site *s, int64_t k)
{
    (void)k;
    return s->weight->spec.is_signed ? s->weight->spec.bits : -s->weight->spec.bits;
}

static int odd_scales(const oct_npu_site *s, int64_t k)
{
    (void)k;
    return !oct_npu_is_pow2(s->weight);
}

static int zero_of(const oct_npu_site *s, int64_t k)
{
    const oct_qpoint *p = s->weight;

    return p->zero ? p->zero[p->n > 1 ? k % p->n : 0] : 0;
}

static int n_scales(const oct_npu_site *s, int64_t k)
{
    (void)k;
    return (int)OCT_MIN(s->weight->n, (int64_t)INT_MAX);
}

static int finest(const oct_npu_site *s, int64_t k)
{
    int e = INT_MIN;

    for (int32_t i = 0; i < s->n_in; i++)
        if (s->in[i]) e = OCT_MAX(e, oct_npu_exponent(s, s->in[i], k));
    return e;
}

static int coarsest(const oct_npu_site *s, int64_t k)
{
    int e = INT_MAX;

    for (int32_t i = 0; i < s->n_in; i++)
        if (s->in[i]) e = OCT_MIN(e, oct_npu_exponent(s, s->in[i], k));
    return e;
}

static int operands_apart(const oct_npu_site *s, int64_t k)
{
    return finest(s, k) - coarsest(s, k);
}

static int sum_shift(const oct_npu_site *s, int64_t k)
{
    return coarsest(s, k) - oct_npu_exponent(s, s->result, k);
}

static int product_shift(const oct_npu_site *s, int64_t k)
{
    return finest(s, k) + coarsest(s, k) - oct_npu_exponent(s, s->result, k);
}

/* Exponent of a layer's accumulator: input plus weight. */
static int unit(const oct_npu_site *s, int64_t k)
{
    const int w = oct_npu_exponent(s, s->weight, k);

    return w +
           (s->weight->fold ? -ilogbf(s->weight->fold_scale) : oct_npu_exponent(s, s->in[0], k));
}

static int cut(const oct_npu_site *s, int64_t k)
{
    return unit(s, k) - oct_npu_exponent(s, s->result, k);
}

static int bias_shift(const oct_npu_site *s, int64_t k)
{
    return unit(s, k) - oct_npu_exponent(s, s->bias, k);
}

/* A bias may be finer than the accumulator as far as the bits below the result reach, but not
 * before a LeakyRelu. */
static int least_bias_shift(const oct_npu_site *s, int64_t k)
{
    const oct_node *u = oct_sole_user(s->node->out[0]);

    return oct_node_is(u, &oct_op_leaky_relu) ? 0 : OCT_MIN(0, cut(s, k) - SUM_BITS);
}

/* More than 16 bits are added without a shift. 16 may be stored as 32. */
static int wide_bias_shift(const oct_npu_site *s, int64_t k)
{
    const oct_qpoint *p = s->bias;
    const oct_tensor *t = p->value->data;
    bool is_wide = p->spec.bits > 16 && !t;

    for (int64_t i = 0; t && p->spec.bits > 16 && i < oct_tensor_len(t); i++) {
        const double scale = (double)p->scale[p->n > 1 ? i % p->n : 0];

        is_wide |= !(fabs(oct_tensor_get_f64(t, i)) < 0x1p15 * scale);
    }
    return is_wide ? bias_shift(s, k) : 0;
}

static int result_apart(const oct_npu_site *s, int64_t k)
{
    return oct_npu_exponent(s, s->in[0], k) - oct_npu_exponent(s, s->result, k);
}

static int all_apart(const oct_npu_site *s, int64_t k)
{
    const int y = oct_npu_exponent(s, s->result, k);

    for (int32_t i = 0; i < s->n_in; i++)
        if (!s->in[i]) return 1; /* one that is float */
    return OCT_MAX(finest(s, k), y) - OCT_MIN(coarsest(s, k), y);
}

static int input_exponent(const oct_npu_site *s, int64_t k)
{
    return oct_npu_exponent(s, s->in[0], k);
}

static int result_exponent(const oct_npu_site *s, int64_t k)
{
    return oct_npu_exponent(s, s->result, k);
}

static int sigmoid_shift(const oct_npu_site *s, int64_t k)
{
    return SIGMOID_BITS + result_apart(s, k);
}

static int float_input(const oct_npu_site *s, int64_t k)
{
    (void)k;
    return s->has_float_input;
}

static int float_result(const oct_npu_site *s, int64_t k)
{
    (void)k;
    return s->has_float_result;
}

static int float_bias(const oct_npu_site *s, int64_t k)
{
    (void)k;
    return s->has_float_bias;
}

static int slope_is_odd(const oct_npu_site *s, int64_t k)
{
    const float steps = oct_node_attr(s->node, "alpha")->f * 256;

    (void)k;
    return fabsf(steps - rintf(steps)) > 1e-3f;
}

static int mean_is_odd(const oct_npu_site *s, int64_t k)
{
    const double factor = oct_npu_mean_factor(s->node);
    const oct_node *mul = oct_npu_factor_after(s->node->out[0]);
    double now = 1;

    (void)k;
    for (int32_t i = 0; mul && i < 2; i++)
        if (mul->in[i]->data) now = oct_tensor_get_f64(mul->in[i]->data, 0);
    return fabs(now - factor) > 1e-6;
}

/* --- the rows --- */

#define TENSOR(name_, what, applies_, measure_, low_, high_, channels, right_)                     \
    {                                                                                              \
        .name = (name_), .quantity = (what), .applies = (applies_), .measure = (measure_),         \
        .low = (low_), .high = (high_), .is_of_tensor = true, .is_of_channels = (channels),        \
        .right = (right_)                                                                          \
    }
#define NODE(name_, what, applies_, measure_, low_, high_, channels, below_, above_, right_)       \
    {                                                                                              \
        .name = (name_), .quantity = (what), .applies = (applies_), .measure = (measure_),         \
        .low = (low_), .high = (high_), .is_of_channels = (channels), .below = (below_),           \
        .above = (above_), .right = (right_)                                                       \
    }

static const oct_npu_limit table[] = {
    TENSOR("codes", "bits, negative if unsigned", is_no_bias, bits_of, 2, 8, true,
           "signed codes of at most 8 bits"),
    TENSOR("power of two", "1 if a scale is not", is_any, odd_scales, 0, 0, true,
           "a scale that is a power of two"),
    TENSOR("zero point", "zero point", is_any, zero_of, 0, 0, true, "symmetric codes"),
    TENSOR("one scale", "number of scales", is_any, n_scales, 1, 1, false, "a scale per tensor"),
    NODE("input", "1 if it is float", is_layer, float_input, 0, 0, false, OCT_NPU_NOTHING,
         OCT_NPU_NOTHING, "QuantizeLinear and DequantizeLinear before it"),
    NODE("result", "1 if it is float", is_layer, float_result, 0, 0, false, OCT_NPU_NOTHING,
         OCT_NPU_NOTHING, "QuantizeLinear and DequantizeLinear after it"),
    NODE("bias", "1 if it is float", is_layer, float_bias, 0, 0, true, OCT_NPU_NOTHING,
         OCT_NPU_NOTHING, "integer codes with DequantizeLinear"),
    NODE("concat", "finest - coarsest of operands and result", is_concat, all_apart, 0, 0, false,
         OCT_NPU_NOTHING, OCT_NPU_FINEST_OF_ALL, "one scale for operands and result"),
    NODE("pool", "input - result", is_whole_pool, result_apart, 0, 0, false, OCT_NPU_RESULT,
         OCT_NPU_INPUT, NULL),
    NODE("move", "input - result", is_move, result_apart, 0, 0, false, OCT_NPU_RESULT,
         OCT_NPU_INPUT, NULL),
    NODE("sum operands", "finer - coarser operand", is_sum, operands_apart, 0, 7, true,
         OCT_NPU_NOTHING, OCT_NPU_FINEST, NULL),
    NODE("sum result", "coarser operand - result", is_sum, sum_shift, -7, 25, true, OCT_NPU_RESULT,
         OCT_NPU_RESULT, NULL),
    NODE("product", "sum of operands - result", is_product, product_shift, 0, 32, true,
         OCT_NPU_RESULT, OCT_NPU_RESULT, NULL),
    NODE("swish", "sum of operands - result", is_gated, product_shift, 0, 15, true, OCT_NPU_RESULT,
         OCT_NPU_RESULT, NULL),
    NODE("shift cut", "input + weight - result", is_whole_layer, cut, 0, 16, true, OCT_NPU_RESULT,
         OCT_NPU_WEIGHT, NULL),
    {.name = "shift bias",
     .quantity = "input + weight - bias",
     .applies = is_biased_layer,
     .measure = bias_shift,
     .lowest = least_bias_shift,
     .high = OCT_NPU_BIAS_SHIFT,
     .is_of_channels = true,
     .below = OCT_NPU_BIAS,
     .above = OCT_NPU_WEIGHT},
    NODE("wide bias", "input + weight - bias, of 32 bits", is_biased_layer, wide_bias_shift, 0, 0,
         true, OCT_NPU_BIAS, OCT_NPU_BIAS, NULL),
    NODE("hard sigmoid input", "input", is_hard_sigmoid, input_exponent, 0, 15, true, OCT_NPU_INPUT,
         OCT_NPU_INPUT, NULL),
    NODE("hard sigmoid result", "result", is_hard_sigmoid, result_exponent, 7, INT_MAX / 2, true,
         OCT_NPU_RESULT_ALONE, OCT_NPU_NOTHING, NULL),
    NODE("hard sigmoid shift", "14 + input - result", is_hard_sigmoid, sigmoid_shift, 0, 31, true,
         OCT_NPU_RESULT, OCT_NPU_RESULT, NULL),
    NODE("leaky slope", "1 if it is no multiple of 1/256", is_leaky, slope_is_odd, 0, 0, false,
         OCT_NPU_NOTHING, OCT_NPU_NOTHING, "a slope of k / 256"),
    NODE("mean", "1 if it is not divided by k / 2^n", is_mean, mean_is_odd, 0, 0, false,
         OCT_NPU_NOTHING, OCT_NPU_NOTHING, "a Mul behind it, by what k / 2^n differs"),
};

const oct_npu_limit *oct_npu_limit_at(int i)
{
    return i >= 0 && (size_t)i < OCT_COUNT(table) ? &table[i] : NULL;
}

/* --- breaking them --- */

static const oct_qpoint *finest_of(const oct_npu_site *s, int64_t k, bool with_result)
{
    const oct_qpoint *best = with_result ? s->result : NULL;

    for (int32_t i = 0; i < s->n_in; i++) {
        if (!s->in[i]) return NULL;
        if (!best || oct_npu_exponent(s, s->in[i], k) > oct_npu_exponent(s, best, k))
            best = s->in[i];
    }
    return best;
}

static const oct_qpoint *part_of(const oct_npu_site *s, int64_t k, oct_npu_part part)
{
    switch (part) {
    case OCT_NPU_FINEST:
        return finest_of(s, k, false);
    case OCT_NPU_FINEST_OF_ALL:
        return finest_of(s, k, true);
    case OCT_NPU_INPUT:
        return s->in[0];
    case OCT_NPU_WEIGHT:
        return s->weight;
    case OCT_NPU_BIAS:
        return s->bias;
    case OCT_NPU_RESULT:
    case OCT_NPU_RESULT_ALONE:
        return s->result;
    case OCT_NPU_NOTHING:
        break;
    }
    return NULL;
}

bool oct_npu_breaks(const oct_npu_limit *l, const oct_npu_site *s, int64_t k, oct_npu_breach *out)
{
    const int value = l->measure(s, k), low = l->lowest ? l->lowest(s, k) : l->low;
    const oct_npu_part part = value < low ? l->below : l->above;
    const int by = value - (value < low ? low : l->high);
    const bool falls = part == OCT_NPU_BIAS || part == OCT_NPU_RESULT; /* the quantity with it */

    if (value >= low && value <= l->high) return false;
    *out = (oct_npu_breach){.value = value, .low = low, .high = l->high};
    if (!(out->point = part_of(s, k, part))) return true;
    out->from = oct_npu_exponent(s, out->point, k);
    out->to = falls ? out->from + by : out->from - by;
    return true;
}
