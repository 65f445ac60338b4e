/* SPDX-License-Identifier: Apache-2.0 */
/* YOLOX: [n, cells, 5 + classes], not decoded: offsets in the cell, logarithms of sizes. */
#include <math.h>
#include <stdio.h>

#include "detect/attach.h"
#include "op/grad/rules.h"

/*
 * The shape is that of YOLOv5. Two things distinguish them: YOLOX has one anchor for each cell of
 * strides 8, 16, 32, not three; and no node after its last convolutions computes exponents or adds
 * a grid.
 */
static oct_status match(const oct_net *net, oct_reading *r, int32_t *sure)
{
    const oct_type *t = oct_net_out(net, 0);
    bool decodes;

    if (!t || t->rank != 3 || t->dim[1] < t->dim[2] || t->dim[2] < 6 || t->dim[2] > INT16_MAX)
        return OCT_OK;
    r->levels = oct_net_levels(net, t->dim[1], 1);
    if (!r->levels.n) return OCT_OK; /* without the grid nothing can be decoded */
    OCT_TRY(oct_net_tail(net, net->g->outputs[0], oct_node_decodes_boxes, &decodes));
    r->scores = 0;
    r->n_classes = (int32_t)t->dim[2] - 5;
    *sure = decodes ? OCT_SURE_ASKED : OCT_SURE_YES;
    (void)snprintf(
        r->why, sizeof(r->why),
        "output [n, cells, 5 + classes]: %lld cells of strides %d to %d, %d classes, and "
        "no box arithmetic after the last convolutions",
        (long long)t->dim[1], (int)r->levels.stride[0], (int)r->levels.stride[r->levels.n - 1],
        (int)r->n_classes);
    return OCT_OK;
}

static void preprocess(const oct_reading *r, oct_preprocess *p)
{
    (void)r;
    p->fit = OCT_FIT_LETTERBOX_TOP_LEFT;
    p->color = OCT_COLOR_BGR;
    p->scale = 1;
}

static void decode_cell(oct_decoding *d, const float *x, int64_t index, float cell_x, float cell_y,
                        float stride)
{
    const int32_t classes = d->reading->n_classes;
    const float objectness = x[4];
    float cx, cy, w, h;
    oct_candidate box;

    if (!(objectness > d->threshold)) return; /* no class score is above 1 */
    cx = (x[0] + cell_x) * stride;
    cy = (x[1] + cell_y) * stride;
    w = expf(x[2]) * stride * 0.5f;
    h = expf(x[3]) * stride * 0.5f;
    box = (oct_candidate){.x1 = cx - w, .y1 = cy - h, .x2 = cx + w, .y2 = cy + h};
    for (int32_t c = 0; c < classes; c++) {
        box.score = objectness * x[5 + c];
        if (!(box.score > d->threshold)) continue;
        box.category = c;
        box.index = index * classes + c;
        oct_candidates_push(d->found, &box);
    }
}

static oct_status decode(oct_decoding *d)
{
    const oct_reading *r = d->reading;
    int64_t at = 0;
    oct_view v;

    OCT_TRY(oct_decoding_view(d, 0, 2, &v));
    if (v.dim[1] != 5 + (int64_t)r->n_classes) return oct_decoding_misfit(d, 0);
    for (int32_t l = 0; l < r->levels.n; l++) {
        const int32_t s = r->levels.stride[l];
        const int64_t wide = (r->width + s - 1) / s, high = (r->height + s - 1) / s;

        if (at + wide * high > v.dim[0]) return oct_decoding_misfit(d, 0);
        for (int64_t i = 0; i < wide * high; i++, at++)
            decode_cell(d, v.x + at * v.dim[1], at, (float)(i % wide), (float)(i / wide), (float)s);
    }
    return OCT_OK;
}

static oct_status attach(oct_builder *b, const oct_reading *r, oct_head *out)
{
    oct_value *v = b->g->outputs[0], *strides = oct_attach_strides(b, r), *box[2];
    oct_value *classes = oct_grad_part(b, v, 2, 5, 5 + r->n_classes);

    box[0] = oct_emit(b, &oct_op_mul, oct_grad_part(b, v, 2, 0, 2), strides, NULL);
    box[0] = oct_emit(b, &oct_op_add, box[0], oct_attach_grid(b, r, 0, 0), NULL);
    box[1] = oct_emit(b, &oct_op_exp, oct_grad_part(b, v, 2, 2, 4), NULL, NULL);
    box[1] = oct_emit(b, &oct_op_mul, box[1], strides, NULL);
    out->boxes = oct_attach_corners(b, oct_attach_concat(b, 2, box, 2));
    out->scores = oct_emit(b, &oct_op_mul, oct_grad_part(b, v, 2, 4, 5), classes, NULL);
    return b->status;
}

const oct_family oct_family_yolox = {
    .name = "yolox",
    .help = "[n, cells, 5 + classes], not decoded: offset x, y, log width, height in strides, "
            "objectness, class scores",
    .match = match,
    .preprocess = preprocess,
    .decode = decode,
    .attach = attach,
};
