/* SPDX-License-Identifier: Apache-2.0 */
/* Single weights that become zero: which, and how many in which epoch. */
#ifndef OCT_PRUNE_SPARSITY_H
#define OCT_PRUNE_SPARSITY_H

#include <octet/prune.h>

#include "graph/op.h"

/* The weights of one layer. */
typedef struct oct_sparse_layer {
    oct_value *value; /* a constant of the graph */
    int32_t in_axis;  /* of its input channels; -1: none */
    int64_t len;
    uint8_t *keep; /* by element */
} oct_sparse_layer;

typedef struct oct_sparse {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_sparse_layer *layers;
    int32_t n;
    int32_t n_skipped; /* layers with weights that do not take part */
    int64_t len;       /* of all layers */
    bool is_local;
    int32_t zeros_of, of; /* "2:4"; 0: a share */
} oct_sparse;

/* Are they sensible? `level`: what a share says; 0: others say it. */
oct_status oct_sparsity_check(oct_ctx *ctx, const oct_sparsity_options *o, bool is_trained,
                              double *level);

/* The layers of a graph that the options are about. */
oct_status oct_sparse_find(oct_graph *g, const oct_sparsity_options *o, oct_sparse **out);
void oct_sparse_free(oct_sparse *s); /* accepts NULL */

/* Chooses by the constants as they are: the share `level` (or n of m), or what is zero already. */
oct_status oct_sparse_choose(oct_sparse *s, double level);
void oct_sparse_choose_zeros(oct_sparse *s);
void oct_sparse_choose_none(oct_sparse *s);

/* Sets to zero what was not kept. */
void oct_sparse_apply(const oct_sparse_layer *l, float *weights);

/* The share in epoch `epoch`, from 0. */
double oct_sparsity_at(const oct_sparsity_options *o, double level, int32_t epoch);

/* What the metadata of a file say: weights of layers that are zero, counted. */
oct_status oct_sparse_tell(oct_graph *g, oct_sparsity_result *result);

#define OCT_SPARSITY_KEY "octet.sparsity"

#endif
