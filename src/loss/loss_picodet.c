/* SPDX-License-Identifier: Apache-2.0 */
/* PicoDet: the first head (SimOTA) and v2, whose scores are roots of two probabilities' product. */
#include "loss/gfl.h"

#define PICODET_GIOU                                                                               \
    {                                                                                              \
        1e-10, false                                                                               \
    }
#define PICODET_ATSS                                                                               \
    {                                                                                              \
        .side = 5, .margin = 1e-9, .eps = 1e-10                                                    \
    }

const oct_gfl_form oct_gfl_picodet = {
    .name = "picodet",
    .is_varifocal = true,
    .counts_each = true,
    .at_least_1 = true,
    .offset = .5,
    .giou = PICODET_GIOU,
    .atss = PICODET_ATSS,
};

const oct_gfl_form oct_gfl_picodet_v2 = {
    .name = "picodet_v2",
    .is_varifocal = true,
    .is_probability = true,
    .at_least_1 = true,
    .offset = .5,
    .giou = PICODET_GIOU,
    .atss = PICODET_ATSS,
};

static const char *const first_assigners[] = {"simota", "atss", NULL};
static const char *const v2_assigners[] = {"tal", "atss", NULL};

static const oct_loss_setting first_settings[] = {
    {.name = "weight_cls", .help = "of scores", .number = 1},
    {.name = "weight_iou", .help = "of the overlap of boxes", .number = 2},
    {.name = "weight_dfl", .help = "of the distributions over distances", .number = .25},
    {.name = "topk", .help = "overlaps that decide how many anchors a box gets", .number = 10},
    {.name = "radius",
     .help = "in strides: how far from a box's centre anchors may be",
     .number = 2.5},
    {.name = "assigner",
     .help = "simota, or atss (with topk 9)",
     .words = first_assigners,
     .word = "simota"},
    {0},
};

static const oct_loss_setting v2_settings[] = {
    {.name = "weight_cls", .help = "of scores", .number = 1},
    {.name = "weight_iou", .help = "of the overlap of boxes", .number = 2.5},
    {.name = "weight_dfl", .help = "of the distributions over distances", .number = .5},
    {.name = "topk", .help = "anchors of a box; of each feature map with atss", .number = 13},
    {.name = "assigner",
     .help = "tal (task-aligned), or atss (with topk 9), which PicoDet has in the first third of "
             "training from scratch",
     .words = v2_assigners,
     .word = "tal"},
    {0},
};

static oct_status attach_first(const oct_loss_job *job, oct_loss_found *out)
{
    return oct_gfl_attach(&oct_gfl_picodet, first_settings, job, out);
}

static oct_status attach_v2(const oct_loss_job *job, oct_loss_found *out)
{
    return oct_gfl_attach(&oct_gfl_picodet_v2, v2_settings, job, out);
}

const oct_loss_row oct_loss_picodet = {
    .name = "picodet",
    .help = "PicoDet before v2 (ESNet): varifocal, GIoU, DFL with SimOTA",
    .family = "picodet",
    .parts = {"cls", "iou", "dfl"},
    .settings = first_settings,
    .has_boxes = true,
    .attach = attach_first,
};

const oct_loss_row oct_loss_picodet_v2 = {
    .name = "picodet_v2",
    .help = "PicoDet v2 (LCNet): varifocal, GIoU, DFL on task-aligned or ATSS anchors",
    .parts = {"cls", "iou", "dfl"},
    .settings = v2_settings,
    .has_boxes = true,
    .attach = attach_v2,
};
