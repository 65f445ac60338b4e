/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of BatchNormalization, with frozen statistics and with the batch's own. */
#include "op/grad/layers.h"
#include "op/grad/rules.h"

enum { X, SCALE, BIAS, MEAN, VAR };

typedef struct norm_values {
    oct_builder *b;
    const oct_node *n;
    oct_type by_channel;                /* one number for each channel, that broadcasts to x */
    int64_t axes[OCT_MAX_RANK], n_axes; /* all but that of channels */
} norm_values;

static void start(const oct_grad_args *a, norm_values *v)
{
    const oct_type *x = &a->node->in[X]->type;

    *v = (norm_values){.b = a->b, .n = a->node, .by_channel = *x};
    for (int32_t d = 0; d < x->rank; d++) {
        if (d == 1) continue;
        v->by_channel.dim[d] = 1;
        v->axes[v->n_axes++] = d;
    }
}

/* A vector of channels, with the rank of x. */
static oct_value *spread(const norm_values *v, oct_value *p)
{
    return v->b->status ? NULL : oct_grad_reshape(v->b, p, &v->by_channel);
}

/* Sums over all but the channels, and gives the result the shape of operand i. */
static oct_value *sum(const norm_values *v, oct_value *x, int i)
{
    x = oct_grad_reduce(v->b, &oct_op_reduce_sum, x, v->axes, v->n_axes, true);
    return v->b->status ? NULL : oct_grad_reshape(v->b, x, &v->n->in[i]->type);
}

static oct_value *mul(const norm_values *v, oct_value *x, oct_value *y)
{
    return oct_emit(v->b, &oct_op_mul, x, y, NULL);
}

/* 1 / sqrt(var + epsilon) */
static oct_value *inverse_std(const norm_values *v, oct_value *var)
{
    const double epsilon = (double)oct_node_attr(v->n, "epsilon")->f;
    oct_value *sum_ =
        oct_emit(v->b, &oct_op_add, var, oct_scalar_of(v->b, var->type.dtype, epsilon), NULL);

    return oct_emit(v->b, &oct_op_reciprocal, oct_emit(v->b, &oct_op_sqrt, sum_, NULL, NULL), NULL,
                    NULL);
}

/* y = (x - mean) inv scale + bias, inv = 1 / sqrt(var + epsilon) */
static oct_status frozen(const oct_grad_args *a)
{
    oct_value *const *in = a->node->in, *dy = a->dy[0], *inv, *mul_;
    norm_values v;

    start(a, &v);
    inv = inverse_std(&v, in[VAR]);
    mul_ = mul(&v, inv, in[SCALE]);
    if (a->wanted[X]) a->dx[X] = mul(&v, dy, spread(&v, mul_));
    if (a->wanted[BIAS] || a->wanted[MEAN]) a->dx[BIAS] = sum(&v, dy, BIAS);
    if (a->wanted[MEAN])
        a->dx[MEAN] = oct_emit(v.b, &oct_op_neg, mul(&v, a->dx[BIAS], mul_), NULL, NULL);
    if (a->wanted[SCALE] || a->wanted[VAR]) {
        oct_value *centred = oct_emit(v.b, &oct_op_sub, in[X], spread(&v, in[MEAN]), NULL);

        a->dx[SCALE] = mul(&v, sum(&v, mul(&v, dy, centred), SCALE), inv);
    }
    /* d inv / d var = -inv^3 / 2, and one inv is in dscale. */
    if (a->wanted[VAR])
        a->dx[VAR] = oct_grad_scale(v.b, mul(&v, a->dx[SCALE], mul(&v, mul_, inv)), -0.5);
    return v.b->status;
}

/* With the batch's own statistics: they are computed anew. */
static oct_status by_batch(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    oct_value *mean, *centred, *var;
    norm_values v;
    oct_node *g;

    for (int i = 1; i < n->n_out; i++)
        if (a->dy[i])
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                                 "its statistics have no gradient, only its first result has");
    if (n->in[X]->type.rank < 2)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                             "it has a gradient only if its input has channels");
    start(a, &v);
    mean = oct_grad_reduce(v.b, &oct_op_reduce_mean, n->in[X], v.axes, v.n_axes, true);
    centred = oct_emit(v.b, &oct_op_sub, n->in[X], mean, NULL);
    var = oct_grad_reduce(v.b, &oct_op_reduce_mean, mul(&v, centred, centred), v.axes, v.n_axes,
                          true);
    OCT_TRY(v.b->status);
    g = oct_emit_node(
        v.b, &oct_op_batch_norm_train_grad,
        (oct_value *[]){n->in[X], a->dy[0], n->in[SCALE], n->in[BIAS],
                        oct_grad_reshape(v.b, mean, &n->in[SCALE]->type),
                        oct_grad_reshape(v.b, inverse_std(&v, var), &n->in[SCALE]->type)},
        6, 3);
    if (!oct_emitted(v.b, g)) return v.b->status;
    for (int i = X; i <= BIAS; i++)
        a->dx[i] = g->out[i];
    return OCT_OK;
}

oct_status oct_grad_batch_normalization(const oct_grad_args *a)
{
    return oct_node_attr(a->node, "training_mode")->i ? by_batch(a) : frozen(a);
}
