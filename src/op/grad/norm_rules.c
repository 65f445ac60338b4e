/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of BatchNormalization, with frozen statistics and with the batch's own. */
#include "op/grad/layers.h"
#include "op/grad/rules.h"

enum { X, SCALE, BIAS, MEAN, VAR };

typedef struct norm_values {
    oct_builder *b;
    const oct_node *n;
    int64_t axes[OCT_MAX_RANK], n_axes; /* all but that of channels */
} norm_values;

static void start(const oct_grad_args *a, norm_values *v)
{
    const oct_type *x = &a->node->in[X]->type;

    *v = (norm_values){.b = a->b, .n = a->node};
    for (int32_t d = 0; d < x->rank; d++) {
        if (d == 1) continue;
        v->axes[v->n_axes++] = d;
    }
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

/* Gradients of x, scale and bias; mean and inv: one for each channel. */
static oct_status gradients(const oct_grad_args *a, oct_value *mean, oct_value *inv, bool is_frozen)
{
    oct_value *const *in = a->node->in;
    const oct_type *x = &in[X]->type;
    const oct_type one = oct_type_make(x->dtype, 2, (int64_t[]){x->dim[0], 1}); /* channel */
    oct_value *operands[] = {in[X], a->dy[0], in[SCALE], in[BIAS], mean, inv};
    oct_node *g;

    for (int i = 0; i < 2 && x->rank < 2; i++)
        operands[i] = oct_grad_reshape(a->b, operands[i], &one);
    OCT_TRY(a->b->status);
    g = oct_emit_node(a->b, &oct_op_batch_norm_train_grad, operands, 6, 3);
    oct_emit_int(a->b, g, "frozen", is_frozen);
    if (!oct_emitted(a->b, g)) return a->b->status;
    for (int i = X; i <= BIAS; i++)
        a->dx[i] = g->out[i];
    if (x->rank < 2) a->dx[X] = oct_grad_reshape(a->b, a->dx[X], x);
    return a->b->status;
}

/* y = (x - mean) inv scale + bias, inv = 1 / sqrt(var + epsilon) */
static oct_status frozen(const oct_grad_args *a)
{
    oct_value *const *in = a->node->in, *inv, *mul_;
    norm_values v;

    start(a, &v);
    inv = inverse_std(&v, in[VAR]);
    OCT_TRY(gradients(a, in[MEAN], inv, true));
    mul_ = mul(&v, inv, in[SCALE]);
    if (a->wanted[MEAN])
        a->dx[MEAN] = oct_emit(v.b, &oct_op_neg, mul(&v, a->dx[BIAS], mul_), NULL, NULL);
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
    mean = oct_grad_reshape(v.b, mean, &n->in[SCALE]->type);
    return gradients(a, mean, oct_grad_reshape(v.b, inverse_std(&v, var), &n->in[SCALE]->type),
                     false);
}

oct_status oct_grad_batch_normalization(const oct_grad_args *a)
{
    return oct_node_attr(a->node, "training_mode")->i ? by_batch(a) : frozen(a);
}
