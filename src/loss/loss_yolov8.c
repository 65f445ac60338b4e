/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loss of YOLOv8 and YOLO11, as ultralytics 8.4's v8DetectionLoss has it: cross entropy of
 * class scores, CIoU and DFL, on task-aligned anchors. As there, the loss is multiplied with the
 * number of pictures of the batch (so gradients grow with it, which its learning rates count on);
 * here its parts are too, so that they sum up to it.
 */
#include "loss/dfl_find.h"
#include "loss/dfl_head.h"
#include "loss/loss_op.h"
#include "op/grad/rules.h"
#include "op/op.h"

enum { WEIGHT_BOX = OCT_DFL_ATTR_OWN, WEIGHT_CLS, WEIGHT_DFL, TOPK, ALPHA, BETA };

enum { MAX_TOPK = 1024 };

static oct_status read_attrs(const oct_node *n, oct_dfl_loss *out)
{
    const oct_attr *strides = &n->attr[OCT_DFL_ATTR_STRIDES];
    const int64_t topk = oct_int(n, TOPK);

    *out = (oct_dfl_loss){.weight = {[OCT_DFL_CLASSES] = (double)oct_f32(n, WEIGHT_CLS),
                                     [OCT_DFL_BOXES] = (double)oct_f32(n, WEIGHT_BOX),
                                     [OCT_DFL_DISTANCES] = (double)oct_f32(n, WEIGHT_DFL)},
                          .is_ciou = true,
                          .times_batch = true};
    if (topk < 1 || topk > MAX_TOPK)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "topk %lld: it is from 1 to %d",
                             (long long)topk, MAX_TOPK);
    out->tal = (oct_tal){.topk = topk,
                         .alpha = (double)oct_f32(n, ALPHA),
                         .beta = (double)oct_f32(n, BETA),
                         .is_ciou = true};
    /* Smaller sides are enlarged to the second stride: such boxes may hold no anchor's point. */
    if (strides->n) out->tal.min_side = (double)strides->is[strides->n > 1 ? 1 : 0];
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    static const int order[] = {OCT_DFL_BOXES, OCT_DFL_CLASSES, OCT_DFL_DISTANCES};
    oct_dfl_loss loss;

    OCT_TRY(read_attrs(a->node, &loss));
    return oct_dfl_head_ref(a, &loss, order);
}

static const oct_attr_def attrs[] = {
    OCT_DFL_ATTRS,
    [WEIGHT_BOX] = {.name = "weight_box", .kind = OCT_ATTR_F32, .def = {.f = 7.5F}},
    [WEIGHT_CLS] = {.name = "weight_cls", .kind = OCT_ATTR_F32, .def = {.f = .5F}},
    [WEIGHT_DFL] = {.name = "weight_dfl", .kind = OCT_ATTR_F32, .def = {.f = 1.5F}},
    [TOPK] = {.name = "topk", .kind = OCT_ATTR_INT, .def = {.i = 10}},
    [ALPHA] = {.name = "alpha", .kind = OCT_ATTR_F32, .def = {.f = .5F}},
    [BETA] = {.name = "beta", .kind = OCT_ATTR_F32, .def = {.f = 6}},
    {0},
};

const oct_op oct_op_yolov8_loss = {
    .name = "YoloV8Loss",
    .domain = OCT_TRAIN_DOMAIN,
    .min_in = 3,
    .max_in = 3,
    .min_out = 1,
    .max_out = 4,
    .attrs = attrs,
    .shape = oct_dfl_head_shape,
    .ref = ref,
    .grad = oct_loss_grad,
};

static const oct_loss_setting settings[] = {
    {.name = "weight_box", .help = "weight of the boxes' overlap", .number = 7.5},
    {.name = "weight_cls", .help = "weight of the class scores", .number = .5},
    {.name = "weight_dfl", .help = "weight of the distances' distributions", .number = 1.5},
    {.name = "topk", .help = "anchors of a box", .number = 10},
    {.name = "alpha", .help = "exponent of the score when anchors are assigned", .number = .5},
    {.name = "beta", .help = "exponent of the overlap when anchors are assigned", .number = 6},
    {0},
};

static oct_status attach(const oct_loss_job *job, oct_loss_found *out)
{
    OCT_TRY(oct_dfl_attach(&oct_op_yolov8_loss, settings, job, out));
    out->times = (double)out->scores->type.dim[0];
    return OCT_OK;
}

const oct_loss_row oct_loss_yolov8 = {
    .name = "yolov8",
    .help = "YOLOv8 and YOLO11: cross entropy, CIoU, DFL on task-aligned anchors; times the batch",
    .family = "yolov8",
    .parts = {"box", "cls", "dfl"},
    .settings = settings,
    .has_boxes = true,
    .attach = attach,
};
