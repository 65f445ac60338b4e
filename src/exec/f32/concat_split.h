/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor split along one axis: what Concat, Split and simple Slices have in common. */
#ifndef OCT_EXEC_F32_CONCAT_SPLIT_H
#define OCT_EXEC_F32_CONCAT_SPLIT_H

#include "exec/kernel.h"

/* In memory order: outer x (axis) x inner; sizes in elements. */
typedef struct oct_axis_slices {
    int64_t outer;
    int64_t whole;   /* elements of the whole for each outer index, if dense */
    int64_t *offset; /* by part: its offset in the whole */
    int64_t *size;   /* by part: elements for each outer index */
    bool is_channel; /* NHWC, split along the channels: any pixel pitch is possible */
    bool is_pixel;   /* NCHW as [N, C, pixels], split along the pixels: any channel pitch is
                      * possible */
} oct_axis_slices;

/* For a step of the kernels concat or split; the memory belongs to the plan. */
oct_status oct_step_axis_slices(oct_plan *p, const oct_step *s, const oct_axis_slices **out);

/* Each part is one block of the whole. */
static inline bool oct_axis_slices_are_blocks(const oct_axis_slices *parts)
{
    return parts->outer == 1;
}

/* Is the slot already a view of its part of the whole? */
bool oct_axis_slice_is_in_place(const oct_plan *p, int32_t part, int32_t whole, int64_t offset);

/* The axis a Split, Slice or Concat works along, and the begin of a Slice; false if it is not
 * that simple. */
bool oct_node_axis_slice(const oct_node *n, int32_t *axis, int64_t *begin);

#endif
