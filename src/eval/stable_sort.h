/* SPDX-License-Identifier: Apache-2.0 */
/* A stable sort: equal scores keep their order, which the metric's definition depends on. */
#ifndef OCT_EVAL_STABLE_SORT_H
#define OCT_EVAL_STABLE_SORT_H

#include <stddef.h>
#include <stdint.h>

typedef struct oct_ranked {
    double score;
    int32_t group;
    uint32_t index; /* of what is sorted */
} oct_ranked;

/* By rising group, in it by falling score. `work` has room for n too. */
void oct_rank(oct_ranked *items, oct_ranked *work, size_t n);

#endif
