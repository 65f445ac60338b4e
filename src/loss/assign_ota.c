/* SPDX-License-Identifier: Apache-2.0 */
/* Assignment by cost, with a number of anchors for each box that depends on overlaps. */
#include "loss/assign_ota.h"

#include <math.h>

enum { CONTESTED = -2 }; /* taken by several boxes; oct_assigned.box until that is settled */

/* What one box takes. */
static void take(const oct_ota *ota, const oct_assign_in *in, const bool *is_candidate, int64_t box,
                 const oct_assigned *out)
{
    oct_pick best[OCT_OTA_MAX_TOPK], cheapest[OCT_OTA_MAX_TOPK];
    oct_picks overlaps = {best, 0, ota->topk}, costs = {cheapest, 0, ota->topk};
    double sum = 0;
    int64_t k;

    for (int64_t i = 0; i < in->n_anchors; i++) {
        double cost, overlap;

        if (!is_candidate[i]) continue;
        ota->pair(ota->arg, box, i, &cost, &overlap);
        oct_picks_offer(&overlaps, overlap, i);
        oct_picks_offer(&costs, -cost, i);
    }
    for (int64_t i = 0; i < overlaps.n; i++)
        sum += best[i].value;
    /* 1 also if the sum is not a number */
    k = sum >= 1 ? (int64_t)fmin(sum, (double)ota->topk) : 1;
    for (int64_t i = 0; i < OCT_MIN(k, costs.n); i++) {
        int32_t *taken = &out->box[cheapest[i].index];

        *taken = *taken == -1 ? (int32_t)box : CONTESTED;
    }
}

/* The box of the lowest cost, whether it took the anchor or not. */
static int32_t settle(const oct_ota *ota, const oct_assign_in *in, int64_t anchor)
{
    double least = 0;
    int32_t best = 0;

    for (int64_t j = 0; j < in->n_boxes; j++) {
        double cost, overlap;

        ota->pair(ota->arg, j, anchor, &cost, &overlap);
        if (j && !(cost < least)) continue;
        least = cost;
        best = (int32_t)j;
    }
    return best;
}

void oct_assign_ota(const oct_ota *ota, const oct_assign_in *in, const bool *is_candidate,
                    const oct_assigned *out)
{
    oct_assign_none(in, out);
    for (int64_t j = 0; j < in->n_boxes; j++)
        take(ota, in, is_candidate, j, out);
    for (int64_t i = 0; i < in->n_anchors; i++) {
        double cost;

        if (out->box[i] == -1) continue;
        if (out->box[i] == CONTESTED) out->box[i] = settle(ota, in, i);
        out->label[i] = in->label[out->box[i]];
        ota->pair(ota->arg, out->box[i], i, &cost, &out->q[i]);
    }
}
