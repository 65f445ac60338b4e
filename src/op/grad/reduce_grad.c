/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of reductions: the result's gradient goes back to the elements that made it. */
#include "op/grad/reduce_grad.h"

/* A reduction with the axes it removed put back as axes of size 1. */
typedef struct reduction {
    oct_value *x, *y, *dy;
    int64_t axes[OCT_MAX_RANK], n_axes;
    double n; /* elements that made one result */
} reduction;

static oct_status read_reduction(const oct_grad_args *a, reduction *r)
{
    const oct_attr *noop = oct_node_attr(a->node, "noop_with_empty_axes");
    oct_type kept;
    int n_axes;

    *r = (reduction){.x = a->node->in[0], .n = 1};
    kept = r->x->type;
    OCT_TRY(oct_grad_ints(a, 1, r->axes, OCT_MAX_RANK, &n_axes));
    if (n_axes == 0 && !(noop && noop->i))
        for (n_axes = 0; n_axes < kept.rank; n_axes++)
            r->axes[n_axes] = n_axes;
    r->n_axes = n_axes;
    for (int i = 0; i < n_axes; i++) {
        int32_t axis;

        OCT_TRY(oct_axis(a->node, r->axes[i], kept.rank, &axis));
        r->axes[i] = axis;
        kept.dim[axis] = 1;
        r->n *= (double)r->x->type.dim[axis];
    }
    r->y = a->node->out[0];
    r->dy = oct_grad_reshape(a->b, a->dy[0], &kept);
    return OCT_OK;
}

/* The result itself, of dy's shape: asked for by the rules that use it. */
static oct_value *result(const oct_grad_args *a, const reduction *r)
{
    return a->b->status ? NULL : oct_grad_reshape(a->b, r->y, &r->dy->type);
}

oct_status oct_grad_reduce_sum(const oct_grad_args *a)
{
    reduction r;

    OCT_TRY(read_reduction(a, &r));
    a->dx[0] = oct_grad_expand(a->b, r.dy, &r.x->type);
    return OCT_OK;
}

oct_status oct_grad_reduce_mean(const oct_grad_args *a)
{
    reduction r;

    OCT_TRY(read_reduction(a, &r));
    a->dx[0] = oct_grad_expand(a->b, oct_grad_scale(a->b, r.dy, 1 / r.n), &r.x->type);
    return OCT_OK;
}

oct_status oct_grad_reduce_sum_square(const oct_grad_args *a)
{
    reduction r;

    OCT_TRY(read_reduction(a, &r));
    a->dx[0] = OCT_EMIT2(mul, r.x, oct_grad_scale(a->b, r.dy, 2));
    return OCT_OK;
}

oct_status oct_grad_reduce_l1(const oct_grad_args *a)
{
    reduction r;

    OCT_TRY(read_reduction(a, &r));
    a->dx[0] = OCT_EMIT2(mul, OCT_EMIT1(sign, r.x), r.dy);
    return OCT_OK;
}

/* x / |x|, and zero where all elements are. */
oct_status oct_grad_reduce_l2(const oct_grad_args *a)
{
    oct_value *zero = oct_grad_number(a, 0, 0), *y, *share;
    reduction r;

    OCT_TRY(read_reduction(a, &r));
    y = result(a, &r);
    share = OCT_EMIT3(where, OCT_EMIT2(equal, y, zero), zero, OCT_EMIT2(div, r.dy, y));
    a->dx[0] = OCT_EMIT2(mul, r.x, share);
    return OCT_OK;
}

/* y = log(sum): 1 / sum = exp(-y) */
oct_status oct_grad_reduce_log_sum(const oct_grad_args *a)
{
    reduction r;
    oct_value *share;

    OCT_TRY(read_reduction(a, &r));
    share = OCT_EMIT2(mul, r.dy, OCT_EMIT1(exp, OCT_EMIT1(neg, result(a, &r))));
    a->dx[0] = oct_grad_expand(a->b, share, &r.x->type);
    return OCT_OK;
}

oct_status oct_grad_reduce_log_sum_exp(const oct_grad_args *a)
{
    reduction r;

    OCT_TRY(read_reduction(a, &r));
    a->dx[0] = OCT_EMIT2(mul, OCT_EMIT1(exp, OCT_EMIT2(sub, r.x, result(a, &r))), r.dy);
    return OCT_OK;
}

/* All elements that have the extreme value get equal parts. */
static oct_status grad_extreme(const oct_grad_args *a)
{
    reduction r;
    oct_value *is_it, *n;

    OCT_TRY(read_reduction(a, &r));
    is_it = OCT_EMIT2(equal, r.x, result(a, &r));
    is_it = oct_grad_cast(a->b, is_it, r.x->type.dtype);
    n = oct_grad_reduce(a->b, &oct_op_reduce_sum, is_it, r.axes, r.n_axes, true);
    a->dx[0] = OCT_EMIT2(mul, is_it, OCT_EMIT2(div, r.dy, n));
    return OCT_OK;
}

oct_status oct_grad_reduce_max(const oct_grad_args *a)
{
    return grad_extreme(a);
}

oct_status oct_grad_reduce_min(const oct_grad_args *a)
{
    return grad_extreme(a);
}

/*
 * The product of all others: that of all elements that are not zero, divided by the element, if
 * none of the others is zero; else zero.
 */
oct_status oct_grad_reduce_prod(const oct_grad_args *a)
{
    oct_value *zero = oct_grad_number(a, 0, 0), *is_zero, *count, *safe, *product, *others;
    reduction r;

    OCT_TRY(read_reduction(a, &r));
    is_zero = OCT_EMIT2(equal, r.x, zero);
    safe = OCT_EMIT3(where, is_zero, oct_grad_number(a, 0, 1), r.x);
    product = oct_grad_reduce(a->b, &oct_op_reduce_prod, safe, r.axes, r.n_axes, true);
    count = oct_grad_cast(a->b, is_zero, r.x->type.dtype);
    others = oct_grad_reduce(a->b, &oct_op_reduce_sum, count, r.axes, r.n_axes, true);
    others = OCT_EMIT2(sub, others, count);
    product = OCT_EMIT2(div, OCT_EMIT2(mul, r.dy, product), safe);
    a->dx[0] = OCT_EMIT3(where, OCT_EMIT2(equal, others, zero), product, zero);
    return OCT_OK;
}
