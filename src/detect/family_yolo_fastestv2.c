/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YOLO-FastestV2: strides 16 and 32, three anchors each, which share a cell's classes. Exported as
 * [n, rows, columns, 12 + 3 + classes] with sigmoid and softmax inside, or as three outputs for
 * each stride, [n, 12 or 3 or classes, rows, columns], before them. The sizes of the anchors are
 * not in the file: those of COCO at 352 pixels are taken, scaled to the input.
 */
#include <math.h>
#include <stdio.h>

#include "detect/attach.h"
#include "op/grad/rules.h"

enum { N_STRIDES = 2, N_ANCHORS = 3, BOXES = 4 * N_ANCHORS, FIRST_STRIDE = 16 };

enum { JOINED, APART }; /* forms */

static const float anchors[N_STRIDES][N_ANCHORS][2] = {
    {{12.64f, 19.39f}, {37.88f, 51.48f}, {55.71f, 138.31f}},
    {{126.91f, 78.23f}, {131.57f, 214.55f}, {279.92f, 258.87f}}};
static const float anchor_side = 352;

/* Rows and columns of a stride's map. */
static bool is_map(const oct_net *net, int stride, int64_t rows, int64_t columns)
{
    return rows == (net->height + stride - 1) / stride &&
           columns == (net->width + stride - 1) / stride;
}

static bool match_joined(const oct_net *net, oct_reading *r)
{
    for (int l = 0; l < N_STRIDES; l++) {
        r->level_boxes[l] = -1;
        for (int32_t i = 0; i < net->g->n_outputs; i++) {
            const oct_type *t = oct_net_out(net, i);

            if (t->rank != 4 || !is_map(net, FIRST_STRIDE << l, t->dim[1], t->dim[2]) ||
                t->dim[3] <= BOXES + N_ANCHORS || t->dim[3] > INT16_MAX)
                continue;
            r->level_boxes[l] = i;
            r->n_classes = (int32_t)t->dim[3] - BOXES - N_ANCHORS;
        }
        if (r->level_boxes[l] < 0) return false;
    }
    return oct_net_out(net, r->level_boxes[0])->dim[3] ==
           oct_net_out(net, r->level_boxes[1])->dim[3];
}

/* Boxes in level_boxes, classes in level_scores, objects in extra. */
static bool match_apart(const oct_net *net, oct_reading *r)
{
    int32_t classes[N_STRIDES] = {0, 0};

    for (int l = 0; l < N_STRIDES; l++) {
        r->level_boxes[l] = r->level_scores[l] = r->extra[l] = -1;
        for (int32_t i = 0; i < net->g->n_outputs; i++) {
            const oct_type *t = oct_net_out(net, i);

            if (t->rank != 4 || !is_map(net, FIRST_STRIDE << l, t->dim[2], t->dim[3])) continue;
            if (t->dim[1] == BOXES && r->level_boxes[l] < 0)
                r->level_boxes[l] = i;
            else if (t->dim[1] == N_ANCHORS && r->extra[l] < 0)
                r->extra[l] = i;
            else if (t->dim[1] > 0 && t->dim[1] <= INT16_MAX) {
                r->level_scores[l] = i;
                classes[l] = (int32_t)t->dim[1];
            }
        }
        if (r->level_boxes[l] < 0 || r->level_scores[l] < 0 || r->extra[l] < 0) return false;
    }
    r->n_classes = classes[0];
    return classes[0] == classes[1];
}

static oct_status match(const oct_net *net, oct_reading *r, int32_t *sure)
{
    if (net->g->n_outputs == N_STRIDES && match_joined(net, r))
        r->form = JOINED;
    else if (net->g->n_outputs == 3 * N_STRIDES && match_apart(net, r))
        r->form = APART;
    else
        return OCT_OK;
    *sure = OCT_SURE_YES;
    (void)snprintf(r->why, sizeof(r->why),
                   "%d outputs of strides 16 and 32: boxes and objects of %d anchors, and %d "
                   "classes; anchors of COCO are taken",
                   (int)net->g->n_outputs, (int)N_ANCHORS, (int)r->n_classes);
    return OCT_OK;
}

static void preprocess(const oct_reading *r, oct_preprocess *p)
{
    (void)r;
    p->fit = OCT_FIT_STRETCH;
    p->color = OCT_COLOR_BGR;
}

/* A stride's numbers: element k of cell i is x[k * jump + i * step]. */
typedef struct map {
    const float *boxes, *objects, *classes;
    int64_t jump, step, rows, columns;
    int level;
    bool is_raw;
} map;

static oct_status open_map(oct_decoding *d, int l, map *m)
{
    const oct_reading *r = d->reading;
    oct_view boxes, objects, classes;

    OCT_TRY(oct_decoding_view(d, r->level_boxes[l], 3, &boxes));
    *m = (map){.boxes = boxes.x, .level = l, .is_raw = r->form == APART};
    if (!m->is_raw) {
        const int64_t n = boxes.dim[2];

        if (n != BOXES + N_ANCHORS + r->n_classes) return oct_decoding_misfit(d, r->level_boxes[l]);
        m->objects = boxes.x + BOXES;
        m->classes = m->objects + N_ANCHORS;
        m->jump = 1;
        m->step = n;
        m->rows = boxes.dim[0];
        m->columns = boxes.dim[1];
        return OCT_OK;
    }
    OCT_TRY(oct_decoding_view(d, r->extra[l], 3, &objects));
    OCT_TRY(oct_decoding_view(d, r->level_scores[l], 3, &classes));
    m->rows = boxes.dim[1];
    m->columns = boxes.dim[2];
    m->jump = m->rows * m->columns;
    m->step = 1;
    if (objects.dim[1] * objects.dim[2] != m->jump || classes.dim[1] * classes.dim[2] != m->jump ||
        boxes.dim[0] != BOXES || objects.dim[0] != N_ANCHORS || classes.dim[0] != r->n_classes)
        return oct_decoding_misfit(d, r->level_boxes[l]);
    m->objects = objects.x;
    m->classes = classes.x;
    return OCT_OK;
}

static float part(const map *m, float x)
{
    return m->is_raw ? oct_sigmoid(x) : x;
}

/* 1, or what the exponents of a cell's logits have to be divided by, and the largest. */
static float classes_sum(const map *m, int64_t cell, int32_t n, float *top)
{
    float sum = 0;

    *top = 0;
    if (!m->is_raw) return 1;
    *top = m->classes[cell * m->step];
    for (int32_t k = 1; k < n; k++)
        *top = fmaxf(*top, m->classes[k * m->jump + cell * m->step]);
    for (int32_t k = 0; k < n; k++)
        sum += expf(m->classes[k * m->jump + cell * m->step] - *top);
    return sum;
}

static void push_anchor(const oct_decoding *d, const map *m, int64_t cell, int a, float sum,
                        float top)
{
    const oct_reading *r = d->reading;
    const float *x = m->boxes + cell * m->step + 4 * a * m->jump;
    const float stride = (float)(FIRST_STRIDE << m->level);
    const float cx = (part(m, x[0]) * 2 - 0.5f + (float)(cell % m->columns)) * stride;
    const float cy = (part(m, x[m->jump]) * 2 - 0.5f + (float)(cell / m->columns)) * stride;
    const float pw = part(m, x[2 * m->jump]) * 2, ph = part(m, x[3 * m->jump]) * 2;
    const float w = pw * pw * anchors[m->level][a][0] * (float)r->width / anchor_side;
    const float h = ph * ph * anchors[m->level][a][1] * (float)r->height / anchor_side;
    const float object = part(m, m->objects[cell * m->step + a * m->jump]);
    oct_candidate box = {
        .x1 = cx - w * 0.5f, .y1 = cy - h * 0.5f, .x2 = cx + w * 0.5f, .y2 = cy + h * 0.5f};

    for (int32_t k = 0; k < r->n_classes && object > d->threshold; k++) {
        const float c = m->classes[k * m->jump + cell * m->step];

        box.score = object * (m->is_raw ? expf(c - top) / sum : c);
        if (!(box.score > d->threshold)) continue;
        box.category = k;
        box.index = ((m->level * m->rows * m->columns + cell) * N_ANCHORS + a) * r->n_classes + k;
        oct_candidates_push(d->found, &box);
    }
}

static oct_status decode(oct_decoding *d)
{
    for (int l = 0; l < N_STRIDES; l++) {
        map m;

        OCT_TRY(open_map(d, l, &m));
        for (int64_t i = 0; i < m.rows * m.columns; i++) {
            float top;
            const float sum = classes_sum(&m, i, d->reading->n_classes, &top);

            for (int a = 0; a < N_ANCHORS; a++)
                push_anchor(d, &m, i, a, sum, top);
        }
    }
    return OCT_OK;
}

/* --- inside a network --- */

static int64_t cells_of(const oct_reading *r, int l)
{
    const int64_t s = FIRST_STRIDE << l;

    return (r->width + s - 1) / s * ((r->height + s - 1) / s);
}

/* One output of the form APART as [n, cells, k]. */
static oct_value *rows_of(oct_builder *b, int32_t output, int64_t k, int64_t cells)
{
    oct_value *shape = oct_ints(b, (int64_t[]){0, k, cells}, 3);
    oct_value *v = oct_emit(b, &oct_op_reshape, b->g->outputs[output], shape, NULL);

    return oct_grad_transpose(b, v, (int64_t[]){0, 2, 1});
}

/* A stride's boxes, objects and classes [n, cells, *], after sigmoid and softmax. */
static void open_rows(oct_builder *b, const oct_reading *r, int l, oct_value *out[3])
{
    const int64_t n = r->n_classes, cells = cells_of(r, l);
    oct_value *v;

    if (r->form == JOINED) {
        v = oct_emit(b, &oct_op_reshape, b->g->outputs[r->level_boxes[l]],
                     oct_ints(b, (int64_t[]){0, cells, BOXES + N_ANCHORS + n}, 3), NULL);
        out[0] = oct_grad_part(b, v, 2, 0, BOXES);
        out[1] = oct_grad_part(b, v, 2, BOXES, BOXES + N_ANCHORS);
        out[2] = oct_grad_part(b, v, 2, BOXES + N_ANCHORS, BOXES + N_ANCHORS + n);
        return;
    }
    out[0] = oct_emit(b, &oct_op_sigmoid, rows_of(b, r->level_boxes[l], BOXES, cells), NULL, NULL);
    out[1] = oct_emit(b, &oct_op_sigmoid, rows_of(b, r->extra[l], N_ANCHORS, cells), NULL, NULL);
    out[2] = oct_emit(b, &oct_op_softmax, rows_of(b, r->level_scores[l], n, cells), NULL, NULL);
}

/* Corners of anchor a: centre (2 x - 0.5 + cell) * stride, size (2 x)^2 * anchor. */
static oct_value *anchor_boxes(oct_builder *b, const oct_reading *r, int l, int a, oct_value *boxes)
{
    const float stride = (float)(FIRST_STRIDE << l);
    const float size[] = {anchors[l][a][0] * (float)r->width / anchor_side * 4,
                          anchors[l][a][1] * (float)r->height / anchor_side * 4};
    oct_reading grid = *r;
    oct_value *box[2];

    grid.levels = (oct_levels){1, {FIRST_STRIDE << l}};
    box[0] = oct_grad_scale(b, oct_grad_part(b, boxes, 2, 4 * a, 4 * a + 2), 2 * (double)stride);
    box[0] = oct_emit(b, &oct_op_add, box[0], oct_attach_grid(b, &grid, -0.5f, 0), NULL);
    box[1] = oct_grad_part(b, boxes, 2, 4 * a + 2, 4 * a + 4);
    box[1] = oct_emit(b, &oct_op_mul, box[1], box[1], NULL);
    box[1] =
        oct_emit(b, &oct_op_mul, box[1], oct_attach_floats(b, 3, (int64_t[]){1, 1, 2}, size), NULL);
    return oct_attach_corners(b, oct_attach_concat(b, 2, box, 2));
}

static oct_status attach(oct_builder *b, const oct_reading *r, oct_head *out)
{
    oct_value *boxes[N_STRIDES * N_ANCHORS], *scores[N_STRIDES * N_ANCHORS];

    for (int l = 0; l < N_STRIDES; l++) {
        oct_value *v[3];

        open_rows(b, r, l, v);
        for (int a = 0; a < N_ANCHORS; a++) {
            boxes[l * N_ANCHORS + a] = anchor_boxes(b, r, l, a, v[0]);
            scores[l * N_ANCHORS + a] =
                oct_emit(b, &oct_op_mul, oct_grad_part(b, v[1], 2, a, a + 1), v[2], NULL);
        }
    }
    out->boxes = oct_attach_concat(b, 1, boxes, N_STRIDES * N_ANCHORS);
    out->scores = oct_attach_concat(b, 1, scores, N_STRIDES * N_ANCHORS);
    return b->status;
}

const oct_family oct_family_yolo_fastestv2 = {
    .name = "yolo-fastestv2",
    .help = "of strides 16 and 32, [n, rows, columns, 12 + 3 + classes], or boxes, objects and "
            "classes apart (YOLO-FastestV2)",
    .match = match,
    .preprocess = preprocess,
    .decode = decode,
    .attach = attach,
};
