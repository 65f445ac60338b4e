/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimizers: rows of a table, which change the flat buffer of weights in one pass over memory.
 * The same bytes for any number of threads.
 *
 * To add one: its row and its loop in optimizer_<name>.c, one line in optimizers.def, one in
 * meson.build.
 */
#ifndef OCT_OPTIM_OPTIMIZER_H
#define OCT_OPTIM_OPTIMIZER_H

#include "optim/params.h"

enum { OCT_OPTIMIZER_MAX_STATES = 3 };

/* Settings of all rows; each reads its own. */
typedef struct oct_optimizer_options {
    double momentum, dampening;   /* SGD: 0.9, 0 */
    bool nesterov;                /* SGD */
    double beta1, beta2, epsilon; /* Adam, AdamW: 0.9, 0.999, 1e-8 */
    bool amsgrad;                 /* Adam, AdamW */
} oct_optimizer_options;

void oct_optimizer_options_init(oct_optimizer_options *o);

/* What a schedule says of one step. */
typedef struct oct_rates {
    double lr;       /* of weights and norms */
    double bias_lr;  /* of biases; the same as lr except while warming up */
    double momentum; /* of SGD; negative: as the options say */
} oct_rates;

/* One parameter's part of a step: everything a loop over elements needs. */
typedef struct oct_update {
    float *w;
    const float *g;
    float *state[OCT_OPTIMIZER_MAX_STATES];
    int64_t n;
    double lr, decay, momentum; /* factors of the parameter are in there */
    double scale;               /* of g: clipping and the mean over micro-batches */
    int64_t t;                  /* which step, from 1 */
    double fix1, fix2;          /* 1 - beta1^t, 1 - beta2^t */
    const oct_optimizer_options *o;
} oct_update;

typedef struct oct_optimizer_row {
    const char *name, *help;
    const char *states[OCT_OPTIMIZER_MAX_STATES]; /* names of its flat buffers, for checkpoints */
    int (*n_states)(const oct_optimizer_options *o);
    const char *(*check)(const oct_optimizer_options *o); /* NULL, or what is wrong */
    void (*update)(const oct_update *u);
} oct_optimizer_row;

const oct_optimizer_row *oct_optimizer_at(int i); /* NULL beyond the end */
const oct_optimizer_row *oct_optimizer_find(const char *name);

typedef struct oct_optimizer {
    const oct_optimizer_row *row;
    oct_optimizer_options o;
    const oct_params *params;
    float *state[OCT_OPTIMIZER_MAX_STATES]; /* flat; NULL: not used */
    int n_states;
    int64_t t; /* steps done */
} oct_optimizer;

/* `params` is finished, and outlives the optimizer. Fails on settings that make no sense. */
oct_status oct_optimizer_init(oct_optimizer *opt, const oct_params *params,
                              const oct_optimizer_row *row, const oct_optimizer_options *o);
void oct_optimizer_fini(oct_optimizer *opt);

/* One step of `weights`. grad[i] * scale is the gradient of parameter i; NULL: left as it is. */
void oct_optimizer_step(oct_optimizer *opt, float *weights, const float *const *grad, double scale,
                        const oct_rates *rates, int n_threads);

#endif
