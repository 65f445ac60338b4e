/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terms that losses of detectors are sums of: each gives its value and its derivative, in
 * double. x is a logit, p = sigmoid(x), t or q its target. Boxes are x1, y1, x2, y2. What projects
 * add to a denominator so that it is not 0 differs, and is a parameter.
 */
#ifndef OCT_LOSS_PIECES_H
#define OCT_LOSS_PIECES_H

#include <stdbool.h>
#include <stdint.h>

/* A term and its derivative with respect to the logit. */
typedef struct oct_term {
    double value, slope;
} oct_term;

double oct_sigmoid_f64(double x);
double oct_softplus(double x); /* log(1 + e^x) */

/* Binary cross entropy with logits. */
oct_term oct_loss_bce(double x, double t);

/* Varifocal: alpha p^gamma BCE(x, 0) where the class is not the anchor's label (the weight is
 * differentiated as well), q BCE(x, q) where it is. */
oct_term oct_loss_varifocal(double x, double q, bool is_label, double alpha, double gamma);

/* |p - q|^beta BCE(x, q). */
oct_term oct_loss_quality_focal(double x, double q, double beta);

/* Focal with a soft target: |p - t|^gamma BCE(x, t), times alpha t + (1 - alpha)(1 - t) if alpha is
 * positive. */
oct_term oct_loss_focal(double x, double t, double alpha, double gamma);

/* --- distributions over the distances 0, 1, .. bins - 1 --- */

/* The expected distance. p gets the probabilities; d mean / d z[k] = p[k] (k - mean). */
double oct_dfl_decode(const double *z, int bins, double *p);

/* Cross entropy with the two bins around y, which must be from 0 to bins - 1. dz gets the
 * derivative; it may not be z. */
double oct_loss_dfl(const double *z, int bins, double y, double *dz);

/* --- overlaps of boxes --- */

/* Intersection over union; areas are not negative, eps is added to the union. */
double oct_box_iou(const double a[4], const double b[4], double eps);

typedef struct oct_giou_form {
    double eps;
    bool at_least; /* union and enclosing box are at least eps; else eps is added to them */
} oct_giou_form;

/* 1 - GIoU, and its derivative with respect to the predicted box (NULL: not asked for). */
double oct_loss_giou(const double pred[4], const double truth[4], const oct_giou_form *form,
                     double grad[4]);

/* 1 - CIoU, and its derivative with respect to the predicted box (NULL: not asked for). The weight
 * of the aspect ratio is not differentiated. */
double oct_loss_ciou(const double pred[4], const double truth[4], double eps, double grad[4]);

#endif
