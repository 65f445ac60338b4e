/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of the elements of one value, and of the error of its codes. */
#ifndef OCT_ANALYZE_VALUE_STATS_H
#define OCT_ANALYZE_VALUE_STATS_H

#include "analyze/analysis.h"
#include "op/qparams.h"
#include "stat/distance.h"
#include "stat/histogram.h"

/* Quantization parameters of a contiguous row, if it has any. */
typedef struct oct_grid {
    int64_t n;           /* one for each channel, or one */
    float *scale, *zero; /* n */
    float low, high;     /* codes */
} oct_grid;

oct_status oct_grid_make(oct_arena *a, const oct_codes *c, oct_grid *g);

static inline int32_t oct_grid_levels(const oct_grid *g)
{
    return (int32_t)(g->high - g->low) + 1;
}

#define OCT_VALUE_STATS_POWERS 4

/* Accumulated statistics of a value: mergeable, of the same size for any number of images. */
typedef struct oct_value_stats {
    const oct_grid *grid;
    int64_t n_channels;
    oct_histogram histogram;
    oct_scan *channels;                    /* of each channel, all pictures */
    oct_sum power[OCT_VALUE_STATS_POWERS]; /* x, x^2, x^3, x^4 */
    oct_sum error;                         /* of rounding and clipping */
    int64_t n, clipped;
    uint8_t *used; /* by code, from the lowest */
    bool has_bad;  /* something was not finite */
} oct_value_stats;

/* The grid must live as long. */
oct_status oct_value_stats_init(oct_arena *a, const oct_grid *g, int64_t n_channels,
                                oct_value_stats *t);

/* scratch: for each channel. */
void oct_value_stats_see(oct_value_stats *t, const oct_value_view *s, oct_scan *scratch);
void oct_value_stats_merge(oct_value_stats *t, const oct_value_stats *other);

/* point_stats.c: derived figures, except names and types; arrays live in arena a. */
oct_status oct_value_stats_of_point(const oct_value_stats *t, oct_arena *scratch, oct_arena *a,
                                    oct_analyzed_point *p);

#endif
