/* SPDX-License-Identifier: Apache-2.0 */
/* Random weights to begin with. */
#include <math.h>

#include "base/rng.h"
#include "op/channels.h"
#include "op/op.h"
#include "train/train.h"

/* Inputs that make one output: all dims of a weight but the one of its output channels. */
static double fan_in(const oct_value *v)
{
    oct_weight_axes axes;
    double n = 1;

    for (int32_t i = 0; i < v->n_users; i++) {
        const oct_node *user = v->users[i];

        if (!user->op->weights.axes || oct_node_in(user, 1) != v) continue;
        if (!user->op->weights.axes(user, &v->type, &axes)) continue;
        for (int32_t d = 0; d < v->type.rank; d++)
            if (d != axes.out) n *= (double)v->type.dim[d];
        return n;
    }
    for (int32_t d = 1; d < v->type.rank; d++)
        n *= (double)v->type.dim[d];
    return n;
}

static bool is_factor(const oct_value *v)
{
    return v->n_users > 0 &&
           (oct_node_is(v->users[0], &oct_op_mul) || oct_node_is(v->users[0], &oct_op_div));
}

static void fill(float *w, int64_t n, float v)
{
    for (int64_t i = 0; i < n; i++)
        w[i] = v;
}

/*
 * Weights as He et al.: normal, with a variance of 2 / fan-in. Norms begin as the identity, biases
 * at 0, factors at 1.
 */
static void start(const oct_param *p, float *w, oct_rng *rng)
{
    const double sd = sqrt(2 / fan_in(p->value));

    switch (p->kind) {
    case OCT_PARAM_WEIGHT:
        for (int64_t i = 0; i < p->len; i++)
            w[i] = (float)(sd * oct_rng_normal(rng));
        break;
    case OCT_PARAM_NORM_SCALE:
        fill(w, p->len, 1);
        break;
    case OCT_PARAM_OTHER:
        fill(w, p->len, is_factor(p->value) ? 1 : 0);
        break;
    default:
        fill(w, p->len, 0);
    }
}

static void shrink(float *w, int64_t n, double sd)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)w[i] * (double)w[i];
    for (int64_t i = 0; i < n && sum > 0; i++)
        w[i] *= (float)(sd / sqrt(sum / (double)n));
}

/*
 * The layers that make predictions begin with small weights and a bias of their own: at first all
 * anchors predict the same. For class logits that is a probability of .01, since most anchors see
 * nothing: otherwise the first steps only learn that.
 */
static void calm(oct_train_net *net, const oct_value *v, float bias, int depth)
{
    const oct_params *p = oct_train_net_params(net);
    const oct_node *n = v->producer;
    int32_t i;

    if (!n || depth == 0) return;
    if (oct_node_moves_data(n)) {
        for (int32_t k = 0; k < oct_node_n_data(n); k++)
            calm(net, n->in[k], bias, depth - 1);
        return;
    }
    if (!n->op->weights.axes || !oct_node_in(n, 2)) return;
    i = oct_params_find(p, n->in[1]->name);
    if (i >= 0) shrink(oct_train_net_weights(net) + p->v[i].offset, p->v[i].len, .01);
    i = oct_params_find(p, n->in[2]->name);
    if (i >= 0) fill(oct_train_net_weights(net) + p->v[i].offset, p->v[i].len, bias);
}

void oct_train_from_scratch(oct_train_net *net, int64_t n_classes, uint64_t seed)
{
    const oct_params *p = oct_train_net_params(net), *stats = oct_train_net_stats(net);
    float *w = oct_train_net_weights(net), *running = oct_train_net_running(net);
    const oct_value *first;
    oct_rng rng;

    for (int32_t i = 0; i < p->n; i++) {
        oct_rng_init(&rng, seed * 0x9e3779b97f4a7c15u + (uint64_t)i);
        start(&p->v[i], w + p->v[i].offset, &rng);
    }
    /* Statistics come in pairs: mean, variance. */
    for (int32_t i = 0; i < stats->n; i++)
        fill(running + stats->v[i].offset, stats->v[i].len, i % 2 ? 1.0f : 0.0f);
    /* The first prediction, if it is logits of classes. */
    first = oct_train_net_loss_node(net)->in[0];
    if (n_classes > 0 && first->type.dim[first->type.rank - 1] == n_classes)
        calm(net, first, logf(.01f / .99f), 8);
}
