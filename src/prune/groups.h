/* SPDX-License-Identifier: Apache-2.0 */
/* Units of the same layers, how important each is, and which of them are kept. */
#ifndef OCT_PRUNE_GROUPS_H
#define OCT_PRUNE_GROUPS_H

#include <octet/prune.h>

#include "prune/channels.h"

/* Units that the same axes of the same constants have: they can stand in for each other. */
typedef struct oct_prune_group {
    const oct_node *node; /* the first layer that makes them */
    int32_t *units;       /* roots, in order */
    int32_t n;
    int64_t width;   /* channels of that layer in one unit */
    const char *why; /* protected; NULL: not */
    const oct_node *at;
    int32_t n_kept;
} oct_prune_group;

typedef struct oct_prune_groups {
    oct_channels *c;
    oct_prune_group *groups;
    int32_t n;
    float *score;         /* by unit; of roots */
    bool *keep;           /* by unit; of roots */
    int64_t macs, params; /* of the whole network */
} oct_prune_groups;

/* In the arena of c. */
oct_status oct_prune_groups_find(oct_channels *c, oct_prune_groups *out);

/* A copy of a network whose shapes are numbers, which can be followed. */
oct_status oct_prune_prepare(const oct_graph *g, oct_graph **out);

/* Layers that the options name keep their channels (protect.c). */
oct_status oct_prune_groups_protect(oct_prune_groups *g, const oct_prune_options *o);

/* --- importance --- */

/* Where gradients of constants come from. */
typedef struct oct_prune_gradients {
    oct_prune_gradient_fn of;
    void *user;
} oct_prune_gradients;

/* Scores of all units; `kind` is a name of importance.def. */
oct_status oct_prune_score(oct_prune_groups *g, const char *kind, const oct_prune_gradients *d);

/* --- how much --- */

/* Are they sensible? */
oct_status oct_prune_check(oct_ctx *ctx, const oct_prune_options *o);

/* Sets g->keep and n_kept so that the target is met. */
oct_status oct_prune_choose(oct_prune_groups *g, const oct_prune_options *o);

/* Keeps, at this level in [0, 1], the share 1 - level of channels. */
oct_status oct_prune_choose_level(oct_prune_groups *g, const oct_prune_options *o, double level);

/* Keeps all but the channels whose weights are zero. */
oct_status oct_prune_choose_zeros(oct_prune_groups *g);

/* Of each value that lost all channels, the best one comes back. */
void oct_prune_keep_one_each(oct_prune_groups *g);

/* What the network would have with g->keep. */
oct_status oct_prune_count(const oct_prune_groups *g, int64_t *macs, int64_t *params);

#endif
