/* SPDX-License-Identifier: Apache-2.0 */
/* The equation of an Einsum, read against the shapes of its operands. */
#ifndef OCT_OP_EINSUM_EQUATION_H
#define OCT_OP_EINSUM_EQUATION_H

#include "op/op.h"

enum { OCT_EINSUM_EQUATION }; /* attributes of the row */

#define OCT_EINSUM_OPERANDS 8
#define OCT_EINSUM_DOT      52 /* labels A-Z, a-z, then the dims of "..." */
#define OCT_EINSUM_LABELS   (OCT_EINSUM_DOT + OCT_MAX_RANK) /* "..." is aligned at its right end */

typedef struct oct_einsum {
    int n_in;
    int rank[OCT_EINSUM_OPERANDS];
    int label[OCT_EINSUM_OPERANDS][OCT_MAX_RANK]; /* of each dim of each operand */
    int n_out, out[OCT_MAX_RANK];
    int64_t dim[OCT_EINSUM_LABELS]; /* of each label: -1 not known */
    int n_uses[OCT_EINSUM_LABELS];
    int n_dots; /* dims that "..." stands for */
} oct_einsum;

/* All operands' ranks are known. */
oct_status oct_einsum_read(const oct_node *n, const oct_type *const *in, oct_einsum *e);

oct_status oct_grad_einsum(const oct_grad_args *a); /* op/grad/einsum_grad.c */

#endif
