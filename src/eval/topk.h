/* SPDX-License-Identifier: Apache-2.0 */
/* How often the right class is the first, or among the first five. */
#ifndef OCT_EVAL_TOPK_H
#define OCT_EVAL_TOPK_H

#include <stdint.h>

typedef struct oct_topk {
    int64_t n, n_top1, n_top5;
    int32_t n_classes;
} oct_topk;

void oct_topk_init(oct_topk *k);

/*
 * The scores of one picture, whose class is `right`. Of equal scores the lower class comes first;
 * NaN scores are ranked before all others, so they never help. A class that the network does not
 * have is wrong.
 */
void oct_topk_see(oct_topk *k, const float *scores, int32_t n_scores, int32_t right);
void oct_topk_merge(oct_topk *k, const oct_topk *other);

/* -1: nothing seen; top5 also where there are no more than five classes, which are all among the
 * first five. */
void oct_topk_finish(const oct_topk *k, double *top1, double *top5);

#endif
