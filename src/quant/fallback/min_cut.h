/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cheapest way to part things into two sides, where a pair on different sides costs: a minimum
 * cut. Dinic's algorithm; capacities are whole numbers, so it ends and is the same everywhere.
 */
#ifndef OCT_QUANT_FALLBACK_MIN_CUT_H
#define OCT_QUANT_FALLBACK_MIN_CUT_H

#include "base/mem.h"

#define OCT_MIN_CUT_INFINITE INT64_C(1000000000000) /* a price that is not paid */

typedef struct oct_min_cut oct_min_cut;

/* In the arena; n things, all free of charge on either side. */
oct_status oct_min_cut_new(oct_arena *a, int32_t n, oct_min_cut **out);

/* What thing i costs on either side. */
oct_status oct_min_cut_terminals(oct_min_cut *c, int32_t i, int64_t here, int64_t there);

/* What it costs to have i here and k there (not the reverse). */
oct_status oct_min_cut_edge(oct_min_cut *c, int32_t i, int32_t k, int64_t price);

/* By thing: 1 if it stands here. Things without a reason to be here stand there. */
oct_status oct_min_cut_solve(oct_min_cut *c, uint8_t *is_here);

#endif
