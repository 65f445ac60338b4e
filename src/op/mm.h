/* SPDX-License-Identifier: Apache-2.0 */
/* The reference matrix product that MatMul, Gemm, Einsum, Attention and recurrent cells share. */
#ifndef OCT_OP_MM_H
#define OCT_OP_MM_H

#include "op/work.h"

/* c[m x n] = a[m x k] * b[k x n], many times over. Strides count elements. */
typedef struct oct_mm {
    oct_work work;
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t a_row, a_col; /* of a: any strides */
    int64_t b_row, c_row; /* of b and c: their rows are dense */
    int64_t batch;        /* at least 0 */
    /* First element of product i in a, b, c: NULL means 0, 0 and i * m * c_row. */
    const int64_t *a_at, *b_at, *c_at;
} oct_mm;

/* Same bits for any number of threads. Fails if it is too much work. */
oct_status oct_mm_run(const oct_args *a, const oct_mm *p);

/* out[cols x rows] = in[rows x cols]; elements of 4 or 8 bytes. */
void oct_mm_transpose(const void *in, int64_t rows, int64_t cols, size_t size, void *out);

#endif
