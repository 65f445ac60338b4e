/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules of operators are made of: see channels.def. */
#ifndef OCT_PRUNE_FOLLOW_H
#define OCT_PRUNE_FOLLOW_H

#include "op/op.h"
#include "prune/channels.h"
#include "prune/cut.h"

/* How channels pass one operator. */
typedef struct oct_channel_rule {
    const oct_op *op;
    /* Labels of the results from those of the operands. */
    oct_status (*follow)(oct_channels *c, oct_node *n);
    /* What else has to change in the node when channels go: attributes, shapes. NULL: nothing. */
    oct_status (*cut)(const oct_surgery *s, oct_node *n);
} oct_channel_rule;

/* The rule of this node: its row's line in channels.def, or by the row's facts. */
oct_channel_rule oct_channel_rule_of(const oct_node *n);

/* --- units --- */

oct_status oct_units_new(oct_channels *c, int64_t n, int32_t *first);
void oct_units_unite(oct_channels *c, int32_t a, int32_t b); /* -1: the other one is protected */
void oct_unit_protect(oct_channels *c, int32_t unit, const oct_node *n, const char *why);
void oct_units_protect(oct_channels *c, const oct_value *v, const oct_node *n, const char *why);

/* --- labels of a value --- */

/* As they are now, in their smallest form; a new reference. A value without gets -1. */
oct_status oct_follow_read(oct_channels *c, const oct_value *v, oct_tensor **out);
oct_status oct_follow_set(oct_channels *c, const oct_value *v, oct_tensor *t); /* takes t */
oct_status oct_follow_copy(oct_channels *c, const oct_value *from, const oct_value *to);

/* Do they differ along this axis? */
bool oct_labels_vary(const oct_tensor *labels, int32_t axis);

/* Unites what differs along other axes only. */
oct_status oct_follow_tie(oct_channels *c, const oct_value *v, int32_t axis);

/* After tying: the unit of each index along the axis, in the arena. */
oct_status oct_follow_lane(oct_channels *c, const oct_value *v, int32_t axis, int32_t **unit);

/* Results have these units along an axis, and are the same along the others. */
oct_status oct_follow_give(oct_channels *c, const oct_value *v, int32_t axis, const int32_t *unit);

/* Axis `axis` of the constant operand belongs to the channels of `of` along `of_axis`. */
oct_status oct_follow_cut(oct_channels *c, oct_node *n, int32_t operand, int32_t axis,
                          const oct_value *of, int32_t of_axis, oct_cut_role role);

/* A constant operand that is broadcast against `of`: each of its axes. */
oct_status oct_follow_cut_broadcast(oct_channels *c, oct_node *n, int32_t operand,
                                    const oct_value *of, oct_cut_role role);

/* The rule of operators that nothing is known of: all operands are protected. */
oct_status oct_follow_stop(oct_channels *c, oct_node *n);

/* --- rules that several rows share --- */

#define OCT_CHANNELS(row, follow_, cut_)                                                           \
    oct_status oct_follow_##follow_(oct_channels *c, oct_node *n);
#include "prune/channels.def"
#undef OCT_CHANNELS
oct_status oct_follow_elementwise(oct_channels *c, oct_node *n);
oct_status oct_follow_spatial(oct_channels *c, oct_node *n);

#endif
