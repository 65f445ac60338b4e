/* SPDX-License-Identifier: Apache-2.0 */
/* An open checkpoint. */
#ifndef OCT_TRAIN_CHECKPOINT_READ_H
#define OCT_TRAIN_CHECKPOINT_READ_H

#include "optim/ema.h"
#include "tensor/safetensors.h"
#include "train/checkpoint_parts.h"

struct oct_checkpoint {
    oct_ctx *ctx;
    char *path;
    oct_safetensors *s;
    int32_t network; /* which tensor has it */
    const char *recipe;
    int64_t step, epoch;
    uint64_t seed;
    const char *optimizer; /* NULL: none */
    int64_t optimizer_steps;
    const oct_ema_row *ema; /* NULL: none */
    double ema_decay;
    int64_t ema_updates, ema_total;
};

/* The network, in which parameters and statistics are inputs. */
oct_status oct_checkpoint_load_network(const oct_checkpoint *c, oct_graph **out);

#endif
