/* SPDX-License-Identifier: Apache-2.0 */
/* Pre- and postprocessing as nodes of a network: the parts of oct_graph_attach(). */
#ifndef OCT_DETECT_ATTACH_H
#define OCT_DETECT_ATTACH_H

#include "detect/family.h"
#include "op/op.h"

/*
 * What a family reads, as values of the graph, before suppression: boxes [n, anchors, 4], corners
 * in pixels of the input, and scores [n, anchors, classes]. The batch n may be open.
 */
typedef struct oct_head {
    oct_value *boxes, *scores;
} oct_head;

/* --- for families (attach_head.c); sticky, as all emitting --- */

oct_value *oct_attach_concat(oct_builder *b, int64_t axis, oct_value *const *v, int32_t n);
oct_value *oct_attach_floats(oct_builder *b, int32_t rank, const int64_t *dims, const float *v);

/* [n, anchors, >= 4] with centre and size first, as corners. */
oct_value *oct_attach_corners(oct_builder *b, oct_value *v);

/* Boxes times the picture's size where they are fractions of it: none is above 2, in a picture. */
oct_value *oct_attach_pixels(oct_builder *b, oct_value *boxes, const oct_reading *r);

/* Scores after a sigmoid, if they are logits. */
oct_value *oct_attach_scores(oct_builder *b, oct_value *scores, const oct_reading *r);

/* For each cell of the levels, [1, cells, 2]: its place in its grid times the stride, plus
 * offset * stride + shift; and [1, cells, 1], its stride. */
oct_value *oct_attach_grid(oct_builder *b, const oct_reading *r, float offset, float shift);
oct_value *oct_attach_strides(oct_builder *b, const oct_reading *r);

/* Corners from distributions over distances [n, cells, 4 * bins]. */
oct_value *oct_attach_dfl(oct_builder *b, oct_value *distances, const oct_reading *r, float shift);

/* NanoDet, PicoDet: two outputs for each feature map. */
oct_status oct_attach_levels(oct_builder *b, const oct_reading *r, float shift, oct_head *out);

/* --- after the head (attach_nms.c) --- */

/* The options as checked. */
typedef struct oct_attach_nms {
    bool is_tensorrt, is_flat;
    float score, iou;
    int64_t max_det, pre_nms;
} oct_attach_nms;

/* Emits the suppression and makes its results the outputs of the graph. */
oct_status oct_attach_suppress(oct_builder *b, oct_head head, const oct_attach_nms *o);

#endif
