/* SPDX-License-Identifier: Apache-2.0 */
/* What assigners share. */
#include "loss/assign.h"

#include "loss/pieces.h"

void oct_assign_none(const oct_assign_in *in, const oct_assigned *out)
{
    for (int64_t i = 0; i < in->n_anchors; i++) {
        out->box[i] = -1;
        out->label[i] = (int32_t)in->n_classes;
        out->q[i] = 0;
    }
}

bool oct_assign_is_inside(const double point[2], const double box[4], double margin)
{
    return point[0] - box[0] > margin && point[1] - box[1] > margin && box[2] - point[0] > margin &&
           box[3] - point[1] > margin;
}

int32_t oct_assign_best_box(const oct_assign_in *in, const double other[4], double eps)
{
    double most = 0;
    int32_t best = 0;

    for (int64_t j = 0; j < in->n_boxes; j++) {
        const double iou = oct_box_iou(&in->box[4 * j], other, eps);

        if (iou > most) {
            most = iou;
            best = (int32_t)j;
        }
    }
    return best;
}

void oct_picks_offer(oct_picks *p, double value, int64_t index)
{
    if (p->n == p->max && (p->max == 0 || !(value > p->pick[p->n - 1].value))) return;
    if (p->n < p->max) p->n++;
    int64_t at = p->n - 1;
    for (; at > 0 && value > p->pick[at - 1].value; at--)
        p->pick[at] = p->pick[at - 1];
    p->pick[at] = (oct_pick){value, index};
}
