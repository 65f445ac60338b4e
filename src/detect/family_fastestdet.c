/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FastestDet: one feature map of stride 16, [n, 1 + 4 + classes, rows, columns]. A cell has whether
 * anything is there (sigmoid), a box (offset of the centre by tanh, size by sigmoid, both as parts
 * of the picture), and the classes (softmax).
 */
#include <math.h>
#include <stdio.h>

#include "detect/attach.h"
#include "op/grad/rules.h"

enum { STRIDE = 16, OBJECT = 0, BOX = 1, CLASSES = 5 };

static oct_status match(const oct_net *net, oct_reading *r, int32_t *sure)
{
    const oct_type *t = oct_net_out(net, 0);
    bool softmax, sigmoid;

    if (net->g->n_outputs != 1 || t->rank != 4 || t->dim[1] <= CLASSES ||
        t->dim[1] - CLASSES > INT16_MAX)
        return OCT_OK;
    if (t->dim[2] != (net->height + STRIDE - 1) / STRIDE ||
        t->dim[3] != (net->width + STRIDE - 1) / STRIDE || t->dim[2] * t->dim[3] < 2)
        return OCT_OK;
    r->boxes = r->scores = 0;
    r->n_classes = (int32_t)(t->dim[1] - CLASSES);
    OCT_TRY(oct_net_tail(net, net->g->outputs[0], oct_node_is_softmax, &softmax));
    OCT_TRY(oct_net_tail(net, net->g->outputs[0], oct_node_is_sigmoid, &sigmoid));
    /* any network with a map of this size would fit otherwise */
    *sure = softmax && sigmoid ? OCT_SURE_YES : OCT_SURE_ASKED;
    (void)snprintf(
        r->why, sizeof(r->why),
        "output [n, 5 + %d classes, %lld, %lld]: object, box and classes of each cell of "
        "stride 16",
        (int)r->n_classes, (long long)t->dim[2], (long long)t->dim[3]);
    return OCT_OK;
}

static void preprocess(const oct_reading *r, oct_preprocess *p)
{
    (void)r;
    p->fit = OCT_FIT_STRETCH;
    p->color = OCT_COLOR_BGR;
}

static oct_status decode(oct_decoding *d)
{
    const oct_reading *r = d->reading;
    int64_t cells, wide, high;
    oct_view v;

    OCT_TRY(oct_decoding_view(d, 0, 3, &v));
    if (v.dim[0] != CLASSES + r->n_classes) return oct_decoding_misfit(d, 0);
    high = v.dim[1];
    wide = v.dim[2];
    cells = high * wide;
    for (int64_t i = 0; i < cells; i++) {
        const float *x = v.x + i;
        const float object = powf(fmaxf(x[OBJECT * cells], 0), 0.6f);
        const float cx = (tanhf(x[BOX * cells]) + (float)(i % wide)) / (float)wide;
        const float cy = (tanhf(x[(BOX + 1) * cells]) + (float)(i / wide)) / (float)high;
        const float w = oct_sigmoid(x[(BOX + 2) * cells]), h = oct_sigmoid(x[(BOX + 3) * cells]);
        oct_candidate box = {.x1 = (cx - w * 0.5f) * (float)r->width,
                             .y1 = (cy - h * 0.5f) * (float)r->height,
                             .x2 = (cx + w * 0.5f) * (float)r->width,
                             .y2 = (cy + h * 0.5f) * (float)r->height};

        for (int32_t k = 0; k < r->n_classes && object > d->threshold; k++) {
            box.score = object * powf(fmaxf(x[(CLASSES + k) * cells], 0), 0.4f);
            if (!(box.score > d->threshold)) continue;
            box.category = k;
            box.index = i * r->n_classes + k;
            oct_candidates_push(d->found, &box);
        }
    }
    return OCT_OK;
}

/* The parts of a cell's numbers, and the cells of the grid, each one after the other. */
static oct_status attach(oct_builder *b, const oct_reading *r, oct_head *out)
{
    const int64_t wide = (r->width + STRIDE - 1) / STRIDE, high = (r->height + STRIDE - 1) / STRIDE;
    const float w = (float)r->width, h = (float)r->height;
    const float cell[] = {w / (float)wide, h / (float)high}, size[] = {w, h};
    oct_reading map = *r;
    oct_value *v, *grid, *object, *classes, *box[2];

    map.levels = (oct_levels){1, {STRIDE}};
    v = oct_emit(b, &oct_op_reshape, b->g->outputs[0],
                 oct_ints(b, (int64_t[]){0, CLASSES + r->n_classes, wide * high}, 3), NULL);
    v = oct_grad_transpose(b, v, (int64_t[]){0, 2, 1});
    grid = oct_grad_scale(b, oct_attach_grid(b, &map, 0, 0), 1.0 / STRIDE);
    box[0] = oct_emit(b, &oct_op_tanh, oct_grad_part(b, v, 2, BOX, BOX + 2), NULL, NULL);
    box[0] = oct_emit(b, &oct_op_add, box[0], grid, NULL);
    box[0] =
        oct_emit(b, &oct_op_mul, box[0], oct_attach_floats(b, 3, (int64_t[]){1, 1, 2}, cell), NULL);
    box[1] = oct_emit(b, &oct_op_sigmoid, oct_grad_part(b, v, 2, BOX + 2, BOX + 4), NULL, NULL);
    box[1] =
        oct_emit(b, &oct_op_mul, box[1], oct_attach_floats(b, 3, (int64_t[]){1, 1, 2}, size), NULL);
    out->boxes = oct_attach_corners(b, oct_attach_concat(b, 2, box, 2));
    object = oct_emit(b, &oct_op_relu, oct_grad_part(b, v, 2, OBJECT, OBJECT + 1), NULL, NULL);
    object = oct_emit(b, &oct_op_pow, object, oct_scalar(b, 0.6f), NULL);
    classes = oct_grad_part(b, v, 2, CLASSES, CLASSES + r->n_classes);
    classes = oct_emit(b, &oct_op_relu, classes, NULL, NULL);
    classes = oct_emit(b, &oct_op_pow, classes, oct_scalar(b, 0.4f), NULL);
    out->scores = oct_emit(b, &oct_op_mul, object, classes, NULL);
    return b->status;
}

const oct_family oct_family_fastestdet = {
    .name = "fastestdet",
    .help = "[n, 5 + classes, rows, columns] of stride 16: object, box, class scores (FastestDet)",
    .match = match,
    .preprocess = preprocess,
    .decode = decode,
    .attach = attach,
};
