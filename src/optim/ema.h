/* SPDX-License-Identifier: Apache-2.0 */
/* The moving average of weights and running statistics: decays by name. */
#ifndef OCT_OPTIM_EMA_H
#define OCT_OPTIM_EMA_H

#include "base/parallel.h"

typedef struct oct_ema_row {
    const char *name, *help;
    double decay; /* what it tends to; another may be given */
    /* The decay of update n, from 1, of `total`. */
    double (*at)(double decay, int64_t n, int64_t total);
    bool from_zero; /* it starts from zeros, and what is read is divided by oct_ema_weight() */
} oct_ema_row;

const oct_ema_row *oct_ema_at(int i); /* NULL beyond the end */
const oct_ema_row *oct_ema_find(const char *name);

/* Before the first update: the weights as they are, or zeros. */
void oct_ema_start(const oct_ema_row *row, float *average, const float *live, int64_t len);

/* average = d average + (1 - d) live: update n, from 1. decay 0: the row's. */
void oct_ema_update(const oct_ema_row *row, double decay, int64_t n, int64_t total, float *average,
                    const float *live, int64_t len, int n_threads);

/* What the average after n updates is to be divided by; 1 unless it starts from zeros. */
double oct_ema_weight(const oct_ema_row *row, double decay, int64_t n, int64_t total);

/* The average as it is used: out = average / weight; `live` while there was no update. */
void oct_ema_read(const oct_ema_row *row, double decay, int64_t n, int64_t total,
                  const float *average, const float *live, float *out, int64_t len, int n_threads);

#endif
