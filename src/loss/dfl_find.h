/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the class logits and the distributions over distances in a network. */
#ifndef OCT_LOSS_DFL_FIND_H
#define OCT_LOSS_DFL_FIND_H

#include "loss/loss.h"

/*
 * Emits `op` on [B, anchors, classes] logits, [B, anchors, 4 * bins] distributions, the labels
 * and, if the job has it, the epoch.
 * They are outputs of the network, or else what the Sigmoid of the scores and the Softmax of the
 * distances read: of all feature maps together, or of each.
 */
oct_status oct_dfl_attach(const oct_op *op, const oct_loss_setting *settings,
                          const oct_loss_job *job, oct_loss_found *out);

#endif
