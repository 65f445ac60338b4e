/* SPDX-License-Identifier: Apache-2.0 */
/* Anchor points: one for each cell of each feature map, row by row, level after level. */
#ifndef OCT_LOSS_ANCHORS_H
#define OCT_LOSS_ANCHORS_H

#include "base/status.h"

enum { OCT_LOSS_MAX_LEVELS = 8 };

/* The feature maps that anchors come from. */
typedef struct oct_anchor_levels {
    int32_t n;
    int64_t height[OCT_LOSS_MAX_LEVELS], width[OCT_LOSS_MAX_LEVELS]; /* in cells */
    double stride[OCT_LOSS_MAX_LEVELS];                              /* in pixels */
} oct_anchor_levels;

int64_t oct_anchors_of_level(const oct_anchor_levels *l, int32_t level);
int64_t oct_anchors_count(const oct_anchor_levels *l);

/* point [n][2] gets (column + offset) * stride, (row + offset) * stride in pixels; stride [n]. The
 * offset is .5 for most heads, 0 for NanoDet-Plus. */
void oct_anchors_fill(const oct_anchor_levels *l, double offset, double *point, double *stride);

/*
 * Levels from the attributes of a loss's operator: strides [n], and height and width of each level,
 * [2 n]. False: they do not fit each other, are not positive or too large.
 */
bool oct_anchor_levels_read(const int64_t *strides, int64_t n, const int64_t *sizes,
                            int64_t n_sizes, oct_anchor_levels *out);

#endif
