/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients of NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. With m[.., c, ..] the weight
 * of class c where it is the target, else 0: the loss is -sum of m log p, divided by the sum of m
 * for a mean.
 */
#include <string.h>

#include "op/grad/rules.h"

enum { X, TARGET, WEIGHT };

/* [classes x 1 x ..] under a shape that broadcasts to x. */
static oct_type class_type(const oct_type *x, oct_dtype dtype)
{
    oct_type t = *x;

    t.dtype = dtype;
    t.rank = x->rank - 1;
    t.dim[0] = x->dim[1];
    for (int32_t d = 1; d < t.rank; d++)
        t.dim[d] = 1;
    return t;
}

/* v of the targets' shape, with an axis for the classes. */
static oct_value *with_classes(const oct_grad_args *a, oct_value *v)
{
    oct_type t;

    if (a->b->status) return NULL;
    t = a->node->in[X]->type;
    t.dtype = v->type.dtype;
    t.dim[1] = 1;
    return oct_grad_reshape(a->b, v, &t);
}

/* m, of x's shape. Targets that no class has, such as -100, match none. */
static oct_value *target_weights(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    const oct_type *x = &n->in[X]->type;
    const oct_type as_classes = class_type(x, OCT_DTYPE_I64);
    const oct_attr *ignore = oct_node_attr(n, "ignore_index");
    oct_value *classes = oct_grad_filled(a->b, &as_classes, 0), *target, *hit;
    oct_value *weight = oct_grad_number(a, X, 1), *zero = oct_grad_number(a, X, 0);

    if (a->b->status) return NULL;
    for (int64_t i = 0; i < x->dim[1]; i++)
        ((int64_t *)classes->data->data)[i] = i;
    if (oct_node_in(n, WEIGHT)) {
        const oct_type t = class_type(x, x->dtype);

        weight = oct_grad_reshape(a->b, oct_grad_cast(a->b, n->in[WEIGHT], x->dtype), &t);
    }
    target = with_classes(a, oct_grad_cast(a->b, n->in[TARGET], OCT_DTYPE_I64));
    hit = OCT_EMIT2(equal, target, classes);
    if (ignore && ignore->i >= 0 && ignore->i < x->dim[1])
        hit = OCT_EMIT3(where, OCT_EMIT2(equal, target, oct_ints(a->b, &ignore->i, 1)),
                        oct_scalar_of(a->b, OCT_DTYPE_BOOL, 0), hit);
    return OCT_EMIT3(where, hit, weight, zero);
}

/* The gradient of log p that result 0 gives. */
static oct_value *grad_log_p(const oct_grad_args *a)
{
    const oct_type *x = &a->node->in[X]->type;
    const char *reduction = oct_node_attr(a->node, "reduction")->s;
    oct_value *m = target_weights(a), *dy = OCT_EMIT1(neg, a->dy[0]);
    int64_t axes[OCT_MAX_RANK];

    for (int32_t d = 0; d < x->rank; d++)
        axes[d] = d;
    if (strcmp(reduction, "none") == 0) dy = with_classes(a, dy);
    if (strcmp(reduction, "mean") == 0)
        dy = OCT_EMIT2(div, dy, oct_grad_reduce(a->b, &oct_op_reduce_sum, m, axes, x->rank, false));
    return OCT_EMIT2(mul, m, dy);
}

static oct_status refuse_weight(const oct_grad_args *a)
{
    if (!oct_node_in(a->node, WEIGHT) || !a->wanted[WEIGHT]) return OCT_OK;
    return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED, "weights of classes have no gradient");
}

oct_status oct_grad_nll_loss(const oct_grad_args *a)
{
    OCT_TRY(refuse_weight(a));
    a->dx[X] = grad_log_p(a);
    return OCT_OK;
}

/* Log-probabilities are a result too. */
oct_status oct_grad_cross_entropy_loss(const oct_grad_args *a)
{
    oct_value *d = a->dy[0] ? grad_log_p(a) : NULL, *p, *sum;
    oct_value *more = a->node->n_out > 1 ? a->dy[1] : NULL;
    oct_node *softmax;

    OCT_TRY(refuse_weight(a));
    if (more) d = d ? OCT_EMIT2(add, d, more) : more;
    softmax = oct_emit_node(a->b, &oct_op_softmax, &a->node->in[X], 1, 1);
    oct_emit_int(a->b, softmax, "axis", 1);
    p = oct_emitted(a->b, softmax);
    sum = oct_grad_reduce(a->b, &oct_op_reduce_sum, d, (int64_t[]){1}, 1, true);
    a->dx[X] = OCT_EMIT2(sub, d, OCT_EMIT2(mul, p, sum));
    return OCT_OK;
}
