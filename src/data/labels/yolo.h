/* SPDX-License-Identifier: Apache-2.0 */
/* Reading YOLO's labels, wherever the pictures are. */
#ifndef OCT_DATA_LABELS_YOLO_H
#define OCT_DATA_LABELS_YOLO_H

#include "data/dataset.h"

typedef struct oct_yolo {
    oct_dataset *d;
    oct_ctx *ctx;
    int32_t n_names;       /* numbers must be below; 0: any number is allowed */
    const char *file;      /* at work */
    int32_t width, height; /* of its picture */
    oct_labels labels;
} oct_yolo;

void oct_yolo_init(oct_yolo *r, oct_dataset *d);
void oct_yolo_fini(oct_yolo *r);

/* Adds a picture with the labels of a text file, which need not be there. Both paths of the arena.
 */
oct_status oct_yolo_picture(oct_yolo *r, const char *path, const char *labels);

/* All pictures of a folder, with text files of the same names in another. */
oct_status oct_yolo_folder(oct_yolo *r, const char *images, const char *folder);

/* At the end: as many categories as there are names, or numbers seen. `names` may be NULL. */
oct_status oct_yolo_categories(oct_yolo *r, const oct_class_names *names);

#endif
