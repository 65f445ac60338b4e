/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of NPUs that shift instead of multiply, one row for each: those of AMD's DPU and NPU.
 * Scales are 2^-e. The stage that fits scales to the hardware (solve/npu_shifts.c) and the check of
 * files (npu_check.c) both go through these rows.
 */
#ifndef OCT_QUANT_NPU_LIMITS_H
#define OCT_QUANT_NPU_LIMITS_H

#include "quant/qmap.h"

enum {
    OCT_NPU_BIAS_SHIFT = 15, /* a bias is shifted left by at most this many bits */
    OCT_NPU_OPERANDS = 64    /* of a node, that are looked at */
};

/* What is quantized around one node, as far as its scales are powers of two; NULL: it is not. A
 * tensor by itself (a row about types) is `weight`, whatever its role. */
typedef struct oct_npu_site {
    const oct_qmap *m;
    float *const *changed; /* by point: its scales, changed; NULL: all as they are in the qmap */
    const oct_node *node;
    const oct_qpoint *in[OCT_NPU_OPERANDS];
    int32_t n_in;
    const oct_qpoint *weight, *bias, *result;
    bool is_layer; /* it has integer weights, so it runs on the NPU whatever is around it */
    bool has_float_input, has_float_result, has_float_bias; /* not quantized in any way */
} oct_npu_site;

/* The exponent that a limit changes: how its quantity depends on it is the sign. */
typedef enum oct_npu_part {
    OCT_NPU_NOTHING,       /* no exponent would help */
    OCT_NPU_FINEST,        /* the finest of the operands, +1 */
    OCT_NPU_FINEST_OF_ALL, /* of operands and result, +1 */
    OCT_NPU_INPUT,         /* +1 */
    OCT_NPU_WEIGHT,        /* +1 */
    OCT_NPU_BIAS,          /* -1 */
    OCT_NPU_RESULT,        /* -1 */
    OCT_NPU_RESULT_ALONE,  /* the quantity is the result's exponent, +1 */
} oct_npu_part;

typedef struct oct_npu_limit {
    const char *name;     /* "shift cut" */
    const char *quantity; /* "input + weight - result" */
    const char *right;    /* what to do where no exponent helps; else NULL */
    bool is_of_tensor;    /* of each quantized tensor; else of nodes */
    bool is_of_channels;  /* also of hardware with an exponent for each channel */
    bool (*applies)(const oct_npu_site *s);
    int (*measure)(const oct_npu_site *s, int64_t k); /* for channel k */
    int low, high;
    int (*lowest)(const oct_npu_site *s, int64_t k); /* instead of `low`, where that depends */
    oct_npu_part below, above;                       /* what moves */
} oct_npu_limit;

/* Rows about tensors come first, then those about nodes in the order in which they are enforced.
 * NULL beyond the end. */
const oct_npu_limit *oct_npu_limit_at(int i);

/* sites.c */
bool oct_npu_is_pow2(const oct_qpoint *p); /* all of its scales */
bool oct_npu_is_pool(const oct_node *n);

void oct_npu_site_of_node(const oct_qmap *m, float *const *changed, const oct_node *n,
                          oct_npu_site *out);
void oct_npu_site_of_point(const oct_qmap *m, int32_t point, oct_npu_site *out);

int64_t oct_npu_site_channels(const oct_npu_site *s); /* the k of measure() are below this */
int oct_npu_exponent(const oct_npu_site *s, const oct_qpoint *p, int64_t k);

/* A limit that is broken, and the exponent that would keep it. */
typedef struct oct_npu_breach {
    int value, low, high;
    const oct_qpoint *point; /* NULL: no exponent helps */
    int from, to;            /* its exponent */
} oct_npu_breach;

/*
 * An NPU multiplies a sum of pixels by k / 2^n to get their mean. means.c: that divided by the
 * true mean, 63/64 for 3x3 pixels; 0: the number of pixels is not known.
 */
double oct_npu_mean_factor(const oct_node *pool);

/* The node that multiplies v by one constant, if it is the only consumer; else NULL. */
const oct_node *oct_npu_factor_after(const oct_value *v);

bool oct_npu_breaks(const oct_npu_limit *l, const oct_npu_site *s, int64_t k, oct_npu_breach *out);

#endif
