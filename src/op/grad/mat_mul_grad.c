/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of matrix products y = alpha a' b', where a' and b' may be transposed. */
#include "op/grad/mat_mul_grad.h"

/* The last two axes swapped. */
static oct_value *swap_axes(oct_builder *b, oct_value *v)
{
    int64_t perm[OCT_MAX_RANK];

    if (b->status) return NULL;
    for (int32_t d = 0; d < v->type.rank; d++)
        perm[d] = d;
    perm[v->type.rank - 2] = v->type.rank - 1;
    perm[v->type.rank - 1] = v->type.rank - 2;
    return oct_grad_transpose(b, v, perm);
}

/* x y, each transposed first if its flag says so; matrices without batch as one Gemm. */
static oct_value *product(oct_builder *b, oct_value *x, bool trans_x, oct_value *y, bool trans_y)
{
    oct_node *n;

    if (b->status) return NULL;
    if (x->type.rank != 2 || y->type.rank != 2)
        return oct_emit(b, &oct_op_mat_mul, trans_x ? swap_axes(b, x) : x,
                        trans_y ? swap_axes(b, y) : y, NULL);
    n = oct_emit_node(b, &oct_op_gemm, (oct_value *[]){x, y}, 2, 1);
    oct_emit_int(b, n, "transA", trans_x);
    oct_emit_int(b, n, "transB", trans_y);
    return oct_emitted(b, n);
}

/* A matrix for each batch element: a vector on the left is a row, on the right a column. */
static oct_type matrix_type(const oct_type *t, bool is_left)
{
    const int64_t n = t->dim[0];

    if (t->rank > 1) return *t;
    return oct_type_make(t->dtype, 2, (int64_t[]){is_left ? 1 : n, is_left ? n : 1});
}

/* All batch axes and the rows as one axis. */
static oct_value *as_rows(oct_builder *b, oct_value *v)
{
    oct_type type;

    if (b->status) return NULL;
    type = oct_type_make(
        v->type.dtype, 2,
        (int64_t[]){oct_type_span(&v->type, 0, v->type.rank - 1), v->type.dim[v->type.rank - 1]});
    return oct_grad_reshape(b, v, &type);
}

/* dy with the axes that vectors dropped: [.. x rows of x x columns of y]. */
static oct_value *as_product(oct_builder *b, oct_value *dy, const oct_type *x, const oct_type *y,
                             bool trans_x, bool trans_y)
{
    oct_type t = dy->type;
    int32_t n_batch = t.rank - (x->rank > 1) - (y->rank > 1);

    t.dim[n_batch] = x->rank > 1 ? x->dim[x->rank - (trans_x ? 1 : 2)] : 1;
    t.dim[n_batch + 1] = y->rank > 1 ? y->dim[y->rank - (trans_y ? 2 : 1)] : 1;
    t.rank = n_batch + 2;
    return oct_grad_reshape(b, dy, &t);
}

oct_status oct_grad_product(const oct_grad_args *a, double alpha, bool trans_x, bool trans_y)
{
    const oct_type tx = a->node->in[0]->type, ty = a->node->in[1]->type;
    const oct_value as_x = {.type = matrix_type(&tx, true)},
                    as_y = {.type = matrix_type(&ty, false)};
    const bool is_flat = tx.rank > 2 && ty.rank <= 2 && !trans_x;
    oct_value *dy = oct_grad_scale(a->b, a->dy[0], alpha), *v, *d;

    if (a->b->status) return a->b->status;
    trans_x = trans_x && tx.rank > 1;
    trans_y = trans_y && ty.rank > 1;
    dy = as_product(a->b, dy, &tx, &ty, trans_x, trans_y);
    /* One weight for all of a batch: the batch is more rows, and its sum is part of the product. */
    if (is_flat) dy = as_rows(a->b, dy);
    if (a->wanted[0]) {
        v = oct_grad_reshape(a->b, a->node->in[1], &as_y.type);
        d = trans_x ? product(a->b, v, trans_y, dy, true) : product(a->b, dy, false, v, !trans_y);
        if (!is_flat) d = oct_grad_sum_to(a->b, d, &as_x);
        a->dx[0] = a->b->status ? NULL : oct_grad_reshape(a->b, d, &tx);
    }
    if (a->wanted[1]) {
        v = oct_grad_reshape(a->b, a->node->in[0], &as_x.type);
        if (is_flat) v = as_rows(a->b, v);
        d = trans_y ? product(a->b, dy, true, v, trans_x) : product(a->b, v, !trans_x, dy, false);
        d = oct_grad_sum_to(a->b, d, &as_y);
        a->dx[1] = a->b->status ? NULL : oct_grad_reshape(a->b, d, &ty);
    }
    return OCT_OK;
}
