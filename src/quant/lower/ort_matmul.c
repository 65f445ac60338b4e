/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 1x1 convolutions with a float result as MatMul. ONNX Runtime has no integer convolution with a
 * float result, but such a MatMul: so the last layers of a detector, whose results are not
 * requantized, run in integers.
 */
#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/lower/lower_parts.h"
#include "quant/place/place.h"

/* The operand of the DequantizeLinear that produces v: codes or a constant. */
static oct_node *dequantizer_of(const oct_value *v)
{
    oct_node *dq = v ? v->producer : NULL;

    return oct_node_is(dq, &oct_op_dequantize_linear) ? dq : NULL;
}

/* [O,I,1,1] as [I,O], dequantized along the last axis. */
static oct_value *turned_weight(oct_lowering *l, oct_builder *b, oct_node *dq)
{
    const oct_tensor *w = dq->in[0]->data;
    const int64_t rows = w->type.dim[0], columns = w->type.dim[1];
    const oct_type type = oct_type_make(w->type.dtype, 2, (const int64_t[]){columns, rows});
    oct_value *v = NULL, *in[3];
    oct_tensor *t = NULL;
    oct_node *n;

    if ((b->status = oct_tensor_make(l->ctx, &type, &t))) return NULL;
    for (int64_t i = 0; i < columns; i++)
        for (int64_t o = 0; o < rows; o++)
            ((int8_t *)t->data)[i * rows + o] = ((const int8_t *)w->data)[o * columns + i];
    if ((b->status = oct_lowering_const(l, b->g, dq->in[0]->name, "turned", t, &v))) return NULL;
    in[0] = v;
    in[1] = dq->in[1];
    in[2] = oct_node_in(dq, 2);
    if (!(n = oct_emit_node(b, dq->op, in, in[2] ? 3 : 2, 1))) return NULL;
    b->status = oct_node_set_int(n, "axis", 1);
    if (!b->status) b->status = oct_node_infer(n);
    return b->status ? NULL : n->out[0];
}

/* The consumer, or the one after Relu and Clip, which are fused into the convolution. */
static bool is_rounded(const oct_value *v)
{
    const oct_node *u = oct_sole_user(v);

    if (u && (oct_node_is(u, &oct_op_relu) || oct_node_is(u, &oct_op_clip))) v = u->out[0];
    for (int32_t i = 0; i < v->n_users; i++)
        if (oct_node_is(v->users[i], &oct_op_quantize_linear)) return true;
    return false;
}

/* Is this an integer convolution whose result is not quantized? */
static bool is_wanted(const oct_node *n)
{
    const oct_node *x, *w;

    if (!oct_node_is_pointwise(n) || n->out[0]->is_output || is_rounded(n->out[0])) return false;
    x = dequantizer_of(n->in[0]);
    w = dequantizer_of(n->in[1]);
    return x && w && !x->in[0]->data && oct_tensor_len(x->in[1]->data) == 1 && w->in[0]->data &&
           w->in[0]->type.dtype == OCT_DTYPE_I8 && (!oct_node_in(n, 2) || dequantizer_of(n->in[2]));
}

static oct_status multiply(oct_lowering *l, oct_node *n)
{
    static const int64_t last[] = {0, 2, 3, 1}, first[] = {0, 3, 1, 2};
    oct_builder b = {.g = n->graph, .before = n, .prefix = n->name};
    oct_node *dq = n->in[0]->producer;
    const oct_type *y = &n->out[0]->type;
    const int64_t rows[] = {-1, n->in[0]->type.dim[1]};
    const int64_t pixels[] = {-1, y->dim[2], y->dim[3], y->dim[1]};
    oct_value *w = turned_weight(l, &b, n->in[1]->producer);
    oct_value *x = w ? oct_lowering_transpose(&b, dq->in[0], last) : NULL;

    if (x) x = oct_emit(&b, &oct_op_reshape, x, oct_ints(&b, rows, 2), NULL);
    if (x) x = oct_emit(&b, dq->op, x, dq->in[1], oct_node_in(dq, 2));
    if (x) x = oct_emit(&b, &oct_op_gemm, x, w, oct_node_in(n, 2));
    if (x) x = oct_emit(&b, &oct_op_reshape, x, oct_ints(&b, pixels, 4), NULL);
    if (x) x = oct_lowering_transpose(&b, x, first);
    return x ? oct_value_replace_uses(n->out[0], x) : b.status;
}

oct_status oct_lowering_products(oct_lowering *l)
{
    for (oct_node *n = l->g->first, *next; n; n = next) {
        next = n->next;
        if (!is_wanted(n)) continue;
        OCT_TRY(multiply(l, n));
        OCT_TRY(oct_prune(n->out[0]));
    }
    return OCT_OK;
}
