/* SPDX-License-Identifier: Apache-2.0 */
/* What the gradient rules of rows share. */
#include "op/grad/rules.h"

static const oct_op *const rows[] = {
#define OCT_OP(sym) &oct_op_##sym,
#include "op/grad/train_ops.def"
#undef OCT_OP
    NULL,
};

const oct_op *oct_train_op_at(int i)
{
    return i >= 0 && i < (int)OCT_COUNT(rows) ? rows[i] : NULL;
}

oct_status oct_grad_ints(const oct_grad_args *a, int i, int64_t *out, int max, int *n)
{
    const oct_tensor *t = oct_node_const(a->node, i);

    *n = 0;
    if (!oct_node_in(a->node, i)) return OCT_OK;
    if (!t || oct_tensor_len(t) > max)
        return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED,
                             "it has a gradient only if its operand %d is constant", i);
    for (*n = 0; *n < oct_tensor_len(t); (*n)++)
        out[*n] = oct_tensor_get_i64(t, *n);
    return OCT_OK;
}

oct_value *oct_grad_filled(oct_builder *b, const oct_type *like, double v)
{
    oct_tensor *t = NULL;
    oct_value *c;
    int64_t n = oct_type_len(like);

    if (b->status) return NULL;
    b->status = oct_tensor_make(b->g->ctx, like, &t);
    if (b->status) return NULL;
    for (int64_t i = 0; i < n && v != 0; i++)
        oct_store_f64(like->dtype, t->data, i, 1, &v);
    c = oct_value_const(b->g, NULL, t);
    if (!c) b->status = OCT_ERR_MEMORY;
    return c;
}

oct_value *oct_grad_reshape(oct_builder *b, oct_value *v, const oct_type *like)
{
    oct_node *n;

    if (b->status || oct_type_equal(&v->type, like)) return b->status ? NULL : v;
    n = oct_emit_node(b, &oct_op_reshape, (oct_value *[]){v, oct_ints(b, like->dim, like->rank)}, 2,
                      1);
    for (int32_t d = 0; d < like->rank; d++) /* else 0 means: as in v */
        if (like->dim[d] == 0) oct_emit_int(b, n, "allowzero", 1);
    return oct_emitted(b, n);
}

oct_value *oct_grad_expand(oct_builder *b, oct_value *v, const oct_type *like)
{
    if (b->status || oct_type_equal(&v->type, like)) return b->status ? NULL : v;
    return oct_emit(b, &oct_op_expand, v, oct_ints(b, like->dim, like->rank), NULL);
}

oct_value *oct_grad_reduce(oct_builder *b, const oct_op *op, oct_value *v, const int64_t *axes,
                           int64_t n_axes, bool keep)
{
    oct_node *n;

    if (b->status || !n_axes) return b->status ? NULL : v;
    n = oct_emit_node(b, op, (oct_value *[]){v, oct_ints(b, axes, n_axes)}, 2, 1);
    oct_emit_int(b, n, "keepdims", keep);
    return oct_emitted(b, n);
}

oct_value *oct_grad_sum_to(oct_builder *b, oct_value *dy, const oct_value *x)
{
    int64_t axes[OCT_MAX_RANK], n = 0;
    int32_t more;

    if (b->status) return NULL;
    more = dy->type.rank - x->type.rank;
    for (int32_t d = 0; d < dy->type.rank; d++)
        if (d < more || (x->type.dim[d - more] == 1 && dy->type.dim[d] != 1)) axes[n++] = d;
    dy = oct_grad_reduce(b, &oct_op_reduce_sum, dy, axes, n, true);
    return b->status ? NULL : oct_grad_reshape(b, dy, &x->type);
}

oct_value *oct_grad_number(const oct_grad_args *a, int i, double v)
{
    return oct_scalar_of(a->b, a->node->in[i]->type.dtype, v);
}

oct_value *oct_grad_cast(oct_builder *b, oct_value *v, oct_dtype to)
{
    oct_node *n;

    if (b->status || v->type.dtype == to) return b->status ? NULL : v;
    n = oct_emit_node(b, &oct_op_cast, &v, 1, 1);
    oct_emit_int(b, n, "to", to);
    return oct_emitted(b, n);
}

oct_value *oct_grad_part(oct_builder *b, oct_value *v, int64_t axis, int64_t begin, int64_t end)
{
    oct_value *const in[] = {v, oct_ints(b, &begin, 1), oct_ints(b, &end, 1),
                             oct_ints(b, &axis, 1)};

    return oct_emitted(b, oct_emit_node(b, &oct_op_slice, in, 4, 1));
}

oct_value *oct_grad_transpose(oct_builder *b, oct_value *v, const int64_t *perm)
{
    oct_node *n;

    if (b->status) return NULL;
    n = oct_emit_node(b, &oct_op_transpose, &v, 1, 1);
    oct_emit_ints(b, n, "perm", perm, v->type.rank);
    return oct_emitted(b, n);
}

oct_value *oct_grad_scale(oct_builder *b, oct_value *v, double factor)
{
    if (b->status || factor == 1) return b->status ? NULL : v;
    return oct_emit(b, &oct_op_mul, v, oct_scalar_of(b, v->type.dtype, factor), NULL);
}

oct_status oct_grad_zero(const oct_grad_args *a)
{
    (void)a;
    return OCT_OK;
}

oct_status oct_grad_copy(const oct_grad_args *a)
{
    a->dx[0] = a->dy[0];
    return OCT_OK;
}

oct_status oct_grad_reshaped(const oct_grad_args *a)
{
    if (a->wanted[0]) a->dx[0] = oct_grad_reshape(a->b, a->dy[0], &a->node->in[0]->type);
    return a->b->status;
}
