/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding raw predictions: what the last layers with weights give, before Sigmoid and box
 * arithmetic, brought to [pictures, anchors, channels].
 */
#ifndef OCT_LOSS_RAW_H
#define OCT_LOSS_RAW_H

#include "graph/op.h"

bool oct_raw_is_float(const oct_value *v); /* float32 or float64 */

/* The node's results hold elements of its data operands: Reshape, Transpose, Concat, Split .. */
bool oct_raw_is_move(const oct_node *n);

/*
 * v without the Sigmoids between it and the last layers with weights: the nodes after them, which
 * may only move data, are emitted once more. *out NULL: there are other nodes between. v itself if
 * there is no Sigmoid.
 */
oct_status oct_raw_logits(oct_builder *b, oct_value *v, oct_value **out);

/* The nearest value from v upstream, to the last layers with weights, for which fn holds; v is the
 * first. *out NULL: none. */
typedef bool (*oct_raw_test)(void *arg, oct_value *v);
oct_status oct_raw_search(oct_value *v, oct_raw_test fn, void *arg, oct_value **out);

/* [B, C, L] or [B, C, H, W] to [B, L, C]. */
oct_value *oct_raw_rows(oct_builder *b, oct_value *v);

/* Several values, one after the other along the axis. */
oct_value *oct_raw_join(oct_builder *b, oct_value *const *v, int32_t n, int64_t axis);

/* Channels [from, to) of [B, L, C]. */
oct_value *oct_raw_channels(oct_builder *b, oct_value *v, int64_t from, int64_t to);

/* --- feature maps --- */

enum { OCT_RAW_MAX_LEVELS = 6 };

/* Their strides and sizes in cells, as a loss's operator has them in attributes. */
typedef struct oct_raw_levels {
    int32_t n;
    int64_t stride[OCT_RAW_MAX_LEVELS], size[2 * OCT_RAW_MAX_LEVELS]; /* size: height, width */
} oct_raw_levels;

/* The size of the pictures: of the first float input of rank 4 that is not `labels`. */
oct_status oct_raw_picture(const oct_graph *g, const oct_value *labels, int64_t *height,
                           int64_t *width);

/* Level `stride` of such pictures, appended; its cells. */
int64_t oct_raw_levels_add(oct_raw_levels *l, int64_t stride, int64_t height, int64_t width);

/* The levels from stride 8 on that have n cells together; false: none do. */
bool oct_raw_levels_of(int64_t n, int64_t height, int64_t width, oct_raw_levels *out);

void oct_raw_emit_levels(oct_builder *b, oct_node *n, const oct_raw_levels *l);

#endif
