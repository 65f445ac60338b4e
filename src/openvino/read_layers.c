/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, matrix products and pooling of IR. */
#include <string.h>

#include "op/conv_geometry.h"
#include "op/op.h"
#include "openvino/read.h"

/* --- windows --- */

/* strides, pads and dilations of a layer, under the names that ONNX has for them. */
static oct_status window(oct_from_ir *r, const oct_ir_layer *l, oct_node *n)
{
    const char *pad = oct_from_ir_str(l, "auto_pad", "explicit");
    int64_t v[OCT_MAX_SPATIAL], pads[2 * OCT_MAX_SPATIAL];
    int n_v, begin, end;

    OCT_TRY(oct_from_ir_ints(r, l, "strides", v, OCT_MAX_SPATIAL, &n_v));
    if (n_v) oct_emit_ints(&r->b, n, "strides", v, n_v);
    OCT_TRY(oct_from_ir_ints(r, l, "dilations", v, OCT_MAX_SPATIAL, &n_v));
    if (n_v) oct_emit_ints(&r->b, n, "dilations", v, n_v);
    OCT_TRY(oct_from_ir_ints(r, l, "kernel", v, OCT_MAX_SPATIAL, &n_v));
    if (n_v) oct_emit_ints(&r->b, n, "kernel_shape", v, n_v);
    if (strcmp(pad, "same_upper") == 0 || strcmp(pad, "same_lower") == 0) {
        oct_emit_str(&r->b, n, "auto_pad", pad[5] == 'u' ? "SAME_UPPER" : "SAME_LOWER");
        return r->b.status;
    }
    if (strcmp(pad, "valid") == 0) return r->b.status;
    OCT_TRY(oct_from_ir_ints(r, l, "pads_begin", pads, OCT_MAX_SPATIAL, &begin));
    OCT_TRY(oct_from_ir_ints(r, l, "pads_end", pads + begin, OCT_MAX_SPATIAL, &end));
    if (begin != end) return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "its pads do not fit");
    if (begin) oct_emit_ints(&r->b, n, "pads", pads, begin + end);
    return r->b.status;
}

/* --- convolutions --- */

/* [g x a x b x k] is [g * a x b x k] in ONNX. */
static oct_value *merged_groups(oct_from_ir *r, oct_value *w)
{
    const oct_node *by = w->producer;
    oct_type t = w->type;
    oct_tensor *view = NULL;

    if (r->b.status) return NULL;
    if (t.rank < 4 || !oct_type_is_static(&t)) {
        r->b.status = oct_from_ir_fail(r, r->layer, OCT_ERR_UNSUPPORTED,
                                       "the shape of its weights is not known");
        return NULL;
    }
    t.rank--;
    t.dim[0] = w->type.dim[0] * w->type.dim[1];
    for (int32_t i = 1; i < t.rank; i++)
        t.dim[i] = w->type.dim[i + 1];
    /* Weights in integers were merged when they were read (read_quant.c). */
    if (oct_node_is(by, &oct_op_reshape) && oct_type_equal(&by->in[0]->type, &t)) return by->in[0];
    if (!w->data) return oct_emit(&r->b, &oct_op_reshape, w, oct_ints(&r->b, t.dim, t.rank), NULL);
    r->b.status = oct_tensor_view(r->ctx, w->data, &t, &view);
    return r->b.status ? NULL : oct_value_const(r->g, NULL, view);
}

static oct_status convolve(oct_from_ir *r, const oct_ir_layer *l, const oct_op *op)
{
    oct_value *in[2] = {oct_from_ir_in(r, l, 0), oct_from_ir_in(r, l, 1)};
    int64_t v[OCT_MAX_SPATIAL];
    int64_t group = 1;
    oct_node *n;
    int n_v;

    if (!in[0] || !in[1]) return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "an operand is missing");
    if (strncmp(l->type, "Group", 5) == 0) {
        group = in[1]->type.rank > 0 ? in[1]->type.dim[0] : -1;
        in[1] = merged_groups(r, in[1]);
        OCT_TRY(r->b.status);
    }
    n = oct_emit_node(&r->b, op, in, 2, 1);
    OCT_TRY(r->b.status);
    OCT_TRY(window(r, l, n));
    oct_emit_int(&r->b, n, "group", group);
    OCT_TRY(oct_from_ir_ints(r, l, "output_padding", v, OCT_MAX_SPATIAL, &n_v));
    if (n_v && op == &oct_op_conv_transpose) oct_emit_ints(&r->b, n, "output_padding", v, n_v);
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

oct_status oct_from_ir_convolution(oct_from_ir *r, const oct_ir_layer *l)
{
    return convolve(r, l, &oct_op_conv);
}

oct_status oct_from_ir_deconvolution(oct_from_ir *r, const oct_ir_layer *l)
{
    if (l->n_in > 2)
        return oct_from_ir_fail(r, l, OCT_ERR_UNSUPPORTED, "octet cannot read its output shape");
    return convolve(r, l, &oct_op_conv_transpose);
}

/* --- biases --- */

static bool has_one_consumer(const oct_from_ir *r, oct_ir_at at)
{
    int32_t n = 0;

    for (int32_t i = 0; i < r->ir.n_layers && n < 2; i++)
        for (int32_t k = 0; k < r->ir.layers[i].n_in; k++)
            n += r->ir.layers[i].in[k].layer == at.layer && r->ir.layers[i].in[k].port == at.port;
    return n == 1;
}

/* The constant [1 x M x 1 ..] that is added to a convolution of M filters, as [M]. */
static oct_status find_bias(oct_from_ir *r, const oct_value *y, const oct_value *b, oct_value **out)
{
    const oct_type *t = &b->type;
    const int64_t m = y->type.rank > 1 ? y->type.dim[1] : -1;
    const oct_type flat = oct_type_make(t->dtype, 1, &m);
    oct_tensor *view = NULL;

    *out = NULL;
    if (!b->data || m < 1 || t->rank != y->type.rank || t->dim[1] != m || oct_type_len(t) != m)
        return OCT_OK;
    OCT_TRY(oct_tensor_view(r->ctx, b->data, &flat, &view));
    *out = oct_value_const(r->g, NULL, view);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

/* A layer with weights takes its bias: kernels and quantization see one layer then. */
oct_status oct_from_ir_add(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *x = oct_from_ir_in(r, l, 0), *b = oct_from_ir_in(r, l, 1), *bias = NULL;
    oct_node *n = x ? x->producer : NULL;

    if (l->n_in != 2) return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "not two operands");
    if ((oct_node_is(n, &oct_op_conv) || oct_node_is(n, &oct_op_conv_transpose)) && n->n_in == 2 &&
        has_one_consumer(r, l->in[0]))
        OCT_TRY(find_bias(r, x, b, &bias));
    if (!bias) return oct_from_ir_done(r, l, 0, oct_emit(&r->b, &oct_op_add, x, b, NULL));
    OCT_TRY(oct_node_set_input(n, 2, bias));
    return oct_from_ir_done(r, l, 0, x);
}

/* --- matrix products --- */

static oct_value *transposed(oct_from_ir *r, oct_value *v)
{
    const int32_t rank = v ? v->type.rank : 0;
    int64_t perm[OCT_MAX_RANK];
    oct_node *n;

    if (rank < 2) return v;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    n = oct_emit_node(&r->b, &oct_op_transpose, &v, 1, 1);
    oct_emit_ints(&r->b, n, "perm", perm, rank);
    return oct_emitted(&r->b, n);
}

oct_status oct_from_ir_mat_mul(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_value *a = oct_from_ir_in(r, l, 0), *b = oct_from_ir_in(r, l, 1);
    const bool ta = oct_from_ir_bool(l, "transpose_a", false),
               tb = oct_from_ir_bool(l, "transpose_b", false);
    oct_node *n;

    if (!a || !b) return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "an operand is missing");
    if (a->type.rank == 2 && b->type.rank == 2 && (ta || tb)) {
        n = oct_emit_node(&r->b, &oct_op_gemm, (oct_value *[]){a, b}, 2, 1);
        oct_emit_int(&r->b, n, "transA", ta);
        oct_emit_int(&r->b, n, "transB", tb);
        return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
    }
    if (ta) a = transposed(r, a);
    if (tb) b = transposed(r, b);
    return oct_from_ir_done(r, l, 0, oct_emit(&r->b, &oct_op_mat_mul, a, b, NULL));
}

/* --- pooling --- */

static oct_status pool(oct_from_ir *r, const oct_ir_layer *l, const oct_op *op, oct_node **out)
{
    const char *rounding = oct_from_ir_str(l, "rounding_type", "floor");
    oct_value *x = oct_from_ir_in(r, l, 0);

    if (!x) return oct_from_ir_fail(r, l, OCT_ERR_FORMAT, "an operand is missing");
    *out = oct_emit_node(&r->b, op, &x, 1, 1);
    OCT_TRY(r->b.status);
    OCT_TRY(window(r, l, *out));
    if (strncmp(rounding, "ceil", 4) == 0) oct_emit_int(&r->b, *out, "ceil_mode", 1);
    return r->b.status;
}

oct_status oct_from_ir_max_pool(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_node *n = NULL;

    OCT_TRY(pool(r, l, &oct_op_max_pool, &n));
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}

oct_status oct_from_ir_avg_pool(oct_from_ir *r, const oct_ir_layer *l)
{
    oct_node *n = NULL;

    OCT_TRY(pool(r, l, &oct_op_average_pool, &n));
    oct_emit_int(&r->b, n, "count_include_pad", !oct_from_ir_bool(l, "exclude-pad", false));
    return oct_from_ir_done(r, l, 0, oct_emitted(&r->b, n));
}
