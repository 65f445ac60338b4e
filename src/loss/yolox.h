/* SPDX-License-Identifier: Apache-2.0 */
/* The operator YoloXLoss: its parts, attributes and work on a batch. */
#ifndef OCT_LOSS_YOLOX_H
#define OCT_LOSS_YOLOX_H

#include "loss/assign.h"
#include "loss/labels.h"

enum { OCT_YOLOX_IOU, OCT_YOLOX_OBJ, OCT_YOLOX_CLS, OCT_YOLOX_L1, OCT_YOLOX_PARTS };

/* Attributes; the first ones are settings of the loss as well. */
enum {
    OCT_YOLOX_WEIGHTS, /* one for each part */
    OCT_YOLOX_RADIUS = OCT_YOLOX_WEIGHTS + OCT_YOLOX_PARTS,
    OCT_YOLOX_TOPK,
    OCT_YOLOX_CANDIDATES,
    OCT_YOLOX_OVERLAP,
    OCT_YOLOX_STRIDES,
    OCT_YOLOX_SIZES
};

extern const oct_op oct_op_yolox_loss;

/* Where the numbers of an anchor are; the box is first. */
enum { OCT_YOLOX_AT_OBJ = 4, OCT_YOLOX_AT_CLASSES = 5 };

#define OCT_YOLOX_LOG_EPS 1e-8 /* added before logarithms */

/* What stays the same for all pictures, and the memory of all of them. */
typedef struct oct_yolox_job {
    const oct_node *node;
    oct_anchor_levels levels;
    int64_t n_pictures, n_anchors, n_channels;
    const oct_tensor *x;
    oct_tensor *dx;         /* NULL: not wanted */
    double *row;            /* [pictures][2][channels]: an anchor's numbers and their gradient */
    double *point, *stride; /* of anchors: centres of cells */
    oct_label_boxes boxes;
    double *pred; /* [pictures][anchors][4]: corners in pixels */
    double *all;  /* [pictures][anchors]: BCE of all classes with 0, in the cost */
    bool *is_candidate;
    oct_assigned assigned; /* [pictures][anchors] */
    double *sum;           /* [pictures][OCT_YOLOX_PARTS] */
    double n_assigned;
    bool box_or_centre, is_giou;
} oct_yolox_job;

/* One picture of it. */
typedef struct oct_yolox_picture {
    const oct_yolox_job *j;
    int64_t i;
    oct_assign_in in;
    const double *all;
} oct_yolox_picture;

oct_yolox_picture oct_yolox_picture_of(const oct_yolox_job *j, int64_t i);
oct_assigned oct_yolox_assigned_of(const oct_yolox_job *j, int64_t i);

/* Numbers [first, first + n) of an anchor. */
void oct_yolox_load(const oct_yolox_picture *p, int64_t anchor, int64_t first, int64_t n,
                    double *to);

/* Decodes and assigns pictures [begin, end); arg is the job. */
void oct_yolox_assign(void *arg, int64_t begin, int64_t end);

#endif
