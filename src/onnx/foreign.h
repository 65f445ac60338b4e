/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of other domains that are spelt out in operators octet has: everything known of those
 * (fast kernels, quantization, gradients) then holds for them too. A form that cannot be spelt out
 * leaves the draft as it is: an unknown operator, kept as the file has it.
 */
#ifndef OCT_ONNX_FOREIGN_H
#define OCT_ONNX_FOREIGN_H

#include "onnx/upgrade.h"
#include "op/op.h"

/* Rewrites the draft if its operator is such a one. */
oct_status oct_foreign(oct_draft *d);

/* --- what the functions of the table share --- */

oct_builder oct_foreign_builder(const oct_draft *d);

/* Is output i read by anything, or may it be? */
bool oct_foreign_wants(const oct_draft *d, int i);

/* The draft becomes this operator of the internal opset, with one output and no attributes. */
oct_status oct_foreign_become(oct_draft *d, const char *op, oct_value *const *in, int32_t n_in);
oct_status oct_foreign_set_f32(oct_draft *d, const char *name, float v);

/* Output i of the draft, which is given up, gets the value x by a node of its own. */
oct_status oct_foreign_give(oct_draft *d, int i, oct_value *x);

/* x with axes of size 1 put in. */
oct_value *oct_foreign_unsqueeze(oct_builder *b, oct_value *x, const int64_t *axes, int64_t n);
oct_value *oct_foreign_cast(oct_builder *b, oct_value *x, oct_dtype to);

/* foreign_norm.c */
oct_status oct_foreign_bias_gelu(oct_draft *d);
oct_status oct_foreign_fast_gelu(oct_draft *d);
oct_status oct_foreign_rms_norm(oct_draft *d);
oct_status oct_foreign_skip_rms_norm(oct_draft *d);
oct_status oct_foreign_embed(oct_draft *d);

/* foreign_layers.c */
oct_status oct_foreign_fake_quantize(oct_draft *d);
oct_status oct_foreign_dynamic_lstm(oct_draft *d);
oct_status oct_foreign_nhwc_conv(oct_draft *d);

/* foreign_attention.c */
oct_status oct_foreign_attention(oct_draft *d);
oct_status oct_foreign_heads(oct_draft *d);
oct_status oct_foreign_q_attention(oct_draft *d);

/* foreign_nbits.c */
oct_status oct_foreign_nbits(oct_draft *d);

#endif
