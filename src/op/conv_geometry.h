/* SPDX-License-Identifier: Apache-2.0 */
/* Where the windows of convolutions and pooling lie: one place for kernel, stride, pads, groups. */
#ifndef OCT_OP_CONV_GEOMETRY_H
#define OCT_OP_CONV_GEOMETRY_H

#include "op/op.h"

#define OCT_MAX_SPATIAL (OCT_MAX_RANK - 2)

/*
 * What a node of this family does, with auto_pad resolved. A number is -1 while it is not known:
 * a dim of unknown size, and the pads if auto_pad says SAME and they depend on that size (see
 * oct_conv_pads_are_known()); n is -1 while not even the rank is. When all types are static, every
 * number is known, checked and not negative; kernel, stride, dilation and group are at least 1.
 */
typedef struct oct_conv_geometry {
    int n; /* spatial dims: rank - 2 */
    int64_t batch, c_in, c_out, group;
    int64_t in[OCT_MAX_SPATIAL], out[OCT_MAX_SPATIAL];
    int64_t kernel[OCT_MAX_SPATIAL], stride[OCT_MAX_SPATIAL], dilation[OCT_MAX_SPATIAL];
    int64_t pad_begin[OCT_MAX_SPATIAL], pad_end[OCT_MAX_SPATIAL]; /* pad_end: as the node says */
} oct_conv_geometry;

/* The attributes of Conv, ConvInteger and QLinearConv. */
extern const oct_attr_def oct_conv_attrs[];

/*
 * Attributes are found by name, so any row that has them can use these. x is [N x C x spatial];
 * either type may be partly unknown. They fail, naming the node, on anything that is not valid.
 */

/* Convolutions; w is [M x C/group x kernel]. */
oct_status oct_conv_geometry_conv(const oct_node *n, const oct_type *x, const oct_type *w,
                                  oct_conv_geometry *g);

/* ConvTranspose; w is [C x M/group x kernel]. out may reach beyond what the windows cover. */
oct_status oct_conv_geometry_transpose(const oct_node *n, const oct_type *x, const oct_type *w,
                                       oct_conv_geometry *g);

/* Pooling, with ceil_mode; group = c_in = c_out. */
oct_status oct_conv_geometry_pool(const oct_node *n, const oct_type *x, oct_conv_geometry *g);

/* [batch x c_out x out], of unknown rank if that is not known. */
oct_type oct_conv_geometry_type(const oct_conv_geometry *g, oct_dtype dtype);

/* Products over the spatial dims; all must be known. */
int64_t oct_conv_geometry_in_size(const oct_conv_geometry *g);
int64_t oct_conv_geometry_out_size(const oct_conv_geometry *g);
int64_t oct_conv_geometry_kernel_size(const oct_conv_geometry *g);

/* Multiply-adds, 0 if not known, INT64_MAX if they cannot be counted: each output (ConvTranspose:
 * input) element reads c/group windows. */
int64_t oct_conv_geometry_macs(const oct_conv_geometry *g, bool is_transpose);

/* Elements that the windows read, all together and from above; INT64_MAX if they cannot be counted,
 * 0 if a size is not known. `with_pads`: padding is walked through as well. */
int64_t oct_conv_geometry_taps(const oct_conv_geometry *g, bool with_pads);

/* The window of x [c_in x in] that output `place` (by rows, 2-D) reads of the channels of a group,
 * zeros where it lies outside: c_in / group * kernel numbers. Returns where the next one goes. */
float *oct_conv_sample(const oct_conv_geometry *g, int64_t group, const float *x, int64_t place,
                       float *out);

/* `n` places of a picture spread over its outputs: the i-th, from another start in each picture. */
int64_t oct_conv_place(const oct_conv_geometry *g, int64_t n, int64_t picture, int64_t i);

/* One filter for each input channel. */
static inline bool oct_conv_is_depthwise(const oct_conv_geometry *g)
{
    return g->group > 1 && g->group == g->c_in;
}

/* Makes a 1-D geometry 2-D with one row. False: it has another rank, or something is empty. */
bool oct_conv_geometry_to_2d(oct_conv_geometry *g);

/* False while auto_pad leaves them open: they depend on a size that is not known. */
bool oct_conv_pads_are_known(const oct_conv_geometry *g);

/* 1x1, stride 1, no pads: a matrix product over pixels. */
bool oct_conv_is_pointwise(const oct_conv_geometry *g);

/*
 * Kernel positions [*from, *to) of window o along axis d whose input index
 * o * stride - pad_begin + k * dilation lies inside the input.
 */
void oct_conv_window(const oct_conv_geometry *g, int d, int64_t o, int64_t *from, int64_t *to);

#endif
