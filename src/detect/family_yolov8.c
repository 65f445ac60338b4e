/* SPDX-License-Identifier: Apache-2.0 */
/* YOLOv8, v9, v11: one output [n, 4 + classes, anchors]: centre, size, a score for each class. */
#include <stdio.h>

#include "detect/family.h"

enum { ROWS, COLUMNS }; /* forms: [4 + classes, anchors], or transposed */

/* Channels that segmentation networks put behind the classes: as many as the prototypes have. */
static int64_t n_mask_channels(const oct_net *net)
{
    const oct_type *t = oct_net_out(net, 1);

    return t && t->rank == 4 && t->dim[1] > 0 ? t->dim[1] : 0;
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
    classes = channels - 4 - n_mask_channels(net);
    if (classes < 1 || classes > INT16_MAX) return OCT_OK;
    OCT_TRY(oct_net_tail(net, net->g->outputs[0], oct_node_decodes_boxes, &decodes));
    r->scores = 0;
    r->n_classes = (int32_t)classes;
    r->levels = oct_net_levels(net, anchors, 1);
    if (r->form == ROWS) {
        *sure = r->levels.n ? OCT_SURE_YES : OCT_SURE_MAYBE;
    } else { /* looks like the rows of YOLOv5 and YOLOX: 80 classes speak for COCO */
        *sure = !r->levels.n || !decodes ? OCT_SURE_ASKED
                : classes == 80          ? OCT_SURE_LIKELY
                                         : OCT_SURE_MAYBE;
    }
    (void)snprintf(r->why, sizeof(r->why),
                   "output %s: %lld values (box and %d class scores) for each of %lld anchors%s",
                   r->form == ROWS ? "[n, 4 + classes, anchors]" : "[n, anchors, 4 + classes]",
                   (long long)channels, (int)classes, (long long)anchors,
                   r->levels.n ? ", one for each cell" : "");
    return OCT_OK;
}

/* Values lie `step` apart from anchor to anchor, `jump` from channel to channel. */
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

const oct_family oct_family_yolov8 = {
    .name = "yolov8",
    .help = "[n, 4 + classes, anchors]: centre x, y, width, height, class scores (v8, v9, v11)",
    .match = match,
    .decode = decode,
};
