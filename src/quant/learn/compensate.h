/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounding with compensation, for weights of few bits: the weights of a layer are rounded one after
 * the other, and those that are not rounded yet make up for what the others miss, as well as second
 * moments of what the layer reads say (GPTQ; the nearest plane of a lattice). No gradients are
 * needed. Before, weights are fitted by least squares to give what the float layer gives from what
 * the quantized blocks before it give.
 */
#ifndef OCT_QUANT_LEARN_COMPENSATE_H
#define OCT_QUANT_LEARN_COMPENSATE_H

#include "quant/learn/learn_block.h"

/*
 * Convolutions of the block whose weights have fewer than 8 bits, from the first to the last. The
 * network is as it was afterwards; out->n_layers 0: there are none. Arrays live in the arena.
 */
oct_status oct_compensate_block(oct_qmap *m, oct_graph *bound, const oct_block_values *values,
                                int32_t block, oct_arena *a, oct_learned *out);

/*
 * Codes of one output's weights: minimises (q - w)' h (q - w), h = l l' (l by rows, k x k), over
 * whole q in [low, high] for weights 1 .. k - 1, the last first; weight 0 takes any number. `unit`
 * is the size of a step of each weight; w is replaced by q * unit. `scratch` has k elements.
 * Returns the minimum that was found.
 */
double oct_round_in_turn(const double *l, int64_t k, const double *unit, double low, double high,
                         double *w, double *scratch);

#endif
