/* SPDX-License-Identifier: Apache-2.0 */
/* Sparsity while training: weights that are set to zero at the start of an epoch stay zero in all
 * of its steps. */
#ifndef OCT_TRAIN_SPARSITY_H
#define OCT_TRAIN_SPARSITY_H

#include <octet/prune.h>

#include "train/net.h"

typedef struct oct_sparse_training oct_sparse_training;

/* `g` is the network that is trained; it and the options are needed during the call only. */
oct_status oct_sparse_training_new(const oct_graph *g, const oct_sparsity_options *o,
                                   oct_sparse_training **out);
void oct_sparse_training_free(oct_sparse_training *s); /* accepts NULL */

/* Chooses the weights of this epoch (from 0) as they are; in the midst of one (is_begun) those are
 * zero that were chosen at its start. */
oct_status oct_sparse_training_epoch(oct_sparse_training *s, const oct_params *params,
                                     const float *weights, int64_t epoch, bool is_begun);

/* Sets them to zero, in weights or in their average. */
void oct_sparse_training_apply(const oct_sparse_training *s, const oct_params *params,
                               float *weights);

#endif
