/* SPDX-License-Identifier: Apache-2.0 */
/* What passes share: looking at constants, replacing nodes, removing what nobody reads any more. */
#ifndef OCT_PASS_REWRITE_H
#define OCT_PASS_REWRITE_H

#include "graph/op.h"

/* --- looking --- */

/* The node that makes v, if v is read exactly once and is not an output: it may be fused away. */
oct_node *oct_inner_producer(const oct_value *v);

/* The only reader of v, if there is just one, in v's own graph, and v is not an output. */
oct_node *oct_sole_user(const oct_value *v);

/* Is v a constant of one float element? */
bool oct_const_scalar(const oct_value *v, double *out);

/* Is every element of t (any numeric type) this number, with this sign? */
bool oct_const_is_all(const oct_tensor *t, double x);

/* A small 0-D or 1-D integer constant as an array with room for max. */
bool oct_const_ints(const oct_tensor *t, int64_t *out, int max, int *n);

/* Can an operand of type c, broadcast against x, never change the shape of x? */
bool oct_keeps_shape(const oct_type *x, const oct_type *c);

/* The same static shape and element type. */
bool oct_same_static(const oct_type *a, const oct_type *b);

/* For a node with two operands, one of them a constant: its index, else -1. */
int oct_const_operand(const oct_node *n);

/* Is it a Transpose with this permutation written down? */
bool oct_node_transposes(const oct_node *n, const int64_t *perm, int rank);

/* --- changing --- */

/* v becomes a constant where it stands: it keeps its name and readers, and leaves its producer,
 * which is removed once it makes nothing any more. Takes the reference to t. */
oct_status oct_value_freeze(oct_value *v, oct_tensor *t);

/* If v is neither read nor an output, removes what makes it, and what only that used, and so on. */
oct_status oct_prune(oct_value *v);

/* Readers of n's first output read v instead, and n goes. *done is false if an output of the graph
 * is in the way. */
oct_status oct_bypass(oct_node *n, oct_value *v, bool *done);

/* A node of another operator in n's place: n's name and first output become its own, n goes.
 * *out is not inferred yet: set attributes first. */
oct_status oct_node_become(oct_node *n, const oct_op *op, oct_value *const *in, int32_t n_in,
                           oct_node **out);

/* `first` makes, from now on, what `last` made (a value further down a chain that first already
 * computes); last and all between them go. */
oct_status oct_node_take_output(oct_node *first, oct_node *last);

/* A new constant named after a node and what it is to it ("weight"). Takes the reference. */
oct_value *oct_const_for(oct_node *n, const char *role, oct_tensor *t);

/* Operand i of n becomes a new constant; the old one stays as long as somebody else reads it. */
oct_status oct_node_set_const(oct_node *n, int32_t i, const char *role, oct_tensor *t);

#endif
