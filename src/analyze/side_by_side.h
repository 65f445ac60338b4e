/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A float network and a quantized form of it, side by side. Names of values connect them:
 * quantizers keep them, whatever nodes they insert.
 *
 * A layer is what the float network computes in one step (a convolution with its activation). Its
 * quantized subgraph is the corresponding part of the quantized network: the nodes from values that
 * both networks have to the layer's result.
 */
#ifndef OCT_ANALYZE_SIDE_BY_SIDE_H
#define OCT_ANALYZE_SIDE_BY_SIDE_H

#include <octet/analyze.h>

#include "feed/feed.h"
#include "op/qparams.h"

typedef struct oct_pair_layer {
    const oct_node *anchor, *last; /* of the exact network; the same for a node alone */
    const oct_node **subgraph;     /* of the quantized network, in its order; none: it is float */
    int32_t n_subgraph;
    bool is_integer;  /* there are integers in the subgraph */
    bool has_weights; /* the anchor has */
    bool is_tail;
} oct_pair_layer;

/* A quantization point: a value that is quantized, with its parameters. */
typedef struct oct_pair_point {
    const oct_value *value; /* of the exact network */
    oct_codes codes;        /* borrowed from the quantized network */
} oct_pair_point;

/* Some channels of an output, of similar magnitude: errors of scores (0..1) beside boxes
 * (0..640) would not show. */
typedef struct oct_output_slice {
    const oct_value *value; /* of the exact network */
    const char *name;       /* "output0[:, 4:84]" */
    const int64_t *places;  /* indices of its elements, as ONNX counts them; NULL: all of it */
    int64_t n;
} oct_output_slice;

typedef struct oct_pair {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_graph *exact;     /* simplified, with the shapes of the data */
    oct_graph *quantized; /* Q and DQ nodes, the same inputs */
    oct_feed *feed;       /* of the first `images` images */
    int64_t images;
    oct_value **exact_of; /* by value id of `quantized`: the matching value of `exact`, or NULL */
    oct_value *
        *quantized_of;      /* by value id of `exact`: the matching value of `quantized`, or NULL */
    const char *tail_text;  /* where the tail begins, or NULL */
    oct_pair_layer *layers; /* all layers: with integers, or with weights; in order */
    int32_t n_layers;
    int32_t *layer_of; /* by node id of `exact`: index, or -1 */
    oct_pair_point *points;
    int32_t n_points;
    const oct_value **outputs; /* of `exact`: what errors are measured at */
    int32_t n_outputs;
    oct_output_slice *slices; /* the same, split by magnitude */
    int32_t n_slices;
} oct_pair;

/* Both graphs are copied. */
oct_status oct_pair_new(const oct_graph *exact, const oct_graph *quantized,
                        const oct_dataset *images, const oct_analyze_options *o, oct_pair **out);
void oct_pair_free(oct_pair *p); /* accepts NULL */

/* side_by_side_io.c: a network with integer inputs or outputs gets float ones. */
oct_status oct_pair_float_io(oct_graph *quantized, const oct_graph *exact);

/*
 * quantized_subgraph.c: copies a layer's quantized subgraph into a copy of `exact` (whose ids are
 * the same), after its nodes. made[i] corresponds to output i of the layer's last node, or is NULL.
 */
oct_status oct_pair_copy_subgraph(const oct_pair *p, const oct_pair_layer *u, oct_graph *to,
                                  oct_value **made);

/* The exact network, with only this layer quantized. */
oct_status oct_pair_splice(const oct_pair *p, const oct_pair_layer *u, oct_graph **out);

/* match_values.c: finds which values are the same in both. Fails if the two do not belong together.
 */
oct_status oct_pair_match_values(oct_pair *p);

/* split_outputs.c: splits outputs by the magnitudes of their channels for the first image. */
oct_status oct_pair_split_outputs(oct_pair *p);

/* pair_layers.c: finds layers and points. */
oct_status oct_pair_find_layers(oct_pair *p);

#endif
