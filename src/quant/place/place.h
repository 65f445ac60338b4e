/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors are quantized: fusion groups, the tail, scopes, points. */
#ifndef OCT_QUANT_PLACE_PLACE_H
#define OCT_QUANT_PLACE_PLACE_H

#include <octet/quant.h>

#include "quant/qmap.h"
#include "quant/target/target.h"

/* --- groups (fusion_groups.c): nodes that a runtime computes at once; inside are no points --- */

typedef enum oct_fusion_act {
    OCT_FUSION_ACT_NONE,
    OCT_FUSION_ACT_RELU, /* and Clip */
    OCT_FUSION_ACT_SILU,
    OCT_FUSION_ACT_HARD_SWISH,
    OCT_FUSION_ACT_OTHER
} oct_fusion_act;

typedef struct oct_fusion_group {
    const oct_node *anchor, *last; /* the same for a node alone */
    oct_fusion_act act;            /* directly after the anchor */
    const oct_node *add;           /* residual Add inside, or NULL */
} oct_fusion_group;

/* by node id: index of its group; groups in graph order. Sigmoid + Mul (SiLU), HardSigmoid + Mul
 * count as one activation. */
typedef struct oct_fusion_groups {
    oct_fusion_group *item;
    int32_t n;
    int32_t *of_node;
} oct_fusion_groups;

oct_status oct_fusion_groups_find(const oct_graph *g, const oct_target *t, oct_arena *a,
                                  oct_fusion_groups *out);

/* --- the tail (tail.c) --- */

/* by node id: 1 if the node belongs to the tail (nothing with weights comes after it, except a
 * fixed projection after Softmax). text: one sentence. setting: "auto", "off" or names. */
oct_status oct_tail_find(const oct_graph *g, const char *setting, oct_arena *a, uint8_t *is_tail,
                         const char **text);

/* --- scopes (scope.c) --- */

/* by node id: why the settings keep it in float, or NULL. */
oct_status oct_scope_reasons(const oct_graph *g, const oct_quantize_options *o, oct_arena *a,
                             const char **reason);

/* "; did you mean 'a', 'b' or 'c'?": the nodes and values nearest to a name, or "". */
#define OCT_NEAR_SIZE 512
const char *oct_scope_near(const oct_graph *g, const char *name, char *text, size_t size);

/* Marks by node id what one name means: a node or value, a module path (heads.head1.reg_convs,
 * NNCF's Head[head1]/Conv2d[pred] too), a glob, or a pattern after {re}. 0: nothing. */
oct_status oct_scope_match_name(const oct_graph *g, const char *name, uint8_t *marks, int32_t *n);
oct_status oct_scope_match_pattern(const oct_graph *g, const char *pattern, uint8_t *marks,
                                   int32_t *n);

/* Applies per-layer overrides (bits, symmetric, observer) to placed points. */
oct_status oct_scope_override(oct_qmap *m, const oct_quantize_options *o);

/* --- bits (bits.c) --- */

/* Fewer bits make files smaller: layers with this share of all weights together keep 8 all the
 * same, where it matters most. Placing takes the smallest ones. What shares cost and give:
 * docs/quantization.md. First and last layers keep 8 beside it. */
double oct_weight_bits_spared(const oct_quantize_options *o);

/* A weight that is not solved yet, or will be again, gets so many bits. */
void oct_weight_bits(oct_qpoint *p, const oct_target *t, const oct_quantize_options *o, int bits);

/* --- points (place.c) --- */

/* A Conv each of whose channels is a group of its own. */
bool oct_node_is_depthwise(const oct_node *n);

/* A 1x1 Conv without strides and padding: a product of matrices. */
bool oct_node_is_pointwise(const oct_node *n);

/* Makes a qmap with all points, none solved. */
oct_status oct_place(const oct_graph *g, const oct_target *t, const oct_quantize_options *o,
                     oct_qmap **out);

/* The weighted node whose pre-activation this point holds, or whose activation it is inside of
 * (OCT_TARGET_MAY_PREACT): all points of one node may be switched off together. Else NULL. */
const oct_node *oct_place_preact(const oct_qmap *m, int32_t point);

/* Where one channel of an operand comes from. */
typedef struct oct_channel_source {
    int32_t point;   /* the one that decides; -1: from nowhere (a padded channel) */
    int32_t channel; /* of that point's value; 0 if it has one scale */
} oct_channel_source;

/*
 * Origins of the channels of operand `i` (axis 1): *n of them, 1 if they are all the same. *n is 0
 * if the operand is float, -1 if scales differ along another axis or it cannot be told.
 */
oct_status oct_place_origins(const oct_qmap *m, const oct_node *node, int32_t i, oct_arena *a,
                             int64_t *n, oct_channel_source **out);

/* mark[point] = 1 for each point that elements of v come from, through nodes that only move data;
 * none if some are float. */
oct_status oct_place_sources(const oct_qmap *m, const oct_value *v, uint8_t *mark);

/* Tells of each node that computes with elements of a point's value, in the point's form or in
 * float, behind nodes that only move data; `reader` NULL: an output of the network. A node is told
 * of for each of its operands. (readers.c) */
typedef void oct_reader_fn(void *arg, int32_t point, const oct_node *reader);
oct_status oct_place_readers(const oct_qmap *m, oct_arena *a, oct_reader_fn *each, void *arg);

/*
 * Which scale each channel of operand `i` of `node` has: scale[c], zero[c] for the value's
 * channels (axis 1; n = 1 if they are all the same). False: the operand is float.
 */
oct_status oct_place_input_scales(const oct_qmap *m, const oct_node *node, int32_t i, oct_arena *a,
                                  int64_t *n, const float **scale, const int32_t **zero,
                                  bool *is_integer);

#endif
