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
    uint8_t *lazy;        /* by node id: has only constant operands; computed if a step reads it
                           * in float */
    uint8_t *is_read;     /* by value id: read by a step */
} oct_fuser;

/* The only consumer of v, if v may be fused into a step; else NULL. */
const oct_node *oct_fuser_only_user(const oct_fuser *f, const oct_value *v);

/* Appends u to the group; false if the group is full. */
bool oct_group_add(oct_group *g, const oct_node *u);

/* Fuses the activations and the residual Add that follow the anchor. */
void oct_group_grow(const oct_fuser *f, oct_group *g);

/* The value's slot in its default layout, made on first use. */
oct_status oct_fuser_slot(oct_plan *p, const oct_value *v, int32_t *out);

const char *oct_group_label(oct_plan *p, const oct_group *g);

/* fuse_int8.c: an integer step for the node and what follows it; *g stays NULL if there is none. */
oct_status oct_fuser_integer(oct_fuser *f, const oct_node *n, oct_group **g);

/* fuse_dynamic_quant.c: the same for integer products whose scales are known at run time only. */
oct_status oct_fuser_dynamic(oct_fuser *f, const oct_node *n, oct_group **g);

/* constants.c: marks nodes whose operands are all constants or dequantized constants, and
 * computes those that a step reads in float. */
bool oct_node_is_lazy(const oct_fuser *f, const oct_node *n);
bool oct_fuser_is_constant(const oct_fuser *f, const oct_value *v); /* or will be */
oct_status oct_plan_compute_constants(oct_fuser *f);

#endif
