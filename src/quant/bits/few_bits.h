/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layers keep weights of 8 bits where fewer were asked for. Placing lets the smallest layers
 * keep them; here it is measured, on a few calibration pictures, what few bits do to the network in
 * each layer alone, and those with the most noise for their number of weights keep 8.
 */
#ifndef OCT_QUANT_BITS_FEW_BITS_H
#define OCT_QUANT_BITS_FEW_BITS_H

#include "feed/feed.h"
#include "quant/place/place.h"

/*
 * Points that are marked `may_have_8_bits`, solved already; they are solved again with the bits
 * that were chosen. `bound` is the graph of the qmap.
 */
oct_status oct_few_bits_choose(oct_qmap *m, const oct_graph *bound, const oct_target *t,
                               const oct_quantize_options *o, oct_feed *f);

/* A layer with few bits in place of 8. */
typedef struct oct_few_bits_layer {
    double noise;   /* that they make */
    double weights; /* as a share of all */
    bool keeps;     /* result: 8 bits */
} oct_few_bits_layer;

/* Those with the most noise for their weights keep 8 bits, as many as `share` has room for. */
oct_status oct_few_bits_pick(oct_few_bits_layer *layers, int32_t n, double share, oct_arena *a);

#endif
