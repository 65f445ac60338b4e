/* SPDX-License-Identifier: Apache-2.0 */
/* A small run for tests of checkpoints: a network, its optimizer, steps. */
#ifndef OCT_TESTS_CHECKPOINT_CASE_H
#define OCT_TESTS_CHECKPOINT_CASE_H

#include <unistd.h>

#include "optim/ema.h"
#include "tests/unit/exec_net.h"
#include "train/checkpoint.h"

enum { CHANNELS = 4 };

static char path[64];

/* A small network and everything a run of it has. */
typedef struct trial {
    oct_params params, states;
    oct_optimizer optimizer;
    oct_run_state run;
} trial;

static inline int setup_path(void **state)
{
    snprintf(path, sizeof(path), "/tmp/octet-test-checkpoint-%d", (int)getpid());
    return setup(state);
}

static inline int teardown_path(void **state)
{
    unlink(path);
    return teardown(state);
}

/* x -> Conv(w) -> BatchNormalization -> Mul(2.5), which is not trained. */
static inline void build(fixture *f, trial *t)
{
    static const char *const names[] = {"scale", "shift", "mean", "variance"};
    const int64_t c = CHANNELS;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 5, 5}), *bn[5], *w, *y;
    oct_node *norm;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    w = weights(f, &rng, 4, (int64_t[]){CHANNELS, 3, 1, 1});
    w->name = "conv/weight";
    bn[0] = infer(f, node(f, &oct_op_conv, x, w, NULL));
    for (int i = 1; i < 5; i++) {
        bn[i] = weights(f, &rng, 1, &c);
        bn[i]->name = names[i - 1];
    }
    for (int i = 0; i < CHANNELS; i++)
        ((float *)bn[4]->data->data)[i] = 1.0f + (float)i;
    norm = oct_emit_node(&f->b, &oct_op_batch_normalization, bn, 5, 1);
    assert_non_null(norm);
    y = emit(f, &oct_op_mul, infer(f, norm), oct_scalar(&f->b, 2.5f));
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));

    oct_params_init(&t->params, f->ctx);
    oct_params_init(&t->states, f->ctx);
    for (int i = 0; i < 5; i++) {
        static const oct_param_kind kinds[] = {OCT_PARAM_WEIGHT, OCT_PARAM_NORM_SCALE,
                                               OCT_PARAM_NORM_BIAS, OCT_PARAM_OTHER,
                                               OCT_PARAM_OTHER};
        oct_value *v = i ? bn[i] : w;

        oct_value_to_param(v, i > 2);
        assert_ok(f->ctx, oct_params_add_value(i > 2 ? &t->states : &t->params, v, kinds[i]));
    }
    assert_ok(f->ctx, oct_params_finish(&t->params));
    assert_ok(f->ctx, oct_params_finish(&t->states));
}

static inline void make_trial(fixture *f, trial *t, const char *optimizer, const char *ema)
{
    oct_optimizer_options o;

    build(f, t);
    oct_optimizer_options_init(&o);
    assert_ok(f->ctx,
              oct_optimizer_init(&t->optimizer, &t->params, oct_optimizer_find(optimizer), &o));
    t->run = (oct_run_state){.g = f->g,
                             .params = &t->params,
                             .states = &t->states,
                             .weights = oct_params_buffer(&t->params),
                             .stats = oct_params_buffer(&t->states),
                             .ema_weights = oct_params_buffer(&t->params),
                             .ema_stats = oct_params_buffer(&t->states),
                             .optimizer = &t->optimizer,
                             .ema = ema,
                             .ema_total = 100,
                             .seed = UINT64_MAX,
                             .recipe = "lr: 0.1\n"};
    oct_params_load(&t->params, t->run.weights);
    oct_params_load(&t->states, t->run.stats);
    if (!ema) return;
    oct_ema_start(oct_ema_find(ema), t->run.ema_weights, t->run.weights, t->params.len);
    oct_ema_start(oct_ema_find(ema), t->run.ema_stats, t->run.stats, t->states.len);
}

static inline void free_trial(fixture *f, trial *t)
{
    oct_optimizer_fini(&t->optimizer);
    oct_free(f->ctx, t->run.weights);
    oct_free(f->ctx, t->run.stats);
    oct_free(f->ctx, t->run.ema_weights);
    oct_free(f->ctx, t->run.ema_stats);
    oct_params_fini(&t->params);
    oct_params_fini(&t->states);
}

/* A step with gradients from its number. */
static inline void step(trial *t)
{
    const oct_ema_row *ema = t->run.ema ? oct_ema_find(t->run.ema) : NULL;
    const oct_rates rates = {.lr = 0.1, .bias_lr = 0.1, .momentum = -1};
    float g[CHANNELS * 3];
    const float *grad[3] = {g, g, g};
    oct_rng rng;

    oct_rng_init(&rng, (uint64_t)t->run.step + t->run.seed);
    for (int i = 0; i < CHANNELS * 3; i++)
        g[i] = (float)oct_rng_normal(&rng);
    oct_optimizer_step(&t->optimizer, t->run.weights, grad, 1.0, &rates, 1);
    for (int32_t i = 0; i < t->states.n; i++)
        t->run.stats[t->states.v[i].offset] += g[i] * g[i];
    t->run.step++;
    if (!ema) return;
    t->run.ema_updates++;
    oct_ema_update(ema, 0, t->run.ema_updates, 100, t->run.ema_weights, t->run.weights,
                   t->params.len, 1);
    oct_ema_update(ema, 0, t->run.ema_updates, 100, t->run.ema_stats, t->run.stats, t->states.len,
                   1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup_path, teardown_path)

#endif
