/* SPDX-License-Identifier: Apache-2.0 */
/* The table of targets: one row for each runtime. */
#include "quant/target/target.h"

#include <octet/quant.h>
#include <stdio.h>
#include <string.h>

// clang-format off
#define U8_ASYMMETRIC {.bits = 8, .axis = OCT_QSPEC_PER_TENSOR}
#define S8_SYMMETRIC  {.bits = 8, .is_signed = true, .is_symmetric = true, .axis = OCT_QSPEC_PER_TENSOR}
#define S8_CHANNELS   {.bits = 8, .is_signed = true, .is_symmetric = true, .is_narrow = true, .axis = 0}
#define S8_POW2(axis_) {.bits = 8, .is_signed = true, .is_symmetric = true, .is_pow2 = true, .axis = (axis_)}
#define I32_BIAS      {.bits = 32, .is_signed = true, .is_symmetric = true, .axis = 0}
// clang-format on

/*
 * octet: everything whose result is a function of a few codes. Not Div, whose result is unbounded
 * where a rounded divisor comes near zero; not Softmax and the normalisations, which cost little
 * and whose inputs (logits, variances) need more than 8 bits: NNCF leaves them in float for the
 * same reason. Max and Min would be cheap, but no kernel fuses them, so their operands would be
 * rounded for nothing.
 */
static const char *const octet_ops[] = {
    "Conv",        "ConvTranspose",
    "Gemm",        "MatMul",
    "Add",         "Sub",
    "Mul",         "Sum",
    "Relu",        "Clip",
    "LeakyRelu",   "PRelu",
    "Sigmoid",     "HardSigmoid",
    "HardSwish",   "Tanh",
    "Gelu",        "Swish",
    "Mish",        "Elu",
    "AveragePool", "GlobalAveragePool",
    "ReduceMean",  "Resize",
    "Upsample",    NULL,
};

/* What ONNX Runtime's CPU kernels take as one unit with Q and DQ around. ConvTranspose, HardSwish,
 * linear Resize and Sub have no integer kernel there. */
static const char *const ort_ops[] = {
    "Conv",      "Gemm",        "MatMul",
    "Add",       "Mul",         "Sigmoid",
    "LeakyRelu", "AveragePool", "GlobalAveragePool",
    NULL,
};

/*
 * ONNX Runtime 1.31, 2 threads of a CPU with AVX-512 VNNI, as its profiler sees the layers of five
 * detectors. Float activations after convolutions are free or one pass, SiLU in integers is two;
 * depthwise convolutions are slower in integers, unless their channels do not fit float's blocks;
 * at a border values are quantized, transposed and reordered, or the reverse.
 */
static const oct_cost_row ort_costs[OCT_COST_COUNT] = {
    [OCT_COST_CONV] = {{15e3, 0.10, 0.0025, 32}, {12e3, 0.05, 0.0111, 16}},
    [OCT_COST_DEPTHWISE] = {{20e3, 0, 0.033, 0}, {18e3, 0, 0.0122, 0}},
    [OCT_COST_DEPTHWISE_ODD] = {{20e3, 0, 0.059, 0}, {20e3, 0, 0.095, 0}},
    [OCT_COST_GATE] = {{19e3, 0.25, 0, 0}, {7e3, 0.16, 0, 0}},
    [OCT_COST_ACT] = {{10e3, 0.13, 0, 0}, {0, 0, 0, 0}},
    [OCT_COST_ADD] = {{9e3, 0.09, 0, 0}, {7e3, 0.10, 0, 0}},
    [OCT_COST_CONCAT] = {{8e3, 0.10, 0, 0}, {10e3, 0.20, 0, 0}},
    [OCT_COST_BORDER] = {{20e3, 0.30, 0, 0}, {25e3, 0.35, 0, 0}},
};

/* NNCF's quantizable operators as far as OpenVINO's low-precision passes make use of them. */
static const char *const openvino_ops[] = {
    "Conv",        "ConvTranspose",
    "Gemm",        "MatMul",
    "Add",         "Sub",
    "Mul",         "Sum",
    "AveragePool", "GlobalAveragePool",
    "ReduceMean",  "PRelu",
    "Clip",        "Relu",
    "Resize",      "Upsample",
    NULL,
};

static const char *const tensorrt_ops[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", NULL};

static const char *const npu_ops[] = {
    "Conv",
    "ConvTranspose",
    "Gemm",
    "MatMul",
    "Add",
    "Sub",
    "Mul",
    "Sum",
    "Relu",
    "Clip",
    "LeakyRelu",
    "PRelu",
    "Sigmoid",
    "HardSigmoid",
    "HardSwish",
    "AveragePool",
    "ReduceMean",
    "Resize",
    "GlobalAveragePool",
    "Upsample",
    NULL,
};

/* Biases of NPUs have a power of two of their own and 8 bits by default (as Quark's XINT8). */
#define POW2_BIAS(bits_)                                                                           \
    {                                                                                              \
        .bits = (bits_), .is_signed = true, .is_symmetric = true, .is_pow2 = true,                 \
        .axis = OCT_QSPEC_PER_TENSOR                                                               \
    }

static const oct_target table[] = {
    {
        .name = "octet",
        .help = "octet's own runtime: activations per channel before depthwise convolutions",
        .best_for = "octet's own runtime",
        .act = U8_ASYMMETRIC,
        .weight = S8_CHANNELS,
        .bias_spec = I32_BIAS,
        .bias = OCT_BIAS_I32,
        .concat = OCT_CONCAT_KEEP,
        .flags = OCT_TARGET_CHANNELS_AT_DEPTHWISE | OCT_TARGET_CHANNELS_AT_DENSE |
                 OCT_TARGET_FUSES_ACTIVATION | OCT_TARGET_FUSES_RESIDUAL,
        .ops = octet_ops,
        .act_ranges = "mse_wide",
        .channel_ranges = "minmax",
        .weight_ranges = "max",
    },
    {
        .name = "ort",
        .help = "ONNX Runtime on CPUs: one scale for each activation, a QuantizeLinear and "
                "DequantizeLinear pair after each layer",
        .best_for = "ONNX Runtime on CPUs",
        .act = U8_ASYMMETRIC,
        .weight = S8_CHANNELS,
        .bias_spec = I32_BIAS,
        .bias = OCT_BIAS_I32,
        .concat = OCT_CONCAT_REQUANTIZE,
        .flags = OCT_TARGET_QDQ_AFTER_MOVES | OCT_TARGET_MAY_PREACT | OCT_TARGET_CONST_OPERANDS |
                 OCT_TARGET_SOFTMAX_LAST | OCT_TARGET_CHANNELS_LAST,
        .ops = ort_ops,
        .act_ranges = "mse_wide",
        .channel_ranges = "minmax",
        .weight_ranges = "max",
        .costs = ort_costs,
    },
    {
        .name = "openvino",
        .help = "OpenVINO: float biases, one scale for all operands of a Concat",
        .best_for = "OpenVINO",
        .act = U8_ASYMMETRIC,
        .weight = S8_CHANNELS,
        .bias_spec = I32_BIAS,
        .bias = OCT_BIAS_FLOAT,
        .concat = OCT_CONCAT_SHARE,
        .flags = OCT_TARGET_CHANNELS_AT_DEPTHWISE | OCT_TARGET_DEPTHWISE_ALONE |
                 OCT_TARGET_FUSES_ACTIVATION | OCT_TARGET_MAY_STAY_FLOAT | OCT_TARGET_DFL_SUMS,
        .ops = openvino_ops,
        .act_ranges = "mse_wide",
        .channel_ranges = "minmax",
        .weight_ranges = "max",
    },
    {
        .name = "tensorrt",
        .help = "TensorRT: symmetric s8 where layers with weights read, float biases",
        .best_for = "TensorRT",
        .act = S8_SYMMETRIC,
        .weight = S8_CHANNELS,
        .bias_spec = I32_BIAS,
        .bias = OCT_BIAS_FLOAT,
        .concat = OCT_CONCAT_SHARE,
        .flags = OCT_TARGET_INPUTS_ONLY | OCT_TARGET_FUSES_RESIDUAL | OCT_TARGET_FUSES_ACTIVATION |
                 OCT_TARGET_MAY_STAY_FLOAT,
        .ops = tensorrt_ops,
        .act_ranges = "mse_wide",
        .channel_ranges = "minmax",
        .weight_ranges = "max",
    },
    {
        .name = "npu-pow2",
        .help = "NPUs that shift instead of multiply: one power of two for each tensor",
        .best_for = "NPUs with power-of-two scales",
        .act = S8_POW2(OCT_QSPEC_PER_TENSOR),
        .weight = S8_POW2(OCT_QSPEC_PER_TENSOR),
        .bias_spec = POW2_BIAS(8),
        .bias = OCT_BIAS_POW2,
        .concat = OCT_CONCAT_SHARE,
        .flags = OCT_TARGET_FUSES_ACTIVATION | OCT_TARGET_QDQ_AFTER_MOVES |
                 OCT_TARGET_CONST_OPERANDS | OCT_TARGET_LAYER_RESULTS | OCT_TARGET_SHIFTS_ALL,
        .ops = npu_ops,
        .act_ranges = "mse_wide",
        .channel_ranges = "mse_wide",
        .weight_ranges = "mse",
    },
    {
        .name = "npu-pow2-pc",
        .help = "the same with an exponent for each channel, of weights and activations",
        .best_for = "NPUs with power-of-two scales for each channel",
        .act = S8_POW2(OCT_QSPEC_PER_TENSOR),
        .weight = S8_POW2(0),
        .bias_spec = POW2_BIAS(16),
        .bias = OCT_BIAS_POW2,
        .concat = OCT_CONCAT_KEEP,
        .flags = OCT_TARGET_CHANNELS_AT_DEPTHWISE | OCT_TARGET_CHANNELS_AT_DENSE |
                 OCT_TARGET_ONLY_CONV_CHANNELS | OCT_TARGET_FUSES_ACTIVATION,
        .ops = npu_ops,
        .act_ranges = "mse_wide",
        .channel_ranges = "mse_wide",
        .weight_ranges = "mse",
    },
};

const oct_target *oct_target_at(int i)
{
    return i >= 0 && (size_t)i < OCT_COUNT(table) ? &table[i] : NULL;
}

const char *oct_target_name(int32_t i)
{
    const oct_target *t = oct_target_at(i);

    return t ? t->name : NULL;
}

const oct_target *oct_target_named(const char *name)
{
    for (size_t i = 0; name && i < OCT_COUNT(table); i++)
        if (strcmp(name, table[i].name) == 0) return &table[i];
    return NULL;
}

const char *oct_target_help(const char *name)
{
    const oct_target *t = oct_target_named(name);

    return t ? t->help : NULL;
}

/* "octet, ort, ..." */
static const char *all_names(char *text, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < OCT_COUNT(table) && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : "", table[i].name);
    return text;
}

oct_status oct_target_find(oct_ctx *ctx, const char *name, const oct_target **out)
{
    oct_nearest near = {.distance = 4};
    char names[256];

    if (!name) name = table[0].name;
    if ((*out = oct_target_named(name))) return OCT_OK;
    near.want = name;
    for (size_t i = 0; i < OCT_COUNT(table); i++)
        oct_nearest_try(&near, table[i].name);
    if (near.name)
        return oct_fail(ctx, OCT_ERR_ARG, "there is no target '%.60s'; did you mean '%s'?", name,
                        near.name);
    return oct_fail(ctx, OCT_ERR_ARG, "there is no target '%.60s'; there are: %s", name,
                    all_names(names, sizeof(names)));
}

bool oct_target_computes(const oct_target *t, const oct_op *op)
{
    if (*oct_op_domain(op)) return false;
    for (const char *const *p = t->ops; *p; p++)
        if (strcmp(*p, op->name) == 0) return true;
    return false;
}
