/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers against PyTorch's numbers; groups, clipping, sums; the same bytes on any threads. */
#include "base/rng.h"
#include "optim/gradients.h"
#include "optim/optimizer.h"
#include "tests/test.h"

#define F32_TOL 1.2e-7 /* two units in the last place of a float below 1 */

static const oct_rates RATES = {.lr = 0.1, .bias_lr = 0.1, .momentum = -1};

/* One weight 1 with decay 0.01 and the gradients .5, -.2, .1 at rate .1. */
static void check_steps(fixture *f, const char *name, const oct_optimizer_options *o,
                        const double want[3])
{
    static const float grads[] = {0.5f, -0.2f, 0.1f};
    oct_optimizer opt;
    oct_params p;
    float w[1] = {1.0f};

    oct_params_init(&p, f->ctx);
    assert_ok(f->ctx, oct_params_add(&p, "w", 1, OCT_PARAM_WEIGHT));
    oct_params_set_decay(&p, 0.01, false);
    assert_ok(f->ctx, oct_params_finish(&p));
    assert_ok(f->ctx, oct_optimizer_init(&opt, &p, oct_optimizer_find(name), o));
    for (int i = 0; i < 3; i++) {
        const float *g = &grads[i];

        oct_optimizer_step(&opt, w, &g, 1.0, &RATES, 1);
        if (fabs((double)w[0] - want[i]) > F32_TOL)
            fail_msg("%s, step %d: %.9g, want %.9g", name, i, (double)w[0], want[i]);
    }
    assert_int_equal(opt.t, 3);
    oct_optimizer_fini(&opt);
    oct_params_fini(&p);
}

static void steps_are_those_of_pytorch(void **state)
{
    fixture *f = *state;
    oct_optimizer_options o;

    oct_optimizer_options_init(&o);
    check_steps(f, "sgd", &o, (double[]){0.949, 0.922151, 0.887064749});
    check_steps(f, "adam", &o, (double[]){0.900000002, 0.863364138, 0.823084722});
    check_steps(f, "adamw", &o, (double[]){0.899000002, 0.863540418, 0.8247377});
    o.nesterov = true;
    check_steps(f, "sgd", &o, (double[]){0.9031, 0.89807411, 0.855657258});
}

/* Settings without a published number: the formulas once more, in double. */
static void other_settings_follow_the_formulas(void **state)
{
    fixture *f = *state;
    static const double g[3] = {0.5, -0.2, 0.1};
    double w = 1, b = 0, m = 0, v = 0, most = 0, want[3];
    oct_optimizer_options o;

    oct_optimizer_options_init(&o);
    o.dampening = 0.3;
    for (int t = 0; t < 3; t++) {
        const double d = g[t] + 0.01 * w;

        b = t ? 0.9 * b + 0.7 * d : d;
        want[t] = w -= 0.1 * b;
    }
    check_steps(f, "sgd", &o, want);

    oct_optimizer_options_init(&o);
    o.momentum = 0;
    w = 1;
    for (int t = 0; t < 3; t++)
        want[t] = w -= 0.1 * (g[t] + 0.01 * w);
    check_steps(f, "sgd", &o, want);

    oct_optimizer_options_init(&o);
    o.amsgrad = true;
    o.beta2 = 0.5; /* so that the largest is not the latest */
    w = 1;
    for (int t = 0; t < 3; t++) {
        w *= 1 - 0.1 * 0.01;
        m = 0.9 * m + 0.1 * g[t];
        v = 0.5 * v + 0.5 * g[t] * g[t];
        most = fmax(most, v);
        w -= 0.1 / (1 - pow(0.9, t + 1)) * m / (sqrt(most) / sqrt(1 - pow(0.5, t + 1)) + 1e-8);
        want[t] = w;
    }
    assert_true(most > v);
    check_steps(f, "adamw", &o, want);
}

/* Parameters of several sizes, with gradients and weights from a seed. */
typedef struct model {
    oct_params p;
    float *w, *g;
    const float *grad[4];
} model;

static void make_model(fixture *f, model *m)
{
    oct_rng rng;

    oct_params_init(&m->p, f->ctx);
    assert_ok(f->ctx, oct_params_add(&m->p, "conv.weight", 100003, OCT_PARAM_WEIGHT));
    assert_ok(f->ctx, oct_params_add(&m->p, "conv.bias", 7, OCT_PARAM_BIAS));
    assert_ok(f->ctx, oct_params_add(&m->p, "bn.weight", 33, OCT_PARAM_NORM_SCALE));
    assert_ok(f->ctx, oct_params_add(&m->p, "head.weight", 16384, OCT_PARAM_WEIGHT));
    assert_ok(f->ctx, oct_params_finish(&m->p));
    assert_int_equal(m->p.v[1].offset % 16, 0);
    m->w = oct_params_buffer(&m->p);
    m->g = oct_params_buffer(&m->p);
    oct_rng_init(&rng, 7);
    for (int64_t i = 0; i < m->p.len; i++) {
        m->w[i] = (float)oct_rng_normal(&rng);
        m->g[i] = (float)oct_rng_normal(&rng);
    }
    oct_params_pointers(&m->p, m->g, m->grad);
}

static void free_model(fixture *f, model *m)
{
    oct_free(f->ctx, m->w);
    oct_free(f->ctx, m->g);
    oct_params_fini(&m->p);
}

static void groups_are_kept_apart(void **state)
{
    fixture *f = *state;
    const oct_rates rates = {.lr = 0.1, .bias_lr = 0.4, .momentum = -1};
    oct_optimizer_options o;
    oct_optimizer opt;
    model m;
    float before[4];

    make_model(f, &m);
    oct_params_set_decay(&m.p, 0.5, false);
    m.p.v[2].rate = 2.0;
    m.p.v[3].frozen = true;
    for (int i = 0; i < 4; i++)
        before[i] = m.w[m.p.v[i].offset];
    oct_optimizer_options_init(&o);
    assert_ok(f->ctx, oct_optimizer_init(&opt, &m.p, oct_optimizer_find("sgd"), &o));
    oct_optimizer_step(&opt, m.w, m.grad, 1.0, &rates, 1);
    for (int i = 0; i < 3; i++) {
        static const float lr[] = {0.1f, 0.4f, 0.2f}, decay[] = {0.5f, 0, 0};
        const float g = *m.grad[i] + decay[i] * before[i], now = m.w[m.p.v[i].offset];

        assert_true(fabsf(now - (before[i] - lr[i] * g)) < 1e-6f);
    }
    /* Frozen, and without a gradient: neither the weight nor its momentum moves. */
    assert_true(m.w[m.p.v[3].offset] == before[3]);
    assert_true(opt.state[0][m.p.v[3].offset] == 0);
    before[0] = m.w[0];
    m.grad[0] = NULL;
    oct_optimizer_step(&opt, m.w, m.grad, 1.0, &rates, 1);
    assert_true(m.w[0] == before[0]);
    oct_params_set_decay(&m.p, 0.25, true);
    assert_true(m.p.v[1].decay == 0.25);
    oct_optimizer_fini(&opt);
    free_model(f, &m);
}

static void bytes_do_not_depend_on_threads(void **state)
{
    fixture *f = *state;

    for (int i = 0; oct_optimizer_at(i); i++) {
        const oct_optimizer_row *row = oct_optimizer_at(i);
        oct_optimizer_options o;
        oct_grad_norm norm[3];
        model m[3];

        oct_optimizer_options_init(&o);
        for (int k = 0; k < 3; k++) {
            static const int threads[] = {1, 2, 5};
            oct_optimizer opt;
            float *sum;

            make_model(f, &m[k]);
            oct_params_set_decay(&m[k].p, 0.01, false);
            assert_ok(f->ctx, oct_optimizer_init(&opt, &m[k].p, row, &o));
            sum = oct_params_buffer(&m[k].p);
            assert_non_null(sum);
            oct_grads_sum(&m[k].p, sum, m[k].grad, 0.5, true, threads[k]);
            oct_grads_sum(&m[k].p, sum, m[k].grad, 0.25, false, threads[k]);
            oct_params_pointers(&m[k].p, sum, m[k].grad);
            oct_grads_norm(&m[k].p, m[k].grad, threads[k], &norm[k]);
            for (int t = 0; t < 4; t++)
                oct_optimizer_step(&opt, m[k].w, m[k].grad, 0.3, &RATES, threads[k]);
            assert_true(norm[k].norm == norm[0].norm);
            assert_memory_equal(m[k].w, m[0].w, (size_t)m[0].p.len * sizeof(float));
            oct_free(f->ctx, sum);
            oct_optimizer_fini(&opt);
        }
        for (int k = 0; k < 3; k++)
            free_model(f, &m[k]);
    }
}

static void norms_and_sums(void **state)
{
    fixture *f = *state;
    oct_grad_norm norm;
    double want = 0;
    model m;
    float *sum;

    make_model(f, &m);
    for (int i = 0; i < 4; i++) {
        for (int64_t k = 0; k < m.p.v[i].len; k++)
            want += (double)m.grad[i][k] * (double)m.grad[i][k];
    }
    oct_grads_norm(&m.p, m.grad, 2, &norm);
    assert_int_equal(norm.bad, -1);
    assert_true(fabs(norm.norm - sqrt(want)) < 1e-9 * sqrt(want));
    /* As torch.nn.utils.clip_grad_norm_ has it. */
    assert_true(oct_grads_clip(20.0, 10.0) == 10.0 / (20.0 + 1e-6));
    assert_true(oct_grads_clip(9.0, 10.0) == 1.0);
    assert_true(oct_grads_clip(20.0, 0.0) == 1.0);

    sum = oct_params_buffer(&m.p);
    assert_non_null(sum);
    sum[0] = 77; /* of the step before */
    oct_grads_sum(&m.p, sum, m.grad, 0.5, true, 2);
    oct_grads_sum(&m.p, sum, m.grad, 0.5, false, 2);
    assert_memory_equal(sum, m.g, (size_t)m.p.v[0].len * sizeof(float));
    oct_free(f->ctx, sum);
    free_model(f, &m);
}

static void broken_gradients_are_named(void **state)
{
    fixture *f = *state;
    oct_grad_norm norm;
    model m;

    make_model(f, &m);
    m.g[m.p.v[3].offset + 5] = INFINITY;
    m.g[m.p.v[2].offset + 32] = NAN;
    oct_grads_norm(&m.p, m.grad, 2, &norm);
    assert_int_equal(norm.bad, 2);
    assert_int_equal(norm.bad_index, 32);
    assert_true(isnan(norm.bad_value) && !isfinite(norm.norm));
    m.p.v[2].frozen = true; /* nobody looks at it */
    oct_grads_norm(&m.p, m.grad, 2, &norm);
    assert_int_equal(norm.bad, 3);
    assert_int_equal(norm.bad_index, 5);
    oct_params_norm(&m.p, m.g, 2, &norm);
    assert_int_equal(norm.bad, 2);
    /* The largest float is a number, and so is its square as a double. */
    m.g[m.p.v[3].offset + 5] = 3e38f;
    oct_grads_norm(&m.p, m.grad, 2, &norm);
    assert_int_equal(norm.bad, -1);
    assert_true(norm.norm > 2.9e38);
    free_model(f, &m);
}

static void senseless_settings_are_refused(void **state)
{
    fixture *f = *state;
    oct_optimizer_options o;
    oct_optimizer opt;
    oct_params p;

    oct_params_init(&p, f->ctx);
    assert_ok(f->ctx, oct_params_finish(&p)); /* nothing to train is no error here */
    oct_optimizer_options_init(&o);
    o.nesterov = true;
    o.momentum = 0;
    assert_fails(f->ctx, oct_optimizer_init(&opt, &p, oct_optimizer_find("sgd"), &o), OCT_ERR_ARG,
                 "Nesterov");
    o.beta1 = 1.0;
    assert_fails(f->ctx, oct_optimizer_init(&opt, &p, oct_optimizer_find("adamw"), &o), OCT_ERR_ARG,
                 "betas");
    o.momentum = NAN;
    o.nesterov = false;
    assert_fails(f->ctx, oct_optimizer_init(&opt, &p, oct_optimizer_find("sgd"), &o), OCT_ERR_ARG,
                 "momentum");
    assert_null(oct_optimizer_find("lion"));
    oct_params_fini(&p);
}

static void values_come_and_go(void **state)
{
    fixture *f = *state;
    const float numbers[] = {1, 2, 3, 4};
    oct_value *v = input(f, 4, numbers), *whole;
    oct_tensor *shared, *ints;
    oct_params p;
    float *flat;

    oct_value_to_param(v, false);
    shared = oct_tensor_ref(v->initial);
    oct_params_init(&p, f->ctx);
    assert_ok(f->ctx, oct_params_add_value(&p, v, OCT_PARAM_WEIGHT));
    assert_ok(f->ctx, oct_params_finish(&p));
    flat = oct_params_buffer(&p);
    assert_non_null(flat);
    oct_params_load(&p, flat);
    assert_memory_equal(flat, numbers, sizeof(numbers));
    flat[2] = 30;
    assert_ok(f->ctx, oct_params_store(&p, flat));
    assert_true(((const float *)v->initial->data)[2] == 30);
    assert_true(((const float *)shared->data)[2] == 3); /* a copy of the graph may have it */
    assert_int_equal(oct_params_find(&p, v->name), 0);
    assert_int_equal(oct_params_find(&p, "nobody"), -1);

    assert_ok(f->ctx, oct_tensor_vec_i64(f->ctx, (int64_t[]){1, 2}, 2, &ints));
    whole = oct_value_const(f->g, "steps", ints);
    assert_fails(f->ctx, oct_params_add_value(&p, whole, OCT_PARAM_WEIGHT), OCT_ERR_UNSUPPORTED,
                 "'steps' is int64");
    oct_tensor_unref(shared);
    oct_free(f->ctx, flat);
    oct_params_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_are_those_of_pytorch, setup, teardown),
        cmocka_unit_test_setup_teardown(other_settings_follow_the_formulas, setup, teardown),
        cmocka_unit_test_setup_teardown(groups_are_kept_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_do_not_depend_on_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(norms_and_sums, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_gradients_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(senseless_settings_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(values_come_and_go, setup, teardown),
    };

    return run_test_group(tests);
}
