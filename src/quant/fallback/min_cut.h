/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Minimum cut: the cheapest partition of nodes into a source side and a sink side, where nodes and
 * pairs on different sides cost. Dinic's algorithm; capacities are integers, so it terminates and
 * gives the same result everywhere.
 */
#ifndef OCT_QUANT_FALLBACK_MIN_CUT_H
#define OCT_QUANT_FALLBACK_MIN_CUT_H

#include "base/mem.h"

#define OCT_MIN_CUT_INFINITE INT64_C(1000000000000) /* a cost that is never paid */

typedef struct oct_min_cut oct_min_cut;

/* In the arena; n nodes, which cost nothing on either side so far. */
oct_status oct_min_cut_new(oct_arena *a, int32_t n, oct_min_cut **out);

/* What node i costs on the source side and on the sink side. */
oct_status oct_min_cut_terminals(oct_min_cut *c, int32_t i, int64_t source, int64_t sink);

/* What it costs to have i on the source side and k on the sink side (not the reverse). */
oct_status oct_min_cut_edge(oct_min_cut *c, int32_t i, int32_t k, int64_t price);

/* is_source[i] = 1 if node i is on the source side of the minimum cut; on ties the sink side. */
oct_status oct_min_cut_solve(oct_min_cut *c, uint8_t *is_source);

#endif
