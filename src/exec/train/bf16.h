/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of pixels that are float32 or bfloat16 in memory, and float32 for the loops on them. */
#ifndef OCT_EXEC_TRAIN_BF16_H
#define OCT_EXEC_TRAIN_BF16_H

#include "exec/kernel.h"
#include "exec/simd/simd_bf16.h"

typedef struct oct_rows {
    const oct_bf16_simd *bf16; /* NULL: float32 */
    int64_t pitch;             /* elements from row to row */
} oct_rows;

static inline bool oct_slot_is_bf16(const oct_plan *p, int32_t slot)
{
    return slot >= 0 && p->slots[slot].type.dtype == OCT_DTYPE_BF16;
}

static inline const oct_bf16_simd *oct_slot_bf16(const oct_plan *p, int32_t slot)
{
    return oct_slot_is_bf16(p, slot) ? oct_bf16_simd_get() : NULL;
}

/* Rows `first` on of `data`: in place, or widened into `tile`, which has n * lanes floats. */
const float *oct_rows_read(oct_rows r, const void *data, int64_t first, int64_t n, int64_t lanes,
                           float *tile, int64_t *pitch);

/* Where the rows are to be written: in place, or into `tile`, which oct_rows_write() narrows. */
float *oct_rows_begin(oct_rows r, void *data, int64_t first, int64_t lanes, float *tile,
                      int64_t *pitch);
void oct_rows_write(oct_rows r, void *data, int64_t first, int64_t n, int64_t lanes,
                    const float *tile);

#endif
