/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loss of heads that predict a logit for each class and a distribution over each distance to a
 * box's sides: YOLO-NAS, PP-YOLOE, YOLOv8. Three sums over all pictures, over N = max(sum of q, 1):
 *
 *   classes      of a term for each anchor and class, with the target q of the assigned class
 *   boxes        of q * (1 - GIoU or CIoU) of each positive anchor, in units of its stride
 *   distances    of q * the mean over four sides of DFL
 *
 * Assigning and the sums are two steps, since only the sums are differentiated.
 */
#ifndef OCT_LOSS_DFL_HEAD_H
#define OCT_LOSS_DFL_HEAD_H

#include "graph/op.h"
#include "loss/assign.h"
#include "loss/labels.h"

enum { OCT_DFL_MAX_BINS = 64 };

typedef enum oct_class_term {
    OCT_CLASS_BCE,
    OCT_CLASS_VARIFOCAL, /* alpha .75, gamma 2 */
    OCT_CLASS_FOCAL,     /* gamma 2 */
} oct_class_term;

enum { OCT_DFL_CLASSES, OCT_DFL_BOXES, OCT_DFL_DISTANCES, OCT_DFL_N_PARTS };

/* What distinguishes one family's loss from another's. */
typedef struct oct_dfl_loss {
    bool is_atss; /* else task-aligned */
    oct_tal tal;
    oct_atss atss;
    oct_class_term term;
    double focal_alpha; /* not positive: classes and background weigh the same */
    bool is_ciou;       /* else GIoU */
    double weight[OCT_DFL_N_PARTS];
    bool times_batch; /* the loss is multiplied with the number of pictures */
} oct_dfl_loss;

/* A batch: predictions, labels, and memory to work in (oct_dfl_head_alloc()). */
typedef struct oct_dfl_head {
    int64_t batch, n_anchors, n_classes;
    int bins;
    oct_anchor_levels levels;
    oct_dtype dtype;        /* of the predictions and their gradients */
    const void *cls, *reg;  /* [batch, n_anchors, n_classes], [batch, n_anchors, 4 * bins] */
    void *d_cls, *d_reg;    /* gradients, the same shapes; NULL: not wanted */
    double *point, *stride; /* of anchors */
    oct_label_boxes labels;
    oct_assigned assigned; /* of all pictures, [batch][n_anchors] */
    /* scratch */
    int n_threads;
    double *score, *pred, *row; /* of a thread: [n_anchors][n_classes], [n_anchors][4], a row */
    char *work;                 /* of a thread: work_size bytes for the assigner */
    size_t work_size;
    double (*part)[OCT_DFL_N_PARTS]; /* of each picture */
} oct_dfl_head;

/* Memory for sizes that are set: batch, n_anchors, n_classes, bins, levels,
 * labels. */
oct_status oct_dfl_head_alloc(oct_dfl_head *h, const oct_dfl_loss *loss, oct_arena *arena,
                              int n_threads);

/* Step 1: which box each anchor has to predict, into h->assigned. */
void oct_dfl_head_assign(oct_dfl_head *h, const oct_dfl_loss *loss);

/* Step 2: the parts, weighted, and the gradients of their sum, for h->assigned as it is. */
void oct_dfl_head_sum(oct_dfl_head *h, const oct_dfl_loss *loss, double parts[OCT_DFL_N_PARTS]);

/* --- as an operator (dfl_head_op.c): operands class logits, distributions, labels --- */

enum { OCT_DFL_EPOCH = 3 }; /* operand of losses that change with it */
enum { OCT_DFL_ATTR_STRIDES, OCT_DFL_ATTR_SIZES, OCT_DFL_ATTR_OWN }; /* attributes come first */
#define OCT_DFL_ATTRS                                                                              \
    [OCT_DFL_ATTR_STRIDES] = {.name = "strides", .kind = OCT_ATTR_INTS, .required = true},         \
    [OCT_DFL_ATTR_SIZES] = {.name = "sizes", .kind = OCT_ATTR_INTS, .required = true}

extern const oct_op oct_op_yolo_nas_loss, oct_op_yolov8_loss;

oct_status oct_dfl_head_shape(const oct_infer *q);

/* Runs both steps; order[i] is the part that comes as part i. */
oct_status oct_dfl_head_ref(const oct_args *a, const oct_dfl_loss *loss,
                            const int order[OCT_DFL_N_PARTS]);

#endif
