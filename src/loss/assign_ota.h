/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assignment by cost (SimOTA): every box takes the k candidates of the lowest cost, where k is the
 * sum of its `topk` largest overlaps, at least 1. An anchor that several boxes take goes to the box
 * of the lowest cost among all. Of equal candidates the one of the lowest index wins.
 */
#ifndef OCT_LOSS_ASSIGN_OTA_H
#define OCT_LOSS_ASSIGN_OTA_H

#include "loss/assign.h"

enum { OCT_OTA_MAX_TOPK = 64 };

typedef struct oct_ota {
    int64_t topk; /* at most OCT_OTA_MAX_TOPK */
    /* Cost and overlap of a box and an anchor. */
    void (*pair)(const void *arg, int64_t box, int64_t anchor, double *cost, double *overlap);
    const void *arg;
} oct_ota;

/* The overlap becomes q. is_candidate [n_anchors]: others are background. */
void oct_assign_ota(const oct_ota *ota, const oct_assign_in *in, const bool *is_candidate,
                    const oct_assigned *out);

#endif
