/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resizing of 8-bit pictures, row by row: a window of the resized picture is asked for from top to
 * bottom, and only as many source rows are held as one of its rows needs.
 */
#ifndef OCT_DATA_IMAGE_RESAMPLE_H
#define OCT_DATA_IMAGE_RESAMPLE_H

#include "data/image/image.h"

typedef struct oct_resampler oct_resampler;

/* Pixels [first, first + count) of a side that is resized from `from` to `to`. */
typedef struct oct_span {
    int32_t from, to, first, count;
} oct_span;

/* `im` is borrowed until the resampler is freed. */
oct_status oct_resampler_new(oct_ctx *ctx, oct_interpolation interpolation, const oct_image *im,
                             oct_span x, oct_span y, oct_resampler **out);
void oct_resampler_free(oct_resampler *r); /* accepts NULL */

/*
 * The next row of the window: three rows (red, green, blue) of x.count bytes, one after the other.
 * Borrowed until the next call; y.count calls at most.
 */
const uint8_t *oct_resampler_next(oct_resampler *r);

#endif
