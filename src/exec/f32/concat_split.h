/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor cut along one axis: what Concat, Split and simple Slices have in common. */
#ifndef OCT_EXEC_F32_CONCAT_SPLIT_H
#define OCT_EXEC_F32_CONCAT_SPLIT_H

#include "exec/kernel.h"

/* In the order of memory: outer x (axis) x inner; sizes in elements. */
typedef struct oct_axis_slices {
    int64_t outer;
    int64_t whole;   /* elements of the whole for each outer index, if dense */
    int64_t *offset; /* for each part: where it begins in the whole */
    int64_t *size;   /* for each part: elements for each outer index */
    bool is_channel; /* channels-last, cut along the channels: pitches may be anything */
    bool is_pixel;   /* plain [N, C, pixels], cut along the pixels: so may the planes' distance */
} oct_axis_slices;

/* For a step of the kernels concat or split; its memory is the plan's. */
oct_status oct_step_axis_slices(oct_plan *p, const oct_step *s, void **out);

/* Each part is one block of the whole. */
static inline bool oct_axis_slices_are_blocks(const oct_axis_slices *parts)
{
    return parts->outer == 1;
}

/* Does the slot lie where its part of the whole is? */
bool oct_axis_slice_is_in_place(const oct_plan *p, int32_t part, int32_t whole, int64_t offset);

/* The axis a Split, Slice or Concat cuts, and the begin of a Slice; false if not a simple cut. */
bool oct_node_axis_slice(const oct_node *n, int32_t *axis, int64_t *begin);

#endif
