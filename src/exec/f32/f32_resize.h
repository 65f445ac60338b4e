/* SPDX-License-Identifier: Apache-2.0 */
/* Indices and weights of the pixels that each pixel of a resized image is computed from. */
#ifndef OCT_EXEC_F32_F32_RESIZE_H
#define OCT_EXEC_F32_F32_RESIZE_H

#include "exec/kernel.h"

/* Rows or columns: `taps` indices and weights for each of the `out` ones. */
typedef struct oct_resize_axis {
    int64_t out, taps;
    const int64_t *index;
    const float *weight;
} oct_resize_axis;

/* For a Resize of 4-D tensors that has such tables; the memory belongs to the plan. */
oct_status oct_resize_axes(oct_plan *p, const oct_step *s, oct_resize_axis *y, oct_resize_axis *x);

struct oct_simd;

/* Where the pixels to interpolate are; pitches in elements. */
typedef struct oct_resize_rows {
    const float *x;
    int64_t row, pixel;
    bool in_order; /* holds only the rows of this pixel, one after the other */
} oct_resize_rows;

/* The pixel at (row, col) of the result: added in the order of the reference kernel. */
void oct_resize_pixel(const struct oct_simd *simd, const oct_resize_axis *ay,
                      const oct_resize_axis *ax, int64_t row, int64_t col,
                      const oct_resize_rows *from, float *y, int64_t channels);

#endif
