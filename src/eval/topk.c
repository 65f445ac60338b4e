/* SPDX-License-Identifier: Apache-2.0 */
/* Top-1 and top-5. */
#include "eval/topk.h"

#include <math.h>

#include "base/status.h"

void oct_topk_init(oct_topk *k)
{
    *k = (oct_topk){0};
}

void oct_topk_see(oct_topk *k, const float *scores, int32_t n_scores, int32_t right)
{
    int32_t n_before = 0;

    k->n++;
    k->n_classes = OCT_MAX(k->n_classes, n_scores);
    if (right < 0 || right >= n_scores || isnan(scores[right])) return;
    for (int32_t i = 0; i < n_scores; i++)
        n_before += i < right ? !(scores[i] < scores[right]) : !(scores[i] <= scores[right]);
    k->n_top1 += n_before < 1;
    k->n_top5 += n_before < 5;
}

void oct_topk_merge(oct_topk *k, const oct_topk *other)
{
    k->n += other->n;
    k->n_classes = OCT_MAX(k->n_classes, other->n_classes);
    k->n_top1 += other->n_top1;
    k->n_top5 += other->n_top5;
}

void oct_topk_finish(const oct_topk *k, double *top1, double *top5)
{
    *top1 = k->n ? (double)k->n_top1 / (double)k->n : -1;
    *top5 = k->n && k->n_classes > 5 ? (double)k->n_top5 / (double)k->n : -1;
}
