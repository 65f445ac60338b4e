/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a batch as losses of detectors read them. */
#ifndef OCT_LOSS_LABELS_H
#define OCT_LOSS_LABELS_H

#include "loss/loss.h"

/* Boxes that have an area; those of one picture after the other. In scratch memory. */
typedef struct oct_label_boxes {
    int64_t max;    /* rows of a picture */
    int64_t *n;     /* boxes of each picture */
    double *box;    /* [pictures][max][4]: x1, y1, x2, y2 in pixels */
    int32_t *label; /* [pictures][max] */
} oct_label_boxes;

/* Reads operand i, [pictures, max, 5]. Fails if a class is not below n_classes, or a coordinate is
 * not finite. */
oct_status oct_label_boxes_read(const oct_args *a, int i, int64_t n_classes, oct_label_boxes *out);

#endif
