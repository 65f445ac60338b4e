/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks whose activations are quantized by each picture's own range, before they are written:
 * IR has no layers for DynamicQuantizeLinear, ConvInteger and MatMulInteger, and they are spelt out
 * in float. Codes are whole numbers there, so products are exact, and sums nearly.
 */
#include "op/op.h"
#include "openvino/write.h"

enum { X, W, X_ZERO, W_ZERO };

static oct_value *cast(oct_builder *b, oct_value *x, oct_dtype to)
{
    oct_node *n = b->status ? NULL : oct_emit_node(b, &oct_op_cast, &x, 1, 1);

    oct_emit_int(b, n, "to", to);
    return oct_emitted(b, n);
}

static oct_value *reduced(oct_builder *b, const oct_op *op, oct_value *x)
{
    oct_node *n = b->status ? NULL : oct_emit_node(b, op, &x, 1, 1);

    oct_emit_int(b, n, "keepdims", 0);
    return oct_emitted(b, n);
}

/* Within the codes of a byte. */
static oct_value *clipped(oct_builder *b, oct_value *x)
{
    return oct_emit(b, &oct_op_clip, x, oct_scalar(b, 0), oct_scalar(b, 255));
}

/* Readers of result i read v. */
static void give(oct_builder *b, oct_node *n, int32_t i, oct_value *v)
{
    if (b->status || i >= n->n_out || !n->out[i]) return;
    b->status = oct_value_replace_uses(n->out[i], v);
}

static void spell_quantize(oct_builder *b, oct_node *n)
{
    oct_value *x = n->in[X], *none = oct_scalar(b, 0), *low, *range, *scale, *zero, *y;

    low = oct_emit(b, &oct_op_min, reduced(b, &oct_op_reduce_min, x), none, NULL);
    range = oct_emit(b, &oct_op_max, reduced(b, &oct_op_reduce_max, x), none, NULL);
    range = oct_emit(b, &oct_op_sub, range, low, NULL);
    scale = oct_emit(b, &oct_op_div, range, oct_scalar(b, 255), NULL);
    scale = oct_emit(b, &oct_op_where, oct_emit(b, &oct_op_equal, range, none, NULL),
                     oct_scalar(b, 1), scale);
    zero = oct_emit(b, &oct_op_sub, none, oct_emit(b, &oct_op_div, low, scale, NULL), NULL);
    zero = clipped(b, oct_emit(b, &oct_op_round, zero, NULL, NULL));
    y = oct_emit(b, &oct_op_round, oct_emit(b, &oct_op_div, x, scale, NULL), NULL, NULL);
    y = clipped(b, oct_emit(b, &oct_op_add, y, zero, NULL));
    give(b, n, 0, cast(b, y, OCT_DTYPE_U8));
    give(b, n, 1, scale);
    give(b, n, 2, cast(b, zero, OCT_DTYPE_U8));
}

/* Codes minus their zero point; one for each filter: beside the axis of the filters, the first. */
static oct_value *operand(oct_builder *b, const oct_node *n, int32_t i, bool by_filter)
{
    oct_value *x = cast(b, n->in[i], OCT_DTYPE_F32), *zero = oct_node_in(n, i + X_ZERO);

    if (b->status || !zero) return x;
    zero = cast(b, zero, OCT_DTYPE_F32);
    if (!b->status && by_filter && zero->type.rank == 1) {
        const int64_t axes[] = {1, 2, 3, 4};

        zero =
            oct_emit(b, &oct_op_unsqueeze, zero, oct_ints(b, axes, n->in[i]->type.rank - 1), NULL);
    }
    return oct_emit(b, &oct_op_sub, x, zero, NULL);
}

static void spell_product(oct_builder *b, oct_node *n, const oct_op *op)
{
    oct_value *in[] = {operand(b, n, X, false), operand(b, n, W, op == &oct_op_conv)};
    oct_node *product = b->status ? NULL : oct_emit_node(b, op, in, 2, 1);

    if (product) oct_emit_attrs_of(b, product, n);
    give(b, n, 0, cast(b, oct_emitted(b, product), OCT_DTYPE_I32));
}

/* MatMul's weights may have a zero point for each column, which broadcasts as it is; rows' do not.
 */
static bool is_spelt(const oct_node *n)
{
    const oct_value *zero = oct_node_in(n, X_ZERO);

    if (oct_node_is(n, &oct_op_dynamic_quantize_linear)) return true;
    if (oct_node_is(n, &oct_op_conv_integer)) return n->in[W]->type.rank <= 5;
    return oct_node_is(n, &oct_op_mat_mul_integer) && (!zero || oct_type_len(&zero->type) == 1);
}

oct_status oct_to_ir_spell_dynamic(oct_graph *g)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        oct_builder b = {.g = g, .before = n, .prefix = n->name};

        next = n->next;
        if (!is_spelt(n)) continue;
        if (n->op == &oct_op_dynamic_quantize_linear)
            spell_quantize(&b, n);
        else
            spell_product(&b, n, n->op == &oct_op_conv_integer ? &oct_op_conv : &oct_op_mat_mul);
        OCT_TRY(b.status);
        oct_node_remove(n);
    }
    return OCT_OK;
}
