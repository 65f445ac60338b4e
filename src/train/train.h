/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a training job. */
#ifndef OCT_TRAIN_TRAIN_H
#define OCT_TRAIN_TRAIN_H

#include <octet/train.h>

#include "augment/batches.h"
#include "optim/optimizer.h"
#include "train/events.h"
#include "train/net.h"
#include "train/pruning.h"
#include "train/qat.h"
#include "train/settings.h"
#include "train/sparsity.h"

struct oct_train {
    oct_ctx *ctx;
    oct_train_settings s;
    oct_detector *detector;
    oct_batches *batches;
    oct_train_net *net;
    oct_optimizer optimizer;
    oct_pruning *pruning;          /* NULL: no channels are pruned */
    oct_sparse_training *sparsity; /* NULL: no weights are set to zero */
    const float **grads;           /* of each parameter: the plan's, or those of `sum` */
    float *sum;                    /* gradients of several micro-batches; NULL: each step is one */
    float *ema_weights, *ema_running; /* NULL: no average */
    float *ranking; /* mean absolute gradients, for the importance of channels; NULL: none */
    int64_t ema_updates;
    int64_t epoch, batch; /* what comes next: both from 0; between two updates of the weights */
    int64_t n_batches;    /* of an epoch */
    bool has_teacher;     /* besides the labels */
    uint64_t seed;
    int n_threads;
    int32_t best_epoch; /* by the caller's measure; 0: none */
    double best;
    oct_qat *qat;       /* NULL: float training */
    oct_events *events; /* NULL: none */
    char *recipe;       /* for checkpoints; NULL: none */
};

/* Everything that a new job has, from options with all fields (build.c). */
oct_status oct_train_build(oct_train *t, const oct_graph *g, const oct_dataset *d,
                           const oct_train_options *o);

int64_t oct_train_updates_of_epoch(const oct_train *t); /* of the weights */

/* Random weights instead of the network's (scratch.c). n_classes: of the network; 0: not known. */
void oct_train_from_scratch(oct_train_net *net, int64_t n_classes, uint64_t seed);

/* Gradients of the first batches of the epoch, for oct_train_gradient() (importance.c); 0: as many
 * as usual. The next batch has to be looked for again. */
oct_status oct_train_rank_gradients(oct_train *t, int64_t n_batches);

/* Names the first value that is not finite when the last step is repeated (blame.c). */
oct_status oct_train_blame(oct_train *t, const char *what);

#endif
