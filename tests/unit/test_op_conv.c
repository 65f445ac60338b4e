/* SPDX-License-Identifier: Apache-2.0 */
/* Geometry of windows; Conv, ConvTranspose and DeformConv. */
#include "op/conv_geometry.h"
#include "op_case.h"

#define F32 OCT_DTYPE_F32

static oct_conv_geometry pool_geometry(fixture *f, int64_t in, int64_t kernel, int64_t stride,
                                       int64_t pad, const char *auto_pad, bool ceil)
{
    oct_value *x = unknown(f, F32, DIMS(1, 1, in));
    oct_node *n = NODE(f, &oct_op_max_pool, 1, x);
    oct_conv_geometry g;

    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", &kernel, 1));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", &stride, 1));
    assert_ok(f->ctx, oct_node_set_int(n, "ceil_mode", ceil));
    if (auto_pad) assert_ok(f->ctx, oct_node_set_str(n, "auto_pad", auto_pad));
    if (pad) assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){pad, pad}, 2));
    assert_ok(f->ctx, oct_conv_geometry_pool(n, &x->type, &g));
    return g;
}

static void windows_are_counted_as_the_standard_says(void **state)
{
    static const struct {
        int64_t in, kernel, stride, pad;
        const char *auto_pad;
        bool ceil;
        int64_t out, begin, end;
    } cases[] = {
        {7, 3, 2, 0, NULL, false, 3, 0, 0},
        {8, 3, 2, 0, NULL, false, 3, 0, 0},
        {8, 3, 2, 0, NULL, true, 4, 0, 0},
        {8, 3, 2, 1, NULL, false, 4, 1, 1},
        {3, 1, 2, 0, NULL, true, 2, 0, 0},
        {2, 1, 2, 1, NULL, true, 2, 1, 1}, /* a third would start behind the input */
        {8, 3, 2, 0, "VALID", false, 3, 0, 0},
        {8, 3, 2, 0, "SAME_UPPER", false, 4, 0, 1},
        {8, 3, 2, 0, "SAME_LOWER", false, 4, 1, 0},
        {5, 1, 3, 0, "SAME_UPPER", false, 2, 0, 0},
        {0, 3, 2, 0, NULL, false, 0, 0, 0},
    };
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const oct_conv_geometry g = pool_geometry(f, cases[i].in, cases[i].kernel, cases[i].stride,
                                                  cases[i].pad, cases[i].auto_pad, cases[i].ceil);

        if (g.out[0] != cases[i].out || g.pad_begin[0] != cases[i].begin ||
            g.pad_end[0] != cases[i].end)
            fail_msg("case %zu: out %lld, pads %lld %lld", i, (long long)g.out[0],
                     (long long)g.pad_begin[0], (long long)g.pad_end[0]);
    }
}

static void windows_stop_at_the_borders(void **state)
{
    const oct_conv_geometry g = {
        .n = 1, .in = {5}, .kernel = {4}, .stride = {3}, .dilation = {2}, .pad_begin = {3}};
    int64_t from, to;

    (void)state;
    oct_conv_window(&g, 0, 0, &from, &to); /* reads -3 -1 1 3 */
    assert_int_equal(from, 2);
    assert_int_equal(to, 4);
    oct_conv_window(&g, 0, 1, &from, &to); /* reads 0 2 4 6 */
    assert_int_equal(from, 0);
    assert_int_equal(to, 3);
    oct_conv_window(&g, 0, 9, &from, &to); /* far behind */
    assert_int_equal(from, to);
}

static void conv_adds_up_windows(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 1, 3, 3), NULL);
    oct_value *w = constant(f, F32, DIMS(1, 1, 2, 2), (double[]){1, 1, 1, 1});
    oct_value *b = constant(f, F32, DIMS(1), (double[]){0.5});

    assert_gives(NODE(f, &oct_op_conv, 1, x, w, b), DIMS(1, 1, 2, 2),
                 (float[]){8.5f, 12.5f, 20.5f, 24.5f});
}

static void conv_keeps_groups_apart(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F64, DIMS(1, 2, 3), (double[]){1, 2, 3, 10, 20, 30});
    oct_value *w = constant(f, OCT_DTYPE_F64, DIMS(2, 1, 1), (double[]){2, 3});
    oct_node *n = NODE(f, &oct_op_conv, 1, x, w);

    assert_ok(f->ctx, oct_node_set_int(n, "group", 2));
    assert_gives(n, DIMS(1, 2, 3), (float[]){2, 4, 6, 30, 60, 90});
}

static void conv_of_half_precision_rounds_once(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F16, DIMS(1, 2, 1), (double[]){2048, 1});
    oct_value *w = constant(f, OCT_DTYPE_F16, DIMS(1, 2, 1), (double[]){1, 1.5});

    /* 2049.5 is between 2048 and 2050 in float16. */
    assert_gives(NODE(f, &oct_op_conv, 1, x, w), DIMS(1, 1, 1), (float[]){2050});
}

static void conv_shapes_may_be_partly_known(void **state)
{
    fixture *f = *state;
    oct_value *x = unknown(f, F32, DIMS(-1, 3, -1, 8)), *w = unknown(f, F32, DIMS(4, 3, 3, 3));

    assert_infers(NODE(f, &oct_op_conv, 1, x, w), DIMS(-1, 4, -1, 6));
}

static void transposed_conv_spreads_windows(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 1, 2), (double[]){1, 10});
    oct_value *w = constant(f, F32, DIMS(1, 1, 3), (double[]){1, 2, 3});
    oct_node *n = NODE(f, &oct_op_conv_transpose, 1, x, w);

    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){2}, 1));
    assert_gives(n, DIMS(1, 1, 5), (float[]){1, 2, 13, 20, 30});
    assert_ok(f->ctx, oct_node_set_ints(n, "output_padding", (int64_t[]){1}, 1));
    assert_gives(n, DIMS(1, 1, 6), (float[]){1, 2, 13, 20, 30, 0});
    assert_ok(f->ctx, oct_node_set_ints(n, "output_shape", (int64_t[]){4}, 1));
    assert_gives(n, DIMS(1, 1, 4), (float[]){2, 13, 20, 30});
    assert_ok(f->ctx, oct_node_set_ints(n, "output_shape", (int64_t[]){1, 1, 4}, 3));
    assert_gives(n, DIMS(1, 1, 4), (float[]){2, 13, 20, 30});
    assert_int_equal(oct_op_conv_transpose.macs(n), 6);
    /* SAME: as large as ONNX says, also where windows leave gaps (docs/differences.md) */
    n = NODE(f, &oct_op_conv_transpose, 1, x, constant(f, F32, DIMS(1, 1, 1), (double[]){1}));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){3}, 1));
    assert_ok(f->ctx, oct_node_set_str(n, "auto_pad", "SAME_UPPER"));
    assert_gives(n, DIMS(1, 1, 6), (float[]){1, 0, 0, 10, 0, 0});
}

static void moved_taps_read_between_pixels(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 1, 2, 2), NULL);
    oct_value *w = constant(f, F32, DIMS(1, 1, 1, 1), (double[]){1});
    oct_value *by = constant(f, F32, DIMS(1, 2, 2, 2), (double[]){0.5, 0, 0, 0, 0, 0.5, 9, NAN});
    oct_value *gain = constant(f, F32, DIMS(1, 1, 2, 2), (double[]){1, 2, 1, 1});

    assert_gives(NODE(f, &oct_op_deform_conv, 1, x, w, by), DIMS(1, 1, 2, 2),
                 (float[]){1, 0.5f, 0, 0});
    assert_gives(NODE(f, &oct_op_deform_conv, 1, x, w, by, NULL, gain), DIMS(1, 1, 2, 2),
                 (float[]){1, 1, 0, 0});
}

static void wrong_attributes_are_refused(void **state)
{
    static const struct {
        const char *name;
        int64_t v[4];
        int64_t n;
        const char *reason;
    } cases[] = {
        {"kernel_shape", {2, 2, 2}, 3, "kernel_shape has 3 numbers, 2 are needed"},
        {"kernel_shape", {-1, 2}, 2, "kernel_shape[0] is -1"},
        {"kernel_shape", {3, 3}, 2, "kernel_shape says 3, the weight 2"},
        {"strides", {0, 1}, 2, "strides[0] is 0"},
        {"dilations", {1, INT64_MAX}, 2, "dilations[1]"},
        {"pads", {0, 0, 0, -1}, 4, "pads[3] is -1"},
        {"pads", {1, 1}, 2, "pads has 2 numbers, 4 are needed"},
        {"dilations", {9, 9}, 2, "larger than the padded input"},
    };
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 2, 4, 4), NULL);
    oct_value *w = constant(f, F32, DIMS(2, 2, 2, 2), NULL);

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_node *n = NODE(f, &oct_op_conv, 1, x, w);

        assert_ok(f->ctx, oct_node_set_ints(n, cases[i].name, cases[i].v, cases[i].n));
        assert_refuses(n, OCT_ERR_SHAPE, cases[i].reason);
    }
}

static void wrong_operands_are_refused(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 2, 4, 4), NULL);
    oct_value *w = constant(f, F32, DIMS(2, 2, 2, 2), NULL);
    oct_node *n = NODE(f, &oct_op_conv, 1, x, w);

    assert_ok(f->ctx, oct_node_set_int(n, "group", 0));
    assert_refuses(n, OCT_ERR_SHAPE, "group is 0");
    assert_ok(f->ctx, oct_node_set_int(n, "group", 2));
    assert_refuses(n, OCT_ERR_SHAPE, "input has 2 channels, weight is for 4");
    assert_ok(f->ctx, oct_node_set_int(n, "group", 1));
    assert_ok(f->ctx, oct_node_set_str(n, "auto_pad", "WIDE"));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "auto_pad 'WIDE'");
    assert_refuses(NODE(f, &oct_op_conv, 1, constant(f, F32, DIMS(4, 4), NULL), w), OCT_ERR_SHAPE,
                   "2 dims");
    assert_refuses(NODE(f, &oct_op_conv, 1, x, constant(f, F32, DIMS(2, 2, 2), NULL)),
                   OCT_ERR_SHAPE, "weight has 3 dims");
    assert_refuses(NODE(f, &oct_op_conv, 1, x, w, constant(f, F32, DIMS(3), NULL)), OCT_ERR_SHAPE,
                   "bias has 3 numbers for 2 filters");
    assert_refuses(NODE(f, &oct_op_conv, 1, x, constant(f, OCT_DTYPE_I8, DIMS(2, 2, 2, 2), NULL)),
                   OCT_ERR_TYPE, "int8");
    n = NODE(f, &oct_op_conv_transpose, 1, x, w);
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", (int64_t[]){9, 0, 0, 0}, 4));
    assert_refuses(n, OCT_ERR_SHAPE, "pads are larger than the output");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(windows_are_counted_as_the_standard_says, setup, teardown),
        cmocka_unit_test(windows_stop_at_the_borders),
        cmocka_unit_test_setup_teardown(conv_adds_up_windows, setup, teardown),
        cmocka_unit_test_setup_teardown(conv_keeps_groups_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(conv_of_half_precision_rounds_once, setup, teardown),
        cmocka_unit_test_setup_teardown(conv_shapes_may_be_partly_known, setup, teardown),
        cmocka_unit_test_setup_teardown(transposed_conv_spreads_windows, setup, teardown),
        cmocka_unit_test_setup_teardown(moved_taps_read_between_pixels, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_attributes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_operands_are_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
