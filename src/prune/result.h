/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the layers of a network. */
#ifndef OCT_PRUNE_RESULT_H
#define OCT_PRUNE_RESULT_H

#include "prune/groups.h"

oct_status oct_prune_result_new(oct_ctx *ctx, oct_prune_result **out);
oct_prune_totals *oct_prune_result_totals(oct_prune_result *r);

/* Layers as they are, and which of their channels have to stay. */
oct_status oct_prune_result_before(oct_prune_result *r, const oct_prune_groups *g);

/* The nodes of layers are those of the same names in another graph from now on. */
oct_status oct_prune_result_move(oct_prune_result *r, const oct_graph *to);

/* Layers as they are now. The nodes are those of before. */
void oct_prune_result_after(oct_prune_result *r, const oct_graph *g);

#endif
