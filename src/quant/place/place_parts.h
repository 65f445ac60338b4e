/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of placement share. */
#ifndef OCT_QUANT_PLACE_PLACE_PARTS_H
#define OCT_QUANT_PLACE_PLACE_PARTS_H

#include "quant/place/place.h"

/* Why a node stays float; text NULL: it does not. */
typedef struct oct_float_cause {
    oct_float_reason why;
    const char *text;
} oct_float_cause;

typedef struct oct_placer {
    oct_qmap *m;
    const oct_graph *g;
    const oct_target *t;
    oct_arena *a; /* for the time of placing */
    oct_fusion_groups groups;
    uint8_t *is_integer;      /* by group */
    uint8_t *is_wanted;       /* by value id: integers read it, directly or moved */
    uint8_t *is_read_float;   /* by value id: others read it as well */
    uint8_t *is_divisor;      /* by value id: something is divided by it, or it is under a root */
    uint8_t *is_requantized;  /* by node id: a Concat with a scale of its own; NULL: none is */
    const char *not_listed;   /* why operators that the target does not have are float */
    bool gives_codes;         /* outputs of the network are integers */
    oct_float_cause *ignored; /* by node id: nodes to keep float before anything else is asked */
    uint8_t *mark;            /* by value id: for searches */
    const oct_value **todo;
} oct_placer;

/* What operand i is to a node that computes: ACT, WEIGHT, BIAS or NONE. */
oct_qrole oct_operand_role(const oct_node *n, int32_t i);

/* Does this node pass codes on as they are? Not a Concat that has a scale of its own. */
bool oct_placer_moves(const oct_placer *p, const oct_node *n);

/* What v is moved from, up to where several values come together. */
const oct_value *oct_placer_origin(const oct_placer *p, const oct_value *v);

/* Is operand i of n an activation that n's group reads from outside, as integers? */
bool oct_placer_reads(const oct_placer *p, const oct_node *n, int32_t i);

/* All points, once it is decided what is computed in integers (activation_points.c,
 * constant_points.c). */
oct_status oct_placer_activations(oct_placer *p);
oct_status oct_placer_weights(oct_placer *p);

/* bits.c: weight_bits, activation_bits and overflow_fix. Layers that read the network's input, and
 * those no layer follows, keep weights of 8 bits, and so do the smallest ones (a fifth of all
 * weights) until quant/bits/ knows better; overrides come later and may change that. */
oct_status oct_placer_bits(oct_placer *p, const oct_quantize_options *o);

#endif
