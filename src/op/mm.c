/* SPDX-License-Identifier: Apache-2.0 */
/* The reference matrix product: rows of b stream through four rows of c. */
#include "op/mm.h"

#include "base/parallel.h"

/* Columns in one block: four rows of c and one of b stay in the first-level cache. */
#define COLS 512

#define T     float
#define FN(f) f##_f32
#include "op/mm_kernel.inc"
#undef T
#undef FN
#define T     double
#define FN(f) f##_f64
#include "op/mm_kernel.inc"
#undef T
#undef FN
#define T     uint64_t /* wraps, which int64_t may not */
#define FN(f) f##_u64
#include "op/mm_kernel.inc"
#undef T
#undef FN

oct_status oct_mm_run(const oct_args *a, const oct_mm *p)
{
    static const oct_range_fn fns[] = {mm_range_f32, mm_range_f64, mm_range_u64};
    const int64_t row_blocks = (p->m + 3) / 4, col_blocks = (p->n + COLS - 1) / COLS;
    oct_mm job = *p;
    int64_t macs = p->batch;

    if (!oct_mul_i64(macs, p->m, &macs) || !oct_mul_i64(macs, p->n, &macs) ||
        !oct_mul_i64(macs, p->k, &macs))
        macs = INT64_MAX;
    OCT_TRY(oct_args_spend(a, macs));
    oct_parallel_for(a->n_threads, p->batch * row_blocks * col_blocks, 1, fns[p->work], &job);
    return OCT_OK;
}

void oct_mm_transpose(const void *in, int64_t rows, int64_t cols, size_t size, void *out)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            if (size == 4)
                ((uint32_t *)out)[c * rows + r] = ((const uint32_t *)in)[r * cols + c];
            else
                ((uint64_t *)out)[c * rows + r] = ((const uint64_t *)in)[r * cols + c];
        }
}
