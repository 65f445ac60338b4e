/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation over trailing dims, written out in small operators. */
#ifndef OCT_PASS_FIND_FIND_NORM_H
#define OCT_PASS_FIND_FIND_NORM_H

#include "graph/op.h"

/* d / sqrt(mean(d * d) + eps), perhaps times a scale, perhaps plus a bias. */
typedef struct oct_norm {
    oct_value *d;  /* what is divided by its root mean square */
    int n_readers; /* operands of the formula that are d */
    int n_axes;    /* the mean is over so many trailing dims */
    double eps;
    oct_node *last;      /* ends the formula */
    oct_node *mul, *add; /* that put these in; NULL: none */
    oct_value *scale, *bias;
} oct_norm;

/* Does n divide by the root mean square? last is n, nothing follows yet. */
bool oct_norm_match(oct_node *n, oct_norm *out);

/* Adds the Mul and (if asked for) the Add that follow to the formula. */
void oct_norm_extend(oct_norm *m, bool wants_bias);

/* The first node from n on that is no part of the formula. */
oct_node *oct_norm_skip(const oct_norm *m, oct_node *n);

/* Is v the mean of x over the last n_axes dims, kept as ones, inside the formula? */
bool oct_is_trailing_mean(const oct_value *v, const oct_value *x, int n_axes);

/*
 * Does n divide x - mean(x) by its deviation, where the variance is mean(x * x) - mean(x)^2? As
 * Flax and Keras write it: perhaps held above 0, the mean as a sum times 1 / N, and the scale
 * perhaps put into 1 / deviation (then mul is set).
 */
bool oct_moments_match(oct_node *n, oct_norm *out, oct_value **x);

/* --- parts of both --- */

/* Dims that a ReduceMean or ReduceSum goes over, if they are the last ones; else 0. */
int oct_trailing_axes(const oct_node *n);

/* The u of v = sqrt(u), 1 / sqrt(u) (`inverse`), or u to the power of one of these. */
oct_value *oct_under_root(const oct_value *v, bool inverse);

/* v = d * d ? *n_readers: how often it reads d. */
bool oct_is_square(const oct_value *v, const oct_value *d, int *n_readers);

/* Has v the shape of the last n_axes dims of x? A constant may have ones in front of them. */
bool oct_has_trailing_shape(const oct_value *v, const oct_type *x, int n_axes);

/* The formula becomes one node: op(x, scale, bias) with axis and epsilon. */
oct_status oct_norm_replace(const oct_norm *m, const oct_op *op, oct_value *x);

#endif
