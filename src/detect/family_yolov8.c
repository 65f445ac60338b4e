/* SPDX-License-Identifier: Apache-2.0 */
/* YOLOv8, v9, v11: one output [n, 4 + classes, anchors]: centre, size, a score for each class. */
#include <stdio.h>
#include <string.h>

#include "detect/attach.h"
#include "op/grad/rules.h"

enum { ROWS, COLUMNS }; /* forms: [4 + classes, anchors], or transposed */

/*
 * How many of the channels after the box are classes. Masks, keypoints and angles come last; the
 * file's metadata says which of them there are.
 */
static int64_t count_classes(const oct_net *net, int64_t channels, oct_reading *r)
{
    const oct_metadata *m = &net->says;
    const int64_t names = oct_class_names_size(m->names), masks = oct_net_mask_channels(net);
    const int64_t left = channels - 4;

    if (strcmp(m->task, "pose") == 0) {
        if (m->n_keypoint_values && left > m->n_keypoint_values) return left - m->n_keypoint_values;
        if (names && names < left) return names;
        r->cannot = "a network for poses whose file does not say how many classes it has ('names' "
                    "or 'kpt_shape' in its metadata): boxes cannot be told from keypoints";
        return left;
    }
    if (strcmp(m->task, "obb") == 0) {
        r->cannot =
            "the boxes of this network are rotated (task obb); octet reads upright ones only. "
            "It can be quantized, but not scored";
        return left - 1;
    }
    if (strcmp(m->task, "segment") == 0 && names && names < left) return names;
    return left - masks;
}

/* What such a network outputs besides boxes. */
static const char *left_out(const oct_net *net)
{
    if (strcmp(net->says.task, "pose") == 0)
        return "; a network for poses: only its boxes are read";
    if (strcmp(net->says.task, "segment") == 0 || oct_net_mask_channels(net))
        return "; a network for masks: only its boxes are read";
    return "";
}

/* Confidence for rows [anchors, 4 + classes], which look like those of YOLOv5 and YOLOX. */
static int32_t columns_sure(const oct_net *net, const oct_reading *r, bool decodes)
{
    const int32_t names = oct_class_names_size(net->says.names);

    if (!r->levels.n || !decodes) return OCT_SURE_ASKED;
    if (names) return names == r->n_classes ? OCT_SURE_YES : OCT_SURE_ASKED;
    return r->n_classes == 80 ? OCT_SURE_LIKELY : OCT_SURE_MAYBE; /* 80 classes suggest COCO */
}

/* For rows [4 + classes, anchors]. A row of characters' scores for each place in a line of text has
 * this form too, but neither anchors nor boxes. */
static int32_t rows_sure(const oct_reading *r, bool decodes)
{
    if (r->levels.n) return OCT_SURE_YES;
    return decodes ? OCT_SURE_MAYBE : OCT_SURE_ASKED;
}

static oct_status match(const oct_net *net, oct_reading *r, int32_t *sure)
{
    const oct_type *t = oct_net_out(net, 0);
    int64_t channels, anchors, classes;
    bool decodes;

    if (!t || t->rank != 3 || t->dim[1] < 5 || t->dim[2] < 5) return OCT_OK;
    r->form = t->dim[1] < t->dim[2] ? ROWS : COLUMNS;
    channels = t->dim[r->form == ROWS ? 1 : 2];
    anchors = t->dim[r->form == ROWS ? 2 : 1];
    classes = count_classes(net, channels, r);
    if (classes < 1 || classes > INT16_MAX) return OCT_OK;
    OCT_TRY(oct_net_tail(net, net->g->outputs[0], oct_node_decodes_boxes, &decodes));
    r->scores = 0;
    r->n_classes = (int32_t)classes;
    r->levels = oct_net_levels(net, anchors, 1);
    *sure = r->form == COLUMNS ? columns_sure(net, r, decodes) : rows_sure(r, decodes);
    (void)snprintf(r->why, sizeof(r->why),
                   "output %s: %lld values (box and %d class scores) for each of %lld anchors%s%s",
                   r->form == ROWS ? "[n, 4 + classes, anchors]" : "[n, anchors, 4 + classes]",
                   (long long)channels, (int)classes, (long long)anchors,
                   r->levels.n ? ", one for each cell" : "", left_out(net));
    return OCT_OK;
}

/* Elements are `step` apart from anchor to anchor, `jump` from channel to channel. */
static void push(const oct_decoding *d, const float *x, int64_t jump, int64_t anchor, int64_t class)
{
    const float cx = x[0], cy = x[jump], w = x[2 * jump], h = x[3 * jump];

    oct_candidates_push(d->found,
                        &(oct_candidate){.x1 = cx - w * 0.5f,
                                         .y1 = cy - h * 0.5f,
                                         .x2 = cx + w * 0.5f,
                                         .y2 = cy + h * 0.5f,
                                         .score = x[(4 + class) * jump],
                                         .category = (int32_t) class,
                                         .index = anchor * d->reading->n_classes + class});
}

static oct_status decode(oct_decoding *d)
{
    const int64_t classes = d->reading->n_classes;
    const bool rows = d->reading->form == ROWS;
    oct_view v;

    OCT_TRY(oct_decoding_view(d, 0, 2, &v));
    if (v.dim[rows ? 0 : 1] < 4 + classes) return oct_decoding_misfit(d, 0);
    for (int64_t c = 0; c < classes && rows; c++) {
        const int64_t n = v.dim[1];
        const float *s = v.x + (4 + c) * n;

        for (int64_t i = oct_find_above(s, n, 0, d->threshold); i < n;
             i = oct_find_above(s, n, i + 1, d->threshold))
            push(d, v.x + i, n, i, c);
    }
    for (int64_t i = 0; i < v.dim[0] && !rows; i++) {
        const float *x = v.x + i * v.dim[1];

        for (int64_t c = oct_find_above(x + 4, classes, 0, d->threshold); c < classes;
             c = oct_find_above(x + 4, classes, c + 1, d->threshold))
            push(d, x, 1, i, c);
    }
    return OCT_OK;
}

static oct_status attach(oct_builder *b, const oct_reading *r, oct_head *out)
{
    oct_value *v = b->g->outputs[0];

    if (r->form == ROWS) v = oct_grad_transpose(b, v, (int64_t[]){0, 2, 1});
    out->boxes = oct_attach_corners(b, v);
    out->scores = oct_grad_part(b, v, 2, 4, 4 + r->n_classes);
    return b->status;
}

const oct_family oct_family_yolov8 = {
    .name = "yolov8",
    .help = "[n, 4 + classes, anchors]: centre x, y, width, height, class scores (v8, v9, v11)",
    .match = match,
    .decode = decode,
    .attach = attach,
};
