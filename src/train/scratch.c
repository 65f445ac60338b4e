/* SPDX-License-Identifier: Apache-2.0 */
/* Random weights to begin with. */
#include <math.h>

#include "base/rng.h"
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

void oct_train_from_scratch(oct_train_net *net, uint64_t seed)
{
    const oct_params *p = oct_train_net_params(net), *stats = oct_train_net_stats(net);
    float *w = oct_train_net_weights(net), *running = oct_train_net_running(net);
    oct_rng rng;

    for (int32_t i = 0; i < p->n; i++) {
        oct_rng_init(&rng, seed * 0x9e3779b97f4a7c15u + (uint64_t)i);
        start(&p->v[i], w + p->v[i].offset, &rng);
    }
    /* Statistics come in pairs: mean, variance. */
    for (int32_t i = 0; i < stats->n; i++)
        fill(running + stats->v[i].offset, stats->v[i].len, i % 2 ? 1.0f : 0.0f);
}
