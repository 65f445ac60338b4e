/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks: parts of a network a few layers deep, which learn one after the other.
 *
 * Every node that a quantized layer needs is in one block, and what a block reads is computed by
 * blocks before it or is an input of the network: computing one block after the other computes the
 * network up to its last layers.
 */
#ifndef OCT_QUANT_LEARN_BLOCKS_H
#define OCT_QUANT_LEARN_BLOCKS_H

#include "quant/qmap.h"

typedef struct oct_block {
    const oct_node **nodes; /* in order */
    int32_t n_nodes;
    const oct_node **layers; /* of them, those with quantized weights */
    int32_t n_layers;
    const oct_value **in; /* computed elsewhere; no constants */
    int32_t n_in;
    const oct_value **out; /* read elsewhere, or outputs of the network */
    int32_t n_out;
    int32_t depth; /* layers with weights on the longest path */
} oct_block;

typedef struct oct_blocks {
    oct_block *item;
    int32_t n;
    int32_t *of_node; /* by node id; -1: in none */
} oct_blocks;

/*
 * A block ends where one value is all that is read of it later (after a residual block, say), if it
 * is at least size / 2 layers deep, and at 2 * size layers at the latest. Everything lives in the
 * arena.
 */
oct_status oct_blocks_find(const oct_qmap *m, int32_t size, oct_arena *a, oct_blocks *out);

#endif
