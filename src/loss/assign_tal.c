/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Task-aligned assignment: of the anchors inside a box, those whose score for its class and whose
 * predicted box are best together. Two variants: SuperGradients' (IoU of any pair) and ultralytics'
 * (CIoU, of anchors inside the box only).
 *
 * Pairs of boxes and anchors are computed one by one when needed; a table of all of them would
 * take 8 bytes times boxes times anchors for each picture.
 */
#include <math.h>

#include "loss/assign.h"
#include "loss/pieces.h"

static const double eps = 1e-9;

/* How an anchor suits a box: the overlap of its prediction, and the alignment metric. */
typedef struct fit {
    double overlap, metric;
} fit;

size_t oct_assign_tal_work(const oct_tal *tal, int64_t n_boxes)
{
    return (size_t)n_boxes * sizeof(fit) + (size_t)tal->topk * sizeof(oct_pick);
}

/* The box that anchors have to lie in. */
static void reach_of(const oct_tal *tal, const double box[4], double reach[4])
{
    for (int axis = 0; axis < 2; axis++) {
        const double low = box[axis], high = box[axis + 2], centre = (low + high) / 2;
        const bool is_small = high - low < tal->min_side;

        reach[axis] = is_small ? centre - tal->min_side / 2 : low;
        reach[axis + 2] = is_small ? centre + tal->min_side / 2 : high;
    }
}

bool oct_assign_tal_is_inside(const oct_tal *tal, const oct_assign_in *in, int64_t anchor,
                              int64_t j)
{
    double reach[4];

    reach_of(tal, &in->box[4 * j], reach);
    return oct_assign_is_inside(&in->point[2 * anchor], reach, eps);
}

static double overlap_of(const oct_tal *tal, const oct_assign_in *in, int64_t anchor, int64_t j)
{
    const double *box = &in->box[4 * j], *pred = &in->pred[4 * anchor];

    return tal->is_ciou ? fmax(1 - oct_loss_ciou(box, pred, 1e-7, NULL), 0)
                        : oct_box_iou(box, pred, eps);
}

static double power(double x, double y)
{
    return y == 1 ? x : pow(x, y);
}

static fit fit_of(const oct_tal *tal, const oct_assign_in *in, int64_t anchor, int64_t j)
{
    const double score = in->score[anchor * in->n_classes + in->label[j]];
    fit f = {overlap_of(tal, in, anchor, j), 0};

    f.metric = power(score, tal->alpha) * power(f.overlap, tal->beta);
    return f;
}

/* The first box of the largest overlap with the anchor's prediction. */
static int32_t settle(const oct_tal *tal, const oct_assign_in *in, int64_t anchor)
{
    double most = 0;
    int32_t found = 0;

    if (!tal->is_ciou) return oct_assign_best_box(in, &in->pred[4 * anchor], eps);
    for (int64_t j = 0; j < in->n_boxes; j++) {
        const double o =
            oct_assign_tal_is_inside(tal, in, anchor, j) ? overlap_of(tal, in, anchor, j) : 0;

        if (o > most) {
            most = o;
            found = (int32_t)j;
        }
    }
    return found;
}

/*
 * The topk anchors of one box: label[] counts the boxes that want an anchor, box[] is the last of
 * them. Anchors outside take part with a metric of 0 and are dropped, as in the projects.
 */
static void choose(const oct_tal *tal, const oct_assign_in *in, int64_t j, oct_picks *picks,
                   const oct_assigned *out)
{
    double reach[4];

    reach_of(tal, &in->box[4 * j], reach);
    picks->n = 0;
    for (int64_t i = 0; i < in->n_anchors; i++) {
        const bool inside = oct_assign_is_inside(&in->point[2 * i], reach, eps);

        oct_picks_offer(picks, inside ? fit_of(tal, in, i, j).metric : 0, i);
    }
    for (int64_t k = 0; k < picks->n; k++) {
        const int64_t i = picks->pick[k].index;

        if (!oct_assign_is_inside(&in->point[2 * i], reach, eps)) continue;
        out->box[i] = (int32_t)j;
        out->label[i]++;
    }
}

/* Anchors that several boxes want get one; of[j] is the best of what box j has in the end. */
static void resolve(const oct_tal *tal, const oct_assign_in *in, fit *of, const oct_assigned *out)
{
    for (int64_t j = 0; j < in->n_boxes; j++)
        of[j] = (fit){0, 0};
    for (int64_t i = 0; i < in->n_anchors; i++) {
        if (out->label[i] == 0) continue;
        if (out->label[i] > 1) out->box[i] = settle(tal, in, i);
        const int32_t j = out->box[i];
        fit f = {0, 0};

        /* With CIoU, a pair whose anchor is outside has no overlap: all overlaps were 0. */
        if (!tal->is_ciou || oct_assign_tal_is_inside(tal, in, i, j)) f = fit_of(tal, in, i, j);
        out->q[i] = f.metric;
        of[j].metric = fmax(of[j].metric, f.metric);
        of[j].overlap = fmax(of[j].overlap, f.overlap);
    }
}

void oct_assign_tal(const oct_tal *tal, const oct_assign_in *in, void *work,
                    const oct_assigned *out)
{
    fit *of = work;
    oct_picks picks = {.pick = (oct_pick *)(of + in->n_boxes), .max = tal->topk};

    oct_assign_none(in, out);
    for (int64_t i = 0; i < in->n_anchors; i++)
        out->label[i] = 0;
    for (int64_t j = 0; j < in->n_boxes; j++)
        choose(tal, in, j, &picks, out);
    resolve(tal, in, of, out);
    for (int64_t i = 0; i < in->n_anchors; i++) {
        const int32_t j = out->box[i];

        out->label[i] = j < 0 ? (int32_t)in->n_classes : in->label[j];
        if (j >= 0) out->q[i] = out->q[i] / (of[j].metric + eps) * of[j].overlap;
    }
}
