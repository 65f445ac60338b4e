/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of Conv and ConvTranspose: each is the other's gradient with respect to the input, by
 * the same weights; those of the weights are ConvGradWeight. */
#include "op/conv_geometry.h"
#include "op/grad/layers.h"
#include "op/grad/rules.h"

enum { X, W, BIAS };

/* The attributes that all three operators share; g has explicit pads. */
static void emit_geometry(oct_builder *b, oct_node *n, const oct_conv_geometry *g)
{
    int64_t pads[2 * OCT_MAX_SPATIAL];

    for (int d = 0; d < g->n; d++) {
        pads[d] = g->pad_begin[d];
        pads[g->n + d] = g->pad_end[d];
    }
    oct_emit_ints(b, n, "kernel_shape", g->kernel, g->n);
    oct_emit_ints(b, n, "strides", g->stride, g->n);
    oct_emit_ints(b, n, "dilations", g->dilation, g->n);
    oct_emit_ints(b, n, "pads", pads, 2 * g->n);
    oct_emit_int(b, n, "group", g->group);
}

/* From the first element a window reads to the last, plus one. */
static int64_t extent(const oct_conv_geometry *g, int d)
{
    return (g->kernel[d] - 1) * g->dilation[d] + 1;
}

static bool wants(const oct_grad_args *a, int i)
{
    return i < a->node->n_in && a->wanted[i];
}

/* One number for each channel: the sum over images and pixels. */
static oct_value *sum_channels(oct_builder *b, oct_value *dy)
{
    int64_t axes[OCT_MAX_RANK], n = 0;

    for (int32_t d = 0; d < dy->type.rank; d++)
        if (d != 1) axes[n++] = d;
    return oct_grad_reduce(b, &oct_op_reduce_sum, dy, axes, n, false);
}

/* Gradients of the weights, and of the bias where `dbias` is not NULL. */
static oct_value *emit_weight(const oct_grad_args *a, const oct_conv_geometry *g, oct_value *x,
                              oct_value *dy, oct_value **dbias)
{
    oct_node *n =
        oct_emit_node(a->b, &oct_op_conv_grad_weight, (oct_value *[]){x, dy}, 2, dbias ? 2 : 1);
    oct_value *dw;

    emit_geometry(a->b, n, g);
    dw = oct_emitted(a->b, n);
    if (dw && dbias) *dbias = n->out[1];
    return dw;
}

oct_status oct_grad_conv(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    oct_conv_geometry g;

    OCT_TRY(oct_conv_geometry_conv(n, &n->in[X]->type, &n->in[W]->type, &g));
    if (wants(a, X)) {
        int64_t more[OCT_MAX_SPATIAL];
        oct_node *t =
            oct_emit_node(a->b, &oct_op_conv_transpose, (oct_value *[]){a->dy[0], n->in[W]}, 2, 1);

        /* What no window of the forward convolution reached at the end. */
        for (int d = 0; d < g.n; d++)
            more[d] = g.in[d] + g.pad_begin[d] + g.pad_end[d] - extent(&g, d) -
                      (g.out[d] - 1) * g.stride[d];
        emit_geometry(a->b, t, &g);
        oct_emit_ints(a->b, t, "output_padding", more, g.n);
        a->dx[X] = oct_emitted(a->b, t);
    }
    if (wants(a, W))
        a->dx[W] = emit_weight(a, &g, n->in[X], a->dy[0], wants(a, BIAS) ? &a->dx[BIAS] : NULL);
    else if (wants(a, BIAS))
        a->dx[BIAS] = sum_channels(a->b, a->dy[0]);
    return a->b->status;
}

/* Cuts the spatial axes to these sizes. */
static oct_value *cut(oct_builder *b, oct_value *v, const oct_conv_geometry *g)
{
    int64_t start[OCT_MAX_SPATIAL] = {0}, axes[OCT_MAX_SPATIAL];
    bool fits = true;

    if (!v) return NULL;
    for (int d = 0; d < g->n; d++) {
        axes[d] = d + 2;
        fits = fits && v->type.dim[d + 2] == g->in[d];
    }
    if (fits) return v;
    return oct_emitted(
        b, oct_emit_node(b, &oct_op_slice,
                         (oct_value *[]){v, oct_ints(b, start, g->n), oct_ints(b, g->in, g->n),
                                         oct_ints(b, axes, g->n)},
                         4, 1));
}

oct_status oct_grad_conv_transpose(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    oct_conv_geometry g;

    OCT_TRY(oct_conv_geometry_transpose(n, &n->in[X]->type, &n->in[W]->type, &g));
    /* The convolution over dy has as many windows as x has pixels, if need be after a cut:
     * output_padding and output_shape may leave room for more. */
    for (int d = 0; d < g.n; d++)
        g.pad_end[d] =
            OCT_MAX((g.in[d] - 1) * g.stride[d] + extent(&g, d) - g.pad_begin[d] - g.out[d], 0);
    if (wants(a, X)) {
        oct_node *c = oct_emit_node(a->b, &oct_op_conv, (oct_value *[]){a->dy[0], n->in[W]}, 2, 1);

        emit_geometry(a->b, c, &g);
        a->dx[X] = cut(a->b, oct_emitted(a->b, c), &g);
    }
    if (wants(a, W)) a->dx[W] = emit_weight(a, &g, a->dy[0], n->in[X], NULL);
    if (wants(a, BIAS)) a->dx[BIAS] = sum_channels(a->b, a->dy[0]);
    return a->b->status;
}
