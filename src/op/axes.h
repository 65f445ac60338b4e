/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a dense tensor along some of its axes: reductions, normalisation, softmax, sorting. */
#ifndef OCT_OP_AXES_H
#define OCT_OP_AXES_H

#include "op/op.h"

/*
 * A tensor's axes in two groups: those that stay and those that are reduced over. Neighbouring
 * axes of one group are merged and axes of size 1 dropped. Steps count elements.
 */
typedef struct oct_split {
    int n_kept, n_cut;
    int64_t kept_dim[OCT_MAX_RANK], kept_step[OCT_MAX_RANK];
    int64_t cut_dim[OCT_MAX_RANK], cut_step[OCT_MAX_RANK];
    int64_t kept_len, cut_len; /* elements in each group; 1 if it has no axes */
} oct_split;

/* Bit d of `cut` set: axis d is reduced over. t is static. */
oct_split oct_split_axes(const oct_type *t, unsigned cut);

/* The first element of kept position i. */
int64_t oct_split_at(const oct_split *s, int64_t i);

/* Positions along the cut axes come in runs of even steps; run r begins at this offset. */
int64_t oct_split_runs(const oct_split *s);
int64_t oct_split_run_at(const oct_split *s, int64_t r);

static inline int64_t oct_split_run_len(const oct_split *s)
{
    return s->n_cut ? s->cut_dim[s->n_cut - 1] : 1;
}

static inline int64_t oct_split_run_step(const oct_split *s)
{
    return s->n_cut ? s->cut_step[s->n_cut - 1] : 1;
}

/* One axis of a static type as outer x n x inner. */
typedef struct oct_lanes {
    int64_t outer, n, inner;
} oct_lanes;

static inline oct_lanes oct_lanes_of(const oct_type *t, int32_t axis)
{
    return (oct_lanes){oct_type_span(t, 0, axis), t->dim[axis],
                       oct_type_span(t, axis + 1, t->rank)};
}

#endif
