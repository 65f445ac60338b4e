/* SPDX-License-Identifier: Apache-2.0 */
/* Stochastic gradient descent with momentum, in the order of operations that PyTorch has. */
#include "optim/optimizer.h"

static int n_states(const oct_optimizer_options *o)
{
    return o->momentum > 0 ? 1 : 0;
}

static const char *check(const oct_optimizer_options *o)
{
    if (!(o->momentum >= 0 && o->momentum < 1)) return "momentum must be at least 0 and below 1";
    if (!(o->dampening >= 0 && o->dampening <= 1)) return "dampening must be from 0 to 1";
    if (o->nesterov && (o->momentum <= 0 || o->dampening > 0))
        return "Nesterov's momentum needs a momentum above 0 and no dampening";
    return NULL;
}

static void plain(const oct_update *u)
{
    const float lr = (float)u->lr, decay = (float)u->decay, scale = (float)u->scale;
    float *restrict w = u->w;
    const float *restrict grad = u->g;

    for (int64_t i = 0; i < u->n; i++) {
        const float g = grad[i] * scale + decay * w[i];

        w[i] -= lr * g;
    }
}

static inline void with_momentum(const oct_update *u, float momentum, float keep, bool nesterov)
{
    const float lr = (float)u->lr, decay = (float)u->decay, scale = (float)u->scale;
    const float look = nesterov ? (float)u->momentum : 0.0f;
    float *restrict w = u->w, *restrict b = u->state[0];
    const float *restrict grad = u->g;

    for (int64_t i = 0; i < u->n; i++) {
        const float g = grad[i] * scale + decay * w[i];
        const float next = momentum * b[i] + keep * g;

        b[i] = next;
        w[i] -= lr * (nesterov ? g + look * next : next);
    }
}

static void update(const oct_update *u)
{
    const bool first = u->t == 1; /* the buffer is then the gradient, without dampening */
    const float momentum = first ? 0.0f : (float)u->momentum;
    const float keep = first ? 1.0f : (float)(1.0 - u->o->dampening);

    if (!u->state[0])
        plain(u);
    else if (u->o->nesterov)
        with_momentum(u, momentum, keep, true);
    else
        with_momentum(u, momentum, keep, false);
}

extern const oct_optimizer_row oct_optimizer_sgd;
const oct_optimizer_row oct_optimizer_sgd = {
    .name = "sgd",
    .help = "gradient descent with momentum",
    .states = {"momentum"},
    .n_states = n_states,
    .check = check,
    .update = update,
};
