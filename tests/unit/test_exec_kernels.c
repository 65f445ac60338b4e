/* SPDX-License-Identifier: Apache-2.0 */
/* Every fast kernel against the plain one of its row, on odd shapes, for each instruction set. */
#include "unit/exec_net.h"

#include "exec/simd/simd.h"

static void output(fixture *f, oct_value *v)
{
    assert_ok(f->ctx, oct_graph_add_output(f->g, v));
}

static void convolutions(void **state)
{
    static const struct {
        conv_case c;
        int64_t n, h, w;
    } cases[] = {
        {{3, 16, 3, 2, 1, 1, 1}, 1, 21, 34},   {{16, 16, 3, 1, 1, 1, 1}, 1, 13, 13},
        {{32, 32, 1, 1, 1, 0, 1}, 2, 9, 7},    {{48, 80, 1, 1, 1, 0, 1}, 1, 17, 19},
        {{64, 144, 3, 1, 1, 1, 1}, 1, 10, 10}, {{7, 5, 3, 1, 1, 1, 1}, 2, 6, 5},
        {{5, 33, 5, 2, 1, 2, 1}, 1, 20, 11},   {{8, 58, 3, 1, 2, 2, 1}, 1, 12, 30},
        {{8, 8, 7, 1, 1, 3, 1}, 1, 4, 4},      {{300, 70, 1, 2, 1, 0, 1}, 1, 9, 9},
        {{64, 64, 3, 1, 1, 1, 64}, 1, 15, 15}, {{58, 58, 3, 2, 1, 1, 58}, 2, 14, 9},
        {{24, 24, 5, 1, 1, 2, 24}, 1, 7, 31},  {{7, 7, 3, 1, 1, 1, 7}, 1, 8, 8},
        {{40, 40, 5, 2, 1, 2, 40}, 1, 4, 3},   {{16, 16, 7, 1, 1, 3, 16}, 1, 9, 9},
        {{16, 16, 3, 1, 2, 2, 16}, 1, 11, 12}, {{12, 24, 3, 1, 1, 1, 4}, 1, 8, 8},
        {{8, 16, 3, 1, 1, 0, 8}, 1, 6, 6},     {{4, 20, 2, 2, 1, 0, 1}, 1, 6, 6},
        {{512, 512, 3, 1, 1, 1, 1}, 1, 3, 3},  {{1, 1, 1, 1, 1, 0, 1}, 1, 1, 1},
        {{16, 16, 3, 1, 1, 1, 1}, 1, 17, 19},  {{40, 58, 3, 1, 1, 0, 1}, 2, 19, 18},
        {{33, 144, 3, 1, 1, 2, 1}, 1, 16, 23}, {{64, 64, 3, 1, 1, 1, 1}, 1, 40, 40},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_rng rng;
        char what[40];

        restart(*state);
        oct_rng_init(&rng, i);
        output(*state, conv(*state, &rng,
                            picture(*state, cases[i].n, cases[i].c.c_in, cases[i].h, cases[i].w),
                            &cases[i].c));
        snprintf(what, sizeof(what), "convolution %zu", i);
        assert_kernels_agree(*state, what);
    }
}

/* What lies between taps or pixels is not worth copying, and has no place in memory. */
static void convolutions_with_far_taps(void **state)
{
    static const conv_case cases[] = {
        {16, 16, 3, 1, INT32_MAX, INT32_MAX, 1},  {16, 16, 3, 1, INT32_MAX, INT32_MAX, 4},
        {16, 16, 3, 1, INT32_MAX, INT32_MAX, 16}, {16, 16, 3, INT32_MAX, 1, 1, 1},
        {16, 16, 2, INT32_MAX, 1, 0, 4},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_rng rng;

        restart(*state);
        oct_rng_init(&rng, i);
        output(*state, conv(*state, &rng, picture(*state, 1, 16, 8, 6), &cases[i]));
        assert_kernels_agree(*state, "far taps");
    }
}

static void windows_far_beyond_pictures(void **state)
{
    static const oct_op *const ops[] = {&oct_op_max_pool, &oct_op_average_pool};
    const int64_t m = INT32_MAX;

    for (size_t i = 0; i < OCT_COUNT(ops); i++) {
        fixture *f = *state;
        oct_node *n;

        restart(f);
        n = node(f, ops[i], picture(f, 1, 4, 5, 8), NULL, NULL);
        assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){m, 3}, 2));
        assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){m, 1}, 2));
        assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){m - 1, 1, m - 1, 1}, 4));
        output(f, infer(f, n));
        assert_kernels_agree(f, ops[i]->name);
    }
}

static void convolution_in_one_and_three_dims(void **state)
{
    fixture *f = *state;
    oct_rng rng;

    oct_rng_init(&rng, 1);
    output(f, conv(f, &rng, graph_input(f, "x", OCT_DTYPE_F32, 3, (const int64_t[]){2, 6, 30}),
                   &(conv_case){6, 18, 3, 2, 1, 1, 1}));
    output(f, conv(f, &rng, graph_input(f, "v", OCT_DTYPE_F32, 5, (const int64_t[]){1, 4, 5, 6, 7}),
                   &(conv_case){4, 6, 3, 1, 1, 1, 1}));
    assert_kernels_agree(f, "1-D and 3-D");
}

/* Every activation fused to a dense and to a depthwise convolution, and alone. */
static void activations(void **state)
{
    static const oct_op *const ops[] = {
        &oct_op_relu, &oct_op_leaky_relu,   &oct_op_swish, &oct_op_hard_swish, &oct_op_sigmoid,
        &oct_op_tanh, &oct_op_hard_sigmoid, &oct_op_gelu,  &oct_op_elu,        &oct_op_mish,
    };

    for (size_t i = 0; i < OCT_COUNT(ops); i++) {
        fixture *f = *state;
        oct_rng rng;
        oct_value *x, *y;

        restart(f);
        oct_rng_init(&rng, i);
        x = picture(f, 1, 20, 6, 7);
        y = emit(f, ops[i], conv(f, &rng, x, &(conv_case){20, 37, 1, 1, 1, 0, 1}), NULL);
        output(f, y);
        output(f, emit(f, ops[i], conv(f, &rng, x, &(conv_case){20, 20, 3, 1, 1, 1, 20}), NULL));
        output(f, emit(f, ops[i], x, NULL));
        assert_kernels_agree(f, ops[i]->name);
    }
}

/* Far below zero nothing is left, however far: also where the exponential does not fit any more. */
static void activations_far_below_zero(void **state)
{
    static const oct_op *const ops[] = {&oct_op_swish, &oct_op_mish, &oct_op_gelu};
    static const float far = 1.5e38f;

    for (size_t i = 0; i <= OCT_COUNT(ops); i++) {
        fixture *f = *state;
        oct_tensor *t = NULL;
        oct_node *n;

        restart(f);
        assert_ok(f->ctx, oct_tensor_make(f->ctx, &(oct_type){.dtype = OCT_DTYPE_F32}, &t));
        *(float *)t->data = far;
        n = node(f, ops[OCT_MIN(i, OCT_COUNT(ops) - 1)],
                 emit(f, &oct_op_mul, picture(f, 1, 3, 5, 7), oct_value_const(f->g, NULL, t)), NULL,
                 NULL);
        if (i == OCT_COUNT(ops)) assert_ok(f->ctx, oct_node_set_str(n, "approximate", "tanh"));
        output(f, emit(f, &oct_op_relu, emit(f, &oct_op_neg, infer(f, n), NULL), NULL));
        assert_kernels_agree(f, i < OCT_COUNT(ops) ? ops[i]->name : "Gelu by tanh");
    }
}

static void clip_is_fused_with_its_bounds(void **state)
{
    fixture *f = *state;
    oct_rng rng;
    oct_value *x, *lo = oct_scalar(&f->b, -0.5f), *hi = oct_scalar(&f->b, 1.5f);

    oct_rng_init(&rng, 3);
    x = conv(f, &rng, picture(f, 1, 4, 5, 5), &(conv_case){4, 9, 3, 1, 1, 1, 1});
    output(f, infer(f, node(f, &oct_op_clip, x, lo, hi)));
    assert_kernels_agree(f, "Clip");
}

/* conv + act + scaled residual + act: all in one step, and right. */
static void residuals(void **state)
{
    fixture *f = *state;
    oct_rng rng;
    oct_value *x, *a, *b;

    oct_rng_init(&rng, 4);
    x = picture(f, 1, 24, 18, 17); /* large enough for Winograd's method */
    a = emit(f, &oct_op_relu, conv(f, &rng, x, &(conv_case){24, 24, 3, 1, 1, 1, 1}), NULL);
    b = emit(f, &oct_op_add, emit(f, &oct_op_mul, oct_scalar(&f->b, 0.6f), x), a);
    b = emit(f, &oct_op_swish, b, NULL);
    b = emit(f, &oct_op_add, conv(f, &rng, b, &(conv_case){24, 24, 3, 1, 1, 1, 24}), b);
    output(f, emit(f, &oct_op_relu, b, NULL));
    assert_kernels_agree(f, "residual");
}

/*
 * Groups of channels and volumes are oneDNN's. Its sum over groups is wrong on CPUs without AVX-512
 * (2.6), so that sum is a step of its own; volumes take it in.
 */
static void residuals_of_groups_and_volumes(void **state)
{
    static const oct_op *const acts[] = {NULL, &oct_op_relu, &oct_op_hard_sigmoid};

    for (size_t i = 0; i < 2 * OCT_COUNT(acts); i++) {
        const oct_op *act = acts[i / 2];
        fixture *f = *state;
        oct_value *x, *y;
        oct_rng rng;

        restart(f);
        oct_rng_init(&rng, i);
        x = i % 2 ? graph_input(f, "x", OCT_DTYPE_F32, 5, (const int64_t[]){1, 8, 5, 6, 7})
                  : picture(f, 1, 8, 9, 11);
        y = conv(f, &rng, x, &(conv_case){8, 8, 3, 1, 1, 1, i % 2 ? 1 : 4});
        if (act) y = emit(f, act, y, NULL);
        output(f, emit(f, &oct_op_relu, emit(f, &oct_op_add, y, x), NULL));
        assert_kernels_agree(f, act ? act->name : "sum");
        if (i % 2) assert_int_equal(count_steps(f, NULL, "Add"), 0);
    }
}

/* Parts of a Concat written in place, results of a Split read in place (a C2f block). */
static void concat_and_split_without_copies(void **state)
{
    fixture *f = *state;
    oct_rng rng;
    oct_value *x, *in[4], *y;
    oct_node *split, *cat;

    oct_rng_init(&rng, 5);
    x = conv(f, &rng, picture(f, 1, 3, 12, 12), &(conv_case){3, 32, 1, 1, 1, 0, 1});
    split = oct_emit_node(&f->b, &oct_op_split, &x, 1, 2);
    assert_non_null(split);
    assert_ok(f->ctx, oct_node_set_int(split, "axis", 1));
    assert_ok(f->ctx, oct_node_set_int(split, "num_outputs", 2));
    assert_ok(f->ctx, oct_node_infer(split));
    in[0] = split->out[0];
    in[1] = split->out[1];
    in[2] = conv(f, &rng, in[1], &(conv_case){16, 16, 3, 1, 1, 1, 1});
    in[3] = emit(f, &oct_op_add, conv(f, &rng, in[2], &(conv_case){16, 16, 3, 1, 1, 1, 1}), in[2]);
    cat = oct_emit_node(&f->b, &oct_op_concat, in, 4, 1);
    assert_non_null(cat);
    assert_ok(f->ctx, oct_node_set_int(cat, "axis", 1));
    y = infer(f, cat);
    output(f, conv(f, &rng, y, &(conv_case){64, 10, 1, 1, 1, 0, 1}));
    assert_kernels_agree(f, "Split and Concat");
}

/* The same operand twice, a constant part, parts along other axes. */
static void concat_that_must_copy(void **state)
{
    for (int64_t axis = 0; axis < 4; axis++) {
        fixture *f = *state;
        oct_rng rng;
        oct_value *x, *in[3];
        oct_node *cat;

        restart(f);
        oct_rng_init(&rng, 6);
        x = picture(f, 1, 6, 5, 4);
        in[0] = conv(f, &rng, x, &(conv_case){6, 6, 3, 1, 1, 1, 1});
        in[1] = in[0];
        in[2] = axis % 2 ? emit(f, &oct_op_relu, in[0], NULL)
                         : weights(f, &rng, 4, (const int64_t[]){1, 6, 5, 4});
        cat = oct_emit_node(&f->b, &oct_op_concat, in, 3, 1);
        assert_non_null(cat);
        assert_ok(f->ctx, oct_node_set_int(cat, "axis", axis));
        output(f, infer(f, cat));
        assert_kernels_agree(f, "Concat");
    }
}

static void shuffles_and_views(void **state)
{
    fixture *f = *state;
    oct_rng rng;
    oct_value *x, *y;

    oct_rng_init(&rng, 8);
    x = conv(f, &rng, picture(f, 1, 6, 4, 5), &(conv_case){6, 12, 3, 1, 1, 1, 1});
    y = reshape(f, x, 5, (const int64_t[]){1, 3, 4, 4, 5});
    y = transpose(f, y, 5, (const int64_t[]){0, 2, 1, 3, 4});
    y = reshape(f, y, 4, (const int64_t[]){1, 12, 4, 5});
    y = conv(f, &rng, y, &(conv_case){12, 8, 1, 1, 1, 0, 1});
    output(f, transpose(f, reshape(f, y, 3, (const int64_t[]){1, 8, 20}), 3,
                        (const int64_t[]){0, 2, 1}));
    output(f, reshape(f, y, 2, (const int64_t[]){8, 20}));
    output(f, transpose(f, y, 4, (const int64_t[]){0, 2, 3, 1}));
    output(f, transpose(f, y, 4, (const int64_t[]){0, 1, 3, 2}));
    assert_kernels_agree(f, "views");
}

static void arithmetic_with_broadcasting(void **state)
{
    static const oct_op *const ops[] = {&oct_op_add, &oct_op_sub, &oct_op_mul,
                                        &oct_op_div, &oct_op_min, &oct_op_max};
    static const int64_t shapes[][4] = {{1, 1, 1, 1}, {1, 9, 1, 1}, {1, 9, 4, 5},
                                        {1, 1, 4, 5}, {1, 9, 1, 5}, {2, 9, 4, 5}};

    for (size_t i = 0; i < OCT_COUNT(ops); i++) {
        fixture *f = *state;
        oct_rng rng;
        oct_value *x, *y;

        restart(f);
        oct_rng_init(&rng, i);
        x = picture(f, 2, 3, 4, 5);
        y = conv(f, &rng, x, &(conv_case){3, 9, 1, 1, 1, 0, 1});
        for (size_t k = 0; k < OCT_COUNT(shapes); k++)
            output(f, emit(f, ops[i], y, weights(f, &rng, 4, shapes[k])));
        output(f, emit(f, ops[i], x, weights(f, &rng, 1, (const int64_t[]){5})));
        assert_kernels_agree(f, ops[i]->name);
    }
}

static void softmax_along_every_axis(void **state)
{
    fixture *f = *state;
    oct_rng rng;
    oct_value *x, *y;

    oct_rng_init(&rng, 9);
    x = picture(f, 2, 3, 5, 18);
    y = conv(f, &rng, x, &(conv_case){3, 17, 1, 1, 1, 0, 1});
    for (int64_t axis = -1; axis < 4; axis += 2)
        for (int k = 0; k < 2; k++) {
            oct_node *n = node(f, &oct_op_softmax, k ? x : y, NULL, NULL);

            assert_ok(f->ctx, oct_node_set_int(n, "axis", axis));
            output(f, infer(f, n));
        }
    assert_kernels_agree(f, "Softmax");
}

static void pooling(void **state)
{
    static const oct_op *const ops[] = {&oct_op_max_pool, &oct_op_average_pool};

    for (int i = 0; i < 16; i++) {
        fixture *f = *state;
        const int64_t k = 2 + i % 4, stride = 1 + i / 4 % 2, pad = k / 2;
        oct_node *n;
        oct_value *x;

        restart(f);
        x = picture(f, 1, 19, 11, 14);
        n = node(f, ops[i % 2], x, NULL, NULL);
        assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (const int64_t[]){k, k}, 2));
        assert_ok(f->ctx, oct_node_set_ints(n, "strides", (const int64_t[]){stride, stride}, 2));
        assert_ok(f->ctx, oct_node_set_ints(n, "pads", (const int64_t[]){pad, pad, pad, pad}, 4));
        assert_ok(f->ctx, oct_node_set_int(n, "ceil_mode", i / 8));
        if (i % 2) assert_ok(f->ctx, oct_node_set_int(n, "count_include_pad", i / 2 % 2));
        output(f, infer(f, n));
        output(f, emit(f, &oct_op_global_average_pool, x, NULL));
        output(f, emit(f, &oct_op_global_max_pool, x, NULL));
        assert_kernels_agree(f, "pooling");
    }
}

static void resizing(void **state)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coords[] = {"half_pixel", "asymmetric", "align_corners"};

    for (int i = 0; i < 9; i++) {
        fixture *f = *state;
        const int64_t sizes[] = {1, 6, 7 + i, 20 - i};
        oct_rng rng;
        oct_value *in[4] = {NULL};
        oct_node *n;

        restart(f);
        oct_rng_init(&rng, 2);
        in[0] = conv(f, &rng, picture(f, 1, 3, 7, 10), &(conv_case){3, 6, 1, 1, 1, 0, 1});
        in[3] = oct_ints(&f->b, sizes, 4);
        n = oct_emit_node(&f->b, &oct_op_resize, in, 4, 1);
        assert_non_null(n);
        assert_ok(f->ctx, oct_node_set_str(n, "mode", modes[i % 3]));
        assert_ok(f->ctx, oct_node_set_str(n, "coordinate_transformation_mode", coords[i / 3]));
        output(f, infer(f, n));
        assert_kernels_agree(f, modes[i % 3]);
    }
}

static void products(void **state)
{
    fixture *f = *state;
    oct_rng rng;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 3, (const int64_t[]){2, 5, 33});
    oct_value *y = graph_input(f, "y", OCT_DTYPE_F32, 2, (const int64_t[]){7, 33});
    oct_node *n;

    oct_rng_init(&rng, 11);
    output(f, emit(f, &oct_op_mat_mul, x, weights(f, &rng, 2, (const int64_t[]){33, 17})));
    output(f, emit(f, &oct_op_mat_mul, x, weights(f, &rng, 4, (const int64_t[]){1, 1, 33, 1})));
    output(f, emit(f, &oct_op_mat_mul, x, transpose(f, x, 3, (const int64_t[]){0, 2, 1})));
    n = node(f, &oct_op_gemm, y, weights(f, &rng, 2, (const int64_t[]){9, 33}),
             weights(f, &rng, 1, (const int64_t[]){9}));
    assert_ok(f->ctx, oct_node_set_int(n, "transB", 1));
    output(f, emit(f, &oct_op_gelu, infer(f, n), NULL));
    n = node(f, &oct_op_gemm, y, weights(f, &rng, 2, (const int64_t[]){33, 9}),
             weights(f, &rng, 2, (const int64_t[]){7, 9}));
    assert_ok(f->ctx, oct_node_set_f32(n, "alpha", 0.5f));
    output(f, infer(f, n));
    assert_kernels_agree(f, "products");
}

static void transposed_convolution(void **state)
{
    fixture *f = *state;
    oct_rng rng;
    oct_value *x = picture(f, 1, 12, 5, 6);
    oct_node *n;

    oct_rng_init(&rng, 12);
    n = node(f, &oct_op_conv_transpose, x, weights(f, &rng, 4, (const int64_t[]){12, 7, 2, 2}),
             weights(f, &rng, 1, (const int64_t[]){7}));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (const int64_t[]){2, 2}, 2));
    output(f, emit(f, &oct_op_relu, infer(f, n), NULL));
    n = node(f, &oct_op_conv_transpose, x, weights(f, &rng, 4, (const int64_t[]){12, 4, 3, 3}),
             NULL);
    assert_ok(f->ctx, oct_node_set_int(n, "group", 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (const int64_t[]){1, 1, 1, 1}, 4));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (const int64_t[]){2, 2}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "output_padding", (const int64_t[]){1, 1}, 2));
    output(f, infer(f, n));
    assert_kernels_agree(f, "ConvTranspose");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(convolutions, setup, teardown),
        cmocka_unit_test_setup_teardown(convolutions_with_far_taps, setup, teardown),
        cmocka_unit_test_setup_teardown(windows_far_beyond_pictures, setup, teardown),
        cmocka_unit_test_setup_teardown(convolution_in_one_and_three_dims, setup, teardown),
        cmocka_unit_test_setup_teardown(activations, setup, teardown),
        cmocka_unit_test_setup_teardown(activations_far_below_zero, setup, teardown),
        cmocka_unit_test_setup_teardown(clip_is_fused_with_its_bounds, setup, teardown),
        cmocka_unit_test_setup_teardown(residuals, setup, teardown),
        cmocka_unit_test_setup_teardown(residuals_of_groups_and_volumes, setup, teardown),
        cmocka_unit_test_setup_teardown(concat_and_split_without_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(concat_that_must_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(shuffles_and_views, setup, teardown),
        cmocka_unit_test_setup_teardown(arithmetic_with_broadcasting, setup, teardown),
        cmocka_unit_test_setup_teardown(softmax_along_every_axis, setup, teardown),
        cmocka_unit_test_setup_teardown(pooling, setup, teardown),
        cmocka_unit_test_setup_teardown(resizing, setup, teardown),
        cmocka_unit_test_setup_teardown(products, setup, teardown),
        cmocka_unit_test_setup_teardown(transposed_convolution, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
