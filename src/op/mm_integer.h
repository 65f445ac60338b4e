/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of 8-bit operands in int32, shared by all operators that have one inside. */
#ifndef OCT_OP_MM_INTEGER_H
#define OCT_OP_MM_INTEGER_H

#include "op/op.h"

/* NumPy's matrix product; 1-D operands as there. rank -1: not known. */
oct_status oct_mm_integer_shape(const oct_node *n, const oct_type *a, const oct_type *b,
                                oct_dtype dtype, oct_type *out);

typedef struct oct_mm_integer {
    int64_t batch, m, n, k;
    int32_t *c; /* [batch x m x n], scratch unless given */
} oct_mm_integer;

/*
 * c = (a - a_zero) * (b - b_zero). a_zero has one number for each row of a (m), b_zero one for each
 * column of b (n). Set p->c before to have the result there; types are static and were checked.
 */
oct_status oct_mm_integer_run(const oct_args *args, const oct_tensor *a, const int32_t *a_zero,
                              const oct_tensor *b, const int32_t *b_zero, bool trans_a,
                              bool trans_b, oct_mm_integer *p);

/* Sizes only. */
void oct_mm_integer_sizes(const oct_type *a, const oct_type *b, bool trans_a, bool trans_b,
                          oct_mm_integer *p);

#endif
