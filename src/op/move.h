/* SPDX-License-Identifier: Apache-2.0 */
/* Moving elements without interpreting them: strided copies, and the small readers they need. */
#ifndef OCT_OP_MOVE_H
#define OCT_OP_MOVE_H

#include "op/op.h"

#define OCT_MOVE_RANK (2 * OCT_MAX_RANK) /* Tile needs two loops for each axis */

/* Loops from the outermost in, strides in elements (any sign, 0 repeats). */
typedef struct oct_move {
    int rank;
    bool empty;
    int64_t n[OCT_MOVE_RANK], src[OCT_MOVE_RANK], dst[OCT_MOVE_RANK];
} oct_move;

void oct_move_init(oct_move *m);

/* Adds an inner loop of n rounds; loops that make one are merged. */
void oct_move_add(oct_move *m, int64_t n, int64_t src, int64_t dst);

/*
 * Copies; `src_at` and `dst_at` are the elements the loops start from. Packed types go element by
 * element, everything else by its size. The caller has checked all bounds.
 */
void oct_move_run(const oct_move *m, oct_dtype t, const void *src, int64_t src_at, void *dst,
                  int64_t dst_at, int n_threads);

/*
 * y[i, j, ..] = x[map[0][i], map[1][j], ..] for dense tensors of one rank; map[d] NULL takes the
 * axis as it is, a negative entry leaves the result as it was.
 */
void oct_move_mapped(const oct_type *x, const void *src, const oct_type *y, void *dst,
                     const int64_t *const *map, int n_threads);

/* n elements in a row, and n copies of one element. */
void oct_move_copy(oct_dtype t, const void *src, int64_t src_at, void *dst, int64_t dst_at,
                   int64_t n);
void oct_move_fill(oct_dtype t, const void *src, int64_t src_at, void *dst, int64_t n,
                   int n_threads);

/* Row-major strides of a static type. */
void oct_strides(const oct_type *t, int64_t stride[OCT_MAX_RANK]);

/* Strings own their text elsewhere, so their elements cannot be moved: fails for them. */
oct_status oct_infer_movable(const oct_infer *q, int i);

/* A small integer tensor as an array with room for max. */
oct_status oct_read_ints(const oct_node *n, const oct_tensor *t, int64_t *out, int max, int *count);

/*
 * The first element of a tensor that may be absent: then `fallback`. A tensor without elements
 * counts as absent.
 */
int64_t oct_read_int(const oct_tensor *t, int64_t fallback);

/*
 * All elements of an index tensor, each in [-limit, limit), brought into [0, limit): scratch
 * memory. Fails naming the node.
 */
oct_status oct_read_indices(const oct_args *a, const oct_tensor *t, int64_t limit,
                            const int64_t **out);

/* Fails unless output i has these dims: declared shapes may come from an inconsistent file. */
oct_status oct_args_expect(const oct_args *a, int i, int32_t rank, const int64_t *dim);

#endif
