/* SPDX-License-Identifier: Apache-2.0 */
/* What passes share: reading constants, replacing nodes, removing what is no longer used. */
#ifndef OCT_PASS_REWRITE_H
#define OCT_PASS_REWRITE_H

#include "graph/op.h"

/* --- queries --- */

/* The producer of v, if v has exactly one use and is not an output: it may be fused away. */
oct_node *oct_inner_producer(const oct_value *v);

/* The only consumer of v, if there is exactly one, in v's own graph, and v is not an output. */
oct_node *oct_sole_user(const oct_value *v);

/* Is v a constant of one float element? */
bool oct_const_scalar(const oct_value *v, double *out);

/* Is every element of t (any numeric type) this number, with this sign? */
bool oct_const_is_all(const oct_tensor *t, double x);

/* A small 0-D or 1-D integer constant as an array with room for max. */
bool oct_const_ints(const oct_tensor *t, int64_t *out, int max, int *n);

/* Is the shape of x unchanged when an operand of type c is broadcast against it? */
bool oct_keeps_shape(const oct_type *x, const oct_type *c);

/* The same static shape and element type. */
bool oct_same_static(const oct_type *a, const oct_type *b);

/* For a node with two operands, one of them a constant: its index, else -1. */
int oct_const_operand(const oct_node *n);

/* Is it a Transpose with exactly this permutation? */
bool oct_node_transposes(const oct_node *n, const int64_t *perm, int rank);

/* --- changing --- */

/* v becomes a constant in place: it keeps its name and consumers and loses its producer, which
 * is removed once it has no output left. Takes the reference to t. */
oct_status oct_value_freeze(oct_value *v, oct_tensor *t);

/* If v is neither read nor an output, removes its producer, and what only that used, and so on. */
oct_status oct_prune(oct_value *v);

/* Consumers of n's first output read v instead, and n is removed. *done is false if an output of
 * the graph prevents it. */
oct_status oct_bypass(oct_node *n, oct_value *v, bool *done);

/* Replaces n by a node of another operator: n's name and first output become its own, n is
 * removed. *out is not inferred yet: set attributes first. */
oct_status oct_node_become(oct_node *n, const oct_op *op, oct_value *const *in, int32_t n_in,
                           oct_node **out);

/* `first` produces, from now on, what `last` produced (a value further down a chain that first
 * already computes); last and all between them are removed. */
oct_status oct_node_take_output(oct_node *first, oct_node *last);

/* A new constant named after a node and its role there ("weight"). Takes the reference. */
oct_value *oct_const_for(oct_node *n, const char *role, oct_tensor *t);

/* Operand i of n becomes a new constant; the old one stays as long as it has another consumer. */
oct_status oct_node_set_const(oct_node *n, int32_t i, const char *role, oct_tensor *t);

#endif
