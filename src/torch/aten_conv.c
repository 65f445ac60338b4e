/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, linear layers and other products of matrices. */
#include <string.h>

#include "torch/aten.h"

/* Geometry of a convolution, for each spatial axis. */
typedef struct geometry {
    int rank;
    int64_t stride[OCT_MAX_RANK], pads[2 * OCT_MAX_RANK], dilation[OCT_MAX_RANK];
    int64_t output_padding[OCT_MAX_RANK], groups;
    const char *auto_pad; /* NULL: as pads say */
} geometry;

/* A tensor without a batch (C, H, W) is a batch of one. */
static oct_value *batched(oct_aten *a, oct_value *x, int rank, bool *was_single)
{
    *was_single = oct_aten_rank(a, x) == rank + 1;
    return *was_single ? oct_aten_unsqueeze(a, x, 0) : x;
}

static oct_value *emit_conv(oct_aten *a, const oct_op *op, const geometry *g)
{
    bool was_single;
    oct_value *const in[] = {batched(a, oct_aten_tensor(a, "input"), g->rank, &was_single),
                             oct_aten_tensor(a, "weight"), oct_aten_optional(a, "bias")};
    oct_node *n = oct_aten_node(a, op, in, in[2] ? 3 : 2, 1);
    int64_t kernel[OCT_MAX_RANK];
    oct_value *y;

    for (int i = 0; i < g->rank; i++)
        kernel[i] = oct_aten_dim(in[1], i + 2);
    if (g->rank > 0 && kernel[0] > 0) oct_emit_ints(a->b, n, "kernel_shape", kernel, g->rank);
    oct_emit_ints(a->b, n, "strides", g->stride, g->rank);
    oct_emit_ints(a->b, n, "dilations", g->dilation, g->rank);
    oct_emit_int(a->b, n, "group", g->groups);
    if (g->auto_pad)
        oct_emit_str(a->b, n, "auto_pad", g->auto_pad);
    else
        oct_emit_ints(a->b, n, "pads", g->pads, 2 * g->rank);
    if (op == &oct_op_conv_transpose)
        oct_emit_ints(a->b, n, "output_padding", g->output_padding, g->rank);
    y = oct_aten_done(a, n);
    return was_single ? oct_aten_squeeze(a, y, 0) : y;
}

static void read_geometry(oct_aten *a, geometry *g)
{
    const oct_arg *padding = oct_aten_arg(a, "padding");
    int64_t pad[OCT_MAX_RANK];

    *g = (geometry){.rank = oct_aten_rank(a, oct_aten_tensor(a, "weight")) - 2};
    if (g->rank < 1) {
        oct_aten_fail(a, OCT_ERR_SHAPE, "its weight has no spatial dimension");
        return;
    }
    oct_aten_spatial(a, "stride", g->rank, 1, g->stride);
    oct_aten_spatial(a, "dilation", g->rank, 1, g->dilation);
    oct_aten_spatial(a, "output_padding", g->rank, 0, g->output_padding);
    g->groups = oct_aten_int(a, "groups", 1);
    if (padding && padding->kind == OCT_ARG_STRING) {
        if (strcmp(padding->s, "same") == 0) g->auto_pad = "SAME_UPPER";
        return;
    }
    oct_aten_spatial(a, "padding", g->rank, 0, pad);
    for (int i = 0; i < g->rank; i++)
        g->pads[i] = g->pads[i + g->rank] = pad[i];
}

void oct_aten_conv(oct_aten *a)
{
    geometry g;

    read_geometry(a, &g);
    a->out[0] = emit_conv(a, &oct_op_conv, &g);
}

void oct_aten_conv_transpose(oct_aten *a)
{
    geometry g;

    read_geometry(a, &g);
    a->out[0] = emit_conv(a, &oct_op_conv_transpose, &g);
}

/* What both become after run_decompositions(). */
void oct_aten_convolution(oct_aten *a)
{
    if (oct_aten_bool(a, "transposed", false))
        oct_aten_conv_transpose(a);
    else
        oct_aten_conv(a);
}

/* --- matrices --- */

static oct_value *gemm(oct_aten *a, oct_value *x, oct_value *y, oct_value *c, bool trans_y)
{
    oct_value *const in[] = {x, y, c};
    oct_node *n = oct_aten_node(a, &oct_op_gemm, in, c ? 3 : 2, 1);

    oct_emit_int(a->b, n, "transB", trans_y);
    return oct_aten_done(a, n);
}

/* Gemm takes matrices only; others are multiplied by the transposed weight. */
void oct_aten_linear(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, "input"), *w = oct_aten_tensor(a, "weight");
    oct_value *bias = oct_aten_optional(a, "bias"), *y;

    if (oct_aten_rank(a, x) == 2 && oct_aten_rank(a, w) == 2) {
        a->out[0] = gemm(a, x, w, bias, true);
        return;
    }
    if (oct_aten_rank(a, w) == 2) w = oct_aten_swap(a, w, 0, 1);
    y = ATEN2(mat_mul, x, w);
    a->out[0] = bias ? ATEN2(add, y, bias) : y;
}

/* beta * self + alpha * (x @ y) */
static void scaled_sum(oct_aten *a, oct_value *product, oct_value *self)
{
    const double alpha = oct_aten_f64(a, "alpha", 1), beta = oct_aten_f64(a, "beta", 1);

    if (a->b->status) return;
    if (alpha != 1) product = ATEN2(mul, product, oct_aten_scalar(a, product->type.dtype, alpha));
    if (beta != 1) self = ATEN2(mul, self, oct_aten_scalar(a, self->type.dtype, beta));
    a->out[0] = ATEN2(add, product, self);
}

void oct_aten_addmm(oct_aten *a)
{
    const bool is_plain = oct_aten_f64(a, "alpha", 1) == 1 && oct_aten_f64(a, "beta", 1) == 1;
    oct_value *self = oct_aten_tensor(a, "self");
    oct_value *x = oct_aten_tensor(a, "mat1"), *y = oct_aten_tensor(a, "mat2");

    if (is_plain)
        a->out[0] = gemm(a, x, y, self, false);
    else
        scaled_sum(a, ATEN2(mat_mul, x, y), self);
}

void oct_aten_baddbmm(oct_aten *a)
{
    oct_value *self = oct_aten_tensor(a, "self");

    scaled_sum(a, ATEN2(mat_mul, oct_aten_tensor(a, "batch1"), oct_aten_tensor(a, "batch2")), self);
}

static void product_with(oct_aten *a, const char *other)
{
    oct_value *x = oct_aten_tensor(a, "self");

    a->out[0] = ATEN2(mat_mul, x, oct_aten_tensor(a, other));
}

void oct_aten_matmul(oct_aten *a)
{
    product_with(a, "other");
}

void oct_aten_mm(oct_aten *a)
{
    product_with(a, "mat2");
}

void oct_aten_mv(oct_aten *a)
{
    product_with(a, "vec");
}

void oct_aten_dot(oct_aten *a)
{
    product_with(a, "tensor");
}

void oct_aten_einsum(oct_aten *a)
{
    const char *equation = oct_aten_text(a, "equation", "");
    char *plain = oct_arena_strdup(a->t->arena, equation), *to = plain;
    int32_t n;
    oct_value **in = oct_aten_tensors(a, "tensors", &n);
    oct_node *node;

    for (const char *s = equation; plain && *s; s++)
        if (*s != ' ') *to++ = *s;
    if (!plain || !in) return;
    *to = '\0';
    node = oct_aten_node(a, &oct_op_einsum, in, n, 1);
    oct_emit_str(a->b, node, "equation", plain);
    a->out[0] = oct_aten_done(a, node);
}
