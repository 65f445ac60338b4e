/* SPDX-License-Identifier: Apache-2.0 */
/* What the operators of losses share: types of their results, emitting them, sums in order. */
#ifndef OCT_LOSS_LOSS_OP_H
#define OCT_LOSS_LOSS_OP_H

#include "loss/anchors.h"
#include "loss/loss.h"

/* Rank of predictions: [pictures, anchors, channels]. */
enum { OCT_PRED_RANK = 3 };

/* A shape function's end: loss, parts [n_parts], and gradients like the first n_pred operands. */
oct_status oct_loss_shape(const oct_infer *q, int n_pred, int64_t n_parts);

/* Fails unless operand i has this rank, where it is known; *out: its type. */
oct_status oct_loss_need(const oct_infer *q, int i, int32_t rank, unsigned set,
                         const oct_type **out);

/* Fails unless labels are [pictures, boxes, 5], for as many pictures as predictions x. */
oct_status oct_loss_fits(const oct_infer *q, const oct_type *x, const oct_type *labels);

/* Feature maps from two attributes, by index; fails unless they have n_anchors cells together. */
oct_status oct_loss_levels(const oct_node *n, int strides, int sizes, int64_t n_anchors,
                           oct_anchor_levels *out);

/* The operator on predictions and labels, its attributes set from the job's settings: those of the
 * same name. The caller sets what else it needs, then calls oct_loss_emitted(). */
oct_node *oct_loss_emit(oct_builder *b, const oct_op *op, const oct_loss_setting *settings,
                        const oct_loss_job *job, oct_value *const *in, int32_t n_in,
                        int32_t n_pred);
oct_status oct_loss_emitted(oct_builder *b, oct_node *n, oct_loss_found *out);

/* Results: the loss, which is the sum of the parts, and the parts, rounded to their types. */
void oct_loss_store(const oct_args *a, const double *parts, int n_parts);

/* All elements 0; accepts NULL. */
void oct_loss_clear(oct_tensor *t);

#endif
