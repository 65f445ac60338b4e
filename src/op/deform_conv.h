/* SPDX-License-Identifier: Apache-2.0 */
/* What DeformConv and its gradient share: where its taps read. */
#ifndef OCT_OP_DEFORM_CONV_H
#define OCT_OP_DEFORM_CONV_H

#include "op/conv_geometry.h"

/* Operands of both come in this order. */
enum { OCT_DEFORM_X, OCT_DEFORM_W, OCT_DEFORM_OFFSET };

typedef struct oct_deform {
    oct_conv_geometry g;
    int64_t offset_groups, taps;
    const double *x, *w, *offset, *mask; /* mask may be NULL */
} oct_deform;

/* One element that an output pixel reads. */
typedef struct oct_deform_tap {
    double h, w, gain;           /* position in the image, factor */
    int64_t at_h, at_w, at_mask; /* elements of offset and mask that say so */
} oct_deform_tap;

/* Geometry and taps from attributes and the first two operands. */
oct_status oct_deform_read(const oct_infer *q, oct_deform *d);

/* Fails unless operand i is [N x planes x out], as offset and mask are. */
oct_status oct_deform_check_field(const oct_infer *q, int i, const oct_conv_geometry *g,
                                  int64_t planes);

/* Tap k of channel c for output pixel (row, col) of image b. */
oct_deform_tap oct_deform_tap_at(const oct_deform *d, int64_t b, int64_t c, int64_t k, int64_t row,
                                 int64_t col);

/* The image at (h, w), zero outside. */
double oct_deform_sample(const oct_conv_geometry *g, const double *x, double h, double w);

#endif
