/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of pooling. */
#include "op/grad/layers.h"
#include "op/grad/rules.h"
#include "op/pool.h"
#include "op/work.h"

oct_status oct_grad_max_pool(const oct_grad_args *a)
{
    oct_node *g;

    if (!a->dy[0]) return OCT_OK; /* indices have no gradient */
    g = oct_emit_node(a->b, &oct_op_max_pool_grad, (oct_value *[]){a->node->in[0], a->dy[0]}, 2, 1);
    oct_emit_attrs_of(a->b, g, a->node);
    a->dx[0] = oct_emitted(a->b, g);
    return a->b->status;
}

static oct_value *share_out(const oct_grad_args *a, oct_value *dy)
{
    const oct_type *x = &a->node->in[0]->type;
    oct_node *g = oct_emit_node(a->b, &oct_op_average_pool_grad, &dy, 1, 1);

    oct_emit_attrs_of(a->b, g, a->node);
    oct_emit_ints(a->b, g, "shape", x->dim, x->rank);
    return oct_emitted(a->b, g);
}

oct_status oct_grad_average_pool(const oct_grad_args *a)
{
    a->dx[0] = share_out(a, a->dy[0]);
    return a->b->status;
}

/* Of each window, how many of its elements lie inside of x: [1 x 1 x out]. */
static oct_value *emit_counts(const oct_grad_args *a)
{
    const int64_t zero[OCT_MAX_SPATIAL] = {0};
    int64_t o[OCT_MAX_SPATIAL] = {0};
    oct_conv_geometry g;
    oct_value *counts;
    oct_type t;

    a->b->status = oct_conv_geometry_pool(a->node, &a->node->in[0]->type, &g);
    if (a->b->status) return NULL;
    t = oct_conv_geometry_type(&g, a->dy[0]->type.dtype);
    t.dim[0] = t.dim[1] = 1;
    counts = oct_grad_filled(a->b, &t, 1);
    for (int64_t i = 0; counts && i < oct_type_len(&t); i++, oct_next_index(g.n, o, zero, g.out)) {
        double n = 1;

        for (int d = 0; d < g.n; d++) {
            int64_t from, to;

            oct_conv_window(&g, d, o[d], &from, &to);
            n *= (double)(to - from);
        }
        oct_store_f64(t.dtype, counts->data->data, i, 1, &n);
    }
    return counts;
}

/* y^(p-1), not quite 0: where it is, all of x is 0, and so is the factor that follows. */
static oct_value *emit_norm_power(oct_builder *b, oct_value *y, int64_t p)
{
    const oct_dtype t = y->type.dtype;

    if (p > 2) y = oct_emit(b, &oct_op_pow, y, oct_scalar_of(b, t, (double)(p - 1)), NULL);
    return oct_emit(b, &oct_op_max, y, oct_scalar_of(b, t, 1e-18), NULL);
}

/* sign(x) |x|^(p-1) */
static oct_value *emit_signed_power(oct_builder *b, oct_value *x, int64_t p)
{
    oct_value *size;

    if (p == 2) return x;
    if (p == 1) return oct_emit(b, &oct_op_sign, x, NULL, NULL);
    size = oct_emit(b, &oct_op_pow, oct_emit(b, &oct_op_abs, x, NULL, NULL),
                    oct_scalar_of(b, x->type.dtype, (double)(p - 1)), NULL);
    return oct_emit(b, &oct_op_mul, size, oct_emit(b, &oct_op_sign, x, NULL, NULL), NULL);
}

/* y = (sum |x|^p)^(1/p): dx = sign(x) |x|^(p-1) (sum over windows of dy / y^(p-1)) */
oct_status oct_grad_lp_pool(const oct_grad_args *a)
{
    const int64_t p = oct_node_attr(a->node, "p")->i;
    oct_value *dy = a->dy[0], *x = a->node->in[0];

    if (p > 1)
        dy = oct_emit(a->b, &oct_op_div, dy, emit_norm_power(a->b, a->node->out[0], p), NULL);
    /* The gradient of an average divides by the number of elements. */
    dy = oct_emit(a->b, &oct_op_mul, dy, emit_counts(a), NULL);
    OCT_TRY(a->b->status);
    dy = share_out(a, dy);
    a->dx[0] = oct_emit(a->b, &oct_op_mul, dy, emit_signed_power(a->b, x, p), NULL);
    return a->b->status;
}

oct_status oct_grad_global_average_pool(const oct_grad_args *a)
{
    const oct_type *x = &a->node->in[0]->type;
    const int64_t n = oct_type_span(x, 2, x->rank);

    a->dx[0] = oct_grad_expand(a->b, oct_grad_scale(a->b, a->dy[0], 1 / (double)n), x);
    return a->b->status;
}

oct_status oct_grad_global_max_pool(const oct_grad_args *a)
{
    const oct_type *x = &a->node->in[0]->type;
    oct_node *g;

    if (x->rank < 3) return oct_grad_copy(a);
    g = oct_emit_node(a->b, &oct_op_max_pool_grad, (oct_value *[]){a->node->in[0], a->dy[0]}, 2, 1);
    oct_emit_ints(a->b, g, "kernel_shape", x->dim + 2, x->rank - 2);
    a->dx[0] = oct_emitted(a->b, g);
    return a->b->status;
}

oct_status oct_grad_global_lp_pool(const oct_grad_args *a)
{
    const int64_t p = oct_node_attr(a->node, "p")->i;
    oct_value *dy = a->dy[0], *x = a->node->in[0];

    if (p > 1)
        dy = oct_emit(a->b, &oct_op_div, dy, emit_norm_power(a->b, a->node->out[0], p), NULL);
    a->dx[0] = oct_emit(a->b, &oct_op_mul, dy, emit_signed_power(a->b, x, p), NULL);
    return a->b->status;
}
