/* SPDX-License-Identifier: Apache-2.0 */
/* YOLOv5, v7: [n, anchors, 5 + classes]: centre, size, objectness, a score for each class. */
#include <math.h>
#include <stdio.h>

#include "detect/attach.h"
#include "op/grad/rules.h"

static oct_status match(const oct_net *net, oct_reading *r, int32_t *sure)
{
    const oct_type *t = oct_net_out(net, 0);
    bool decodes;

    if (!t || t->rank != 3 || t->dim[1] < t->dim[2] || t->dim[2] < 6 || t->dim[2] > INT16_MAX)
        return OCT_OK;
    OCT_TRY(oct_net_tail(net, net->g->outputs[0], oct_node_decodes_boxes, &decodes));
    r->scores = 0;
    r->n_classes = (int32_t)(t->dim[2] - 5 - oct_net_mask_channels(net));
    if (r->n_classes < 1) return OCT_OK;
    r->levels = oct_net_levels(net, t->dim[1], 3);
    if (r->levels.n) {
        *sure = OCT_SURE_YES;
    } else if ((r->levels = oct_net_levels(net, t->dim[1], 1)).n) {
        /* One anchor a cell: YOLOv6, or YOLOX that decodes inside; the same rows. */
        *sure = !decodes ? OCT_SURE_ASKED : r->n_classes == 80 ? OCT_SURE_LIKELY : OCT_SURE_MAYBE;
    } else {
        *sure = OCT_SURE_ASKED;
    }
    if (oct_class_names_size(net->says.names) == r->n_classes && *sure == OCT_SURE_MAYBE)
        *sure = OCT_SURE_LIKELY; /* so many classes there are */
    (void)snprintf(r->why, sizeof(r->why),
                   "output [n, anchors, 5 + classes]: decoded boxes, objectness and %d class "
                   "scores for %lld anchors%s%s",
                   (int)r->n_classes, (long long)t->dim[1],
                   *sure == OCT_SURE_YES ? ", three for each cell" : "",
                   oct_net_mask_channels(net) ? "; masks are not read" : "");
    return OCT_OK;
}

/* Are boxes fractions of the picture? Pixels would be far above 2 somewhere. */
static bool is_unit(const oct_view *v)
{
    float most = 0;

    for (int64_t i = 0; i < v->dim[0]; i++)
        for (int k = 0; k < 4; k++)
            most = fmaxf(most, v->x[i * v->dim[1] + k]);
    return most <= 2;
}

static oct_status decode(oct_decoding *d)
{
    const int64_t classes = d->reading->n_classes;
    float sx, sy;
    oct_view v;

    OCT_TRY(oct_decoding_view(d, 0, 2, &v));
    if (v.dim[1] < 5 + classes) return oct_decoding_misfit(d, 0);
    sx = is_unit(&v) ? (float)d->reading->width : 1;
    sy = sx != 1 ? (float)d->reading->height : 1;
    for (int64_t i = 0; i < v.dim[0]; i++) {
        const float *x = v.x + i * v.dim[1], objectness = x[4];
        oct_candidate box = {.x1 = (x[0] - x[2] * 0.5f) * sx,
                             .y1 = (x[1] - x[3] * 0.5f) * sy,
                             .x2 = (x[0] + x[2] * 0.5f) * sx,
                             .y2 = (x[1] + x[3] * 0.5f) * sy};

        if (!(objectness > d->threshold)) continue; /* no class score is above 1 */
        for (int64_t c = 0; c < classes; c++) {
            box.score = objectness * x[5 + c];
            if (!(box.score > d->threshold)) continue;
            box.category = (int32_t)c;
            box.index = i * classes + c;
            oct_candidates_push(d->found, &box);
        }
    }
    return OCT_OK;
}

static oct_status attach(oct_builder *b, const oct_reading *r, oct_head *out)
{
    oct_value *v = b->g->outputs[0], *classes = oct_grad_part(b, v, 2, 5, 5 + r->n_classes);

    out->boxes = oct_attach_corners(b, oct_attach_pixels(b, oct_grad_part(b, v, 2, 0, 4), r));
    out->scores = oct_emit(b, &oct_op_mul, oct_grad_part(b, v, 2, 4, 5), classes, NULL);
    return b->status;
}

const oct_family oct_family_yolov5 = {
    .name = "yolov5",
    .help = "[n, anchors, 5 + classes]: centre x, y, width, height (pixels or 0..1), objectness, "
            "class scores (v5, v6, v7)",
    .match = match,
    .decode = decode,
    .attach = attach,
};
