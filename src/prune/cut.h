/* SPDX-License-Identifier: Apache-2.0 */
/* Removing channels: by cutting them out of the network, or by zeros in their place. */
#ifndef OCT_PRUNE_CUT_H
#define OCT_PRUNE_CUT_H

#include "prune/channels.h"

/* Channels on their way out of a graph. */
typedef struct oct_surgery {
    const oct_channels *c;
    const bool *keep; /* for each unit that is a root */
    oct_type *type;   /* by value id: what it will be */
} oct_surgery;

/*
 * Cuts all units that are not kept out of the graph of c: constants become smaller, and attributes
 * and shapes follow. c is of no use afterwards but for freeing.
 */
oct_status oct_channels_cut(const oct_channels *c, const bool *keep);

/* Sets weights and biases of these units to zero instead: what the network computes is the same. */
oct_status oct_channels_mask(const oct_channels *c, const bool *keep);

/* --- for the cut functions of rules --- */

/* The axis along which this value loses channels (-1: it loses none) and what is kept of it. */
oct_status oct_surgery_kept(const oct_surgery *s, const oct_value *v, int32_t *axis,
                            const bool **kept);

#define OCT_CHANNELS(row, follow_, cut_)                                                           \
    oct_status oct_cut_##cut_(const oct_surgery *s, oct_node *n);
#include "prune/channels.def"
#undef OCT_CHANNELS

#endif
