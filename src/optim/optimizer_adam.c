/* SPDX-License-Identifier: Apache-2.0 */
/* Adam and AdamW, in the order of operations that PyTorch has. */
#include <math.h>

#include "optim/optimizer.h"

static int n_states(const oct_optimizer_options *o)
{
    return o->amsgrad ? 3 : 2;
}

static const char *check(const oct_optimizer_options *o)
{
    if (!(o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1))
        return "both betas must be at least 0 and below 1";
    if (!(o->epsilon >= 0)) return "epsilon must not be negative";
    return NULL;
}

/* `decoupled`: the decay shrinks the weight itself (AdamW), else it is a part of the gradient. */
static inline void step(const oct_update *u, bool decoupled, bool amsgrad)
{
    const float scale = (float)u->scale, decay = decoupled ? 0.0f : (float)u->decay;
    const float shrink = decoupled ? (float)(1.0 - u->lr * u->decay) : 1.0f;
    const float m_new = (float)(1.0 - u->o->beta1);
    const float v_old = (float)u->o->beta2, v_new = (float)(1.0 - u->o->beta2);
    const float size = (float)(-u->lr / u->fix1), root = (float)sqrt(u->fix2);
    const float epsilon = (float)u->o->epsilon;
    float *restrict w = u->w, *restrict m = u->state[0], *restrict v = u->state[1];
    float *restrict most = u->state[2];
    const float *restrict grad = u->g;

    for (int64_t i = 0; i < u->n; i++) {
        const float g = grad[i] * scale + decay * w[i];
        const float m_i = m[i] + m_new * (g - m[i]), v_i = v_old * v[i] + v_new * g * g;
        float large = v_i;

        m[i] = m_i;
        v[i] = v_i;
        if (amsgrad) most[i] = large = most[i] > v_i ? most[i] : v_i;
        w[i] = w[i] * shrink + size * m_i / (sqrtf(large) / root + epsilon);
    }
}

static void update_adam(const oct_update *u)
{
    if (u->o->amsgrad)
        step(u, false, true);
    else
        step(u, false, false);
}

static void update_adamw(const oct_update *u)
{
    if (u->o->amsgrad)
        step(u, true, true);
    else
        step(u, true, false);
}

extern const oct_optimizer_row oct_optimizer_adam, oct_optimizer_adamw;

const oct_optimizer_row oct_optimizer_adam = {
    .name = "adam",
    .help = "Adam; weight decay is a part of the gradient",
    .states = {"m", "v", "v_max"},
    .n_states = n_states,
    .check = check,
    .update = update_adam,
};

const oct_optimizer_row oct_optimizer_adamw = {
    .name = "adamw",
    .help = "Adam with weight decay apart from the gradient",
    .states = {"m", "v", "v_max"},
    .n_states = n_states,
    .check = check,
    .update = update_adamw,
};
