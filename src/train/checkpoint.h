/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a training run saves, as one safetensors file: the network, its parameters and running
 * statistics, the optimizer's state, averages, and where the run is.
 *
 *   tensor "octet.network"     U8: the ONNX model, in which parameters and statistics are inputs
 *   "param/NAME", "state/NAME" the values NAME of that model, F32
 *   "ema/NAME"                 averages of both, as they are updated: see oct_ema_read()
 *   "optimizer/STATE/NAME"     buffers of the optimizer
 *   tensor "octet.quantized"   U8: of quantization-aware training, the ONNX model that these
 * weights and scales (or their averages) are in integers metadata "octet.checkpoint" "1", step,
 * epoch, seed, optimizer, recipe, and the caller's own
 */
#ifndef OCT_TRAIN_CHECKPOINT_H
#define OCT_TRAIN_CHECKPOINT_H

#include "optim/optimizer.h"

/* What is saved and restored. Pointers are the caller's. */
typedef struct oct_run_state {
    const oct_graph *g;             /* the network as files have it */
    const oct_graph *quantized;     /* what it is in integers; NULL: float training */
    const oct_params *params;       /* named as the values of g that training changes */
    const oct_params *states;       /* the same of running statistics; NULL: none */
    float *weights, *stats;         /* flat */
    float *ema_weights, *ema_stats; /* flat, as they are updated; NULL: none */
    oct_optimizer *optimizer;       /* NULL: none */
    const char *ema;                /* name of the decay; NULL: none */
    double ema_decay;               /* 0: the name's own */
    int64_t ema_total;              /* updates of the whole training */
    int64_t ema_updates;            /* done */
    int64_t step, epoch;            /* done */
    uint64_t seed;
    const char *recipe;    /* YAML text, one "key: value" a line */
    const oct_prop *notes; /* other texts to keep, by key */
    int32_t n_notes;
} oct_run_state;

oct_status oct_checkpoint_save(oct_ctx *ctx, const char *path, const oct_run_state *run);

typedef struct oct_checkpoint oct_checkpoint;

/* Is the file a checkpoint? By its first bytes; false also if it cannot be read. */
bool oct_checkpoint_sniff(oct_ctx *ctx, const char *path);

oct_status oct_checkpoint_open(oct_ctx *ctx, const char *path, oct_checkpoint **out);
void oct_checkpoint_close(oct_checkpoint *c); /* accepts NULL */

/* Texts are borrowed. Notes: those that the caller gave for saving. */
const char *oct_checkpoint_recipe(const oct_checkpoint *c);
const char *oct_checkpoint_note(const oct_checkpoint *c, const char *key); /* NULL: none */
bool oct_checkpoint_has_ema(const oct_checkpoint *c);
int64_t oct_checkpoint_step(const oct_checkpoint *c);
int64_t oct_checkpoint_epoch(const oct_checkpoint *c);

/* The network with the weights (or averages) as constants. It does not need the checkpoint. */
oct_status oct_checkpoint_graph(const oct_checkpoint *c, bool ema, oct_graph **out);

/* The network in integers; *out is left alone if there is none. */
oct_status oct_checkpoint_quantized(const oct_checkpoint *c, oct_graph **out);

/* Fails, naming the first key that differs, if the run's recipe is not `recipe`. */
oct_status oct_checkpoint_check_recipe(const oct_checkpoint *c, const char *recipe);

/*
 * Fills weights, statistics, averages, the optimizer's state and the numbers of `run`. Fails before
 * it changes anything if the checkpoint is of another network or optimizer, naming what differs.
 */
oct_status oct_checkpoint_restore(const oct_checkpoint *c, oct_run_state *run);

/* Fills weights and statistics of `run` only. */
oct_status oct_checkpoint_take(const oct_checkpoint *c, oct_run_state *run);

bool oct_checkpoint_is_quantized(const oct_checkpoint *c);

#endif
