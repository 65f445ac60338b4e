/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How reference kernels read elements: they compute in one of three types, and operands of any
 * other element type are converted on the way in and rounded once on the way out.
 */
#ifndef OCT_OP_WORK_H
#define OCT_OP_WORK_H

#include "op/op.h"

typedef enum oct_work {
    OCT_WORK_F32, /* float32 and all narrower floats */
    OCT_WORK_F64,
    OCT_WORK_I64, /* all integers and bool; sums and products wrap */
} oct_work;

oct_work oct_work_of(oct_dtype t);
oct_dtype oct_work_dtype(oct_work w);

/* Operand i as a dense array: its own bytes, or a converted copy. NULL if it is absent. */
oct_status oct_work_in(const oct_args *a, int i, oct_work w, const void **out);

/* The same for floats: typed, so a kernel reads well. */
oct_status oct_work_in_f32(const oct_args *a, int i, const float **out);
oct_status oct_work_in_f64(const oct_args *a, int i, const double **out);
oct_status oct_work_in_i64(const oct_args *a, int i, const int64_t **out);

/* Where to put output i: its own bytes, or a zeroed copy. NULL if it is not wanted. */
oct_status oct_work_out(const oct_args *a, int i, oct_work w, void **out);

/* Rounds what oct_work_out() gave into output i. Accepts NULL. */
void oct_work_done(const oct_args *a, int i, oct_work w, const void *from);

/* What a shape function would see of these operands; q->out is all unknown. */
oct_status oct_args_infer(const oct_args *a, oct_infer *q);

/*
 * Runs the row's shape function on the operands as they really are and compares the outputs with
 * what it gives: a file may have declared shapes that hid a misfit from inference.
 */
oct_status oct_args_check(const oct_args *a);

/* Operand i spread to this static shape by broadcasting; the operand must fit, rank included. */
oct_status oct_work_expand(const oct_args *a, int i, oct_work w, const oct_type *to,
                           const void **out);

/* The next index in [from, to), last axis fastest; false after the last one. */
static inline bool oct_next_index(int n, int64_t *index, const int64_t *from, const int64_t *to)
{
    for (int d = n - 1; d >= 0; d--) {
        if (++index[d] < to[d]) return true;
        index[d] = from[d];
    }
    return false;
}

#endif
