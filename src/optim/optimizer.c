/* SPDX-License-Identifier: Apache-2.0 */
/* The table of optimizers, and a step over all parameters. */
#include "optim/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"

#define OCT_OPTIMIZER(name) extern const oct_optimizer_row oct_optimizer_##name;
#include "optim/optimizers.def"
#undef OCT_OPTIMIZER

static const oct_optimizer_row *const rows[] = {
#define OCT_OPTIMIZER(name) &oct_optimizer_##name,
#include "optim/optimizers.def"
#undef OCT_OPTIMIZER
};

const oct_optimizer_row *oct_optimizer_at(int i)
{
    return i >= 0 && (size_t)i < OCT_COUNT(rows) ? rows[i] : NULL;
}

const oct_optimizer_row *oct_optimizer_find(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(rows); i++)
        if (strcmp(rows[i]->name, name) == 0) return rows[i];
    return NULL;
}

void oct_optimizer_options_init(oct_optimizer_options *o)
{
    *o = (oct_optimizer_options){.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
}

oct_status oct_optimizer_init(oct_optimizer *opt, const oct_params *params,
                              const oct_optimizer_row *row, const oct_optimizer_options *o)
{
    const char *wrong = row->check(o);

    *opt = (oct_optimizer){.row = row, .o = *o, .params = params};
    if (wrong) return oct_fail(params->ctx, OCT_ERR_ARG, "optimizer %s: %s", row->name, wrong);
    opt->n_states = row->n_states(o);
    for (int i = 0; i < opt->n_states; i++) {
        if ((opt->state[i] = oct_params_buffer(params))) continue;
        oct_optimizer_fini(opt);
        return OCT_ERR_MEMORY;
    }
    return OCT_OK;
}

void oct_optimizer_fini(oct_optimizer *opt)
{
    for (int i = 0; i < OCT_OPTIMIZER_MAX_STATES; i++) {
        if (opt->state[i]) oct_free(opt->params->ctx, opt->state[i]);
        opt->state[i] = NULL;
    }
}

typedef struct job {
    const oct_optimizer *opt;
    float *weights;
    const float *const *grad;
    const oct_rates *rates;
    oct_update common; /* what is the same for all parameters */
} job;

static void update_chunks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const oct_optimizer *opt = j->opt;

    for (int64_t i = begin; i < end; i++) {
        const oct_param_chunk *c = &opt->params->chunks[i];
        const oct_param *p = &opt->params->v[c->param];
        oct_update u = j->common;

        if (p->frozen || !j->grad[c->param]) continue;
        u.w = j->weights + p->offset + c->begin;
        u.g = j->grad[c->param] + c->begin;
        for (int k = 0; k < opt->n_states; k++)
            u.state[k] = opt->state[k] + p->offset + c->begin;
        u.n = c->end - c->begin;
        u.lr = p->rate * (oct_param_is_bias(p) ? j->rates->bias_lr : j->rates->lr);
        u.decay = p->decay;
        opt->row->update(&u);
    }
}

void oct_optimizer_step(oct_optimizer *opt, float *weights, const float *const *grad, double scale,
                        const oct_rates *rates, int n_threads)
{
    job j = {.opt = opt, .weights = weights, .grad = grad, .rates = rates};

    opt->t++;
    j.common.momentum = rates->momentum < 0 ? opt->o.momentum : rates->momentum;
    j.common.scale = scale;
    j.common.t = opt->t;
    j.common.fix1 = 1.0 - pow(opt->o.beta1, (double)opt->t);
    j.common.fix2 = 1.0 - pow(opt->o.beta2, (double)opt->t);
    j.common.o = &opt->o;
    oct_parallel_for(n_threads, opt->params->n_chunks, 1, update_chunks, &j);
}
