/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at formulas written out in small operators. */
#ifndef OCT_PASS_FORMULA_H
#define OCT_PASS_FORMULA_H

#include "graph/op.h"

#define OCT_MAX_FACTORS 4

/* A value as a product of other values and one number, through Mul, Div and Neg. */
typedef struct oct_product {
    oct_value *factor[OCT_MAX_FACTORS];
    int n;
    double scale;
} oct_product;

/* Takes a node's result apart. Nodes inside the formula have no other readers. False: too many
 * factors. */
bool oct_product_of_node(const oct_node *n, oct_product *p);

/* Likewise for a value inside a formula; v itself is the only factor if nothing can be taken apart.
 */
bool oct_product_of(oct_value *v, oct_product *p);

/* With two factors: the one that is not x; NULL if x is not among them. */
oct_value *oct_product_other(const oct_product *p, const oct_value *x);

/* Is v = x + c for a number c, with v inside the formula? Either order; Sub counts as well. */
bool oct_is_plus(const oct_value *v, double *c, oct_value **x);

/* Does |a - b| stay within what a constant written as float32 loses? */
bool oct_is_near(double a, double b);

/* Clip with constant bounds, inside the formula. */
bool oct_is_clip(const oct_value *v, double lo, double hi, oct_value **x);

/* A node of one operand in n's place. */
oct_status oct_become_unary(oct_node *n, const oct_op *op, oct_value *x, oct_node **out);

#endif
