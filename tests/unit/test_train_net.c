/* SPDX-License-Identifier: Apache-2.0 */
/* A network in training: prepared, with its loss, learning a small task, and exported. */
#include "base/rng.h"
#include "op/grad/rules.h"
#include "optim/optimizer.h"
#include "tests/unit/detect_net.h"
#include "train/net.h"

enum { BATCH = 8, SIDE = 12, CLASSES = 3, HIDDEN = 8 };

static oct_rng rng;

static oct_value *constant(fixture *f, const char *name, int32_t rank, const int64_t *dims,
                           double low, double high)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, rank, dims);
    oct_tensor *t = NULL;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    for (int64_t i = 0; i < oct_type_len(&type); i++)
        ((float *)t->data)[i] = (float)(low + (high - low) * oct_rng_f64(&rng));
    return oct_value_const(f->g, name, t);
}

static oct_value *emit_n(fixture *f, const oct_op *op, oct_value *const *in, int32_t n)
{
    return oct_emitted(&f->b, oct_emit_node(&f->b, op, in, n, 1));
}

/* Conv, BatchNormalization, Relu, pooling, Gemm. */
static void make_classifier(fixture *f)
{
    oct_value *x = picture_input(f, 1, SIDE, SIDE), *y;
    const int64_t h[] = {HIDDEN};

    x = emit_n(
        f, &oct_op_conv,
        (oct_value *[]){x, constant(f, "a.weight", 4, (int64_t[]){HIDDEN, 3, 3, 3}, -.3, .3)}, 2);
    x = emit_n(f, &oct_op_batch_normalization,
               (oct_value *[]){x, constant(f, "bn.weight", 1, h, .9, 1.1),
                               constant(f, "bn.bias", 1, h, -.1, .1),
                               constant(f, "bn.mean", 1, h, -.1, .1),
                               constant(f, "bn.var", 1, h, .9, 1.1)},
               5);
    x = oct_emit(&f->b, &oct_op_relu, x, NULL, NULL);
    x = oct_emit(&f->b, &oct_op_global_average_pool, x, NULL, NULL);
    x = oct_emit(&f->b, &oct_op_flatten, x, NULL, NULL);
    y = emit_n(f, &oct_op_gemm,
               (oct_value *[]){x,
                               constant(f, "fc.weight", 2, (int64_t[]){HIDDEN, CLASSES}, -.3, .3),
                               constant(f, "fc.bias", 1, (int64_t[]){CLASSES}, 0, 0)},
               3);
    assert_ok(f->ctx, f->b.status);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
}

static oct_train_net *make_net_for(fixture *f, const char *loss, bool freeze)
{
    const oct_train_net_options o = {
        .batch = BATCH,
        .width = SIDE,
        .height = SIDE,
        .max_boxes = 1,
        .loss = oct_loss_find(loss),
        .prepare = {.freeze_statistics = freeze},
    };
    oct_train_net *t = NULL;

    assert_non_null(o.loss);
    assert_ok(f->ctx, oct_train_net_new(f->g, &o, &t));
    return t;
}

static oct_train_net *make_net(fixture *f, bool freeze)
{
    return make_net_for(f, "classify", freeze);
}

/* The brightest colour is the class. */
static void fill(const oct_train_net *t)
{
    int64_t n = 0;
    float *images = oct_train_net_images(t, &n);
    int64_t *labels = (int64_t *)(void *)oct_train_net_labels(t, &n);

    for (int b = 0; b < BATCH; b++) {
        labels[b] = (int64_t)oct_rng_below(&rng, CLASSES);
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < SIDE * SIDE; i++)
                images[(b * 3 + c) * SIDE * SIDE + i] =
                    (float)(oct_rng_f64(&rng) * .3 + (c == labels[b] ? .6 : 0));
    }
}

static void finds_parameters(void **state)
{
    fixture *f = *state;
    oct_train_net *t;
    const oct_params *p;

    make_classifier(f);
    t = make_net(f, false);
    p = oct_train_net_params(t);
    assert_int_equal(p->n, 5);
    assert_int_equal(p->v[oct_params_find(p, "a.weight")].kind, OCT_PARAM_WEIGHT);
    assert_int_equal(p->v[oct_params_find(p, "bn.weight")].kind, OCT_PARAM_NORM_SCALE);
    assert_int_equal(p->v[oct_params_find(p, "fc.bias")].kind, OCT_PARAM_BIAS);
    assert_int_equal(oct_train_net_stats(t)->n, 2);
    oct_train_net_free(t);
    t = make_net(f, true);
    assert_int_equal(oct_train_net_stats(t)->n, 0);
    oct_train_net_free(t);
}

/* In f32, with fast kernels: differences of the loss along the gradient. */
static void gradients_are_slopes(void **state)
{
    fixture *f = *state;
    oct_train_net *t;
    oct_params *p;
    float *w;

    make_classifier(f);
    t = make_net(f, false);
    p = oct_train_net_params(t);
    w = oct_train_net_weights(t);
    fill(t);
    for (int32_t i = 0; i < p->n; i++) {
        const float h = 1e-2f;
        double norm = 0, up, down;
        float *g = calloc((size_t)p->v[i].len, sizeof(*g));

        assert_non_null(g);
        assert_ok(f->ctx, oct_train_net_step(t));
        memcpy(g, oct_train_net_grad(t, i), (size_t)p->v[i].len * sizeof(*g));
        for (int64_t k = 0; k < p->v[i].len; k++)
            norm += (double)g[k] * (double)g[k];
        norm = sqrt(norm);
        for (int64_t k = 0; k < p->v[i].len; k++)
            w[p->v[i].offset + k] += h * g[k] / (float)norm;
        assert_ok(f->ctx, oct_train_net_step(t));
        up = oct_train_net_loss(t);
        for (int64_t k = 0; k < p->v[i].len; k++)
            w[p->v[i].offset + k] -= 2 * h * g[k] / (float)norm;
        assert_ok(f->ctx, oct_train_net_step(t));
        down = oct_train_net_loss(t);
        for (int64_t k = 0; k < p->v[i].len; k++)
            w[p->v[i].offset + k] += h * g[k] / (float)norm;
        if (!(fabs((up - down) / (2 * (double)h) - norm) < 2e-3 + .02 * norm))
            fail_msg("%s: the slope is %g, the gradient's norm %g", p->v[i].name,
                     (up - down) / (2 * (double)h), norm);
        free(g);
    }
    oct_train_net_free(t);
}

static void learns(void **state)
{
    fixture *f = *state;
    oct_optimizer_options o;
    oct_rates rates = {.05, .05, -1};
    const float *grad[8];
    oct_optimizer opt;
    oct_train_net *t;
    oct_graph *out = NULL;
    oct_params *p;
    double first = 0;

    make_classifier(f);
    t = make_net(f, false);
    p = oct_train_net_params(t);
    oct_optimizer_options_init(&o);
    assert_ok(f->ctx, oct_optimizer_init(&opt, p, oct_optimizer_find("sgd"), &o));
    for (int step = 0; step < 100; step++) {
        fill(t);
        assert_ok(f->ctx, oct_train_net_step(t));
        if (step == 0) first = oct_train_net_loss(t);
        for (int32_t i = 0; i < p->n; i++)
            grad[i] = oct_train_net_grad(t, i);
        oct_train_net_keep_stats(t);
        oct_optimizer_step(&opt, oct_train_net_weights(t), grad, 1, &rates, 2);
    }
    assert_true(first > .7);
    assert_true(oct_train_net_loss(t) < .1);
    assert_ok(f->ctx,
              oct_train_net_export(t, oct_train_net_weights(t), oct_train_net_running(t), &out));
    assert_int_equal(out->n_nodes, f->g->n_nodes);
    assert_memory_equal(oct_graph_find_value(out, "bn.mean")->data->data,
                        oct_train_net_running(t) + oct_train_net_stats(t)->v[0].offset,
                        HIDDEN * sizeof(float));
    oct_graph_free(out);
    oct_optimizer_fini(&opt);
    oct_train_net_free(t);
}

/* The network as it came teaches itself: nothing to learn, until weights are changed. */
static void teaches_itself(void **state)
{
    fixture *f = *state;
    oct_train_net *t;
    int64_t n = 0;

    make_classifier(f);
    t = make_net_for(f, "distill", true);
    for (int64_t i = 0; i < (int64_t)BATCH * 3 * SIDE * SIDE; i++)
        oct_train_net_images(t, &n)[i] = (float)oct_rng_f64(&rng);
    assert_ok(f->ctx, oct_train_net_step(t));
    assert_true(fabs(oct_train_net_loss(t)) < 1e-6);
    oct_train_net_weights(t)[0] += 1;
    assert_ok(f->ctx, oct_train_net_step(t));
    assert_true(oct_train_net_loss(t) > 1e-5);
    oct_train_net_free(t);
}

/* --- memory --- */

static size_t n_allocations;

static void *count_alloc(void *user, size_t size)
{
    (void)user;
    n_allocations++;
    return aligned_alloc(64, (size + 63) / 64 * 64);
}

static void count_free(void *user, void *p)
{
    (void)user;
    free(p);
}

static void steps_do_not_allocate(void **state)
{
    const oct_allocator counting = {count_alloc, count_free, NULL};
    fixture f = {.ctx = oct_ctx_new(&counting)};
    oct_train_net *t;
    size_t before;

    (void)state;
    assert_non_null(f.ctx);
    assert_ok(f.ctx, oct_graph_new(f.ctx, "test", &f.g));
    f.b.g = f.g;
    make_classifier(&f);
    t = make_net(&f, false);
    fill(t);
    assert_ok(f.ctx, oct_train_net_step(t));
    before = n_allocations;
    for (int i = 0; i < 3; i++) {
        assert_ok(f.ctx, oct_train_net_step(t));
        oct_train_net_keep_stats(t);
    }
    assert_int_equal(n_allocations, before);
    oct_train_net_free(t);
    oct_graph_free(f.g);
    oct_ctx_free(f.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_parameters, setup, teardown),
        cmocka_unit_test_setup_teardown(gradients_are_slopes, setup, teardown),
        cmocka_unit_test_setup_teardown(learns, setup, teardown),
        cmocka_unit_test_setup_teardown(teaches_itself, setup, teardown),
        cmocka_unit_test(steps_do_not_allocate),
    };

    return run_test_group(tests);
}
