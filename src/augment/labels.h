/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of a dataset as training takes them: checked once, numbered as the network's classes.
 */
#ifndef OCT_AUGMENT_LABELS_H
#define OCT_AUGMENT_LABELS_H

#include "augment/batches.h"

/* A box on its way from the picture to the network's input. */
typedef struct oct_train_box {
    double x1, y1, x2, y2;
    double area; /* that it would have if nothing was cut off */
    int32_t k;   /* the network's class */
} oct_train_box;

typedef struct oct_train_labels {
    oct_ctx *ctx;
    const oct_dataset *d;
    bool classes; /* of pictures, not boxes */
    bool none;    /* labels are not looked at */
    bool skip_unknown;
    int32_t *class_map; /* NULL: the same numbers */
    int32_t n_class_map, n_classes;
    int64_t *usable; /* indices of the pictures to train on */
    int64_t n_usable;
    int32_t most_boxes; /* of a picture */
    int64_t n_crowds, n_empty, n_unknown;
} oct_train_labels;

/* Reads all labels; fails as oct_batches_new() says. */
oct_status oct_train_labels_new(oct_ctx *ctx, const oct_dataset *d, const oct_batches_options *o,
                                oct_train_labels *out);
void oct_train_labels_free(oct_train_labels *l);

/* One label, in pixels of its picture; false: it is not trained on. */
bool oct_train_box_of(const oct_train_labels *l, const oct_label *from, oct_train_box *out);

int32_t oct_train_class_of(const oct_train_labels *l, int64_t index); /* of a picture */

#endif
