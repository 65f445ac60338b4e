/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where channels go: labels on the channels of a value, mapped through nodes that only move data
 * (Concat, Split, Slice, Reshape, Transpose, pooling, nearest Resize, channel shuffles). With
 * scales by channel, this tells which channel of which tensor a consumer reads.
 */
#ifndef OCT_OP_CHANNELS_H
#define OCT_OP_CHANNELS_H

#include "graph/op.h"

enum { OCT_MAX_LABELS = 1 << 22 }; /* larger label tensors are not computed: "cannot be told" */

/* Ways of moving data that rows refer to (oct_op.moves), in channel_moves.c. */
extern const oct_data_move oct_moves_concat;
extern const oct_data_move oct_moves_blocks;
extern const oct_data_move oct_moves_dropout;
extern const oct_data_move oct_moves_expand;
extern const oct_data_move oct_moves_reshape;
extern const oct_data_move oct_moves_axis;
extern const oct_data_move oct_moves_global_pool;
extern const oct_data_move oct_moves_copy;
extern const oct_data_move oct_moves_pool;
extern const oct_data_move oct_moves_pad;
extern const oct_data_move oct_moves_resize;
extern const oct_data_move oct_moves_slice;
extern const oct_data_move oct_moves_tile;
extern const oct_data_move oct_moves_transpose;

/* Does output k of this node hold nothing but elements of its data operands, in some order or the
 * largest of some? Relu and Clip are not. Depends on attributes (Resize: nearest; Pad: zeros). */
bool oct_node_moves_data(const oct_node *n);

/* How many of its first operands are data (Concat: all; Slice: 1). */
int32_t oct_node_n_data(const oct_node *n);

/*
 * Labels: an i32 tensor of the value's rank, whose dims are the value's or 1 (the same for all of
 * that axis). [1,C,1,1]: one for each channel; [1,1,1,1]: one for all.
 */
oct_status oct_labels_new(oct_ctx *ctx, const oct_type *type, int32_t first, bool per_channel,
                          oct_tensor **out); /* per channel: first, first+1, ..; else all `first` */

/* Labels of output k, given those of the data operands; in their smallest form. New elements
 * (Pad) get the label of their channel, or -1. *out NULL: not known. */
oct_status oct_labels_through(const oct_node *n, const oct_tensor *const *in, int32_t k,
                              oct_tensor **out);

/* Axes along which nothing changes become 1, in place. */
void oct_labels_narrow(oct_tensor *labels);

/* The n = channels labels along axis 1, or false if they differ along another axis. */
bool oct_labels_channels(const oct_tensor *labels, int64_t channels, int32_t *out);

#endif
