/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that scale and shift channels, and the layers whose weights can absorb them. */
#ifndef OCT_PASS_FUSE_AFFINE_H
#define OCT_PASS_FUSE_AFFINE_H

#include "graph/op.h"

/* y[:, c, ...] = scale[c] * x[:, c, ...] + shift[c] */
typedef struct oct_affine {
    oct_value *x; /* NULL: the node does not scale or shift channels */
    int64_t channels;
    double *scale, *shift;
} oct_affine;

/* Reads BatchNormalization, and Mul, Div, Add and Sub with a constant that is a scalar or
 * differs by channel only. Float32. The factors go into `scratch`. */
oct_status oct_affine_of(const oct_node *n, oct_arena *scratch, oct_affine *out);

/* y(x) = a(x) with channels, scale 1 and shift 0 to begin with. */
oct_status oct_affine_identity(oct_arena *scratch, int64_t channels, oct_affine *out);

/* a becomes b(a(x)). */
void oct_affine_then(oct_affine *a, const oct_affine *b);

/* a becomes a(b(x)). */
void oct_affine_after(oct_affine *a, const oct_affine *b);

bool oct_affine_shifts(const oct_affine *a); /* is any shift not 0? */

/*
 * Layers that are linear in their weights: Conv, ConvTranspose and Gemm with constant float32
 * weights and (if any) bias.
 */
bool oct_is_linear_layer(const oct_node *n);
int64_t oct_linear_layer_channels(const oct_node *n);    /* of its output */
int64_t oct_linear_layer_in_channels(const oct_node *n); /* of its input */

/* Does a shift of the layer's input shift all of its output alike? Padding stays zero, so it
 * must have none. */
bool oct_linear_layer_takes_shifts(const oct_node *n);

/* New weights so that the layer computes a(layer(x)). *done is false, and nothing has changed, if
 * the result would not be finite. */
oct_status oct_linear_layer_apply_after(oct_node *layer, const oct_affine *a, bool *done);

/* New weights so that the layer computes layer(a(x)) when given x. a may have shifts only if the
 * layer allows them. *done as above. */
oct_status oct_linear_layer_apply_before(oct_node *layer, const oct_affine *a, bool *done);

#endif
