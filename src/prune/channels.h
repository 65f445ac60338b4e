/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which channels of which tensors can only be removed together.
 *
 * A unit is such a set of channels: filter 7 of a convolution, its bias, its entry in every vector
 * of the BatchNormalization after it, and the seventh input of all layers that read it. Each value
 * has labels (op/channels.h) that say to which unit an element belongs; the rule of each operator
 * (channels.def) carries them from its operands to its results, unites units, and protects those
 * that it cannot let go. A unit that is protected has the reason.
 */
#ifndef OCT_PRUNE_CHANNELS_H
#define OCT_PRUNE_CHANNELS_H

#include "graph/op.h"

/* What an axis of a constant has to do with channels. */
typedef enum oct_cut_role {
    OCT_CUT_OUT,    /* filters that make them */
    OCT_CUT_IN,     /* weights that read them */
    OCT_CUT_SHIFT,  /* added to them: biases */
    OCT_CUT_NORM,   /* a norm's factors */
    OCT_CUT_FACTOR, /* any other: statistics, slopes, divisors. Masking leaves it as it is */
} oct_cut_role;

/* An axis of a constant whose slices belong to the channels of a value. */
typedef struct oct_cut {
    oct_value *value;
    int32_t axis;        /* -1: the constant has none; its consumer is told only */
    const oct_value *of; /* the value whose channels they are, along of_axis */
    int32_t of_axis;
    oct_node *node; /* the consumer */
    int32_t operand;
    oct_cut_role role;
    int64_t n;     /* slices */
    int32_t *unit; /* of each slice; -1: none. Set when everything was followed */
    bool is_again; /* another consumer said the same of this constant before */
} oct_cut;

typedef struct oct_unit {
    int32_t parent;       /* union by index: itself if it is the root */
    const char *why;      /* protected; NULL: it may go */
    const oct_node *node; /* where; NULL: an output */
} oct_unit;

typedef struct oct_channels {
    oct_ctx *ctx;
    oct_graph *g;
    oct_arena *arena;
    oct_unit *units;
    int32_t n_units;
    size_t cap_units;
    oct_tensor **labels; /* by value id; NULL: none of its elements can go */
    int32_t n_labels;
    oct_cut *cuts;
    int32_t n_cuts;
    size_t cap_cuts;
    bool is_changed; /* units were united since this was last false */
} oct_channels;

/* Follows all nodes of a graph, whose shapes were inferred. The graph must not change until the
 * result is freed. */
oct_status oct_channels_find(oct_graph *g, oct_channels **out);
void oct_channels_free(oct_channels *c); /* accepts NULL */

int32_t oct_unit_root(const oct_channels *c, int32_t unit); /* -1 stays -1 */
const oct_unit *oct_unit_get(const oct_channels *c, int32_t unit);

/* The unit of each index along the axis of a value that has channels; *axis -1: none of its
 * elements can go. In the arena. */
oct_status oct_channels_of(const oct_channels *c, const oct_value *v, int32_t *axis,
                           const int32_t **unit);

#endif
