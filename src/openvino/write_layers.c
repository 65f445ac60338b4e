/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, matrix products and pooling as IR: a bias is an Add, groups are an axis. */
#include <string.h>

#include "op/conv_geometry.h"
#include "op/op.h"
#include "openvino/write.h"

/* --- what convolutions and pooling share --- */

static void window_attrs(oct_to_ir *w, const oct_conv_geometry *g)
{
    oct_ir_attr_ints(&w->ir, "strides", g->stride, g->n);
    oct_ir_attr_ints(&w->ir, "pads_begin", g->pad_begin, g->n);
    oct_ir_attr_ints(&w->ir, "pads_end", g->pad_end, g->n);
    oct_ir_attr_str(&w->ir, "auto_pad", "explicit");
}

static oct_status need_pads(const oct_node *n, const oct_conv_geometry *g)
{
    if (oct_conv_pads_are_known(g)) return OCT_OK;
    return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                         "its padding depends on the size of its input, which is not known; give "
                         "the size with --input-shape");
}

/* [M x C/g x k] or [C x M/g x k] becomes [g x M/g x C/g x k] or [g x C/g x M/g x k]. */
static oct_type grouped(const oct_type *t, int64_t group)
{
    oct_type to = *t;

    to.rank = t->rank + 1;
    to.dim[0] = group;
    to.dim[1] = t->dim[0] / group;
    for (int32_t i = 1; i < t->rank; i++)
        to.dim[i + 1] = t->dim[i];
    return to;
}

/* y + bias, whose shape is [1 x M x 1 ..]. The sum has the node's name. */
static oct_status finish(oct_to_ir *w, const oct_node *n, oct_ir_at y, int32_t bias)
{
    const oct_type *t = &n->out[0]->type;
    oct_type wide = {.dtype = t->dtype, .rank = t->rank};

    if (w->ir.status || !oct_node_in(n, bias)) return oct_to_ir_done(w, n, 0, y);
    for (int32_t i = 0; i < t->rank; i++)
        wide.dim[i] = i == 1 ? n->in[bias]->type.dim[0] : 1;
    return oct_to_ir_done(
        w, n, 0,
        oct_to_ir_binary(w, n, NULL, "Add", y, oct_to_ir_reshaped(w, n, n->in[bias], &wide), t));
}

static oct_status check_weights(const oct_node *n, const oct_type *t)
{
    if (oct_type_is_static(t) && n->out[0]->type.rank > 0 && t->rank < OCT_MAX_RANK) return OCT_OK;
    return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "the shape of its weights is not known");
}

/* --- convolutions --- */

/* IR's grouped convolutions have the groups as a dimension of their weights. */
static oct_ir_at conv_weights(oct_to_ir *w, const oct_node *n, int64_t group)
{
    const oct_type to = grouped(&n->in[1]->type, group);

    return group > 1 ? oct_to_ir_reshaped(w, n, n->in[1], &to) : oct_to_ir_in(w, n, 1);
}

oct_status oct_to_ir_conv(oct_to_ir *w, const oct_node *n)
{
    const bool has_bias = oct_node_in(n, 2) != NULL;
    const oct_type *wt = &n->in[1]->type;
    oct_conv_geometry g;
    oct_ir_at in[2], y;

    OCT_TRY(check_weights(n, wt));
    OCT_TRY(oct_conv_geometry_conv(n, &n->in[0]->type, wt, &g));
    OCT_TRY(need_pads(n, &g));
    in[0] = oct_to_ir_in(w, n, 0);
    in[1] = conv_weights(w, n, g.group);
    y = oct_to_ir_emit(w, n, has_bias ? "product" : NULL,
                       g.group > 1 ? "GroupConvolution" : "Convolution", "opset1", in, 2,
                       &n->out[0]->type);
    window_attrs(w, &g);
    oct_ir_attr_ints(&w->ir, "dilations", g.dilation, g.n);
    return finish(w, n, y, 2);
}

oct_status oct_to_ir_conv_transpose(oct_to_ir *w, const oct_node *n)
{
    const bool has_bias = oct_node_in(n, 2) != NULL;
    const oct_attr *more = oct_node_attr(n, "output_padding");
    const oct_type *wt = &n->in[1]->type;
    int64_t padding[OCT_MAX_SPATIAL] = {0};
    oct_conv_geometry g;
    oct_ir_at in[2], y;

    OCT_TRY(check_weights(n, wt));
    OCT_TRY(oct_conv_geometry_transpose(n, &n->in[0]->type, wt, &g));
    OCT_TRY(need_pads(n, &g));
    for (int d = 0; d < g.n; d++)
        padding[d] = more && more->kind == OCT_ATTR_INTS && d < more->n ? more->is[d] : 0;
    in[0] = oct_to_ir_in(w, n, 0);
    in[1] = conv_weights(w, n, g.group);
    y = oct_to_ir_emit(w, n, has_bias ? "product" : NULL,
                       g.group > 1 ? "GroupConvolutionBackpropData" : "ConvolutionBackpropData",
                       "opset1", in, 2, &n->out[0]->type);
    window_attrs(w, &g);
    oct_ir_attr_ints(&w->ir, "dilations", g.dilation, g.n);
    oct_ir_attr_ints(&w->ir, "output_padding", padding, g.n);
    return finish(w, n, y, 2);
}

/* --- matrix products --- */

static void transpose_attrs(oct_to_ir *w, bool a, bool b)
{
    oct_ir_attr_bool(&w->ir, "transpose_a", a);
    oct_ir_attr_bool(&w->ir, "transpose_b", b);
}

oct_status oct_to_ir_mat_mul(oct_to_ir *w, const oct_node *n)
{
    OCT_TRY(oct_to_ir_same(w, n, "MatMul", "opset1", 2));
    transpose_attrs(w, false, false);
    return w->ir.status;
}

/* alpha * A B + beta * C */
oct_status oct_to_ir_gemm(oct_to_ir *w, const oct_node *n)
{
    const double alpha = oct_to_ir_f64(n, "alpha", 1), beta = oct_to_ir_f64(n, "beta", 1);
    const bool scaled = alpha != 1, has_c = oct_node_in(n, 2) != NULL && beta != 0;
    const oct_type *t = &n->out[0]->type;
    const oct_ir_at in[] = {oct_to_ir_in(w, n, 0), oct_to_ir_in(w, n, 1)};
    oct_ir_at y =
        oct_to_ir_emit(w, n, scaled || has_c ? "product" : NULL, "MatMul", "opset1", in, 2, t);

    transpose_attrs(w, oct_to_ir_int(n, "transA", 0) != 0, oct_to_ir_int(n, "transB", 0) != 0);
    if (scaled)
        y = oct_to_ir_binary(w, n, has_c ? "scaled" : NULL, "Multiply", y,
                             oct_ir_scalar(&w->ir, oct_ir_name(&w->ir, n->name, "alpha"), alpha),
                             t);
    if (has_c) {
        oct_ir_at c = oct_to_ir_in(w, n, 2);

        if (beta != 1)
            c = oct_to_ir_binary(w, n, "bias", "Multiply", c,
                                 oct_ir_scalar(&w->ir, oct_ir_name(&w->ir, n->name, "beta"), beta),
                                 &n->in[2]->type);
        y = oct_to_ir_binary(w, n, NULL, "Add", y, c, t);
    }
    return oct_to_ir_done(w, n, 0, y);
}

/* --- pooling --- */

oct_status oct_to_ir_max_pool(oct_to_ir *w, const oct_node *n)
{
    const bool ceils = oct_to_ir_int(n, "ceil_mode", 0) != 0;
    const oct_type *t = &n->out[0]->type;
    oct_type out[2] = {*t, *t};
    oct_conv_geometry g;
    oct_ir_at in;

    if (oct_node_out(n, 1) && (n->out[1]->n_users || n->out[1]->is_output))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "its indices are read: octet cannot write that as OpenVINO IR");
    OCT_TRY(oct_conv_geometry_pool(n, &n->in[0]->type, &g));
    OCT_TRY(need_pads(n, &g));
    out[1].dtype = OCT_DTYPE_I64;
    in = oct_to_ir_in(w, n, 0);
    in = oct_ir_add(&w->ir, n->name, "MaxPool", ceils ? "opset14" : "opset8", &in, 1, out, 2);
    window_attrs(w, &g);
    oct_ir_attr_ints(&w->ir, "dilations", g.dilation, g.n);
    oct_ir_attr_ints(&w->ir, "kernel", g.kernel, g.n);
    oct_ir_attr_str(&w->ir, "rounding_type", ceils ? "ceil_torch" : "floor");
    oct_ir_attr_str(&w->ir, "index_element_type", "i64");
    oct_ir_attr_int(&w->ir, "axis", 0);
    return oct_to_ir_done(w, n, 0, in);
}

oct_status oct_to_ir_average_pool(oct_to_ir *w, const oct_node *n)
{
    const bool ceils = oct_to_ir_int(n, "ceil_mode", 0) != 0;
    oct_conv_geometry g;
    bool dilated = false;

    OCT_TRY(oct_conv_geometry_pool(n, &n->in[0]->type, &g));
    OCT_TRY(need_pads(n, &g));
    for (int d = 0; d < g.n; d++)
        dilated |= g.dilation[d] != 1;
    OCT_TRY(oct_to_ir_same(w, n, "AvgPool", dilated ? "opset16" : ceils ? "opset14" : "opset1", 1));
    window_attrs(w, &g);
    oct_ir_attr_ints(&w->ir, "kernel", g.kernel, g.n);
    if (dilated) oct_ir_attr_ints(&w->ir, "dilations", g.dilation, g.n);
    oct_ir_attr_bool(&w->ir, "exclude-pad", !oct_to_ir_int(n, "count_include_pad", 0));
    oct_ir_attr_str(&w->ir, "rounding_type", ceils ? "ceil_torch" : "floor");
    return w->ir.status;
}

static oct_status global_pool(oct_to_ir *w, const oct_node *n, const char *type)
{
    const int32_t rank = n->in[0]->type.rank;
    int64_t axes[OCT_MAX_RANK];
    oct_ir_at in[2], y;

    if (rank < 3)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "the rank of its input is not known");
    for (int32_t i = 2; i < rank; i++)
        axes[i - 2] = i;
    in[0] = oct_to_ir_in(w, n, 0);
    in[1] = oct_ir_ints(&w->ir, oct_ir_name(&w->ir, n->name, "axes"), axes, rank - 2, false);
    y = oct_to_ir_emit(w, n, NULL, type, "opset1", in, 2, &n->out[0]->type);
    oct_ir_attr_bool(&w->ir, "keep_dims", true);
    return oct_to_ir_done(w, n, 0, y);
}

oct_status oct_to_ir_global_average_pool(oct_to_ir *w, const oct_node *n)
{
    return global_pool(w, n, "ReduceMean");
}

oct_status oct_to_ir_global_max_pool(oct_to_ir *w, const oct_node *n)
{
    return global_pool(w, n, "ReduceMax");
}
