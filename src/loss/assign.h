/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assigners: which labelled box each anchor of one picture has to predict, and how well. They are
 * not differentiated.
 *
 * An assigner `oct_assign_<name>()` reads an oct_assign_in, writes an oct_assigned, and works in
 * memory of the caller of oct_assign_<name>_work() bytes; it neither fails nor allocates, so that
 * pictures can be assigned by several threads. Of equal candidates the one of the lowest index wins
 * (PyTorch's topk takes any).
 */
#ifndef OCT_LOSS_ASSIGN_H
#define OCT_LOSS_ASSIGN_H

#include <stddef.h>

#include "loss/anchors.h"

/* One picture. Boxes are x1, y1, x2, y2 in pixels of the network's input. */
typedef struct oct_assign_in {
    const oct_anchor_levels *levels;
    int64_t n_anchors, n_classes, n_boxes;
    const double *point;  /* [n_anchors][2] pixels */
    const double *stride; /* [n_anchors] pixels */
    /* Probabilities [n_anchors][n_classes] and predicted boxes [n_anchors][4]: read of anchors in a
     * box and of classes of boxes only. The first may be NULL for ATSS. */
    const double *score, *pred;
    const double *box;    /* [n_boxes][4] */
    const int32_t *label; /* [n_boxes]: from 0 to n_classes - 1 */
} oct_assign_in;

/* What each anchor has to predict, [n_anchors] each. */
typedef struct oct_assigned {
    int32_t *box;   /* index of its box; -1: background */
    int32_t *label; /* class of its box; n_classes: background */
    double *q;      /* target score of that class; 0 for background */
} oct_assigned;

/* All anchors are background: a picture without boxes. */
void oct_assign_none(const oct_assign_in *in, const oct_assigned *out);

/* Is the point inside the box, and more than `margin` away from its sides? */
bool oct_assign_is_inside(const double point[2], const double box[4], double margin);

/* The first of the boxes whose overlap with `other` (IoU, eps added to the union) is largest. */
int32_t oct_assign_best_box(const oct_assign_in *in, const double other[4], double eps);

/* --- the `max` smallest or largest, lowest index first on ties --- */

typedef struct oct_pick {
    double value;
    int64_t index;
} oct_pick;

typedef struct oct_picks {
    oct_pick *pick; /* best first */
    int64_t n, max;
} oct_picks;

/* Offers a candidate of a higher index than all before; larger values are better. */
void oct_picks_offer(oct_picks *p, double value, int64_t index);

/* --- task-aligned: assign_tal.c --- */

typedef struct oct_tal {
    int64_t topk;
    double alpha, beta; /* m = score^alpha * overlap^beta */
    /* The overlap is CIoU (at least 0) and only of anchors inside the box, as ultralytics has it;
     * else IoU of any pair, as SuperGradients and PaddleDetection have it. */
    bool is_ciou;
    /* Sides shorter than this are enlarged to it for the test which anchors are inside; 0: not. */
    double min_side;
} oct_tal;

/* May anchor i be assigned to box j? Nothing is read of anchors that are in no box. */
bool oct_assign_tal_is_inside(const oct_tal *tal, const oct_assign_in *in, int64_t anchor,
                              int64_t j);

size_t oct_assign_tal_work(const oct_tal *tal, int64_t n_boxes);
void oct_assign_tal(const oct_tal *tal, const oct_assign_in *in, void *work,
                    const oct_assigned *out);

/* --- by statistics of the overlap with squares around anchors: assign_atss.c --- */

typedef struct oct_atss {
    int64_t topk;  /* of each level; all if it has fewer cells */
    double side;   /* of the squares, in strides: 5 */
    double margin; /* an anchor's point lies further than this inside the box: 1e-9 */
    double eps;    /* added to the union of squares and boxes */
    /* An anchor that several boxes take goes to the one its square overlaps most: of those boxes
     * (NanoDet), else of all boxes (SuperGradients, PaddleDetection). */
    bool among_takers;
} oct_atss;

size_t oct_assign_atss_work(const oct_atss *atss, const oct_anchor_levels *levels);
void oct_assign_atss(const oct_atss *atss, const oct_assign_in *in, void *work,
                     const oct_assigned *out);

#endif
