/* SPDX-License-Identifier: Apache-2.0 */
/* What the gradient rules of rows share, and the operators that only gradients need. */
#ifndef OCT_OP_GRAD_RULES_H
#define OCT_OP_GRAD_RULES_H

#include "op/op.h"

/* Operators of domain "octet": they occur in training graphs only, and no file can hold them. */
#define OCT_TRAIN_DOMAIN "octet"
#define OCT_OP(sym)      extern const oct_op oct_op_##sym;
#include "op/grad/train_ops.def"
#undef OCT_OP

const oct_op *oct_train_op_at(int i); /* row i of train_ops.def; NULL beyond its end */

/* Elements of operand i, which must be constant integers (axes, sizes): *n of them, 0 if it is not
 * given. */
oct_status oct_grad_ints(const oct_grad_args *a, int i, int64_t *out, int max, int *n);

/* --- values of gradients; sticky, as all emitting --- */

/* One node with one result, in a rule whose arguments are `a`: OCT_EMIT2(mul, x, y). */
#define OCT_EMIT1(sym, x)       oct_emit(a->b, &oct_op_##sym, x, NULL, NULL)
#define OCT_EMIT2(sym, x, y)    oct_emit(a->b, &oct_op_##sym, x, y, NULL)
#define OCT_EMIT3(sym, x, y, z) oct_emit(a->b, &oct_op_##sym, x, y, z)

/* A number of the type of operand i. */
oct_value *oct_grad_number(const oct_grad_args *a, int i, double v);

oct_value *oct_grad_cast(oct_builder *b, oct_value *v, oct_dtype to); /* Cast, if it needs one */

oct_value *oct_grad_filled(oct_builder *b, const oct_type *like, double v); /* a constant */

/* Sums over the axes along which x was broadcast: the result has x's shape. */
oct_value *oct_grad_sum_to(oct_builder *b, oct_value *dy, const oct_value *x);

oct_value *oct_grad_reshape(oct_builder *b, oct_value *v, const oct_type *like); /* Reshape */
oct_value *oct_grad_expand(oct_builder *b, oct_value *v, const oct_type *like);  /* Expand */
oct_value *oct_grad_reduce(oct_builder *b, const oct_op *op, oct_value *v, const int64_t *axes,
                           int64_t n_axes, bool keep); /* ReduceSum, ReduceMean .. over axes */
oct_value *oct_grad_part(oct_builder *b, oct_value *v, int64_t axis, int64_t begin,
                         int64_t end); /* Slice of one axis */
oct_value *oct_grad_transpose(oct_builder *b, oct_value *v, const int64_t *perm);
oct_value *oct_grad_scale(oct_builder *b, oct_value *v, double factor);

/* --- rules of whole classes of rows --- */

oct_status oct_grad_activation(const oct_grad_args *a); /* rows with .act */
oct_status oct_grad_attention(const oct_grad_args *a);
oct_status oct_grad_nll_loss(const oct_grad_args *a); /* NegativeLogLikelihoodLoss */
oct_status oct_grad_cross_entropy_loss(const oct_grad_args *a);
oct_status oct_grad_zero(const oct_grad_args *a);     /* Floor, Sign: zero almost everywhere */
oct_status oct_grad_copy(const oct_grad_args *a);     /* Identity */
oct_status oct_grad_reshaped(const oct_grad_args *a); /* operand 0 under another shape */

#endif
