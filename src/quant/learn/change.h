/* SPDX-License-Identifier: Apache-2.0 */
/* What a block learned, as a change of the network that can be taken out again. */
#ifndef OCT_QUANT_LEARN_CHANGE_H
#define OCT_QUANT_LEARN_CHANGE_H

#include "quant/learn/learn_block.h"

/* Of a layer. */
typedef struct oct_layer_change {
    const oct_node *node;
    oct_tensor *other; /* the weights that the network does not have now; owned */
    float *shift;      /* to be added to its bias when the change goes in; NULL: nothing */
    int64_t n_shift;
    float *scale; /* of the weights that the network does not have now; NULL: the same */
    int64_t n_scale;
    const char *scale_by; /* how these came about; NULL: learned */
} oct_layer_change;

/* Of an activation's scale. */
typedef struct oct_scale_change {
    int32_t point;
    float other;    /* the one that the qmap does not have now */
    const char *by; /* how that came about; NULL: learned */
} oct_scale_change;

typedef struct oct_change {
    oct_layer_change *layers;
    int32_t n_layers;
    oct_scale_change *scales;
    int32_t n_scales;
    bool is_in;
} oct_change;

/* Nothing is changed yet. Arrays live in the arena. */
oct_status oct_change_make(oct_ctx *ctx, const oct_learned *from, oct_arena *a, oct_change *out);
void oct_change_fini(oct_change *c);

/* Puts it in, or takes it out: weights of `bound`, the graph of the qmap, shifts of biases, scales.
 */
oct_status oct_change_swap(oct_change *c, oct_qmap *m, oct_graph *bound);

#endif
