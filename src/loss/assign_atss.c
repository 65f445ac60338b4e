/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ATSS (adaptive training sample selection): of the anchors nearest to a box's centre, those whose
 * square overlaps it more than the mean plus the standard deviation of all of them. Predictions
 * only give the target score.
 */
#include <math.h>

#include "loss/assign.h"
#include "loss/pieces.h"

/*
 * Small boxes lie in the squares of all candidates, whose overlaps are then equal. Whether they are
 * above their mean is decided by rounding in float32; here they are.
 */
static const double slack = 1e-7;

size_t oct_assign_atss_work(const oct_atss *atss, const oct_anchor_levels *levels)
{
    return (size_t)atss->topk * (size_t)levels->n * sizeof(oct_pick);
}

static void square_of(const oct_atss *atss, const oct_assign_in *in, int64_t anchor, double out[4])
{
    const double half = atss->side * in->stride[anchor] / 2;

    for (int axis = 0; axis < 2; axis++) {
        out[axis] = in->point[2 * anchor + axis] - half;
        out[axis + 2] = in->point[2 * anchor + axis] + half;
    }
}

/* The anchors of each level that are nearest to the box's centre, one level after the other. */
static int64_t nearest(const oct_atss *atss, const oct_assign_in *in, const double box[4],
                       oct_pick *pick)
{
    const double x = (box[0] + box[2]) / 2, y = (box[1] + box[3]) / 2;
    int64_t n = 0, i = 0;

    for (int32_t l = 0; l < in->levels->n; l++) {
        const int64_t end = i + oct_anchors_of_level(in->levels, l);
        oct_picks p = {.pick = pick + n, .max = atss->topk};

        for (; i < end; i++)
            oct_picks_offer(&p, -hypot(in->point[2 * i] - x, in->point[2 * i + 1] - y), i);
        n += p.n;
    }
    return n;
}

/* Mean plus (unbiased) standard deviation; the picks' values become overlaps. */
static double threshold_of(const oct_atss *atss, const oct_assign_in *in, const double box[4],
                           oct_pick *pick, int64_t n)
{
    double mean = 0, squares = 0;

    for (int64_t k = 0; k < n; k++) {
        double square[4];

        square_of(atss, in, pick[k].index, square);
        pick[k].value = oct_box_iou(box, square, atss->eps);
        mean += pick[k].value / (double)n;
    }
    for (int64_t k = 0; k < n; k++)
        squares += (pick[k].value - mean) * (pick[k].value - mean);
    return mean + (n > 1 ? sqrt(squares / (double)(n - 1)) : 0);
}

/* label[] counts the boxes that want an anchor, box[] is the one of them whose overlap q[] is
 * largest. */
static void choose(const oct_atss *atss, const oct_assign_in *in, int64_t j, oct_pick *pick,
                   const oct_assigned *out)
{
    const double *box = &in->box[4 * j];
    const int64_t n = nearest(atss, in, box, pick);
    const double threshold = threshold_of(atss, in, box, pick, n);

    for (int64_t k = 0; k < n; k++) {
        const int64_t i = pick[k].index;

        if (!(pick[k].value > threshold - slack)) continue;
        if (!oct_assign_is_inside(&in->point[2 * i], box, atss->margin)) continue;
        if (!out->label[i]++ || pick[k].value > out->q[i]) {
            out->box[i] = (int32_t)j;
            out->q[i] = pick[k].value;
        }
    }
}

void oct_assign_atss(const oct_atss *atss, const oct_assign_in *in, void *work,
                     const oct_assigned *out)
{
    oct_assign_none(in, out);
    for (int64_t i = 0; i < in->n_anchors; i++)
        out->label[i] = 0;
    for (int64_t j = 0; j < in->n_boxes; j++)
        choose(atss, in, j, work, out);
    for (int64_t i = 0; i < in->n_anchors; i++) {
        double square[4];

        if (out->label[i] > 1 && !atss->among_takers) {
            square_of(atss, in, i, square);
            out->box[i] = oct_assign_best_box(in, square, atss->eps);
        }
        const int32_t j = out->box[i];
        out->label[i] = j < 0 ? (int32_t)in->n_classes : in->label[j];
        if (j >= 0) out->q[i] = oct_box_iou(&in->box[4 * j], &in->pred[4 * i], 1e-9);
    }
}
