/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples of one axis make each sample of the resized axis, and with what weights. */
#ifndef OCT_OP_RESAMPLE_H
#define OCT_OP_RESAMPLE_H

#include "op/op.h"

typedef enum oct_resample_mode {
    OCT_RESAMPLE_NEAREST,
    OCT_RESAMPLE_LINEAR,
    OCT_RESAMPLE_CUBIC,
} oct_resample_mode;

typedef enum oct_resample_coord {
    OCT_COORD_HALF_PIXEL,
    OCT_COORD_HALF_PIXEL_SYMMETRIC,
    OCT_COORD_PYTORCH_HALF_PIXEL,
    OCT_COORD_ALIGN_CORNERS,
    OCT_COORD_ASYMMETRIC,
    OCT_COORD_TF_HALF_PIXEL_FOR_NN,
    OCT_COORD_TF_CROP_AND_RESIZE,
} oct_resample_coord;

typedef enum oct_resample_round {
    OCT_ROUND_PREFER_FLOOR,
    OCT_ROUND_PREFER_CEIL,
    OCT_ROUND_FLOOR,
    OCT_ROUND_CEIL,
} oct_resample_round;

/* How to resample; the same for all axes. */
typedef struct oct_resample {
    oct_resample_mode mode;
    oct_resample_coord coord;
    oct_resample_round round;
    double cubic_a;
    bool antialias, exclude_outside;
} oct_resample;

/* One axis: sizes, scale, and the part of the input that tf_crop_and_resize shows. */
typedef struct oct_resample_axis {
    int64_t in, out;
    double scale, roi_start, roi_end;
} oct_resample_axis;

/* `taps` entries for each of the `out` samples; index -1: outside, the extrapolation value. */
typedef struct oct_resample_table {
    int64_t taps;
    int64_t *index;
    double *weight;
} oct_resample_table;

/* In the arena. OCT_ERR_MEMORY is the only failure. in > 0, out > 0, scale > 0. */
oct_status oct_resample_table_make(oct_arena *arena, const oct_resample *r,
                                   const oct_resample_axis *axis, oct_resample_table *out);

/* From the attributes that Resize and its gradient have in common. */
oct_status oct_resample_read(const oct_node *n, oct_resample *r);

/* Each axis of x in a Resize or Upsample node, whose operands but the first must be constant. */
oct_status oct_resize_axes_of(const oct_node *n, const oct_type *x,
                              oct_resample_axis axis[OCT_MAX_RANK]);

/* The tables of a ResizeGrad node, one for each axis of x, whose type is given too; an axis that
 * stays as it is has taps 0. */
oct_status oct_resize_grad_tables(const oct_node *n, const oct_type *dy, oct_arena *arena,
                                  oct_type *x, oct_resample_table out[OCT_MAX_RANK]);

/*
 * The tables of a Resize node whose operands but the first are constant, one for each axis of x;
 * an axis that stays as it is has taps 0. False: operands at run time, extrapolation, or an axis
 * other than the spatial ones changes.
 */
bool oct_resize_tables(const oct_node *n, const oct_type *x, oct_arena *arena,
                       oct_resample_table out[OCT_MAX_RANK]);

#endif
