/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of a qmap, found from its scales alone: no pictures are needed. */
#ifndef OCT_QUANT_DIAGNOSE_H
#define OCT_QUANT_DIAGNOSE_H

#include "quant/qmap.h"

/* An operand with fewer steps than FEW under a scale that another operand of the same node uses
 * with more than MANY is lost: what measured ranges say (analyze/advice.c); see diagnose.c for
 * scales. */
#define OCT_FEW_STEPS  8
#define OCT_MANY_STEPS 64

typedef struct oct_qfault {
    const oct_node *node;
    const char *text; /* one sentence, in the arena */
} oct_qfault;

/* All faults in graph order; the array is in the arena. */
oct_status oct_qmap_faults(const oct_qmap *m, oct_arena *a, oct_qfault **faults, int *n);

#endif
