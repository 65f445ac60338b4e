/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in bfloat16 as oneDNN describes them. */
#ifndef OCT_EXEC_ONEDNN_ONEDNN_CONV_BF16_H
#define OCT_EXEC_ONEDNN_ONEDNN_CONV_BF16_H

#include "exec/onednn/onednn_prim.h"

typedef enum oct_bf16_kind { OCT_BF16_FORWARD, OCT_BF16_DATA, OCT_BF16_WEIGHTS } oct_bf16_kind;

/* The convolution that a step computes, or a gradient of which it computes. */
typedef struct oct_bf16_conv {
    oct_bf16_kind kind;
    int n; /* spatial dims */
    dnnl_memory_desc_t src, dst, plain, bias;
    dnnl_dims_t stride, dilate, pad_l, pad_r;
    bool has_bias;
} oct_bf16_conv;

/* NHWC, dense. */
void oct_bf16_act_md(const oct_type *t, dnnl_data_type_t dtype, dnnl_memory_desc_t *md);

/* The convolution of a step; false: oneDNN has none. out: type of the activation that the step
 * writes, where it writes one. */
bool oct_bf16_conv_find(const oct_plan *p, const oct_step *s, dnnl_data_type_t out,
                        oct_bf16_conv *c);

/* Its primitive's descriptor; the format of the packed weights is oneDNN's choice. */
dnnl_status_t oct_bf16_conv_desc(const oct_plan *p, const oct_step *s, const oct_bf16_conv *c,
                                 dnnl_primitive_desc_t *out);

#endif
