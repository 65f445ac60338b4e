/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of preprocessing share. */
#ifndef OCT_DATA_IMAGE_PREPROCESS_H
#define OCT_DATA_IMAGE_PREPROCESS_H

#include "data/image/image.h"

/* The options that the caller's struct has, the rest at their defaults. */
void oct_preprocess_read(oct_preprocess *to, const oct_preprocess *from);

/* Fails if a field is not valid. */
oct_status oct_preprocess_check(oct_ctx *ctx, const oct_preprocess *p);

/*
 * A picture of width x height becomes one of to_width x to_height whose upper left corner is at (x,
 * y) of the network's input: negative where it is cropped.
 */
typedef struct oct_placement {
    int32_t to_width, to_height, x, y;
} oct_placement;

oct_placement oct_preprocess_place(const oct_preprocess *p, int32_t width, int32_t height);

/* Bytes of the network's input for one picture. */
size_t oct_preprocess_size(const oct_preprocess *p, oct_dtype dtype);

#endif
