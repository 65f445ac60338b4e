/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pruning while training: at the start of an epoch more of the least important channels are set to
 * zero, and stay zero in all of its steps. What is left learns to do without them.
 */
#ifndef OCT_TRAIN_PRUNING_H
#define OCT_TRAIN_PRUNING_H

#include <octet/train.h>

#include "prune/groups.h"
#include "train/net.h"

typedef struct oct_pruning oct_pruning;

/* `g` is the network that is trained; it and the options are needed during the call only. */
oct_status oct_pruning_new(const oct_graph *g, const oct_train_pruning *o, oct_pruning **out);
void oct_pruning_free(oct_pruning *p); /* accepts NULL */

/* Chooses the channels of this epoch (from 0) by the weights as they are; in the midst of one
 * (is_begun) those are zero that were chosen at its start. */
oct_status oct_pruning_epoch(oct_pruning *p, const oct_params *params, const float *weights,
                             const oct_prune_gradients *gradients, int64_t epoch, bool is_begun);

/* Does that choice need gradients? */
bool oct_pruning_wants_gradients(const oct_pruning *p, int64_t epoch, bool is_begun);

/* Has the share reached its target when so many epochs were trained? */
bool oct_pruning_is_done(const oct_pruning *p, int64_t epochs);

/* Sets the channels to zero, in weights or in their average. */
void oct_pruning_apply(const oct_pruning *p, const oct_params *params, float *weights);

#endif
