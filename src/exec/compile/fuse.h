/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of nodes that become one step: what fuse.c (float) and fuse_int8.c (codes) share. */
#ifndef OCT_EXEC_COMPILE_FUSE_H
#define OCT_EXEC_COMPILE_FUSE_H

#include "exec/kernel.h"

#define OCT_GROUP_NODES 16

typedef struct oct_group {
    const oct_node *anchor, *last;
    const oct_node *inner[OCT_GROUP_NODES]; /* all but the last: their values are never stored */
    int n_inner;
    oct_fuse fuse;
    const oct_value *residual;
    oct_step *step; /* on codes: made already; NULL: in float */
} oct_group;

typedef struct oct_fuser {
    oct_plan *p;
    uint8_t *taken;       /* by node id: inside a step of another node */
    oct_group **group_of; /* by node id: the step this node is the last of */
    uint8_t *lazy;        /* by node id: of constants only, computed if somebody reads it */
    uint8_t *wanted;      /* by value id: read by a step */
} oct_fuser;

/* The only reader of v, if v may disappear into a step; else NULL. */
const oct_node *oct_fuser_only_user(const oct_fuser *f, const oct_value *v);

/* Adds u to the group, behind what is there; false if the group is full. */
bool oct_group_add(oct_group *g, const oct_node *u);

/* Takes in the activations and the sum behind the anchor. */
void oct_group_grow(const oct_fuser *f, oct_group *g);

/* The value's slot in its own layout, made when first met. */
oct_status oct_fuser_slot(oct_plan *p, const oct_value *v, int32_t *out);

const char *oct_group_label(oct_plan *p, const oct_group *g);

/* fuse_int8.c: a step on codes for the node and what follows it; *g stays NULL if there is none. */
oct_status oct_fuser_integer(oct_fuser *f, const oct_node *n, oct_group **g);

/* fuse_dynamic_quant.c: the same for products of integers whose scales are known at run time. */
oct_status oct_fuser_dynamic(oct_fuser *f, const oct_node *n, oct_group **g);

/* constants.c: marks nodes whose operands are all constant behind a DequantizeLinear, and computes
 * those that a step reads in float after all. */
bool oct_node_is_lazy(const oct_fuser *f, const oct_node *n);
bool oct_fuser_is_constant(const oct_fuser *f, const oct_value *v); /* or will be */
oct_status oct_plan_freeze(oct_fuser *f);

#endif
