/* SPDX-License-Identifier: Apache-2.0 */
/* Quantized networks: simulated in float, and in integers, against plain evaluation. */
#include "tests/unit/exec_net.h"

#include "tests/unit/quant_net.h"

/* Runs the graph with the given options and with plain kernels; outputs must have equal bits. */
static void assert_exact(fixture *f, const oct_plan_options *o, const char *what)
{
    oct_tensor *a[4] = {NULL}, *b[4] = {NULL};
    oct_plan_options plain;

    oct_plan_options_init(&plain);
    plain.plain = 1;
    run_graph(f, o, a);
    run_graph(f, &plain, b);
    for (int32_t i = 0; i < f->g->n_outputs; i++) {
        assert_same(what, a[i], b[i], 0);
        oct_tensor_unref(a[i]);
        oct_tensor_unref(b[i]);
    }
}

static oct_plan_options simulated(void)
{
    oct_plan_options o;

    oct_plan_options_init(&o);
    o.simulate = 1;
    return o;
}

static int count_steps(fixture *f, const oct_plan_options *o, const char *op)
{
    oct_plan *p = NULL;
    int n = 0;

    assert_ok(f->ctx, oct_plan_new(f->g, o, &p));
    for (int32_t i = 0; i < oct_plan_n_steps(p); i++) {
        oct_step_info info = {.struct_size = sizeof(info)};

        oct_plan_step(p, i, &info);
        n += strcmp(info.op, op) == 0;
    }
    oct_plan_free(p);
    return n;
}

static void simulation_keeps_every_bit(void **state)
{
    static const oct_dtype types[] = {OCT_DTYPE_U8, OCT_DTYPE_I8, OCT_DTYPE_U16, OCT_DTYPE_I16};
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){2, 19, 5, 7});
    const oct_plan_options o = simulated();

    for (int i = 0; i < 4; i++) {
        const float scale = i < 2 ? 0.0113f : 1e-4f;

        output(f, qdq(f, x, types[i], &scale, &(int32_t){i * 3}, 1, 1));
    }
    assert_int_equal(count_steps(f, &o, "FakeQuantize"), 4);
    assert_exact(f, &o, "one scale");
}

static void simulation_has_a_scale_for_each_channel(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){2, 19, 5, 7});
    const oct_plan_options o = simulated();
    float scale[19];
    int32_t zero[19];

    for (int i = 0; i < 19; i++) {
        scale[i] = 0.003f + 0.001f * (float)i;
        zero[i] = 100 + i;
    }
    output(f, qdq(f, x, OCT_DTYPE_U8, scale, zero, 19, 1));
    output(f, qdq(f, x, OCT_DTYPE_U8, scale, zero, 7, 3));
    output(f, qdq(f, x, OCT_DTYPE_U8, scale, zero, 2, 0));
    assert_int_equal(count_steps(f, &o, "FakeQuantize"), 3);
    assert_exact(f, &o, "scales");
}

/* A convolution, its activation and the fake quantization write straight into the Concat. */
static void simulation_leaves_convolutions_fused(void **state)
{
    fixture *f = *state;
    const oct_plan_options o = simulated();
    const conv_case c = {8, 24, 3, 1, 1, 1, 1};
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 8, 12, 12}), *part[2];
    oct_tensor *a[1] = {NULL}, *b[1] = {NULL};
    oct_plan_options plain = {0};
    oct_rng rng;

    oct_rng_init(&rng, 3);
    for (int i = 0; i < 2; i++) {
        part[i] = emit(f, &oct_op_relu, conv(f, &rng, x, &c), NULL);
        part[i] =
            qdq(f, part[i], OCT_DTYPE_U8, &(float){0.01f * (float)(i + 1)}, &(int32_t){0}, 1, 1);
    }
    output(f, concat(f, part, 2, 1));
    assert_int_equal(count_steps(f, &o, "Conv+Relu"), 2);
    assert_int_equal(count_steps(f, &o, "FakeQuantize"), 2);
    assert_int_equal(count_steps(f, &o, "Concat"), 0);
    oct_plan_options_init(&plain);
    plain.plain = 1;
    run_graph(f, &o, a);
    run_graph(f, &plain, b);
    assert_steps(a[0], b[0], 0.02f, 0.002);
    oct_tensor_unref(a[0]);
    oct_tensor_unref(b[0]);
}

/* Weights as codes become float weights; two factors deep. */
static void simulation_folds_weights(void **state)
{
    fixture *f = *state;
    const oct_plan_options o = simulated();
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 4, 6, 6});
    const float factor[4] = {1, 2, 0.5f, 4};
    oct_value *w = codes(f, OCT_DTYPE_I8, 4, (int64_t[]){8, 4, 1, 1}, 5);

    w = dequantize(f, w, (float[]){.1f, .2f, .1f, .3f, .1f, .2f, .1f, .3f}, NULL, 8, 0);
    w = emit(f, &oct_op_mul, w, constant_f32(f, 4, (int64_t[]){1, 4, 1, 1}, factor));
    output(f, infer(f, node(f, &oct_op_conv, x, w, NULL)));
    assert_int_equal(count_steps(f, &o, "DequantizeLinear"), 0);
    assert_int_equal(count_steps(f, &o, "Mul"), 0);
}

static void bad_scales_are_named(void **state)
{
    static const float bad[] = {0.0f, NAN, INFINITY};
    oct_plan *p = NULL;

    for (int i = 0; i < 3; i++) {
        fixture *f = *state;
        oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){2, 3}), *y;

        y = qdq(f, x, OCT_DTYPE_U8, &bad[i], &(int32_t){0}, 1, 1);
        y->producer->name = "culprit";
        output(f, y);
        assert_fails(f->ctx, oct_plan_new(f->g, NULL, &p), OCT_ERR_FORMAT, "scale");
        teardown(state);
        setup(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(simulation_keeps_every_bit, setup, teardown),
        cmocka_unit_test_setup_teardown(simulation_has_a_scale_for_each_channel, setup, teardown),
        cmocka_unit_test_setup_teardown(simulation_leaves_convolutions_fused, setup, teardown),
        cmocka_unit_test_setup_teardown(simulation_folds_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_scales_are_named, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
