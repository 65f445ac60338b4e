/* SPDX-License-Identifier: Apache-2.0 */
/* How much is pruned after how many epochs: NNCF's schedules. */
#ifndef OCT_PRUNE_SCHEDULE_H
#define OCT_PRUNE_SCHEDULE_H

#include <octet/prune.h>

#include "base/status.h"

typedef struct oct_prune_schedule oct_prune_schedule;

/* NULL: there is none of this name. */
const oct_prune_schedule *oct_prune_schedule_find(const char *name);

/* The share that is pruned in epoch `epoch` (from 0) of `steps` in which it grows to `target`. */
double oct_prune_schedule_level(const oct_prune_schedule *s, double initial, double target,
                                int32_t steps, int32_t epoch);

#endif
