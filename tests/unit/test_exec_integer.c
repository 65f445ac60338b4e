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
        y->producer->in[0]->producer->name = "culprit";
        output(f, y);
        assert_fails(f->ctx, oct_plan_new(f->g, NULL, &p), OCT_ERR_FORMAT, "node 'culprit'");
        teardown(state);
        setup(state);
    }
}

/* --- in integers --- */

static const struct {
    const char *name;
    conv_case c;
} convs[] = {
    {"3x3", {16, 24, 3, 1, 1, 1, 1}},        {"1x1", {40, 33, 1, 1, 1, 0, 1}},
    {"stride 2", {3, 16, 3, 2, 1, 1, 1}},    {"dilated", {16, 16, 3, 1, 2, 2, 1}},
    {"depthwise", {24, 24, 3, 1, 1, 1, 24}}, {"depthwise 5x5", {20, 20, 5, 2, 1, 2, 20}},
    {"grouped", {16, 24, 3, 1, 1, 1, 4}},    {"several for each", {8, 16, 3, 1, 1, 1, 8}},
};

static void convolutions(void **state)
{
    for (size_t i = 0; i < sizeof(convs) / sizeof(*convs); i++) {
        const conv_case *c = &convs[i].c;
        fixture *f = *state;
        oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){2, c->c_in, 19, 17});
        const qconv_case q = {*c, 0.016f, OCT_DTYPE_I8, 0, NULL};

        output(f, qdq_u8(f, qconv(f, qdq_u8(f, x, 0.016f), &q), 0.05f));
        assert_integer(f,
                       c->group == c->c_in && c->c_in == c->c_out ? "int8 depthwise" : "int8 conv",
                       1, 0.05f);
        assert_int_equal(count_steps(f, NULL, "Conv"), 1);
        teardown(state);
        setup(state);
    }
}

static void lines_are_convolved(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 3, (int64_t[]){2, 16, 200});
    const qconv_case q = {{16, 24, 3, 1, 1, 1, 1}, 0.016f, OCT_DTYPE_I8, 0, NULL};

    output(f, qdq_u8(f, qconv(f, qdq_u8(f, x, 0.016f), &q), 0.05f));
    assert_integer(f, "int8 conv", 1, 0.05f);
}

/* Activation, sum with what skipped, activation: one step, with codes only at its ends. */
static void activations_and_sums_are_fused(void **state)
{
    static const oct_op *const acts[] = {&oct_op_relu, &oct_op_swish, &oct_op_hard_swish,
                                         &oct_op_sigmoid};

    for (int i = 0; i < 4; i++) {
        fixture *f = *state;
        oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 24, 24, 24});
        const qconv_case q = {
            {24, 24, 3, 1, 1, 1, 1}, i % 2 ? 0.0f : 0.016f, OCT_DTYPE_I8, 0, NULL};
        oct_value *in = qdq_u8(f, x, 0.016f), *y;

        y = emit(f, acts[i], qconv(f, in, &q), NULL);
        y = emit(f, &oct_op_add, y, in);
        if (i == 0) y = emit(f, &oct_op_relu, y, NULL);
        output(f, qdq_u8(f, y, 0.04f));
        assert_integer(f, "int8 conv", 1, 0.04f);
        assert_int_equal(count_steps(f, NULL, "Add"), 0);
        teardown(state);
        setup(state);
    }
}

static void signed_codes_and_odd_weights(void **state)
{
    static const struct {
        oct_dtype x, w;
        int32_t w_zero;
    } cases[] = {{OCT_DTYPE_I8, OCT_DTYPE_I8, 0},
                 {OCT_DTYPE_U8, OCT_DTYPE_U8, 128},
                 {OCT_DTYPE_I8, OCT_DTYPE_U8, 100},
                 {OCT_DTYPE_U8, OCT_DTYPE_I8, -20},
                 {OCT_DTYPE_U8, OCT_DTYPE_I4, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        fixture *f = *state;
        oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 16, 20, 20});
        const qconv_case q = {{16, 24, 3, 1, 1, 1, 1}, 0.016f, cases[i].w, cases[i].w_zero, NULL};
        const int32_t zero = cases[i].x == OCT_DTYPE_I8 ? -3 : 125;

        x = qdq(f, x, cases[i].x, &(float){0.016f}, &zero, 1, 1);
        output(f, qdq(f, qconv(f, x, &q), cases[i].x, &(float){0.05f}, &zero, 1, 1));
        assert_integer(f, "int8 conv", 1, 0.05f);
        teardown(state);
        setup(state);
    }
}

/* Biases of int32 need not have the scale of the sums: then they are added as numbers. */
static void biases_have_scales_of_their_own(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 16, 9, 10});
    const qconv_case q = {{16, 24, 3, 1, 1, 1, 1}, 0.3f, OCT_DTYPE_I8, 0, NULL};

    output(f, qdq_u8(f, qconv(f, qdq_u8(f, x, 0.016f), &q), 0.05f));
    assert_integer(f, "int8 conv", 1, 0.05f);
}

/* Sums of very many codes do not fit; lines with very long pads are not made. */
static void windows_that_are_too_large(void **state)
{
    static const int64_t sizes[] = {2800, 3000}, steps[] = {1000, INT32_MAX};
    fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        const int64_t window[2] = {1, 3}, dilation[2] = {1, steps[i]};
        const int64_t pads[4] = {0, steps[i], 0, steps[i]};
        oct_node *n;

        restart(f);
        output(f, qdq_u8(f,
                         emit(f, &oct_op_global_average_pool,
                              qdq_u8(f, picture(f, 1, 1, sizes[i], sizes[i]), 0.02f), NULL),
                         0.02f));
        assert_int_equal(count_kernels(f, NULL, "int8 pool"), 1 - i);
        restart(f);
        n = node(f, &oct_op_max_pool, qdq_u8(f, picture(f, 1, 4, 5, 8), 0.02f), NULL, NULL);
        assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", window, 2));
        assert_ok(f->ctx, oct_node_set_ints(n, "dilations", dilation, 2));
        assert_ok(f->ctx, oct_node_set_ints(n, "pads", pads, 4));
        output(f, qdq_u8(f, infer(f, n), 0.02f));
        assert_integer(f, "int8 pool", 1 - i, 0.02f);
    }
}

/* Weights that need more than a byte are summed up in two parts, also where much follows, and where
 * channels are no whole vectors. */
static void sums_of_two_parts(void **state)
{
    static const int64_t channels[] = {24, 5, 32};

    for (int i = 0; i < 6; i++) {
        const int64_t n = channels[i / 2];
        fixture *f = *state;
        oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, n, 19, 23});
        const qconv_case q = {{n, n, 3, 1, 1, 1, 1}, 0.016f, OCT_DTYPE_U8, 100, NULL};
        oct_value *in = qdq_u8(f, x, 0.016f), *y = qconv(f, in, &q);

        y = emit(f, &oct_op_add, emit(f, &oct_op_relu, y, NULL), in);
        if (i % 2) y = emit(f, &oct_op_relu, y, NULL);
        output(f, qdq_u8(f, y, 0.04f));
        assert_integer(f, "int8 conv", 1, 0.04f);
        assert_int_equal(count_steps(f, NULL, "Add"), 0);
        teardown(state);
        setup(state);
    }
}

/* MatMulInteger behind DynamicQuantizeLinear, with all that belongs to it: one step. */
static void products_of_scales_that_come_late(void **state)
{
    const int64_t n = 13, dims[] = {20, 13};
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){7, 20}), *in[4], *y;
    oct_node *q = oct_emit_node(&f->b, &oct_op_dynamic_quantize_linear, &x, 1, 3), *product;
    float scale[13], bias[13];
    int32_t zero[13];

    for (int i = 0; i < 13; i++) {
        scale[i] = 0.01f + 0.002f * (float)i;
        bias[i] = 0.3f * (float)(i - 6);
        zero[i] = 128;
    }
    infer(f, q);
    in[0] = q->out[0];
    in[1] = codes(f, OCT_DTYPE_U8, 2, dims, 5);
    in[2] = q->out[2];
    in[3] = constant_int(f, OCT_DTYPE_U8, 1, &n, zero);
    product = oct_emit_node(&f->b, &oct_op_mat_mul_integer, in, 4, 1);
    y = cast(f, infer(f, product), OCT_DTYPE_F32);
    y = emit(f, &oct_op_mul, y, emit(f, &oct_op_mul, q->out[1], constant_f32(f, 1, &n, scale)));
    y = emit(f, &oct_op_add, y, constant_f32(f, 1, &n, bias));
    output(f, emit(f, &oct_op_relu, y, NULL));
    assert_int_equal(count_kernels(f, NULL, "int8 dynamic matmul"), 1);
    assert_int_equal(count_steps(f, NULL, "Add"), 0);
    assert_kernels_agree(f, "dynamic product");
}

/* --- a scale for each channel --- */

enum { C = 24 };

static void channel_scales(float *scale, int32_t *zero, float *factor, int first)
{
    float top = 0;

    for (int i = 0; i < C; i++) {
        scale[i] = 0.0091373f + 0.00071717f * (float)((i + first) % 11);
        zero[i] = 90 + (i + first) % 60;
        top = fmaxf(top, scale[i]);
    }
    for (int i = 0; i < C; i++)
        factor[i] = top / scale[i];
}

static void channels_have_scales(void **state)
{
    fixture *f = *state;
    float scale[C], factor[C];
    int32_t zero[C];
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, C, 16, 16}), *y;
    const qconv_case depthwise = {{C, C, 3, 1, 1, 1, C}, 0, OCT_DTYPE_I8, 0, NULL};
    const qconv_case dense = {{C, 32, 3, 1, 1, 1, 1}, 0, OCT_DTYPE_I8, 0, factor};

    channel_scales(scale, zero, factor, 0);
    x = qdq(f, x, OCT_DTYPE_U8, scale, zero, C, 1);
    y = emit(f, &oct_op_swish, qconv(f, x, &depthwise), NULL);
    y = qdq(f, y, OCT_DTYPE_U8, scale, zero, C, 1);
    output(f, qdq_u8(f, emit(f, &oct_op_add, x, y), 0.0403317f));
    output(f, qdq_u8(f, qconv(f, y, &dense), 0.0403317f));
    assert_int_equal(count_kernels(f, NULL, "int8 depthwise"), 1);
    assert_int_equal(count_kernels(f, NULL, "int8 conv"), 1);
    assert_integer(f, "int8 binary", 1, 0.0403317f);
}

/* Scales that a dense convolution cannot fold: float, and right. */
static void scales_that_do_not_fold(void **state)
{
    fixture *f = *state;
    float scale[C], factor[C];
    int32_t zero[C];
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, C, 16, 16});
    const qconv_case dense = {{C, 32, 3, 1, 1, 1, 1}, 0, OCT_DTYPE_I8, 0, NULL};

    channel_scales(scale, zero, factor, 0);
    x = qdq(f, x, OCT_DTYPE_U8, scale, zero, C, 1);
    output(f, qdq_u8(f, qconv(f, x, &dense), 0.04f));
    assert_integer(f, "int8 conv", 0, 0.04f);
}

/* Each channel's scale goes with it through everything that moves data; nothing is copied. */
static void scales_move_with_their_channels(void **state)
{
    fixture *f = *state;
    float scale[2][C], factor[2][C], all[2 * C];
    int32_t zero[2][C];
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, C, 12, 12}), *part[2];
    const qconv_case q = {{C, C, 3, 1, 1, 1, C}, 0, OCT_DTYPE_I8, 0, NULL};
    const qconv_case dense = {{2 * C, 32, 1, 1, 1, 0, 1}, 0, OCT_DTYPE_I8, 0, all};
    float top = 0;

    for (int i = 0; i < 2; i++) {
        channel_scales(scale[i], zero[i], factor[i], 5 * i);
        part[i] = qdq(f, x, OCT_DTYPE_U8, scale[i], zero[i], C, 1);
        part[i] = qdq(f, qconv(f, part[i], &q), OCT_DTYPE_U8, scale[i], zero[i], C, 1);
        for (int c = 0; c < C; c++)
            top = fmaxf(top, scale[i][c]);
    }
    for (int c = 0; c < 2 * C; c++) /* as the shuffle leaves them */
        all[c] = top / scale[c % 2][c / 2];
    x = max_pool(f, shuffle(f, concat(f, part, 2, 1)));
    output(f, qdq_u8(f, qconv(f, x, &dense), 0.05f));
    assert_int_equal(count_steps(f, NULL, "Concat"), 0);
    assert_int_equal(count_steps(f, NULL, "DequantizeLinear"), 1);
    assert_int_equal(count_kernels(f, NULL, "int8 pool"), 1);
    assert_integer(f, "int8 conv", 1, 0.05f);
}

/* --- other kernels --- */

static void arithmetic(void **state)
{
    static const oct_op *const ops[] = {&oct_op_add, &oct_op_sub, &oct_op_mul};
    static const int64_t shapes[][4] = {{2, 24, 9, 9}, {2, 24, 1, 1}, {2, 1, 9, 9}, {1, 24, 1, 1}};

    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            fixture *f = *state;
            oct_value *a = graph_input(f, "a", OCT_DTYPE_F32, 4, shapes[0]);
            oct_value *b = graph_input(f, "b", OCT_DTYPE_F32, 4, shapes[k]);
            const bool swap = k == 1 && i != 1;

            a = qdq_u8(f, a, 0.0161803f); /* so that sums hardly ever lie between two codes */
            b = qdq_u8(f, b, 0.0131459f);
            output(f, qdq_u8(f, emit(f, ops[i], swap ? b : a, swap ? a : b), 0.0314159f));
            assert_integer(f, "int8 binary", 1, 0.0314159f);
            teardown(state);
            setup(state);
        }
}

/* x * 0.5 + 1, Sigmoid, one behind the other: a single table; and one that gives floats. */
static void functions_are_tables(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 24, 16, 16}), *y;

    x = qdq_u8(f, x, 0.016f);
    y = emit(f, &oct_op_mul, x, oct_scalar(&f->b, 0.5f));
    y = emit(f, &oct_op_add, y, oct_scalar(&f->b, 1.0f));
    output(f, qdq_u8(f, emit(f, &oct_op_sigmoid, y, NULL), 0.01f));
    output(f, emit(f, &oct_op_tanh, x, NULL));
    assert_int_equal(count_steps(f, NULL, "Add"), 0);
    assert_integer(f, "int8 table", 2, 0.01f);
}

/* Windows of all kinds, on the whole and on a part of a Concat. */
static void largest_codes(void **state)
{
    static const int64_t windows[][4] = {/* kernel, stride, pad, dilation */
                                         {2, 2, 0, 1}, {3, 2, 1, 1}, {5, 1, 2, 1},
                                         {3, 1, 2, 2}, {3, 3, 0, 1}, {1, 2, 0, 1}};

    for (size_t i = 0; i < sizeof(windows) / sizeof(*windows); i++) {
        const int64_t k = windows[i][0], st = windows[i][1], pad = windows[i][2], d = windows[i][3];
        fixture *f = *state;
        oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){2, 24, 17, 14}), *part[2];
        oct_node *n;

        part[0] = qdq_u8(f, x, 0.016f);
        part[1] = qdq_u8(f, emit(f, &oct_op_sigmoid, part[0], NULL), 0.016f);
        n = node(f, &oct_op_max_pool, concat(f, part, 2, 1), NULL, NULL);
        for (int twice = 0; twice < 2; twice++) {
            assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){k, k}, 2));
            assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){st, st}, 2));
            assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){pad, pad, pad, pad}, 4));
            assert_ok(f->ctx, oct_node_set_ints(n, "dilations", (int64_t[]){d, d}, 2));
            assert_ok(f->ctx, oct_node_set_int(n, "ceil_mode", twice));
            output(f, infer(f, n));
            if (!twice) n = node(f, &oct_op_max_pool, part[1], NULL, NULL);
        }
        assert_integer(f, "int8 pool", 2, 0.016f);
        teardown(state);
        setup(state);
    }
}

/* Linear: the same codes as the simulation, to the bit. */
static void pixels_are_mixed(void **state)
{
    fixture *f = *state;
    const oct_plan_options o = simulated();
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){2, 24, 9, 11});
    oct_value *in[4] = {NULL, NULL, NULL, oct_ints(&f->b, (int64_t[]){2, 24, 18, 25}, 4)};
    oct_tensor *a[1] = {NULL}, *b[1] = {NULL};
    oct_node *n;

    in[0] = qdq_u8(f, x, 0.016f);
    n = oct_emit_node(&f->b, &oct_op_resize, in, 4, 1);
    assert_non_null(n);
    assert_ok(f->ctx, oct_node_set_str(n, "mode", "linear"));
    output(f, qdq_u8(f, infer(f, n), 0.016f));
    assert_int_equal(count_kernels(f, NULL, "int8 resize"), 1);
    run_graph(f, NULL, a);
    run_graph(f, &o, b);
    assert_same("linear", a[0], b[0], 0);
    oct_tensor_unref(a[0]);
    oct_tensor_unref(b[0]);
}

static void averages(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){2, 24, 16, 16});
    oct_node *n;

    x = qdq_u8(f, x, 0.016f);
    output(f, qdq_u8(f, emit(f, &oct_op_global_average_pool, x, NULL), 0.003f));
    n = node(f, &oct_op_average_pool, x, NULL, NULL);
    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){3, 3}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){1, 1, 1, 1}, 4));
    output(f, qdq_u8(f, infer(f, n), 0.003f));
    assert_int_equal(count_kernels(f, NULL, "int8 pool"), 2);
}

static void products_of_matrices(void **state)
{
    for (int i = 0; i < 2; i++) {
        fixture *f = *state;
        const int64_t n = 40;
        float scale[40];
        oct_value *x, *w, *y;
        oct_node *gemm;

        for (int k = 0; k < n; k++)
            scale[k] = 0.001f + 0.0001f * (float)(k % 5);
        if (i == 0) {
            x = qdq_u8(f, graph_input(f, "x", OCT_DTYPE_F32, 3, (int64_t[]){2, 50, 33}), 0.016f);
            w = codes(f, OCT_DTYPE_I8, 2, (int64_t[]){33, n}, 3);
            y = emit(f, &oct_op_mat_mul, x, dequantize(f, w, scale, NULL, n, 1));
        } else {
            x = qdq_u8(f, graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){100, 33}), 0.016f);
            w = codes(f, OCT_DTYPE_I8, 2, (int64_t[]){n, 33}, 3);
            gemm = node(f, &oct_op_gemm, x, dequantize(f, w, scale, NULL, n, 0),
                        constant_f32(f, 1, &n, scale));
            assert_ok(f->ctx, oct_node_set_int(gemm, "transB", 1));
            y = infer(f, gemm);
        }
        output(f, qdq_u8(f, emit(f, &oct_op_relu, y, NULL), 0.02f));
        assert_integer(f, "int8 matmul", 1, 0.02f);
        teardown(state);
        setup(state);
    }
}

/* int16 codes have no integer kernel: float, with the same result. */
static void wide_codes_stay_float(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 16, 20, 20});
    const qconv_case q = {{16, 24, 3, 1, 1, 1, 1}, 0, OCT_DTYPE_I8, 0, NULL};

    x = qdq(f, x, OCT_DTYPE_I16, &(float){1e-4f}, &(int32_t){0}, 1, 1);
    output(f, qdq(f, qconv(f, x, &q), OCT_DTYPE_I16, &(float){1e-3f}, &(int32_t){0}, 1, 1));
    assert_int_equal(count_kernels(f, NULL, "int8 conv"), 0);
}

/* The product of these scales is infinity in float, and a sum of zero times it no number. */
static void huge_and_tiny_scales_stay_float(void **state)
{
    static const float huge = 1e30f, tiny = 1e-30f, usual = 0.0203f;
    static const int32_t zero = 28;
    const oct_plan_options o = simulated();
    fixture *f = *state;
    oct_value *x = picture(f, 1, 4, 6, 6);
    oct_value *h = qdq(f, x, OCT_DTYPE_U8, &huge, NULL, 1, 1);
    oct_value *u = qdq(f, x, OCT_DTYPE_U8, &usual, &zero, 1, 1);

    output(f, qdq(f, emit(f, &oct_op_mul, h, h), OCT_DTYPE_U8, &usual, &zero, 1, 1));
    output(f, qdq(f, emit(f, &oct_op_add, h, u), OCT_DTYPE_U8, &tiny, &zero, 1, 1));
    output(f, qdq(f, emit(f, &oct_op_mul, u, u), OCT_DTYPE_U8, &tiny, &zero, 1, 1));
    assert_exact(f, NULL, "in integers");
    assert_exact(f, &o, "simulated");
}

/* The same bytes for any number of threads, and for every run. */
static void threads_change_nothing(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 16, 40, 40});
    const qconv_case q = {{16, 48, 3, 1, 1, 1, 1}, 0.016f, OCT_DTYPE_I8, 0, NULL};
    oct_tensor *want[1] = {NULL};

    x = emit(f, &oct_op_swish, qconv(f, qdq_u8(f, x, 0.016f), &q), NULL);
    output(f, qdq_u8(f, x, 0.05f));
    run_graph(f, NULL, want);
    for (int i = 1; i < 4; i++) {
        oct_plan_options o;
        oct_tensor *got[1] = {NULL};

        oct_plan_options_init(&o);
        o.n_threads = i;
        run_graph(f, &o, got);
        assert_memory_equal(got[0]->data, want[0]->data, want[0]->size);
        oct_tensor_unref(got[0]);
    }
    oct_tensor_unref(want[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(simulation_keeps_every_bit, setup, teardown),
        cmocka_unit_test_setup_teardown(simulation_has_a_scale_for_each_channel, setup, teardown),
        cmocka_unit_test_setup_teardown(simulation_leaves_convolutions_fused, setup, teardown),
        cmocka_unit_test_setup_teardown(simulation_folds_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_scales_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(convolutions, setup, teardown),
        cmocka_unit_test_setup_teardown(lines_are_convolved, setup, teardown),
        cmocka_unit_test_setup_teardown(activations_and_sums_are_fused, setup, teardown),
        cmocka_unit_test_setup_teardown(signed_codes_and_odd_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(biases_have_scales_of_their_own, setup, teardown),
        cmocka_unit_test_setup_teardown(sums_of_two_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(windows_that_are_too_large, setup, teardown),
        cmocka_unit_test_setup_teardown(products_of_scales_that_come_late, setup, teardown),
        cmocka_unit_test_setup_teardown(channels_have_scales, setup, teardown),
        cmocka_unit_test_setup_teardown(scales_that_do_not_fold, setup, teardown),
        cmocka_unit_test_setup_teardown(scales_move_with_their_channels, setup, teardown),
        cmocka_unit_test_setup_teardown(arithmetic, setup, teardown),
        cmocka_unit_test_setup_teardown(functions_are_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(largest_codes, setup, teardown),
        cmocka_unit_test_setup_teardown(pixels_are_mixed, setup, teardown),
        cmocka_unit_test_setup_teardown(averages, setup, teardown),
        cmocka_unit_test_setup_teardown(products_of_matrices, setup, teardown),
        cmocka_unit_test_setup_teardown(wide_codes_stay_float, setup, teardown),
        cmocka_unit_test_setup_teardown(huge_and_tiny_scales_stay_float, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_change_nothing, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
