/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of raising share: the graph that loses its Q and DQ nodes, and the points. */
#ifndef OCT_QUANT_RAISE_RAISE_PARTS_H
#define OCT_QUANT_RAISE_RAISE_PARTS_H

#include "op/qparams.h"
#include "quant/lower/lower.h"

/* A point to be made: the map is built when the graph has its final form. */
typedef struct oct_raised_point {
    oct_value *value;
    oct_node *node; /* NULL: for all consumers */
    int32_t operand;
    oct_qrole role;
    oct_qstate state;
    int axis;
    oct_dtype dtype;
    int64_t n;
    float *scale;
    int32_t *zero;
    oct_tensor *unfold; /* what the weight was multiplied with, or NULL; owned */
} oct_raised_point;

typedef struct oct_raising {
    oct_ctx *ctx;
    oct_graph *g;
    oct_arena *arena;
    oct_raised_point *points;
    int32_t n_points;
    size_t cap_points;
    oct_map names;
    int32_t *of_value; /* by value id: index of its point + 1 */
} oct_raising;

/* A name for the values of codes of this name: without "_quantized", or with "_float". */
const char *oct_raise_name(oct_raising *r, const char *codes);

/* raise_operators.c: QLinearConv and others become DQ, the float operator, Q. */
oct_status oct_raise_operators(oct_raising *r);

/* raise_weights.c: DQ of constants; constants that were folded. */
oct_status oct_raise_weights(oct_raising *r);

/* How the consumers of v use it: all as weights, all as biases, or otherwise. */
oct_qrole oct_raise_role(const oct_value *v);

/* Records a point with the parameters of a Q or DQ node. */
oct_status oct_raise_point(oct_raising *r, const oct_codes *c, const oct_raised_point *p);

#endif
