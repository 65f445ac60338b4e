/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error of the whole network at the values it is read by: what its last layers give, before the
 * tail. Each block may be better by itself, and the network worse. On pictures that are held out.
 */
#ifndef OCT_QUANT_LEARN_GUARD_H
#define OCT_QUANT_LEARN_GUARD_H

#include "quant/learn/block_values.h"

typedef struct oct_guard {
    oct_ctx *ctx;
    const oct_block_values *values; /* tell what places count */
    oct_block whole;                /* all blocks as one */
    int64_t pictures;               /* held out */
    uint16_t **in;                  /* by input: [picture, element], as float16 */
    uint16_t **exact;               /* by output: what the float network gives */
    double *power;                  /* by output */
} oct_guard;

/* Computes the float network `g` on the pictures that are held out. `values` still has its inputs.
 * Arrays live in the arena. */
oct_status oct_guard_new(const oct_graph *g, const oct_block_values *values, oct_arena *a,
                         oct_guard *out);
void oct_guard_fini(oct_guard *s);

/* Error power / signal power of the network as the qmap has it now, the mean over the values. */
oct_status oct_guard_measure(const oct_guard *s, const oct_qmap *m, double *noise);

/* How good the network is if the first n blocks keep what they learned. */
typedef oct_status (*oct_guard_try)(void *arg, int32_t n, double *noise);

/*
 * With all of n blocks the noise is above `limit`, with none it is not: halves what lies between
 * until it knows how many may keep what they learned, and the noise with them.
 */
oct_status oct_guard_search(int32_t n, double limit, oct_guard_try measure, void *arg,
                            int32_t *kept, double *noise);

#endif
