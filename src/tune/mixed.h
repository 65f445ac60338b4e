/* SPDX-License-Identifier: Apache-2.0 */
/* Mixed precision: which layers get how many bits, by what they do to the outputs and cost. */
#ifndef OCT_TUNE_MIXED_H
#define OCT_TUNE_MIXED_H

#include "base/mem.h"

/* What a layer may become, the cheapest first. */
typedef enum oct_width {
    OCT_WIDTH_W4,  /* weights of 4 bits */
    OCT_WIDTH_8,   /* all of 8 bits: what it is without a setting */
    OCT_WIDTH_A16, /* activations of 16 bits */
    OCT_WIDTH_FLOAT,
    OCT_N_WIDTHS
} oct_width;

/* A layer: what each width does to the outputs (error power / signal power) and costs. */
typedef struct oct_mixed_layer {
    const char *name;
    double error[OCT_N_WIDTHS]; /* < 0: this width is not to be had */
    double cost[OCT_N_WIDTHS];
    double weight; /* its part of all weights */
} oct_mixed_layer;

/* For each layer the width of those allowed (a bit for each) with the least error + lambda * cost;
 * of equal ones the cheapest. */
void oct_mixed_pick(const oct_mixed_layer *layers, int32_t n, unsigned allowed, double lambda,
                    oct_width *pick);

/*
 * Settings of a few such picks, the arena's, put after `begin`: with 1, 2, 4 and 8 layers of more
 * than 8 bits, and with a quarter, half and three quarters of the weights in 4.
 */
oct_status oct_mixed_settings(oct_arena *arena, const oct_mixed_layer *layers, int32_t n,
                              const char *begin, const char ***list, int32_t *n_listed);

#endif
