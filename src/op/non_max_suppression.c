/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression: the best boxes of each class that do not overlap a better one too much. */
#include "op/move.h"

#include <math.h>

enum { CENTER_POINT_BOX };

typedef struct box {
    float y1, x1, y2, x2, area;
} box;

typedef struct nms {
    int64_t n_batches, n_classes, n_boxes;
    int64_t max_per_class;
    float iou_threshold, score_threshold;
    bool has_score_threshold;
} nms;

static oct_status check_dims(const oct_node *n, const oct_type *boxes, const oct_type *scores)
{
    const bool known = boxes->rank >= 0 && scores->rank >= 0;

    if (known && (boxes->rank != 3 || scores->rank != 3))
        return oct_node_fail(n, OCT_ERR_SHAPE, "boxes have rank %d, scores %d, expected 3",
                             (int)boxes->rank, (int)scores->rank);
    if (known && ((boxes->dim[2] >= 0 && boxes->dim[2] != 4) ||
                  (boxes->dim[0] >= 0 && scores->dim[0] >= 0 && boxes->dim[0] != scores->dim[0]) ||
                  (boxes->dim[1] >= 0 && scores->dim[2] >= 0 && boxes->dim[1] != scores->dim[2]))) {
        char a[OCT_TYPE_TEXT_SIZE], b[OCT_TYPE_TEXT_SIZE];
        return oct_node_fail(n, OCT_ERR_SHAPE, "boxes %s do not fit scores %s",
                             oct_type_text(boxes, a), oct_type_text(scores, b));
    }
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *boxes, *scores;

    OCT_TRY(oct_infer_need(q, 0, &boxes));
    OCT_TRY(oct_infer_need(q, 1, &scores));
    for (int i = 0; i < 5; i++)
        OCT_TRY(oct_infer_check(q, i, i == 2 ? OCT_SET_INT : OCT_SET_FLOAT));
    OCT_TRY(check_dims(q->node, boxes, scores));
    q->out[0] = oct_type_make(OCT_DTYPE_I64, 2, (const int64_t[]){-1, 3});
    return OCT_OK;
}

static void load_boxes(const oct_args *a, int64_t batch, int64_t n, box *out)
{
    const bool centered = oct_int(a->node, CENTER_POINT_BOX) != 0;

    for (int64_t i = 0; i < n; i++) {
        float v[4];
        box b;

        oct_load_f32(a->in[0]->type.dtype, a->in[0]->data, (batch * n + i) * 4, 4, v);
        if (centered) /* x, y, width, height */
            b = (box){v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2, 0};
        else /* any two corners, y first */
            b = (box){fminf(v[0], v[2]), fminf(v[1], v[3]), fmaxf(v[0], v[2]), fmaxf(v[1], v[3]),
                      0};
        b.area = (b.y2 - b.y1) * (b.x2 - b.x1);
        out[i] = b;
    }
}

static bool overlaps(const box *a, const box *b, float threshold)
{
    const float h = fminf(a->y2, b->y2) - fmaxf(a->y1, b->y1);
    const float w = fminf(a->x2, b->x2) - fmaxf(a->x1, b->x1);

    if (!(h > 0 && w > 0) || a->area <= 0 || b->area <= 0) return false;
    return h * w / (a->area + b->area - h * w) > threshold;
}

/* Candidates as a heap: the best score on top, of equal ones the first box. */
static bool before(const float *score, int64_t a, int64_t b)
{
    return score[a] > score[b] || (score[a] == score[b] && a < b);
}

static void sift(const float *score, int64_t *heap, int64_t n, int64_t i)
{
    for (;;) {
        int64_t best = i;

        for (int64_t c = 2 * i + 1; c <= 2 * i + 2 && c < n; c++)
            if (before(score, heap[c], heap[best])) best = c;
        if (best == i) return;
        const int64_t t = heap[i];
        heap[i] = heap[best];
        heap[best] = t;
        i = best;
    }
}

/* The boxes of one class that stay: their indices into kept[], at most max_per_class. */
static int64_t suppress(const nms *p, const box *boxes, const float *score, int64_t *heap,
                        int64_t *kept)
{
    int64_t n = 0, n_kept = 0;

    for (int64_t i = 0; i < p->n_boxes; i++)
        if (score[i] == score[i] && (!p->has_score_threshold || score[i] > p->score_threshold))
            heap[n++] = i;
    for (int64_t i = n / 2; i-- > 0;)
        sift(score, heap, n, i);
    while (n > 0 && n_kept < p->max_per_class) {
        const int64_t best = heap[0];
        bool keep = true;

        heap[0] = heap[--n];
        sift(score, heap, n, 0);
        for (int64_t k = 0; k < n_kept && keep; k++)
            keep = !overlaps(&boxes[best], &boxes[kept[k]], p->iou_threshold);
        if (keep) kept[n_kept++] = best;
    }
    return n_kept;
}

static float scalar_or(const oct_tensor *t, float fallback)
{
    return t && oct_tensor_len(t) > 0 ? (float)oct_tensor_get_f64(t, 0) : fallback;
}

static oct_status read_params(const oct_args *a, nms *p)
{
    const oct_type *boxes = &a->in[0]->type, *scores = &a->in[1]->type;
    const oct_tensor *threshold = oct_args_in(a, 4);

    OCT_TRY(check_dims(a->node, boxes, scores));
    *p = (nms){.n_batches = boxes->dim[0],
               .n_classes = scores->dim[1],
               .n_boxes = boxes->dim[1],
               .iou_threshold = scalar_or(oct_args_in(a, 3), 0),
               .score_threshold = scalar_or(threshold, 0),
               .has_score_threshold = threshold && oct_tensor_len(threshold) > 0};
    p->max_per_class = OCT_MIN(oct_read_int(oct_args_in(a, 2), 0), p->n_boxes);
    if (!(p->iou_threshold >= 0 && p->iou_threshold <= 1))
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "iou_threshold is %g",
                             (double)p->iou_threshold);
    return OCT_OK;
}

/* Results are kept in a list that grows as they are found: their number is not known before. */
typedef struct list {
    int64_t (*rows)[3];
    size_t n, cap;
} list;

static oct_status run_all(const oct_args *a, const nms *p, list *found)
{
    const size_t n = (size_t)OCT_MAX(p->n_boxes, 1);
    box *boxes = oct_args_scratch(a, n, sizeof(*boxes));
    float *score = oct_args_scratch(a, n, sizeof(*score));
    int64_t *heap = oct_args_scratch(a, n, sizeof(*heap));
    int64_t *kept = oct_args_scratch(a, n, sizeof(*kept));

    if (!boxes || !score || !heap || !kept) return OCT_ERR_MEMORY;
    for (int64_t b = 0; b < p->n_batches; b++) {
        load_boxes(a, b, p->n_boxes, boxes);
        for (int64_t c = 0; c < p->n_classes && p->max_per_class > 0; c++) {
            oct_load_f32(a->in[1]->type.dtype, a->in[1]->data, (b * p->n_classes + c) * p->n_boxes,
                         p->n_boxes, score);
            const int64_t count = suppress(p, boxes, score, heap, kept);

            OCT_TRY(oct_grow(a->ctx, &found->rows, &found->cap, found->n + (size_t)count,
                             sizeof(*found->rows)));
            for (int64_t k = 0; k < count; k++) {
                found->rows[found->n][0] = b;
                found->rows[found->n][1] = c;
                found->rows[found->n++][2] = kept[k];
            }
        }
    }
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    list found = {NULL, 0, 0};
    nms p;
    oct_status st;

    OCT_TRY(read_params(a, &p));
    if ((st = run_all(a, &p, &found))) goto done;
    const oct_type y = oct_type_make(OCT_DTYPE_I64, 2, (const int64_t[]){(int64_t)found.n, 3});
    if ((st = oct_args_alloc(a, 0, &y))) goto done;
    if (found.n)
        oct_store_i64(OCT_DTYPE_I64, a->out[0]->data, 0, 3 * (int64_t)found.n, found.rows[0]);
done:
    oct_free(a->ctx, found.rows);
    return st;
}

static const oct_attr_def attrs[] = {
    [CENTER_POINT_BOX] = {"center_point_box", OCT_ATTR_INT, .def = {.i = 0}},
    {0},
};

const oct_op oct_op_non_max_suppression = {
    .name = "NonMaxSuppression",
    .since = 10,
    .min_in = 2,
    .max_in = 5,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .flags = OCT_OP_DATA_SHAPE,
};
