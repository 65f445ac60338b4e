/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loss of YOLO-NAS and PP-YOLOE, as SuperGradients' PPYoloELoss has it: varifocal (or focal)
 * classification, GIoU and DFL, on anchors assigned by task alignment (TAL) or by ATSS.
 */
#include <stdio.h>
#include <string.h>

#include "loss/dfl_find.h"
#include "loss/dfl_head.h"
#include "loss/loss_op.h"
#include "op/grad/rules.h"
#include "op/op.h"

enum {
    ASSIGNER = OCT_DFL_ATTR_OWN,
    CLASSIFICATION,
    WEIGHT_CLS,
    WEIGHT_IOU,
    WEIGHT_DFL,
    TOPK,
    ALPHA,
    BETA,
    ATSS_EPOCHS
};

enum { TOPK_TAL = 13, TOPK_ATSS = 9, MAX_TOPK = 1024 };

/* From random weights one epoch in so many assigns by ATSS: TAL chooses anchors by what they
 * predict, and at first that leaves small objects without any. */
enum { ATSS_SHARE = 5 };

static const char *const assigners[] = {"tal", "atss", NULL};
static const char *const classifications[] = {"varifocal", "focal", NULL};

/* Is attribute i the second of two words? */
static oct_status is_second(const oct_node *n, int i, const char *const words[2], bool *out)
{
    *out = strcmp(n->attr[i].s, words[1]) == 0;
    if (!*out && strcmp(n->attr[i].s, words[0]) != 0)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "%s '%.40s': it is %s or %s",
                             n->op->attrs[i].name, n->attr[i].s, words[0], words[1]);
    return OCT_OK;
}

static void use_atss(oct_dfl_loss *loss)
{
    loss->is_atss = true;
    loss->focal_alpha = .25;
}

static oct_status read_attrs(const oct_node *n, oct_dfl_loss *out)
{
    const int64_t topk = oct_int(n, TOPK);
    bool is_focal;

    *out = (oct_dfl_loss){.weight = {[OCT_DFL_CLASSES] = (double)oct_f32(n, WEIGHT_CLS),
                                     [OCT_DFL_BOXES] = (double)oct_f32(n, WEIGHT_IOU),
                                     [OCT_DFL_DISTANCES] = (double)oct_f32(n, WEIGHT_DFL)}};
    OCT_TRY(is_second(n, ASSIGNER, assigners, &out->is_atss));
    OCT_TRY(is_second(n, CLASSIFICATION, classifications, &is_focal));
    if (topk < 0 || topk > MAX_TOPK)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "topk %lld: it is from 0 to %d",
                             (long long)topk, MAX_TOPK);
    out->term = is_focal ? OCT_CLASS_FOCAL : OCT_CLASS_VARIFOCAL;
    out->focal_alpha = -1;
    out->tal = (oct_tal){.topk = topk ? topk : TOPK_TAL,
                         .alpha = (double)oct_f32(n, ALPHA),
                         .beta = (double)oct_f32(n, BETA)};
    out->atss =
        (oct_atss){.topk = topk ? topk : TOPK_ATSS, .side = 5, .margin = 1e-9, .eps = 1e-10};
    if (out->is_atss) use_atss(out);
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    static const int order[] = {OCT_DFL_CLASSES, OCT_DFL_BOXES, OCT_DFL_DISTANCES};
    oct_dfl_loss loss;
    double epoch = 0;

    OCT_TRY(read_attrs(a->node, &loss));
    if (oct_args_in(a, OCT_DFL_EPOCH)) {
        oct_load_f64(a->in[OCT_DFL_EPOCH]->type.dtype, a->in[OCT_DFL_EPOCH]->data, 0, 1, &epoch);
        if (epoch < (double)oct_f32(a->node, ATSS_EPOCHS)) use_atss(&loss);
    }
    return oct_dfl_head_ref(a, &loss, order);
}

static const oct_attr_def attrs[] = {
    OCT_DFL_ATTRS,
    [ASSIGNER] = {.name = "assigner", .kind = OCT_ATTR_STRING, .def = {.s = "tal"}, .n_def = 3},
    [CLASSIFICATION] = {.name = "classification",
                        .kind = OCT_ATTR_STRING,
                        .def = {.s = "varifocal"},
                        .n_def = 9},
    [WEIGHT_CLS] = {.name = "weight_cls", .kind = OCT_ATTR_F32, .def = {.f = 1}},
    [WEIGHT_IOU] = {.name = "weight_iou", .kind = OCT_ATTR_F32, .def = {.f = 2.5F}},
    [WEIGHT_DFL] = {.name = "weight_dfl", .kind = OCT_ATTR_F32, .def = {.f = .5F}},
    [TOPK] = {.name = "topk", .kind = OCT_ATTR_INT},
    [ALPHA] = {.name = "alpha", .kind = OCT_ATTR_F32, .def = {.f = 1}},
    [BETA] = {.name = "beta", .kind = OCT_ATTR_F32, .def = {.f = 6}},
    [ATSS_EPOCHS] = {.name = "atss_epochs", .kind = OCT_ATTR_F32},
    {0},
};

const oct_op oct_op_yolo_nas_loss = {
    .name = "YoloNasLoss",
    .domain = OCT_TRAIN_DOMAIN,
    .min_in = 3,
    .max_in = 4,
    .min_out = 1,
    .max_out = 4,
    .attrs = attrs,
    .shape = oct_dfl_head_shape,
    .ref = ref,
    .grad = oct_loss_grad,
};

enum { ATSS_EPOCHS_SETTING = 8 };

static const oct_loss_setting settings[] = {
    {.name = "assigner",
     .help = "which anchors have to predict a box: tal (task-aligned), or atss",
     .words = assigners,
     .word = "tal"},
    {.name = "classification",
     .help = "the term of class scores",
     .words = classifications,
     .word = "varifocal"},
    {.name = "weight_cls", .help = "weight of the class scores", .number = 1},
    {.name = "weight_iou", .help = "weight of the boxes' overlap", .number = 2.5},
    {.name = "weight_dfl", .help = "weight of the distances' distributions", .number = .5},
    {.name = "topk", .help = "anchors of a box; 0: 13 with tal, 9 of each level with atss"},
    {.name = "alpha", .help = "tal: exponent of the score", .number = 1},
    {.name = "beta", .help = "tal: exponent of the overlap", .number = 6},
    [ATSS_EPOCHS_SETTING] = {.name = "atss_epochs",
                             .help = "the first epochs, this many, assign by atss, whose choice "
                                     "does not need good predictions; -1: a fifth of all when "
                                     "training begins with random weights, else none",
                             .number = -1},
    {0},
};

static oct_status attach(const oct_loss_job *job, oct_loss_found *out)
{
    oct_loss_job j = *job;
    double *epochs = &j.number[ATSS_EPOCHS_SETTING];
    size_t len;

    if (*epochs < 0) *epochs = j.scratch_epochs / ATSS_SHARE;
    OCT_TRY(oct_dfl_attach(&oct_op_yolo_nas_loss, settings, &j, out));
    len = strlen(out->why);
    if (*epochs > 0)
        (void)snprintf(out->why + len, sizeof(out->why) - len, "; ATSS for the first %.0f epochs",
                       *epochs);
    return OCT_OK;
}

const oct_loss_row oct_loss_yolo_nas = {
    .name = "yolo_nas",
    .help = "YOLO-NAS and PP-YOLOE: varifocal, GIoU, DFL on task-aligned or ATSS anchors",
    .family = "yolo-nas",
    .parts = {"cls", "iou", "dfl"},
    .settings = settings,
    .has_boxes = true,
    .has_epochs = true,
    .attach = attach,
};
