/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layers have to be float for a score to be reached: a search that knows nothing of networks.
 *
 * Layers are restored in the order of their harm, in groups that double, so that a few scores are
 * enough. A group that does not help is put back once, and the layers are ranked anew. If groups do
 * not reach the score, single layers are added to the best set that was found. When the score is
 * reached, what is not needed goes back to integers: halves of what was restored, then
 * quarters, in the end single layers, those with the most work for their harm first.
 */
#ifndef OCT_CONTROL_SEARCH_H
#define OCT_CONTROL_SEARCH_H

#include <octet/ctx.h>

#include "base/mem.h"

/* One score that was taken. */
typedef struct oct_search_step {
    int32_t kind;   /* oct_control_move, control.h */
    int32_t first;  /* the most harmful of the layers that changed; -1: none did */
    int32_t n;      /* layers that changed */
    int32_t floats; /* layers restored, all together */
    double score;
    bool holds, is_kept;
} oct_search_step;

typedef struct oct_search {
    oct_ctx *ctx;
    int32_t n;          /* layers */
    const double *work; /* of each; what float costs */
    double need;        /* score to reach; higher is better */
    int32_t max_scores; /* to take, at most; 0: no limit */
    int32_t most;       /* layers that may be float */
    void *user;

    /* The score with these layers in float. */
    oct_status (*score)(void *user, const uint8_t *is_float, double *score);
    /* harm[i] of each layer that is not float in this set, any unit; < 0: none. */
    oct_status (*rank)(void *user, const uint8_t *is_float, double *harm);
    /* After each score; is_kept: what was scored last is the best so far. */
    oct_status (*step)(void *user, const oct_search_step *step);

    /* Results. */
    uint8_t *is_float; /* n, the caller's: the set that was kept last */
    double score_kept;
    bool holds;
    int32_t n_scores;
} oct_search;

oct_status oct_search_run(oct_search *s);

#endif
