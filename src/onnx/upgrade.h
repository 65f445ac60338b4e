/* SPDX-License-Identifier: Apache-2.0 */
/* Opset upgrades: one row for each version of an operator in which its form or meaning changed. */
#ifndef OCT_ONNX_UPGRADE_H
#define OCT_ONNX_UPGRADE_H

#include "onnx/read.h"

/* Brings a draft of the operator from the version before to this one. */
typedef oct_status (*oct_upgrade_fn)(oct_draft *d);

typedef struct oct_upgrade_row {
    const char *op;
    int version;
    oct_upgrade_fn apply;
} oct_upgrade_row;

/* Sorted by operator, then version. */
const oct_upgrade_row *oct_upgrade_table(size_t *n);

/* --- what upgrades are made of (upgrade.c) --- */

oct_draft_attr *oct_draft_attr_find(const oct_draft *d, const char *name); /* NULL: not given */
void oct_draft_drop(oct_draft *d, const char *name);
oct_status oct_draft_set(oct_draft *d, const char *name, const oct_attr *value);
int64_t oct_draft_int(const oct_draft *d, const char *name, int64_t fallback);
float oct_draft_f32(const oct_draft *d, const char *name, float fallback);
bool oct_draft_str_is(const oct_draft *d, const char *name, const char *text);
oct_status oct_draft_set_int(oct_draft *d, const char *name, int64_t v);
oct_status oct_draft_set_str(oct_draft *d, const char *name, const char *v);

oct_value *oct_draft_in(const oct_draft *d, int i); /* NULL: not given */
oct_status oct_draft_set_in(oct_draft *d, int i, oct_value *v);

/* Constants beside the node, called "NODE_suffix". */
oct_status oct_draft_const(oct_draft *d, const char *suffix, oct_tensor *t, oct_value **out);
oct_status oct_draft_ints(oct_draft *d, const char *suffix, const int64_t *v, int64_t n,
                          oct_value **out);
oct_status oct_draft_scalar(oct_draft *d, const char *suffix, float v, oct_dtype dtype,
                            oct_value **out);

/* Another node before the draft's, called "NODE_suffix", of the internal opset. */
oct_status oct_draft_emit(oct_draft *d, const char *suffix, const char *op, oct_value *x,
                          oct_value *y, const oct_draft_attr *attrs, int n_attrs, oct_value **out);

/* Rank of an input, -1 if it is not known. */
int oct_draft_rank(const oct_draft *d, int i);
oct_dtype oct_draft_dtype(const oct_draft *d, int i); /* float32 if it is not known */

/* --- the upgrades --- */

/* upgrade_attr.c: attributes that went away, changed their default or their words */
oct_status oct_up_drop_consumed(oct_draft *d);
oct_status oct_up_cast_6(oct_draft *d);
oct_status oct_up_concat_4(oct_draft *d);
oct_status oct_up_dropout_7(oct_draft *d);
oct_status oct_up_gemm_7(oct_draft *d);
oct_status oct_up_grid_sample_20(oct_draft *d);
oct_status oct_up_lp_pool_2(oct_draft *d);
oct_status oct_up_recurrent_7(oct_draft *d);
oct_status oct_up_roi_align_16(oct_draft *d);
oct_status oct_up_scan_9(oct_draft *d);
oct_status oct_up_scatter_11(oct_draft *d);
oct_status oct_up_selu_6(oct_draft *d);

/* upgrade_input.c: attributes that became inputs */
oct_status oct_up_axes_to_input(oct_draft *d);
oct_status oct_up_clip_11(oct_draft *d);
oct_status oct_up_dft_20(oct_draft *d);
oct_status oct_up_dropout_12(oct_draft *d);
oct_status oct_up_pad_2(oct_draft *d);
oct_status oct_up_pad_11(oct_draft *d);
oct_status oct_up_reshape_5(oct_draft *d);
oct_status oct_up_slice_10(oct_draft *d);
oct_status oct_up_split_13(oct_draft *d);
oct_status oct_up_split_18(oct_draft *d);
oct_status oct_up_tile_6(oct_draft *d);
oct_status oct_up_topk_10(oct_draft *d);

/* upgrade_shape.c: other rules for shapes */
oct_status oct_up_broadcast_7(oct_draft *d);
oct_status oct_up_group_norm_21(oct_draft *d);
oct_status oct_up_prelu_7(oct_draft *d);
oct_status oct_up_softmax_13(oct_draft *d);

/* upgrade_norm.c */
oct_status oct_up_batch_norm_7(oct_draft *d);
oct_status oct_up_batch_norm_9(oct_draft *d);
oct_status oct_up_batch_norm_14(oct_draft *d);

/* upgrade_resize.c */
oct_status oct_up_upsample_7(oct_draft *d);
oct_status oct_up_upsample_9(oct_draft *d);
oct_status oct_up_upsample_10(oct_draft *d);
oct_status oct_up_resize_11(oct_draft *d);
oct_status oct_up_resize_13(oct_draft *d);

#endif
