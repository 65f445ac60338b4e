/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse-focus: a convolution of the four half-size images that strided Slices take from one image
 * (the "focus" stem of YOLOv5 and YOLOX) becomes a convolution of the image itself, with a kernel
 * and a stride of twice the size. The same products, without five copies of the image.
 */
#include <string.h>

#include "op/conv_geometry.h"
#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

#define PARTS 4

/* Which of the four sub-images a Slice takes; false if it does something else. */
static bool read_part(const oct_node *n, oct_value **x, int64_t offset[2])
{
    int64_t start[OCT_MAX_RANK], axes[OCT_MAX_RANK], steps[OCT_MAX_RANK];
    int k, n_axes, n_steps;

    if (!oct_node_is(n, &oct_op_slice) || n->n_in < 5 || n->in[0]->type.rank != 4) return false;
    if (!oct_const_ints(oct_node_const(n, 1), start, OCT_MAX_RANK, &k) ||
        !oct_const_ints(oct_node_const(n, 3), axes, OCT_MAX_RANK, &n_axes) ||
        !oct_const_ints(oct_node_const(n, 4), steps, OCT_MAX_RANK, &n_steps))
        return false;
    if (k != 2 || n_axes != 2 || n_steps != 2) return false;
    for (int i = 0; i < 2; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + 4 : axes[i];

        if (axis != 2 && axis != 3) return false;
        if (steps[i] != 2 || start[i] < 0 || start[i] > 1) return false;
        offset[axis - 2] = start[i];
    }
    if ((axes[0] < 0 ? axes[0] + 4 : axes[0]) == (axes[1] < 0 ? axes[1] + 4 : axes[1]))
        return false;
    *x = n->in[0];
    return true;
}

/* The image that the operands of a Concat are sliced from, and the offset of each in it. */
static oct_value *find_picture(const oct_node *cat, int64_t offset[PARTS][2])
{
    const oct_attr *axis = oct_node_attr(cat, "axis");
    oct_value *picture = NULL;
    unsigned seen = 0;

    if (!oct_node_is(cat, &oct_op_concat) || cat->n_in != PARTS || !axis || axis->i != 1)
        return NULL;
    for (int i = 0; i < PARTS; i++) {
        const oct_value *part = cat->in[i];
        oct_value *x;

        if (!part->producer || !read_part(part->producer, &x, offset[i])) return NULL;
        if (picture && x != picture) return NULL;
        picture = x;
        seen |= 1u << (offset[i][0] * 2 + offset[i][1]);
        for (int d = 2; d < 4; d++) /* up to the end: half the size, and no odd row left over */
            if (x->type.dim[d] < 2 || x->type.dim[d] % 2 || part->type.dim[d] * 2 != x->type.dim[d])
                return NULL;
    }
    return seen == 15 && oct_type_is_static(&picture->type) ? picture : NULL;
}

static oct_status spread_weights(oct_node *conv, int64_t c, int64_t offset[PARTS][2])
{
    const oct_tensor *w = oct_node_const(conv, 1);
    const int64_t o = w->type.dim[0], kh = w->type.dim[2], kw = w->type.dim[3];
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 4, (const int64_t[]){o, c, 2 * kh, 2 * kw});
    const float *from = w->data;
    oct_tensor *t = NULL;

    OCT_TRY(oct_tensor_make(conv->graph->ctx, &type, &t));
    for (int64_t i = 0; i < o * PARTS * c; i++) {
        const int64_t out = i / (PARTS * c), part = i / c % PARTS, in = i % c;

        for (int64_t k = 0; k < kh * kw; k++) {
            const int64_t y = k / kw * 2 + offset[part][0], x = k % kw * 2 + offset[part][1];

            ((float *)t->data)[((out * c + in) * 2 * kh + y) * 2 * kw + x] = from[i * kh * kw + k];
        }
    }
    return oct_node_set_const(conv, 1, "weight", t);
}

static oct_status fuse(oct_node *conv, int *n_changed)
{
    oct_node *cat = oct_inner_producer(conv->in[0]);
    const oct_tensor *w = oct_node_const(conv, 1);
    int64_t offset[PARTS][2], pads[4], kernel[2];
    oct_value *picture, *parts = conv->in[0];
    oct_conv_geometry g;

    if (!cat || !w || w->type.dtype != OCT_DTYPE_F32 || w->type.rank != 4) return OCT_OK;
    if (!(picture = find_picture(cat, offset))) return OCT_OK;
    OCT_TRY(oct_conv_geometry_conv(conv, &parts->type, &w->type, &g));
    if (g.n != 2 || !oct_conv_pads_are_known(&g)) return OCT_OK;
    for (int i = 0; i < 2; i++) {
        if (g.stride[i] != 1 || g.dilation[i] != 1 || g.group != 1) return OCT_OK;
        pads[i] = 2 * g.pad_begin[i];
        pads[2 + i] = 2 * g.pad_end[i];
        kernel[i] = 2 * g.kernel[i];
    }
    OCT_TRY(spread_weights(conv, picture->type.dim[1], offset));
    OCT_TRY(oct_node_set_str(conv, "auto_pad", "NOTSET"));
    OCT_TRY(oct_node_set_ints(conv, "kernel_shape", kernel, 2));
    OCT_TRY(oct_node_set_ints(conv, "strides", (const int64_t[]){2, 2}, 2));
    OCT_TRY(oct_node_set_ints(conv, "pads", pads, 4));
    OCT_TRY(oct_node_set_input(conv, 0, picture));
    ++*n_changed;
    return oct_prune(parts);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first; n; n = n->next)
        if (oct_node_is(n, &oct_op_conv)) OCT_TRY(fuse(n, n_changed));
    return OCT_OK;
}

const oct_pass oct_pass_fuse_focus = {
    .name = "fuse-focus",
    .help = "merge strided Slices, their Concat and the convolution after them",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .in = OCT_IN_PLANS, /* a file should keep the layers people know */
};
