/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reconstruction without labels: block by block, rounding of weights, biases and scales of
 * activations are learned so that the quantized block gives what the float one gives, from what the
 * quantized blocks before it give.
 */
#ifndef OCT_QUANT_LEARN_RECONSTRUCT_H
#define OCT_QUANT_LEARN_RECONSTRUCT_H

#include <octet/quant.h>

#include "feed/feed.h"
#include "quant/qmap.h"

/* A block, and its error power / signal power on the pictures that it did not learn from. */
typedef struct oct_reconstructed {
    const char *first, *last; /* nodes */
    int32_t n_layers;         /* that learned */
    double before, after;     /* the same if nothing was learned, or it was put back */
    bool was_worse;           /* ... and was put back */
    bool was_undone;          /* put back since the whole network was worse with it */
} oct_reconstructed;

typedef struct oct_reconstruction {
    oct_reconstructed *blocks;
    int32_t n;
    int64_t pictures;
    int32_t n_changed;    /* layers whose weights are others now */
    double before, after; /* error power / signal power at the values that the network is read by */
} oct_reconstruction;

/* Is it asked for? */
bool oct_reconstruct_wanted(const oct_quantize_options *o);

/*
 * Changes weights of `bound`, the graph of the qmap, to values that have codes, and shifts biases
 * and changes scales of activations in the qmap. The error of the whole network on pictures that
 * are held out is not larger afterwards. Names and arrays live in the arena.
 */
oct_status oct_reconstruct(oct_qmap *m, oct_graph *bound, oct_feed *f,
                           const oct_quantize_options *o, oct_arena *a, oct_reconstruction *out);

#endif
