/* SPDX-License-Identifier: Apache-2.0 */
/* Applying SmoothQuant factors: those that smooth_quant.c finds, and those that a file has. */
#ifndef OCT_QUANT_CORRECT_SMOOTH_QUANT_H
#define OCT_QUANT_CORRECT_SMOOTH_QUANT_H

#include "graph/graph.h"

#define OCT_SMOOTH_MOST_FACTOR 1e2 /* and its inverse is the smallest */

/* A value that products with constant weights read along its last axis. */
typedef struct oct_smoothing {
    oct_value *x;
    int64_t channels;
    double *factor;
} oct_smoothing;

/* Is n such a product of x? */
bool oct_smooth_reads(const oct_node *n, const oct_value *x);

/* Matrix products read x / factor, with weights that are larger by as much. */
oct_status oct_smooth_apply(const oct_smoothing *s, oct_arena *a);

/* oct_channel_factors_fn: the same with the factors of a file. */
oct_status oct_smooth_again(oct_value *x, const double *factor, int64_t n, oct_arena *a,
                            bool *fits);

#endif
