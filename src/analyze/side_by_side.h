/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A float network and a quantized form of it, side by side. Names of values tie them together: who
 * quantizes keeps them, whatever nodes are put in between.
 *
 * A unit is what the float network computes at once (a convolution with its activation), where the
 * quantized one has integers on the way from the values before it. Its *cone* is what the quantized
 * network has there: nodes from values that both networks have to the value the unit makes.
 */
#ifndef OCT_ANALYZE_SIDE_BY_SIDE_H
#define OCT_ANALYZE_SIDE_BY_SIDE_H

#include <octet/analyze.h>

#include "feed/feed.h"
#include "op/qparams.h"

typedef struct oct_pair_layer {
    const oct_node *anchor, *last; /* of the exact network; the same for a node alone */
    const oct_node **cone;         /* of the quantized network, in its order; none: it is float */
    int32_t n_cone;
    bool is_integer;  /* integers are in the cone */
    bool has_weights; /* the anchor has */
    bool is_tail;
} oct_pair_layer;

/* A place where the quantized network has codes, under one set of scales. */
typedef struct oct_site {
    const oct_value *value; /* of the exact network */
    oct_codes codes;        /* borrowed from the quantized network */
} oct_site;

/* Some channels of an output, of like magnitude: errors of scores (0..1) beside boxes (0..640)
 * would not show. */
typedef struct oct_output_slice {
    const oct_value *value; /* of the exact network */
    const char *name;       /* "output0[:, 4:84]" */
    const int64_t *places;  /* its numbers, in the order of ONNX; NULL: all of it */
    int64_t n;
} oct_output_slice;

typedef struct oct_pair {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_graph *exact;     /* simplified, with the shapes of the data */
    oct_graph *quantized; /* Q and DQ nodes, the same inputs */
    oct_feed *feed;       /* of the first `images` pictures */
    int64_t images;
    oct_value **twin;      /* by value id of `quantized`: the same value of `exact`, or NULL */
    oct_value **twin_of;   /* by value id of `exact`: the other way */
    const char *tail_text; /* where the tail begins, or NULL */
    oct_pair_layer *units; /* all layers: with integers, or with weights; in order */
    int32_t n_units;
    int32_t *unit_of; /* by node id of `exact`: index, or -1 */
    oct_site *sites;
    int32_t n_sites;
    const oct_value **outputs; /* of `exact`: what errors are measured at */
    int32_t n_outputs;
    oct_output_slice *outlets; /* the same, split up */
    int32_t n_outlets;
} oct_pair;

/* Both graphs are copied. */
oct_status oct_pair_new(const oct_graph *exact, const oct_graph *quantized,
                        const oct_dataset *images, const oct_analyze_options *o, oct_pair **out);
void oct_pair_free(oct_pair *p); /* accepts NULL */

/* side_by_side_io.c: a network fed with codes, or giving codes, is fed with numbers, and gives
 * them. */
oct_status oct_pair_float_io(oct_graph *quantized, const oct_graph *exact);

/*
 * quantized_subgraph.c: what the quantized network has for a unit, into a copy of `exact` (whose
 * ids are the same), behind its nodes. made[i] is what stands for output i of the unit's last node,
 * or NULL.
 */
oct_status oct_pair_copy_subgraph(const oct_pair *p, const oct_pair_layer *u, oct_graph *to,
                                  oct_value **made);

/* The exact network, with only this unit quantized. */
oct_status oct_pair_splice(const oct_pair *p, const oct_pair_layer *u, oct_graph **out);

/* match_values.c: finds which values are the same in both. Fails if the two do not belong together.
 */
oct_status oct_pair_match_values(oct_pair *p);

/* split_outputs.c: splits outputs, by what they are for the first picture. */
oct_status oct_pair_split_outputs(oct_pair *p);

/* pair_layers.c: finds units and sites. */
oct_status oct_pair_find_layers(oct_pair *p);

#endif
