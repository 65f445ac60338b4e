/* SPDX-License-Identifier: Apache-2.0 */
/* Matching formulas written out in small operators. */
#ifndef OCT_PASS_FIND_FORMULA_H
#define OCT_PASS_FIND_FORMULA_H

#include "graph/op.h"

#define OCT_MAX_FACTORS 4

/* A value as a product of other values and one scalar, through Mul, Div and Neg. */
typedef struct oct_product {
    oct_value *factor[OCT_MAX_FACTORS];
    int n;
    double scale;
} oct_product;

/* Splits a node's result into factors. Nodes inside the formula have no other consumers. False:
 * too many factors. */
bool oct_product_of_node(const oct_node *n, oct_product *p);

/* Likewise for a value inside a formula; v itself is the only factor if it is no product. */
bool oct_product_of(oct_value *v, oct_product *p);

/* With two factors: the one that is not x; NULL if x is not among them. */
oct_value *oct_product_other(const oct_product *p, const oct_value *x);

/* Is v = x + c for a scalar c, with v inside the formula? Either order; Sub counts as well. */
bool oct_is_plus(const oct_value *v, double *c, oct_value **x);

/* Is |a - b| within the rounding of a constant written as float32? */
bool oct_is_near(double a, double b);

/* Clip with constant bounds, inside the formula. */
bool oct_is_clip(const oct_value *v, double lo, double hi, oct_value **x);

/* Replaces n by a node of one operand. */
oct_status oct_become_unary(oct_node *n, const oct_op *op, oct_value *x, oct_node **out);

#endif
