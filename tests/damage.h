/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damages: networks that compute the same in float and are hard to quantize. Each changes the
 * channels between a layer and those that read it, and undoes that in their weights.
 */
#ifndef OCT_TESTS_DAMAGE_H
#define OCT_TESTS_DAMAGE_H

#include "graph/graph.h"

typedef struct damage {
    const char *name, *what;
} damage;

/* NULL beyond the end. */
const damage *damage_at(int i);
int damage_find(const char *name); /* -1: there is none */

/*
 * Damages the graph, which is simplified (quant/quantize.h). `where`: 0 to 1, how deep. Layers
 * without weights between two that could be damaged get a convolution that changes nothing first.
 * OCT_ERR_UNSUPPORTED: no place for it.
 */
oct_status damage_apply(oct_graph *g, int i, double where);

#endif
