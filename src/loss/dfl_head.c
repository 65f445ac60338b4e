/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of heads with class logits and distributions over distances. */
#include "loss/dfl_head.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "loss/background.h"
#include "loss/pieces.h"

/* How far a target distance stays below the last bin. */
static const double below_last = .01;
static const oct_giou_form giou_form = {1e-10, false};
static const double ciou_eps = 1e-7;

oct_status oct_dfl_head_alloc(oct_dfl_head *h, const oct_dfl_loss *loss, oct_arena *arena,
                              int n_threads)
{
    const size_t batch = (size_t)h->batch, anchors = (size_t)h->n_anchors;
    const size_t all = batch * anchors + 1;

    h->n_threads = (int)OCT_MAX(1, OCT_MIN(n_threads, h->batch));
    /* For either: the assigner may change from one step to the next. */
    h->work_size = OCT_MAX(oct_assign_atss_work(&loss->atss, &h->levels),
                           oct_assign_tal_work(&loss->tal, h->labels.max));
    h->work_size = (h->work_size / 64 + 1) * 64; /* aligned for the next thread */
    const size_t threads = (size_t)h->n_threads;
    h->point = oct_arena_array(arena, 2 * anchors + 1, sizeof(double));
    h->stride = oct_arena_array(arena, anchors + 1, sizeof(double));
    h->assigned.box = oct_arena_array(arena, all, sizeof(int32_t));
    h->assigned.label = oct_arena_array(arena, all, sizeof(int32_t));
    h->assigned.q = oct_arena_array(arena, all, sizeof(double));
    h->score = oct_arena_array(arena, threads * anchors * (size_t)h->n_classes + 1, sizeof(double));
    h->pred = oct_arena_array(arena, threads * anchors * 4 + 1, sizeof(double));
    h->row = oct_arena_array(arena, 2 * threads * (size_t)h->n_classes + 1, sizeof(double));
    h->work = oct_arena_array(arena, threads, h->work_size);
    h->part = oct_arena_array(arena, batch + 1, sizeof(*h->part));
    if (!h->point || !h->stride || !h->assigned.box || !h->assigned.label || !h->assigned.q ||
        !h->score || !h->pred || !h->row || !h->work || !h->part)
        return OCT_ERR_MEMORY;
    oct_anchors_fill(&h->levels, .5, h->point, h->stride);
    return OCT_OK;
}

typedef struct job {
    oct_dfl_head *h;
    const oct_dfl_loss *loss;
    double scale; /* of all sums: 1 / N, times the batch where the family has it */
} job;

static oct_assigned assigned_of(const oct_dfl_head *h, int64_t picture)
{
    const int64_t at = picture * h->n_anchors;

    return (oct_assigned){h->assigned.box + at, h->assigned.label + at, h->assigned.q + at};
}

/* Logits and distances of one anchor. */
typedef struct sides {
    double z[4][OCT_DFL_MAX_BINS], p[4][OCT_DFL_MAX_BINS];
    double distance[4]; /* left, top, right, bottom, in strides */
} sides;

static void load_sides(const oct_dfl_head *h, int64_t at, sides *s)
{
    for (int k = 0; k < 4; k++) {
        oct_load_f64(h->dtype, h->reg, (at * 4 + k) * h->bins, h->bins, s->z[k]);
        s->distance[k] = oct_dfl_decode(s->z[k], h->bins, s->p[k]);
    }
}

/* The box in units of the stride. */
static void box_of(const double point[2], double stride, const double distance[4], double box[4])
{
    for (int k = 0; k < 4; k++)
        box[k] = point[k % 2] / stride + (k < 2 ? -distance[k] : distance[k]);
}

/* Can the anchor be assigned to a box? Only then does an assigner read what it predicts. */
static bool is_near(const oct_dfl_loss *loss, const oct_assign_in *in, int64_t anchor)
{
    bool is_in = false;

    for (int64_t j = 0; j < in->n_boxes && !is_in; j++)
        is_in = loss->is_atss ? oct_assign_is_inside(&in->point[2 * anchor], &in->box[4 * j],
                                                     loss->atss.margin)
                              : oct_assign_tal_is_inside(&loss->tal, in, anchor, j);
    return is_in;
}

/* The box that an anchor predicts, in pixels, and its scores for the classes of the picture. */
static void predict(const oct_dfl_head *h, const oct_assign_in *in, int64_t at, int64_t anchor,
                    double *score, double *pred)
{
    sides s;

    load_sides(h, at, &s);
    box_of(&h->point[2 * anchor], h->stride[anchor], s.distance, pred);
    for (int k = 0; k < 4; k++)
        pred[k] *= h->stride[anchor];
    for (int64_t j = 0; score && j < in->n_boxes; j++) {
        const int32_t c = in->label[j];

        if (j > 0 && c == in->label[j - 1]) continue;
        oct_load_f64(h->dtype, h->cls, at * h->n_classes + c, 1, &score[c]);
        score[c] = oct_sigmoid_f64(score[c]);
    }
}

static void assign_picture(const job *j, int64_t picture)
{
    oct_dfl_head *h = j->h;
    const int64_t anchors = h->n_anchors, classes = h->n_classes, thread = oct_parallel_thread();
    double *score = h->score + thread * anchors * classes, *pred = h->pred + thread * anchors * 4;
    const int64_t first = picture * h->labels.max;
    const oct_assigned out = assigned_of(h, picture);
    const oct_assign_in in = {
        &h->levels, anchors, classes, h->labels.n[picture],      h->point,
        h->stride,  score,   pred,    h->labels.box + 4 * first, h->labels.label + first,
    };
    void *work = h->work + (size_t)thread * h->work_size;

    if (in.n_boxes == 0) {
        oct_assign_none(&in, &out);
        return;
    }
    for (int64_t i = 0; i < anchors; i++)
        if (is_near(j->loss, &in, i))
            predict(h, &in, picture * anchors + i, i, j->loss->is_atss ? NULL : score + i * classes,
                    pred + 4 * i);
    if (j->loss->is_atss)
        oct_assign_atss(&j->loss->atss, &in, work, &out);
    else
        oct_assign_tal(&j->loss->tal, &in, work, &out);
}

static void assign_pictures(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        assign_picture(arg, i);
}

void oct_dfl_head_assign(oct_dfl_head *h, const oct_dfl_loss *loss)
{
    oct_parallel_for(h->n_threads, h->batch, 1, assign_pictures, &(job){h, loss, 0});
}

static oct_term class_term(const oct_dfl_loss *loss, double x, double q, bool is_label)
{
    switch (loss->term) {
    case OCT_CLASS_VARIFOCAL:
        return oct_loss_varifocal(x, q, is_label, .75, 2);
    case OCT_CLASS_FOCAL:
        return oct_loss_focal(x, q, loss->focal_alpha, 2);
    default:
        return oct_loss_bce(x, q);
    }
}

/* The sum over the classes of one anchor, and their gradients. */
static double sum_classes(const job *j, int64_t at, int32_t label, double q)
{
    const oct_dfl_head *h = j->h;
    const double scale = j->scale * j->loss->weight[OCT_DFL_CLASSES];
    double *x = h->row + 2 * oct_parallel_thread() * h->n_classes, *dx = x + h->n_classes;
    double sum = 0;

    oct_load_f64(h->dtype, h->cls, at * h->n_classes, h->n_classes, x);
    for (int64_t c = 0; c < h->n_classes; c++) {
        const oct_term t = class_term(j->loss, x[c], c == label ? q : 0, c == label);

        sum += t.value;
        dx[c] = scale * t.slope;
    }
    if (h->d_cls) oct_store_f64(h->dtype, h->d_cls, at * h->n_classes, h->n_classes, dx);
    return sum;
}

/* The same over all anchors of a picture in float: all as background, then each label's term. */
static double sum_classes_f32(const job *j, int64_t picture, const oct_assigned *a)
{
    const oct_dfl_head *h = j->h;
    const double scale = j->scale * j->loss->weight[OCT_DFL_CLASSES];
    const int64_t n = h->n_anchors * h->n_classes;
    const float *x = (const float *)h->cls + picture * n;
    float *dx = h->d_cls ? (float *)h->d_cls + picture * n : NULL;
    double sum = oct_loss_background(j->loss, x, n, scale, dx);

    for (int64_t i = 0; i < h->n_anchors; i++) {
        const int64_t at = i * h->n_classes + a->label[i];

        if (a->label[i] == h->n_classes) continue;
        const oct_term t = class_term(j->loss, (double)x[at], a->q[i], true);
        sum += t.value - class_term(j->loss, (double)x[at], 0, false).value;
        if (dx) dx[at] = (float)(scale * t.slope);
    }
    return sum;
}

static double sum_picture_classes(const job *j, int64_t picture, const oct_assigned *a)
{
    double sum = 0;

    if (j->h->dtype == OCT_DTYPE_F32) return sum_classes_f32(j, picture, a);
    for (int64_t i = 0; i < j->h->n_anchors; i++)
        sum += sum_classes(j, picture * j->h->n_anchors + i, a->label[i], a->q[i]);
    return sum;
}

/* Adds the terms of one positive anchor's box, and stores their gradients. */
static void sum_box(const job *j, int64_t at, int64_t anchor, const double *truth, double q,
                    double part[OCT_DFL_N_PARTS])
{
    const oct_dfl_head *h = j->h;
    const double *point = &h->point[2 * anchor], stride = h->stride[anchor];
    const double w_box = q * j->scale * j->loss->weight[OCT_DFL_BOXES];
    const double w_dfl = q * j->scale * j->loss->weight[OCT_DFL_DISTANCES] / 4;
    double pred[4], target[4], slope[4], dz[OCT_DFL_MAX_BINS];
    sides s;

    load_sides(h, at, &s);
    box_of(point, stride, s.distance, pred);
    for (int k = 0; k < 4; k++)
        target[k] = truth[k] / stride;
    part[OCT_DFL_BOXES] += q * (j->loss->is_ciou ? oct_loss_ciou(pred, target, ciou_eps, slope)
                                                 : oct_loss_giou(pred, target, &giou_form, slope));
    for (int k = 0; k < 4; k++) {
        const double away = (k < 2 ? 1 : -1) * (point[k % 2] / stride - target[k]);
        const double y = fmin(fmax(away, 0), h->bins - 1 - below_last);

        part[OCT_DFL_DISTANCES] += q / 4 * oct_loss_dfl(s.z[k], h->bins, y, dz);
        if (k < 2) slope[k] = -slope[k];
        for (int b = 0; b < h->bins; b++)
            dz[b] = w_dfl * dz[b] + w_box * slope[k] * s.p[k][b] * (b - s.distance[k]);
        if (h->d_reg) oct_store_f64(h->dtype, h->d_reg, (at * 4 + k) * h->bins, h->bins, dz);
    }
}

static void sum_picture(const job *j, int64_t picture)
{
    oct_dfl_head *h = j->h;
    const oct_assigned a = assigned_of(h, picture);
    const double *box = h->labels.box + 4 * picture * h->labels.max;
    const size_t size = (size_t)(h->n_anchors * 4 * h->bins) * oct_dtype_size(h->dtype);
    double part[OCT_DFL_N_PARTS] = {[OCT_DFL_CLASSES] = sum_picture_classes(j, picture, &a)};

    if (h->d_reg) memset((char *)h->d_reg + (size_t)picture * size, 0, size);
    for (int64_t i = 0; i < h->n_anchors; i++)
        if (a.box[i] >= 0 && a.q[i] != 0)
            sum_box(j, picture * h->n_anchors + i, i, box + 4 * a.box[i], a.q[i], part);
    for (int k = 0; k < OCT_DFL_N_PARTS; k++)
        h->part[picture][k] = part[k];
}

static void sum_pictures(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        sum_picture(arg, i);
}

/* 1 / max(sum of q, 1). Sums are in the order of pictures, whatever the number of threads. */
static double normalizer(const oct_dfl_head *h)
{
    double sum = 0;

    for (int64_t i = 0; i < h->batch * h->n_anchors; i++)
        sum += h->assigned.q[i];
    return 1 / fmax(sum, 1);
}

void oct_dfl_head_sum(oct_dfl_head *h, const oct_dfl_loss *loss, double parts[OCT_DFL_N_PARTS])
{
    const double times = loss->times_batch ? (double)h->batch : 1;
    const job j = {h, loss, normalizer(h) * times};

    oct_parallel_for(h->n_threads, h->batch, 1, sum_pictures, (void *)(uintptr_t)&j);
    for (int k = 0; k < OCT_DFL_N_PARTS; k++) {
        parts[k] = 0;
        for (int64_t i = 0; i < h->batch; i++)
            parts[k] += h->part[i][k];
        parts[k] *= j.scale * loss->weight[k];
    }
}
