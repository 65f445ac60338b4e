/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YoloXLoss on raw predictions [pictures, anchors, 4 + 1 + classes]: offset of the centre in the
 * cell and logarithms of the sizes in strides, the logit of objectness, logits of classes. Anchors
 * are assigned by SimOTA. All parts are divided by the number of assigned anchors of the batch:
 *
 *   iou  1 - IoU^2 (or 1 - GIoU) of assigned anchors
 *   obj  BCE of objectness with "is assigned", of all anchors
 *   cls  BCE of the classes of assigned anchors; the target of the label's class is the IoU
 *   l1   distance of the four raw numbers of assigned anchors from those of the label's box
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "loss/assign_ota.h"
#include "loss/loss_op.h"
#include "loss/pieces.h"
#include "loss/yolox.h"
#include "op/grad/rules.h"
#include "op/work.h"

enum { PRED, LABELS };

/* --- the terms --- */

/* How much of max(a, b)'s derivative is a's: half at a tie, as PyTorch has it. */
static double share(double a, double b)
{
    return a > b ? 1 : a < b ? 0 : .5;
}

/* 1 - IoU^2 and its derivative by the corners of the predicted box. */
static double iou_squared(const double *pred, const double *truth, double grad[4])
{
    const double size[2] = {pred[2] - pred[0], pred[3] - pred[1]};
    double both[2], inter, uni, iou;

    memset(grad, 0, 4 * sizeof(*grad));
    for (int a = 0; a < 2; a++)
        both[a] = fmin(pred[a + 2], truth[a + 2]) - fmax(pred[a], truth[a]);
    if (!(both[0] > 0 && both[1] > 0)) return 1;
    inter = both[0] * both[1];
    uni = size[0] * size[1] + (truth[2] - truth[0]) * (truth[3] - truth[1]) - inter + 1e-16;
    iou = inter / uni;
    for (int a = 0; a < 2; a++) {
        const double low = -share(pred[a], truth[a]) * both[!a];
        const double high = share(truth[a + 2], pred[a + 2]) * both[!a];

        grad[a] = -2 * iou * (low - iou * (-size[!a] - low)) / uni;
        grad[a + 2] = -2 * iou * (high - iou * (size[!a] - high)) / uni;
    }
    return 1 - iou * iou;
}

/* The overlap of one assigned anchor, and its gradient by the raw numbers. */
static double overlap_term(const oct_yolox_picture *p, int64_t anchor, const double *truth,
                           double scale, double *dx)
{
    static const oct_giou_form form = {1e-16, true};
    const double *box = &p->in.pred[4 * anchor], s = p->in.stride[anchor];
    double g[4];
    const double loss =
        p->j->is_giou ? oct_loss_giou(box, truth, &form, g) : iou_squared(box, truth, g);

    for (int a = 0; a < 2; a++) {
        dx[a] += scale * s * (g[a] + g[a + 2]);
        dx[a + 2] += scale * (box[a + 2] - box[a]) / 2 * (g[a + 2] - g[a]);
    }
    return scale * loss;
}

static double distance_term(const oct_yolox_picture *p, int64_t anchor, const double *x,
                            const double *truth, double scale, double *dx)
{
    const double s = p->in.stride[anchor];
    double sum = 0;

    for (int e = 0; e < 4; e++) {
        const int a = e % 2;
        const double centre = (truth[a] + truth[a + 2]) / 2, size = truth[a + 2] - truth[a];
        const double target = e < 2 ? (centre - p->in.point[2 * anchor + a]) / s + .5
                                    : log(size / s + OCT_YOLOX_LOG_EPS);
        const double d = x[e] - target;

        sum += scale * fabs(d);
        dx[e] += d > 0 ? scale : d < 0 ? -scale : 0;
    }
    return sum;
}

/* The terms of an assigned anchor besides objectness; dx is zeros. */
static void add_assigned(const oct_yolox_picture *p, const oct_assigned *t, int64_t k,
                         const double *x, const double *weight, double *dx, double *sum)
{
    const double *truth = &p->in.box[4 * (int64_t)t->box[k]];

    for (int64_t c = 0; c < p->in.n_classes; c++) {
        const oct_term cls =
            oct_loss_bce(x[OCT_YOLOX_AT_CLASSES + c], c == t->label[k] ? t->q[k] : 0);

        sum[OCT_YOLOX_CLS] += weight[OCT_YOLOX_CLS] * cls.value;
        dx[OCT_YOLOX_AT_CLASSES + c] = weight[OCT_YOLOX_CLS] * cls.slope;
    }
    sum[OCT_YOLOX_IOU] += overlap_term(p, k, truth, weight[OCT_YOLOX_IOU], dx);
    if (weight[OCT_YOLOX_L1] != 0)
        sum[OCT_YOLOX_L1] += distance_term(p, k, x, truth, weight[OCT_YOLOX_L1], dx);
}

/* Most anchors have objectness only, so only that is read and written; the gradient is zeros at
 * first. */
static void add_anchor(const oct_yolox_picture *p, const oct_assigned *t, int64_t k,
                       const double *weight, double *sum)
{
    const oct_yolox_job *j = p->j;
    const bool is_assigned = t->box[k] >= 0;
    const int64_t from = is_assigned ? 0 : OCT_YOLOX_AT_OBJ, n = is_assigned ? j->n_channels : 1;
    double *x = j->row + 2 * p->i * j->n_channels, *dx = x + j->n_channels;
    oct_term obj;

    oct_yolox_load(p, k, from, n, x + from);
    if (is_assigned) {
        memset(dx, 0, (size_t)j->n_channels * sizeof(*dx));
        add_assigned(p, t, k, x, weight, dx, sum);
    }
    obj = oct_loss_bce(x[OCT_YOLOX_AT_OBJ], is_assigned);
    sum[OCT_YOLOX_OBJ] += weight[OCT_YOLOX_OBJ] * obj.value;
    dx[OCT_YOLOX_AT_OBJ] = weight[OCT_YOLOX_OBJ] * obj.slope;
    if (j->dx)
        oct_store_f64(j->dx->type.dtype, j->dx->data,
                      (p->i * j->n_anchors + k) * j->n_channels + from, n, dx + from);
}

static void add_pictures(void *arg, int64_t begin, int64_t end)
{
    const oct_yolox_job *j = arg;
    double weight[OCT_YOLOX_PARTS];

    for (int k = 0; k < OCT_YOLOX_PARTS; k++)
        weight[k] = (double)oct_f32(j->node, OCT_YOLOX_WEIGHTS + k) / j->n_assigned;
    for (int64_t i = begin; i < end; i++) {
        const oct_yolox_picture p = oct_yolox_picture_of(j, i);
        const oct_assigned t = oct_yolox_assigned_of(j, i);

        for (int64_t k = 0; k < j->n_anchors; k++)
            add_anchor(&p, &t, k, weight, j->sum + i * OCT_YOLOX_PARTS);
    }
}

/* --- the operator --- */

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *t;

    OCT_TRY(oct_loss_need(q, PRED, OCT_PRED_RANK, OCT_SET_FLOAT, &x));
    OCT_TRY(oct_loss_need(q, LABELS, 3, OCT_SET_FLOAT, &t));
    if (x->rank == OCT_PRED_RANK && x->dim[2] >= 0 && x->dim[2] <= OCT_YOLOX_AT_CLASSES)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "predictions of %lld numbers have no classes",
                              (long long)x->dim[2]);
    OCT_TRY(oct_loss_fits(q, x, t));
    return oct_loss_shape(q, 1, OCT_YOLOX_PARTS);
}

static oct_status read_attributes(const oct_args *a, oct_yolox_job *j)
{
    const oct_node *n = a->node;
    const int64_t topk = oct_int(n, OCT_YOLOX_TOPK);

    OCT_TRY(oct_loss_levels(n, OCT_YOLOX_STRIDES, OCT_YOLOX_SIZES, j->n_anchors, &j->levels));
    if (topk < 1 || topk > OCT_OTA_MAX_TOPK)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "topk must be from 1 to %d", OCT_OTA_MAX_TOPK);
    j->box_or_centre = strcmp(n->attr[OCT_YOLOX_CANDIDATES].s, "box_or_centre") == 0;
    j->is_giou = strcmp(n->attr[OCT_YOLOX_OVERLAP].s, "giou") == 0;
    return OCT_OK;
}

static oct_status allocate(const oct_args *a, oct_yolox_job *j)
{
    const size_t n = (size_t)j->n_anchors, all = (size_t)(j->n_pictures * j->n_anchors) + 1;

    j->point = oct_args_scratch(a, n, 2 * sizeof(double));
    j->stride = oct_args_scratch(a, n, sizeof(double));
    j->row =
        oct_args_scratch(a, (size_t)j->n_pictures + 1, 2 * (size_t)j->n_channels * sizeof(double));
    j->pred = oct_args_scratch(a, all, 4 * sizeof(double));
    j->all = oct_args_scratch(a, all, sizeof(double));
    j->is_candidate = oct_args_scratch(a, all, sizeof(bool));
    j->assigned.box = oct_args_scratch(a, all, sizeof(int32_t));
    j->assigned.label = oct_args_scratch(a, all, sizeof(int32_t));
    j->assigned.q = oct_args_scratch(a, all, sizeof(double));
    j->sum = oct_args_scratch(a, (size_t)j->n_pictures + 1, OCT_YOLOX_PARTS * sizeof(double));
    if (!j->point || !j->stride || !j->row || !j->pred || !j->all || !j->is_candidate ||
        !j->assigned.box || !j->assigned.label || !j->assigned.q || !j->sum)
        return OCT_ERR_MEMORY;
    oct_anchors_fill(&j->levels, .5, j->point, j->stride);
    return OCT_OK;
}

static oct_status yolox_ref(const oct_args *a)
{
    oct_yolox_job j = {.node = a->node};
    double parts[OCT_YOLOX_PARTS] = {0};

    OCT_TRY(oct_args_check(a));
    j.n_pictures = a->in[PRED]->type.dim[0];
    j.n_anchors = a->in[PRED]->type.dim[1];
    j.n_channels = a->in[PRED]->type.dim[2];
    OCT_TRY(read_attributes(a, &j));
    j.x = a->in[PRED];
    j.dx = oct_args_out(a, 2);
    oct_loss_clear(j.dx);
    OCT_TRY(oct_label_boxes_read(a, LABELS, j.n_channels - OCT_YOLOX_AT_CLASSES, &j.boxes));
    OCT_TRY(allocate(a, &j));
    oct_parallel_for(a->n_threads, j.n_pictures, 1, oct_yolox_assign, &j);
    for (int64_t i = 0; i < j.n_pictures * j.n_anchors; i++)
        j.n_assigned += j.assigned.box[i] >= 0;
    j.n_assigned = fmax(j.n_assigned, 1);
    oct_parallel_for(a->n_threads, j.n_pictures, 1, add_pictures, &j);
    for (int64_t i = 0; i < j.n_pictures * OCT_YOLOX_PARTS; i++)
        parts[i % OCT_YOLOX_PARTS] += j.sum[i];
    oct_loss_store(a, parts, OCT_YOLOX_PARTS);
    return OCT_OK;
}

#define WEIGHT(part) [OCT_YOLOX_WEIGHTS + (part)]
static const oct_attr_def attrs[] = {
    WEIGHT(OCT_YOLOX_IOU) = {.name = "weight_iou", .kind = OCT_ATTR_F32, .def = {.f = 5}},
    WEIGHT(OCT_YOLOX_OBJ) = {.name = "weight_obj", .kind = OCT_ATTR_F32, .def = {.f = 1}},
    WEIGHT(OCT_YOLOX_CLS) = {.name = "weight_cls", .kind = OCT_ATTR_F32, .def = {.f = 1}},
    WEIGHT(OCT_YOLOX_L1) = {.name = "weight_l1", .kind = OCT_ATTR_F32},
    [OCT_YOLOX_RADIUS] = {.name = "radius", .kind = OCT_ATTR_F32, .def = {.f = 1.5F}},
    [OCT_YOLOX_TOPK] = {.name = "topk", .kind = OCT_ATTR_INT, .def = {.i = 10}},
    [OCT_YOLOX_CANDIDATES] = {.name = "candidates",
                              .kind = OCT_ATTR_STRING,
                              .def = {.s = "centre"}},
    [OCT_YOLOX_OVERLAP] = {.name = "overlap", .kind = OCT_ATTR_STRING, .def = {.s = "iou"}},
    [OCT_YOLOX_STRIDES] = {.name = "strides", .kind = OCT_ATTR_INTS, .required = true},
    [OCT_YOLOX_SIZES] = {.name = "sizes", .kind = OCT_ATTR_INTS, .required = true},
    {0},
};
#undef WEIGHT

const oct_op oct_op_yolox_loss = {
    .name = "YoloXLoss",
    .domain = OCT_TRAIN_DOMAIN,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = yolox_ref,
    .grad = oct_loss_grad,
};
