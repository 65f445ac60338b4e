/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of values while a network runs: extremes, sums and counts by column. */
#ifndef OCT_EXEC_SIMD_SIMD_STATS_H
#define OCT_EXEC_SIMD_SIMD_STATS_H

#include <stdint.h>

enum {
    OCT_STATS_LANES = 64,     /* columns processed together */
    OCT_STATS_ROWS = 1 << 24, /* rows after which float counts must be flushed, while they are
                               * still exact */
};

/* Statistics of each column. */
typedef struct oct_column_stats {
    float low[OCT_STATS_LANES], high[OCT_STATS_LANES];
    float bad[OCT_STATS_LANES]; /* stays 0 while all are finite: x - x is NaN for NaN and Inf */
    float zeros[OCT_STATS_LANES];
} oct_column_stats;

typedef struct oct_stats_simd {
    /* `rows` rows of `width` (at most 64) elements, `pitch` apart; lanes from width on are left
     * alone. NaN does not change low and high. */
    void (*scan)(oct_column_stats *l, const float *x, int64_t rows, int64_t pitch, int width);

    /* sum[j] += all of column j: runs of 16 rows in float, their sums in double. Any width. */
    void (*sum)(double *sum, const float *x, int64_t rows, int64_t pitch, int64_t width);

    /* count[floor(x * inv[j]) - base[j]] += by for each element of column j; at most 64 columns. */
    void (*count)(uint64_t *count, const float *x, int64_t rows, int64_t pitch, int width,
                  const float *inv, const int32_t *base, uint64_t by);
} oct_stats_simd;

#endif
