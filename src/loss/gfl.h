/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator GflLoss of NanoDet's and PicoDet's heads: operands are scores [pictures, anchors,
 * classes] (logits, or probabilities for PicoDet v2) and distributions over the distances to the
 * four sides of a box [pictures, anchors, 4 * bins] in strides. Parts:
 *
 *   cls  quality focal or varifocal, of all anchors; the target q of the label's class is the
 *        overlap (TAL: the aligned metric)
 *   iou  w * (1 - GIoU) of assigned anchors, w is their largest score or q, not differentiated
 *   dfl  w * the mean over four sides of the cross entropy with the two nearest distances
 *
 * What the forms divide by and how they assign differs: struct oct_gfl_form.
 */
#ifndef OCT_LOSS_GFL_H
#define OCT_LOSS_GFL_H

#include "loss/assign.h"
#include "loss/labels.h"
#include "loss/loss_op.h"
#include "loss/pieces.h"
#include "loss/raw.h"

enum { OCT_GFL_CLS, OCT_GFL_IOU, OCT_GFL_DFL, OCT_GFL_PARTS };
enum { OCT_GFL_SCORES, OCT_GFL_DISTANCES, OCT_GFL_LABELS };                   /* operands */
enum { OCT_GFL_MIN_BINS = 2, OCT_GFL_USUAL_BINS = 8, OCT_GFL_MAX_BINS = 64 }; /* of a distance */

/* Attributes; the first ones are settings of the losses as well. */
enum {
    OCT_GFL_WEIGHTS, /* one for each part */
    OCT_GFL_TOPK = OCT_GFL_WEIGHTS + OCT_GFL_PARTS,
    OCT_GFL_RADIUS,
    OCT_GFL_ASSIGNER,
    OCT_GFL_FORM,
    OCT_GFL_STRIDES,
    OCT_GFL_SIZES
};

typedef enum oct_gfl_assigner {
    OCT_GFL_ATSS,
    OCT_GFL_TAL,
    OCT_GFL_DSL,   /* dynamic soft labels: by cost, candidates are inside a box */
    OCT_GFL_SIMOTA /* by cost, candidates are inside a box or near its centre */
} oct_gfl_assigner;

/* What distinguishes one head's loss from another's. */
typedef struct oct_gfl_form {
    const char *name; /* also of the row */
    bool is_varifocal;
    bool is_probability; /* the scores are, and w is q */
    bool counts_each;    /* cls is over the sum of max(assigned, 1) of each picture; else over the
                          * number of assigned anchors, at least 1 */
    bool at_least_1;     /* iou and dfl are over max(sum of w, 1); else over the sum of w, and the
                          * whole loss is 0 if nothing is assigned */
    double offset;       /* of points in cells, in strides */
    double shift;        /* and in pixels */
    oct_giou_form giou;
    oct_atss atss;
} oct_gfl_form;

extern const oct_gfl_form oct_gfl_nanodet, oct_gfl_nanodet_plus, oct_gfl_picodet,
    oct_gfl_picodet_v2;
extern const oct_op oct_op_gfl_loss;

/* --- work on a batch --- */

typedef struct oct_gfl_job {
    const oct_node *node;
    const oct_gfl_form *form;
    oct_gfl_assigner assigner;
    oct_anchor_levels levels;
    int64_t n_pictures, n_anchors, n_classes;
    int bins;
    const oct_tensor *x, *z; /* scores, distributions */
    oct_tensor *dx, *dz;     /* NULL: not wanted */
    double *row;             /* [pictures][2][classes]: an anchor's scores and their gradient */
    double *point, *stride;  /* of anchors */
    oct_label_boxes boxes;
    double *score; /* [pictures][anchors][classes]: probabilities */
    double *pred;  /* [pictures][anchors][4]: corners in pixels */
    double *all;   /* [pictures][anchors]: what classes that are not the label's cost */
    bool *is_candidate;
    char *work; /* of the assigner, work_size for each picture */
    size_t work_size;
    oct_assigned assigned; /* [pictures][anchors] */
    double *sum;           /* [pictures][OCT_GFL_PARTS] */
    double scale[OCT_GFL_PARTS];
} oct_gfl_job;

/* One picture of it. */
typedef struct oct_gfl_picture {
    const oct_gfl_job *j;
    int64_t first; /* index of its first anchor in the batch */
    oct_assign_in in;
} oct_gfl_picture;

oct_gfl_picture oct_gfl_picture_of(const oct_gfl_job *j, int64_t i);
oct_assigned oct_gfl_assigned_of(const oct_gfl_job *j, int64_t i);

/* The four distributions of an anchor of the batch. */
void oct_gfl_load(const oct_gfl_job *j, int64_t anchor, double z[4 * OCT_GFL_MAX_BINS]);

/* Bytes that assigning a picture needs. */
size_t oct_gfl_work_size(const oct_gfl_job *j);

/* Decodes and assigns pictures [begin, end); arg is the job. */
void oct_gfl_assign(void *arg, int64_t begin, int64_t end);

/* --- attaching (gfl_find.c) --- */

/* Emits GflLoss of this form on what it finds. */
oct_status oct_gfl_attach(const oct_gfl_form *form, const oct_loss_setting *settings,
                          const oct_loss_job *job, oct_loss_found *out);

#endif
