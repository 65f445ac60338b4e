/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EfficientNMS_TRT, TensorRT's plugin: the best boxes of each image in a fixed number of rows.
 * Every pair of anchor and class is a candidate. TensorRT finds plugins by name alone, so exporters
 * write it to the standard domain or to one of their own (onnx/foreign.c).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/work.h"

enum {
    BACKGROUND,
    BOX_CODING,
    CLASS_AGNOSTIC,
    IOU_THRESHOLD,
    MAX_OUTPUT,
    PLUGIN_VERSION,
    SCORE_ACTIVATION,
    SCORE_THRESHOLD
};
enum { BOXES, SCORES, ANCHORS };
enum { COUNT, OUT_BOXES, OUT_SCORES, OUT_CLASSES };

#define MAX_CANDIDATES 4096 /* of one image that enter suppression: the plugin's limit */

typedef struct sizes {
    int64_t images, anchors, classes, box_sets; /* -1: not known; box_sets: 1 or classes */
} sizes;

static bool agree(int64_t *to, int64_t dim)
{
    if (*to < 0) *to = dim;
    return dim < 0 || *to == dim;
}

static oct_status read_sizes(const oct_node *n, const oct_type *boxes, const oct_type *scores,
                             sizes *s)
{
    char a[OCT_TYPE_TEXT_SIZE], b[OCT_TYPE_TEXT_SIZE];
    bool fits = true;

    *s = (sizes){-1, -1, -1, 1};
    if (boxes->rank >= 0) {
        fits = boxes->rank == 3 || boxes->rank == 4;
        if (fits) {
            s->images = boxes->dim[0];
            s->anchors = boxes->dim[1];
            if (boxes->rank == 4) s->box_sets = boxes->dim[2];
            fits = boxes->dim[boxes->rank - 1] == 4 || boxes->dim[boxes->rank - 1] < 0;
        }
    }
    if (fits && scores->rank >= 0) {
        fits = scores->rank == 3 || (scores->rank == 4 && scores->dim[3] == 1);
        fits = fits && agree(&s->images, scores->dim[0]) && agree(&s->anchors, scores->dim[1]);
        if (fits) s->classes = scores->dim[2];
    }
    if (s->box_sets == 0 || (s->box_sets > 1 && s->classes >= 0 && s->box_sets != s->classes))
        fits = false;
    if (fits) return OCT_OK;
    return oct_node_fail(n, OCT_ERR_SHAPE, "boxes %s do not fit scores %s", oct_type_text(boxes, a),
                         oct_type_text(scores, b));
}

static oct_status shape(const oct_infer *q)
{
    const int64_t max = oct_int(q->node, MAX_OUTPUT);
    const oct_type *boxes, *scores, *anchors = oct_infer_in(q, ANCHORS);
    sizes s;

    OCT_TRY(oct_infer_need(q, BOXES, &boxes));
    OCT_TRY(oct_infer_need(q, SCORES, &scores));
    for (int i = BOXES; i <= ANCHORS; i++)
        OCT_TRY(oct_infer_check(q, i, OCT_SET(OCT_DTYPE_F32) | OCT_SET(OCT_DTYPE_F16)));
    OCT_TRY(read_sizes(q->node, boxes, scores, &s));
    if (max < 1 || max > INT32_MAX)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "max_output_boxes is %lld", (long long)max);
    if (anchors && anchors->rank >= 0 &&
        (anchors->rank != 3 || (anchors->dim[1] >= 0 && !agree(&s.anchors, anchors->dim[1])) ||
         (anchors->dim[2] >= 0 && anchors->dim[2] != 4)))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "anchors do not fit the boxes");
    q->out[COUNT] = oct_type_make(OCT_DTYPE_I32, 2, (const int64_t[]){s.images, 1});
    q->out[OUT_BOXES] = oct_type_make(boxes->dtype, 3, (const int64_t[]){s.images, max, 4});
    q->out[OUT_SCORES] = oct_type_make(scores->dtype, 2, (const int64_t[]){s.images, max});
    q->out[OUT_CLASSES] = oct_type_make(OCT_DTYPE_I32, 2, (const int64_t[]){s.images, max});
    return OCT_OK;
}

typedef struct candidate {
    float score;
    int64_t at; /* anchor * classes + class */
} candidate;

/* The best first; of equal ones the first in the file's order. The plugin leaves that open. */
static int compare(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

typedef struct job {
    const oct_args *a;
    sizes s;
    const float *boxes, *scores, *anchors;
    int64_t anchor_images; /* 1: the same for all */
    float *y_boxes, *y_scores;
    candidate *found;
} job;

/* Corners of a box. A decoder is fused in where anchors are given. */
static void corners(const job *j, int64_t image, int64_t anchor, int64_t class, float out[4])
{
    const bool centered = oct_int(j->a->node, BOX_CODING) == 1;
    const int64_t set = j->s.box_sets > 1 ? class : 0;
    const float *b =
        j->boxes + (((image * j->s.anchors + anchor) * OCT_MAX(j->s.box_sets, 1)) + set) * 4;
    const float *p =
        j->anchors ? j->anchors + ((j->anchor_images > 1 ? image : 0) * j->s.anchors + anchor) * 4
                   : NULL;
    float v[4];

    memcpy(v, b, sizeof(v));
    if (centered) {
        if (p) { /* offsets in sizes of the anchor, sizes as logarithms */
            v[0] = b[0] * p[2] + p[0];
            v[1] = b[1] * p[3] + p[1];
            v[2] = expf(b[2]) * p[2];
            v[3] = expf(b[3]) * p[3];
        }
        out[0] = v[0] - v[2] / 2;
        out[1] = v[1] - v[3] / 2;
        out[2] = v[0] + v[2] / 2;
        out[3] = v[1] + v[3] / 2;
        return;
    }
    for (int i = 0; i < 4; i++)
        v[i] += p ? p[i] : 0;
    for (int i = 0; i < 2; i++) {
        out[i] = fminf(v[i], v[i + 2]);
        out[i + 2] = fmaxf(v[i], v[i + 2]);
    }
}

static float overlap(const float *a, const float *b)
{
    const float w = fminf(a[2], b[2]) - fmaxf(a[0], b[0]);
    const float h = fminf(a[3], b[3]) - fmaxf(a[1], b[1]);
    const float common = fmaxf(w, 0) * fmaxf(h, 0);
    const float all = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common;

    return all > 0 ? common / all : 0;
}

/* Scores are compared as they come: with an activation they are logits, and so is the threshold. */
static float lowest_score(const oct_node *n)
{
    const float t = oct_f32(n, SCORE_THRESHOLD);

    if (!oct_int(n, SCORE_ACTIVATION)) return t;
    if (t <= 0) return -32768;
    return t < 1 ? logf(t / (1 - t)) : INFINITY;
}

static int64_t collect(const job *j, int64_t image)
{
    const int64_t skipped = oct_int(j->a->node, BACKGROUND), n = j->s.anchors * j->s.classes;
    const float low = lowest_score(j->a->node), *score = j->scores + image * n;
    int64_t count = 0;

    for (int64_t i = 0; i < n; i++)
        if (score[i] >= low && i % j->s.classes != skipped)
            j->found[count++] = (candidate){score[i], i};
    qsort(j->found, (size_t)count, sizeof(*j->found), compare);
    return OCT_MIN(count, MAX_CANDIDATES);
}

/* Fills the rows of one image; returns how many. */
static int64_t suppress(const job *j, int64_t image, int32_t *classes)
{
    const oct_node *n = j->a->node;
    const int64_t max = oct_int(n, MAX_OUTPUT), count = collect(j, image);
    const bool agnostic = oct_int(n, CLASS_AGNOSTIC) != 0;
    const float limit = oct_f32(n, IOU_THRESHOLD);
    float *boxes = j->y_boxes + image * max * 4;
    int64_t kept = 0;

    for (int64_t i = 0; i < count && kept < max; i++) {
        const int64_t class = j->found[i].at % j->s.classes, at = j->found[i].at / j->s.classes;
        const float score = j->found[i].score;
        float box[4];
        bool keep = true;

        corners(j, image, at, class, box);
        for (int64_t k = 0; k < kept && keep; k++)
            keep = (!agnostic && classes[k] != class) || overlap(box, boxes + 4 * k) < limit;
        if (!keep) continue;
        memcpy(boxes + 4 * kept, box, sizeof(box));
        j->y_scores[image * max + kept] =
            oct_int(n, SCORE_ACTIVATION) ? 1 / (1 + expf(-score)) : score;
        classes[kept++] = (int32_t) class;
    }
    return kept;
}

static oct_status ref(const oct_args *a)
{
    const int64_t max = oct_int(a->node, MAX_OUTPUT);
    const oct_tensor *anchors = oct_args_in(a, ANCHORS);
    job j = {.a = a, .anchor_images = anchors ? anchors->type.dim[0] : 1};
    int32_t *classes;
    void *y_boxes, *y_scores;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(read_sizes(a->node, &a->in[BOXES]->type, &a->in[SCORES]->type, &j.s));
    if (j.anchor_images != 1 && j.anchor_images != j.s.images)
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "anchors are for %lld images, boxes for %lld",
                             (long long)j.anchor_images, (long long)j.s.images);
    OCT_TRY(oct_work_in_f32(a, BOXES, &j.boxes));
    OCT_TRY(oct_work_in_f32(a, SCORES, &j.scores));
    OCT_TRY(oct_work_in_f32(a, ANCHORS, &j.anchors));
    OCT_TRY(oct_work_out(a, OUT_BOXES, OCT_WORK_F32, &y_boxes));
    OCT_TRY(oct_work_out(a, OUT_SCORES, OCT_WORK_F32, &y_scores));
    classes = a->out[OUT_CLASSES]->data;
    j.found = oct_args_scratch(a, (size_t)OCT_MAX(j.s.anchors * j.s.classes, 1), sizeof(*j.found));
    if (!j.found) return OCT_ERR_MEMORY;
    j.y_boxes = y_boxes;
    j.y_scores = y_scores;
    memset(y_boxes, 0, (size_t)(j.s.images * max) * 4 * sizeof(float));
    memset(y_scores, 0, (size_t)(j.s.images * max) * sizeof(float));
    memset(classes, 0, a->out[OUT_CLASSES]->size);
    for (int64_t i = 0; i < j.s.images; i++) {
        OCT_TRY(oct_args_spend(a, MAX_CANDIDATES * OCT_MIN(max, MAX_CANDIDATES)));
        ((int32_t *)a->out[COUNT]->data)[i] = (int32_t)suppress(&j, i, classes + i * max);
    }
    oct_work_done(a, OUT_BOXES, OCT_WORK_F32, y_boxes);
    oct_work_done(a, OUT_SCORES, OCT_WORK_F32, y_scores);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [BACKGROUND] = {"background_class", OCT_ATTR_INT, .def.i = -1},
    [BOX_CODING] = {"box_coding", OCT_ATTR_INT, .def.i = 0},
    [CLASS_AGNOSTIC] = {"class_agnostic", OCT_ATTR_INT, .def.i = 0},
    [IOU_THRESHOLD] = {"iou_threshold", OCT_ATTR_F32, .def.f = 0.5f},
    [MAX_OUTPUT] = {"max_output_boxes", OCT_ATTR_INT, .def.i = 100},
    [PLUGIN_VERSION] = {"plugin_version", OCT_ATTR_STRING, .def.s = "1", .n_def = 1},
    [SCORE_ACTIVATION] = {"score_activation", OCT_ATTR_INT, .def.i = 0},
    [SCORE_THRESHOLD] = {"score_threshold", OCT_ATTR_F32, .def.f = 0.5f},
    {0},
};

#define ROW(sym, domain_)                                                                          \
    const oct_op oct_op_##sym = {                                                                  \
        .name = "EfficientNMS_TRT",                                                                \
        .domain = domain_,                                                                         \
        .since = 1,                                                                                \
        .min_in = 2,                                                                               \
        .max_in = 3,                                                                               \
        .min_out = 4,                                                                              \
        .max_out = 4,                                                                              \
        .attrs = attrs,                                                                            \
        .shape = shape,                                                                            \
        .ref = ref,                                                                                \
    }

ROW(efficient_nms, "");
ROW(trt_efficient_nms, "TRT");
