/* SPDX-License-Identifier: Apache-2.0 */
/* Targets: what a runtime computes in integers, and of what kind its integers are. Data only. */
#ifndef OCT_QUANT_TARGET_TARGET_H
#define OCT_QUANT_TARGET_TARGET_H

#include "graph/op.h"
#include "quant/spec.h"

typedef enum oct_concat_rule {
    OCT_CONCAT_KEEP,       /* each segment keeps its own scale */
    OCT_CONCAT_SHARE,      /* all operands and the result have one scale */
    OCT_CONCAT_REQUANTIZE, /* the result has its own scale */
} oct_concat_rule;

typedef enum oct_bias_rule {
    OCT_BIAS_I32,   /* scale = input's * weight's */
    OCT_BIAS_FLOAT, /* not quantized */
    OCT_BIAS_POW2,  /* own power of two, 8 or 16 bits as NPUs have it: see `bias` */
} oct_bias_rule;

enum {
    /* inputs of depthwise convolutions have a scale for each channel */
    OCT_TARGET_CHANNELS_AT_DEPTHWISE = 1u << 0,
    /* ... unless a dense layer reads the value too */
    OCT_TARGET_DEPTHWISE_ALONE = 1u << 1,
    /* inputs of other convolutions have scales half-way between channel and tensor (ADR 9) */
    OCT_TARGET_CHANNELS_AT_DENSE = 1u << 2,
    /* scales for each channel only between convolutions: nothing else produces or reads the value
     */
    OCT_TARGET_ONLY_CONV_CHANNELS = 1u << 13,

    OCT_TARGET_FUSES_ACTIVATION = 1u << 3, /* SiLU & co. with a layer; else only Relu and Clip */
    OCT_TARGET_FUSES_RESIDUAL = 1u << 4,   /* conv + Add (+ act) without a point between */
    OCT_TARGET_QDQ_AFTER_MOVES = 1u << 5,  /* a Q/DQ pair after MaxPool, Reshape.., same scale */
    OCT_TARGET_INPUTS_ONLY = 1u << 6,      /* points only where weighted operators read */
    OCT_TARGET_DFL_SUMS = 1u << 7,         /* sums over the bins of DFL are integer, too */
    OCT_TARGET_CONST_OPERANDS = 1u << 8,   /* constants of Add, Mul.. are quantized as well */
    OCT_TARGET_SOFTMAX_LAST = 1u << 9,     /* Softmax is slow along any axis but the last */
    OCT_TARGET_CHANNELS_LAST = 1u << 10,   /* integer tensors are NHWC: other rewrites are fast */

    /* results of layers with weights are quantized, whatever reads them */
    OCT_TARGET_LAYER_RESULTS = 1u << 14,
    /* means are sums times k / 2^n, slopes of LeakyRelu k / 256 */
    OCT_TARGET_SHIFTS_ALL = 1u << 15,

    /* a convolution is integer only if its output is quantized directly, before SiLU; where the
     * error of that is too large it falls back to float */
    OCT_TARGET_MAY_PREACT = 1u << 11,
    /* layers for whose input one scale is too coarse fall back to float */
    OCT_TARGET_MAY_STAY_FLOAT = 1u << 12,
};

/* Nanoseconds that something takes: fixed, for each element of its result, for each multiply-add
 * (output channels rounded up to `lanes`). */
typedef struct oct_cost {
    double fixed, element, mac;
    int lanes; /* 0: as many as there are */
} oct_cost;

typedef enum oct_cost_kind {
    OCT_COST_NONE, /* the same in integers and float, or nothing */
    OCT_COST_CONV,
    OCT_COST_DEPTHWISE,     /* channels in blocks of 16 */
    OCT_COST_DEPTHWISE_ODD, /* others */
    OCT_COST_GATE,          /* x * sigmoid(x) */
    OCT_COST_ACT,
    OCT_COST_ADD, /* and Mul */
    OCT_COST_CONCAT,
    OCT_COST_BORDER, /* quantizing; dequantizing */
    OCT_COST_COUNT
} oct_cost_kind;

typedef struct oct_cost_row {
    oct_cost integer, floating;
} oct_cost_row;

typedef struct oct_target {
    const char *name, *help;
    const char *best_for; /* "ONNX Runtime on CPUs": for the summary */
    oct_qspec act, weight, bias_spec;
    oct_bias_rule bias;
    oct_concat_rule concat;
    unsigned flags;
    const char *const *ops; /* computed in integers; NULL at the end */
    const char *act_ranges, *channel_ranges, *weight_ranges;
    const oct_cost_row *costs; /* by kind; NULL: integers always pay */
} oct_target;

const oct_target *oct_target_at(int i);               /* NULL beyond the end */
const oct_target *oct_target_named(const char *name); /* NULL: there is none */
oct_status oct_target_find(oct_ctx *ctx, const char *name,
                           const oct_target **out); /* else nearest */
bool oct_target_computes(const oct_target *t, const oct_op *op);

#endif
