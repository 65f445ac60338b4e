/* SPDX-License-Identifier: Apache-2.0 */
/* How the layers of one block learn to give what the float network gives. */
#ifndef OCT_QUANT_LEARN_LEARN_BLOCK_H
#define OCT_QUANT_LEARN_LEARN_BLOCK_H

#include "quant/learn/block_values.h"
#include "quant/learn/rounding.h"

typedef struct oct_learn_settings {
    oct_rounding_kind kind;
    int32_t steps;
    double rate;
    bool scales;  /* of activations are learned, too */
    double gamma; /* LSQ: how much the distance of weights from their codes costs */
    double drop;  /* share of the inputs' elements that are read as the float network has them */
    uint64_t seed;
    int32_t n_threads;
} oct_learn_settings;

/* What was learned of a layer. */
typedef struct oct_learned_layer {
    const oct_node *node;
    float *weight; /* values that have codes */
    float *shift;  /* to be added to its bias; NULL: nothing */
    int64_t n_shift;
    float *scale; /* of its weights, one for each channel; NULL: as they were */
    int64_t n_scale;
} oct_learned_layer;

/* A point of the qmap, and its scale. */
typedef struct oct_learned_scale {
    int32_t point;
    float scale;
} oct_learned_scale;

typedef struct oct_learned {
    oct_learned_layer *layers;
    int32_t n_layers;          /* 0: the block has nothing to learn */
    oct_learned_scale *scales; /* that are others now */
    int32_t n_scales;
} oct_learned;

/*
 * Reads what the quantized blocks before give, and compares with what the float network gives.
 * `before`: the errors of the block's outputs so far. Arrays live in the arena.
 */
oct_status oct_learn_block(const oct_qmap *m, const oct_block_values *values, int32_t block,
                           const oct_block_error *before, const oct_learn_settings *o, oct_arena *a,
                           oct_learned *out);

#endif
