/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearConv and similar operators, and the float operator between DQ and Q that each stands for.
 */
#ifndef OCT_PASS_INTEGER_QLINEAR_H
#define OCT_PASS_INTEGER_QLINEAR_H

#include "pass/integer/qdq.h"

enum { OCT_QLINEAR_MAX_DATA = 2 };

/* Which axis of the second operand may have a scale for each index. */
typedef enum oct_qlinear_axis {
    OCT_QLINEAR_NO_AXIS, /* one scale for all */
    OCT_QLINEAR_FIRST,
    OCT_QLINEAR_COLUMNS /* of a matrix, which may be transposed by the attribute transB */
} oct_qlinear_axis;

/* Where an operator keeps its operands. Scale and zero point follow each of the data operands. */
typedef struct oct_qlinear {
    const oct_op *op, *plain;
    int32_t n_data, data[OCT_QLINEAR_MAX_DATA];
    int32_t bias;        /* int32, its scale is the product of the operands'; -1: none */
    int32_t scale, zero; /* of the result */
    oct_qlinear_axis axis;
    bool in_plans; /* integer plans expand it; the others run as they are */
} oct_qlinear;

/* The row of a node's operator, or NULL. QLinearConcat, which takes any number of operands, has
 * none: see oct_qlinear_expand_concat(). */
const oct_qlinear *oct_qlinear_of(const oct_node *n);

/* QLinear* of either domain, also those that octet has no row for, and QGemm. */
bool oct_node_is_qlinear(const oct_node *n);

/*
 * Replaces n by DequantizeLinear on each operand, the float operator under the name of n, and
 * QuantizeLinear to its old result. Scales must be constants.
 */
oct_status oct_qlinear_expand(oct_node *n, const oct_qlinear *row, oct_node **plain);

/* The same of a QLinearConcat. All its operands must be there, and its scales constants. */
oct_status oct_qlinear_expand_concat(oct_node *n, oct_node **plain);

/* All of a graph that have constant scales, also those that plans run as they are. */
oct_status oct_qlinear_expand_all(oct_graph *g, int *n_changed);

/*
 * The last part of it, for operators without a row: `plain`, a node before n, takes over the
 * attributes that both operators have, and QuantizeLinear makes the old result of what it makes.
 */
oct_status oct_qlinear_replace(oct_node *n, oct_node *plain, const oct_qdq *result);

#endif
