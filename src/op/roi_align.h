/* SPDX-License-Identifier: Apache-2.0 */
/* Which pixels RoiAlign and its gradient read for a region. */
#ifndef OCT_OP_ROI_ALIGN_H
#define OCT_OP_ROI_ALIGN_H

#include "op/op.h"

/* A sample position along one axis: neighbours and the weight of the high one. */
typedef struct oct_roi_sample {
    int64_t low, high;
    float frac;
    bool inside;
} oct_roi_sample;

/* A region: for each cell, samples_y x samples_x positions. In scratch memory. */
typedef struct oct_roi_region {
    int64_t image;
    oct_roi_sample *y, *x; /* of all cells */
    int64_t samples_y, samples_x;
} oct_roi_region;

/* Region r of operands 1 (rois) and 2 (images) for a map x and cells y, [.. x height x width]. */
oct_status oct_roi_region_at(const oct_args *a, int64_t r, const oct_type *x, const oct_type *y,
                             oct_roi_region *out);

/* Attributes, by name, and the shapes of rois and images. */
oct_status oct_roi_check(const oct_infer *q, const oct_type *rois, const oct_type *images);

#endif
