/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN, wrapped: only the files onednn*.c see its header. */
#ifndef OCT_EXEC_ONEDNN_ONEDNN_H
#define OCT_EXEC_ONEDNN_ONEDNN_H

#include "base/status.h"

typedef struct oct_dnnl oct_dnnl;

oct_status oct_dnnl_new(oct_ctx *ctx, oct_dnnl **out);
void oct_dnnl_free(oct_dnnl *d); /* accepts NULL */

void oct_dnnl_version(int32_t *major, int32_t *minor, int32_t *patch); /* of the library at hand */

/* Does the CPU have products of bfloat16? Without, oneDNN has no, or slow, convolutions of it. */
bool oct_dnnl_has_bf16(void);

/* Can oneDNN compute this Conv, ConvTranspose or ConvGradWeight with activations in bfloat16? */
struct oct_plan;
struct oct_step;
bool oct_onednn_conv_bf16_accepts(const struct oct_plan *p, const struct oct_step *s);

#endif
