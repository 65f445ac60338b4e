/* SPDX-License-Identifier: Apache-2.0 */
/* A small ResNet learns, from random weights, to tell the eight shapes of octet synth apart. */
#include <octet/plan.h>

#include "synth/synth.h"
#include "tests/unit/detect_net.h"
#include "train/train.h"

enum { BATCH = 32, SIDE = 24, CLASSES = 8, STEPS = 700, HELD_OUT = 400, MAX_PARAMS = 64 };

/* --- pictures --- */

/* One shape of any size, place and pose on a gradient, with grain; all colours may occur. */
static int64_t draw(oct_rng *r, float *picture)
{
    const int32_t category = (int32_t)oct_rng_below(r, CLASSES);
    const float radius = oct_rng_range(r, .32f, .46f) * SIDE;
    const float cx = SIDE * oct_rng_range(r, .45f, .55f), cy = SIDE * oct_rng_range(r, .45f, .55f);
    float color[2][3], slope[2], s, c;
    oct_shape shape;

    oct_shape_init(&shape, category, r);
    oct_sin_cos(oct_rng_range(r, 0, 1), &s, &c);
    for (int k = 0; k < 3; k++) {
        color[0][k] = oct_rng_range(r, 0, 1);
        color[1][k] = color[0][k] + (color[0][k] < .5f ? 1.0f : -1.0f) * oct_rng_range(r, .3f, .5f);
    }
    for (int k = 0; k < 2; k++)
        slope[k] = oct_rng_range(r, -.15f, .15f) / SIDE;
    for (int i = 0; i < SIDE * SIDE; i++) {
        const float x = ((float)(i % SIDE) - cx) / radius, y = ((float)(i / SIDE) - cy) / radius;
        const float far = oct_shape_distance(&shape, c * x + s * y, c * y - s * x) * radius;
        const float cover = oct_clamp01(.5f - far);

        for (int k = 0; k < 3; k++)
            picture[k * SIDE * SIDE + i] =
                color[0][k] + cover * (color[1][k] - color[0][k]) + slope[0] * (float)(i % SIDE) +
                slope[1] * (float)(i / SIDE) + oct_rng_range(r, -.04f, .04f);
    }
    return category;
}

/* --- the network --- */

static oct_value *emit_n(fixture *f, const oct_op *op, oct_value *const *in, int32_t n)
{
    return oct_emitted(&f->b, oct_emit_node(&f->b, op, in, n, 1));
}

/* Convolution of an odd kernel that keeps the size, or halves it; BatchNormalization. */
static oct_value *conv_norm(fixture *f, oct_value *x, const char *name, int64_t n_out,
                            int64_t kernel, int64_t stride)
{
    static const char *const parts[] = {"weight", "bias", "mean", "var"};
    const int64_t dims[] = {n_out, x->type.dim[1], kernel, kernel}, pad = kernel / 2;
    oct_value *in[5];
    char text[64];
    oct_node *n;

    snprintf(text, sizeof(text), "%s.conv.weight", name);
    in[0] = x;
    in[1] = filled(f, text, 4, dims, 0, NULL);
    n = oct_emit_node(&f->b, &oct_op_conv, in, 2, 1);
    assert_non_null(n);
    oct_emit_ints(&f->b, n, "strides", (int64_t[]){stride, stride}, 2);
    oct_emit_ints(&f->b, n, "pads", (int64_t[]){pad, pad, pad, pad}, 4);
    in[0] = oct_emitted(&f->b, n);
    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof(text), "%s.bn.%s", name, parts[i]);
        in[i + 1] = filled(f, text, 1, &n_out, i == 0 || i == 3 ? 1 : 0, NULL);
    }
    return emit_n(f, &oct_op_batch_normalization, in, 5);
}

/* Two convolutions and a way around them, projected where the sizes differ. */
static oct_value *block(fixture *f, oct_value *x, const char *name, int64_t n_out, int64_t stride)
{
    oct_value *around = x, *y;
    char text[32];

    snprintf(text, sizeof(text), "%s.a", name);
    y = oct_emit(&f->b, &oct_op_relu, conv_norm(f, x, text, n_out, 3, stride), NULL, NULL);
    snprintf(text, sizeof(text), "%s.b", name);
    y = conv_norm(f, y, text, n_out, 3, 1);
    snprintf(text, sizeof(text), "%s.around", name);
    if (stride > 1 || n_out != x->type.dim[1]) around = conv_norm(f, x, text, n_out, 1, stride);
    y = oct_emit(&f->b, &oct_op_add, y, around, NULL);
    return oct_emit(&f->b, &oct_op_relu, y, NULL, NULL);
}

static void make_resnet(fixture *f)
{
    oct_value *x = picture_input(f, 1, SIDE, SIDE);

    x = oct_emit(&f->b, &oct_op_relu, conv_norm(f, x, "stem", 16, 3, 1), NULL, NULL);
    x = block(f, x, "first", 16, 1);
    x = block(f, x, "second", 24, 2);
    x = block(f, x, "third", 48, 2);
    x = oct_emit(&f->b, &oct_op_global_average_pool, x, NULL, NULL);
    x = oct_emit(&f->b, &oct_op_flatten, x, NULL, NULL);
    x = emit_n(f, &oct_op_gemm,
               (oct_value *[]){x, filled(f, "fc.weight", 2, (int64_t[]){48, CLASSES}, 0, NULL),
                               filled(f, "fc.bias", 1, (int64_t[]){CLASSES}, 0, NULL)},
               3);
    assert_ok(f->ctx, f->b.status);
    assert_ok(f->ctx, oct_graph_add_output(f->g, x));
}

/* --- training --- */

static void train(fixture *f, oct_train_net *t)
{
    oct_params *p = oct_train_net_params(t);
    oct_optimizer_options o;
    const float *grad[MAX_PARAMS];
    oct_optimizer optimizer;
    oct_schedule schedule;
    int64_t n = 0;
    oct_rates rates;
    oct_rng rng;

    assert_true(p->n <= MAX_PARAMS);
    oct_schedule_init(&schedule);
    schedule.decay = OCT_DECAY_COSINE;
    schedule.lr = .005;
    schedule.final_ratio = .01;
    schedule.steps_per_epoch = STEPS;
    oct_optimizer_options_init(&o);
    oct_params_set_decay(p, .01, false);
    assert_ok(f->ctx, oct_optimizer_init(&optimizer, p, oct_optimizer_find("adamw"), &o));
    oct_rng_init(&rng, 1);
    for (int64_t step = 0; step < STEPS; step++) {
        int64_t *labels = (int64_t *)(void *)oct_train_net_labels(t, &n);

        for (int i = 0; i < BATCH; i++)
            labels[i] = draw(&rng, oct_train_net_images(t, &n) + i * 3 * SIDE * SIDE);
        assert_ok(f->ctx, oct_train_net_step(t));
        for (int32_t i = 0; i < p->n; i++)
            grad[i] = oct_train_net_grad(t, i);
        oct_train_net_keep_stats(t);
        oct_schedule_at(&schedule, step, &rates);
        oct_optimizer_step(&optimizer, oct_train_net_weights(t), grad, 1, &rates, 1);
        if (step % 100 == 99)
            print_message("step %d: loss %.4f\n", (int)step + 1, oct_train_net_loss(t));
    }
    oct_optimizer_fini(&optimizer);
}

/* Top 1 of the exported network, with its running statistics, on pictures of another seed. */
static double top1(fixture *f, const oct_train_net *t)
{
    oct_plan_options o;
    oct_graph *g = NULL;
    oct_plan *plan = NULL;
    oct_run *run = NULL;
    int n_right = 0;
    oct_rng rng;

    assert_ok(f->ctx,
              oct_train_net_export(t, oct_train_net_weights(t), oct_train_net_running(t), &g));
    oct_plan_options_init(&o);
    o.n_threads = 1;
    assert_ok(f->ctx, oct_plan_new(g, &o, &plan));
    assert_ok(f->ctx, oct_run_new(f->ctx, plan, &run));
    oct_rng_init(&rng, 99);
    for (int i = 0; i < HELD_OUT; i++) {
        const oct_tensor *out = NULL;
        void *in = NULL;
        size_t size = 0;
        int best = 0;
        int64_t label;

        assert_ok(f->ctx, oct_run_input(run, "images", &in, &size));
        label = draw(&rng, in);
        assert_ok(f->ctx, oct_run_execute(run));
        assert_ok(f->ctx, oct_run_output(run, 0, &out));
        for (int k = 1; k < CLASSES; k++)
            if (oct_tensor_get_f64(out, k) > oct_tensor_get_f64(out, best)) best = k;
        n_right += best == label;
    }
    oct_run_free(run);
    oct_plan_free(plan);
    oct_graph_free(g);
    return (double)n_right / HELD_OUT;
}

static void learns_shapes(void **state)
{
    fixture *f = *state;
    const oct_train_net_options o = {.batch = BATCH,
                                     .width = SIDE,
                                     .height = SIDE,
                                     .max_boxes = 1,
                                     .loss = oct_loss_find("classify"),
                                     .n_threads = 1};
    oct_train_net *t = NULL;
    double before, after;

    make_resnet(f);
    assert_ok(f->ctx, oct_train_net_new(f->g, &o, &t));
    oct_train_from_scratch(t, 0, 1);
    before = top1(f, t);
    train(f, t);
    after = top1(f, t);
    print_message("top 1 of %d other pictures: %.4f, at random %.4f\n", HELD_OUT, after, before);
    assert_true(before < .4);
    assert_true(after >= .95);
    oct_train_net_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(learns_shapes, setup, teardown),
    };

    return run_test_group(tests);
}
