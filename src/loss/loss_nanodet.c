/* SPDX-License-Identifier: Apache-2.0 */
/* NanoDet: the legacy head (nanodet-m: GFL with ATSS) and NanoDet-Plus (dynamic soft labels). */
#include "loss/gfl.h"

#define NANODET_GIOU                                                                               \
    {                                                                                              \
        1e-7, true                                                                                 \
    }

/* Points are where octet's decoder has them: half a pixel before the centres of cells. */
const oct_gfl_form oct_gfl_nanodet = {
    .name = "nanodet",
    .counts_each = true,
    .offset = .5,
    .shift = -.5,
    .giou = NANODET_GIOU,
    .atss = {.side = 5, .margin = .01, .among_takers = true},
};

/* Points are the corners of cells. */
const oct_gfl_form oct_gfl_nanodet_plus = {
    .name = "nanodet_plus",
    .at_least_1 = true,
    .giou = NANODET_GIOU,
    .atss = {.side = 5, .margin = .01, .among_takers = true},
};

static const char *const legacy_assigners[] = {"atss", "dsl", NULL};
static const char *const plus_assigners[] = {"dsl", "atss", NULL};

#define WEIGHTS                                                                                    \
    {.name = "weight_cls", .help = "of scores", .number = 1},                                      \
        {.name = "weight_iou", .help = "of the overlap of boxes", .number = 2},                    \
    {                                                                                              \
        .name = "weight_dfl", .help = "of the distributions over distances", .number = .25         \
    }

static const oct_loss_setting legacy_settings[] = {
    WEIGHTS,
    {.name = "topk", .help = "candidates of a box in each feature map", .number = 9},
    {.name = "assigner",
     .help = "atss, or dsl as NanoDet-Plus has it (with topk 13)",
     .words = legacy_assigners,
     .word = "atss"},
    {0},
};

static const oct_loss_setting plus_settings[] = {
    WEIGHTS,
    {.name = "topk", .help = "overlaps that decide how many anchors a box gets", .number = 13},
    {.name = "assigner",
     .help = "dsl (dynamic soft labels), or atss (with topk 9)",
     .words = plus_assigners,
     .word = "dsl"},
    {0},
};

static oct_status attach_legacy(const oct_loss_job *job, oct_loss_found *out)
{
    return oct_gfl_attach(&oct_gfl_nanodet, legacy_settings, job, out);
}

static oct_status attach_plus(const oct_loss_job *job, oct_loss_found *out)
{
    return oct_gfl_attach(&oct_gfl_nanodet_plus, plus_settings, job, out);
}

const oct_loss_row oct_loss_nanodet = {
    .name = "nanodet",
    .help = "NanoDet before Plus: quality focal, GIoU, DFL with ATSS",
    .family = "nanodet",
    .parts = {"cls", "iou", "dfl"},
    .settings = legacy_settings,
    .has_boxes = true,
    .attach = attach_legacy,
};

const oct_loss_row oct_loss_nanodet_plus = {
    .name = "nanodet_plus",
    .help = "NanoDet-Plus: quality focal, GIoU, DFL with dynamic soft labels",
    .parts = {"cls", "iou", "dfl"},
    .settings = plus_settings,
    .has_boxes = true,
    .attach = attach_plus,
};
