/* SPDX-License-Identifier: Apache-2.0 */
/* How much to prune for a network that takes a given time here. */
#ifndef OCT_PRUNE_TIME_H
#define OCT_PRUNE_TIME_H

#include "prune/groups.h"

/* Sets g->keep so that a run of the graph takes the share that o->time_target leaves; sets the
 * times in *totals. */
oct_status oct_prune_choose_time(const oct_graph *g, const oct_prune_options *o,
                                 oct_prune_groups *groups, oct_prune_totals *totals);

#endif
