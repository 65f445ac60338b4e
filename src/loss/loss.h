/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Losses of training. A loss is one operator of domain "octet", which computes its value and, in
 * the same pass, the gradient of its value with respect to each prediction:
 *
 *   in:  predictions .., then the labels, then the epoch (rank 0, from 0) where the loss asks for
 * it out: 0 the loss, rank 0; 1 its parts, weighted, [n_parts]; 2.. the gradient of each prediction
 *
 * Its gradient rule multiplies the saved gradients with the gradient of output 0. Assignments of
 * boxes to anchors are not differentiated.
 *
 * To add one: loss_<name>.c with the operator and its row, one line in losses.def, one in
 * meson.build.
 */
#ifndef OCT_LOSS_LOSS_H
#define OCT_LOSS_LOSS_H

#include "graph/op.h"

/*
 * Labels of a batch of pictures with boxes: f32 [B, M, 5], each row class, x1, y1, x2, y2 in pixels
 * of the network's input. Class -1: the row is not used; used rows come first.
 */
enum { OCT_LABEL_CLASS, OCT_LABEL_X1, OCT_LABEL_Y1, OCT_LABEL_X2, OCT_LABEL_Y2, OCT_LABEL_SIZE };

/* A number or word that the user may set; it is an attribute of the loss's operator as well. */
typedef struct oct_loss_setting {
    const char *name; /* "weight_iou" */
    const char *help;
    const char *const *words; /* of a word: those allowed, NULL at the end; NULL: a number */
    double number;            /* default */
    const char *word;
    bool is_text; /* any word; NULL: none */
} oct_loss_setting;

enum { OCT_LOSS_MAX_SETTINGS = 16, OCT_LOSS_MAX_PARTS = 6 };

/* What a loss is attached to. */
typedef struct oct_loss_job {
    oct_graph *g;      /* with shapes; predictions are found in it, nodes are appended to it */
    oct_value *labels; /* an input of g: [B, M, 5], or [B] classes of pictures (int64); NULL for a
                        * loss that has none */
    oct_value *epoch;  /* an input of g, f32 of rank 0; NULL: every epoch is like the last */
    int32_t scratch_epochs; /* training from random weights takes so many; 0: from good ones */
    double number[OCT_LOSS_MAX_SETTINGS];    /* settings by index in the row */
    const char *word[OCT_LOSS_MAX_SETTINGS]; /* (set by oct_loss_defaults()) */
} oct_loss_job;

/* A value of the network and the input of the graph that takes what it is in the teacher. */
typedef struct oct_loss_pair {
    const oct_value *value; /* the teacher has one of the same name and type */
    oct_value *teacher;     /* "teacher/NAME" */
} oct_loss_pair;

/* What came of it. */
typedef struct oct_loss_found {
    oct_value *loss, *parts;
    char why[256]; /* one sentence: which values of the network are the predictions */
    /* Distillation: to feed for each batch, from the network as it came. In the graph's arena. */
    const oct_loss_pair *pairs;
    int32_t n_pairs;
    /* Of heads with anchors: class logits [B, anchors, classes] and distributions over distances
     * [B, anchors, 4 * bins], which a teacher's can be compared with; NULL: no such. */
    oct_value *scores, *boxes;
    double times; /* what the loss is multiplied with, beyond its settings; 0: nothing */
} oct_loss_found;

typedef struct oct_loss_row {
    const char *name; /* "yolo_nas" */
    const char *help;
    const char *family; /* of detectors that have this loss by default; NULL: none */
    const char *parts[OCT_LOSS_MAX_PARTS + 1]; /* names */
    const oct_loss_setting *settings;          /* ends with {0} */
    bool has_boxes;                            /* labels are boxes, else classes of pictures */
    bool has_no_labels;                        /* it compares with a teacher */
    bool has_epochs;                           /* it changes with the epoch */
    /* Finds the raw predictions, brings them into the operator's form and emits it. Fails, saying
     * what was looked for, if the network does not have them. */
    oct_status (*attach)(const oct_loss_job *job, oct_loss_found *out);
} oct_loss_row;

const oct_loss_row *oct_loss_at(int i); /* NULL beyond the end */
const oct_loss_row *oct_loss_find(const char *name);
void oct_loss_defaults(const oct_loss_row *row, oct_loss_job *job);

/* The gradient rule of all loss operators. */
oct_status oct_loss_grad(const oct_grad_args *a);

#endif
