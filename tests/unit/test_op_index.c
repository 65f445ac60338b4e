/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that read or write at indices, and those whose result's size depends on data. */
#include "op_case.h"

static void gather_refuses_what_is_out_of_range(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(2, 3), NULL);
    oct_value *ix = constant(f, OCT_DTYPE_I32, DIMS(2, 1), (double[]){-1, 2});
    oct_node *n = NODE(f, &oct_op_gather, 1, x, ix);

    assert_refuses(n, OCT_ERR_SHAPE, "index 2 is outside [-2, 2)");
    assert_ok(f->ctx, oct_node_set_int(n, "axis", -1));
    assert_gives(n, DIMS(2, 2, 1), (float[]){2, 2, 5, 5});
    assert_refuses(NODE(f, &oct_op_gather_elements, 1, x, INTS(f, 0)), OCT_ERR_SHAPE, "rank");
    assert_refuses(NODE(f, &oct_op_gather_nd, 1, x, INTS(f, 0, 3)), OCT_ERR_SHAPE, "index 3");
    assert_gives(NODE(f, &oct_op_gather_nd, 1, x, INTS(f, -1, 1)), SCALAR, (float[]){4});
    assert_refuses(NODE(f, &oct_op_gather_nd, 1, x, INTS(f, 0, 0, 0)), OCT_ERR_SHAPE, "tuples");
}

static void gather_elements_may_be_smaller_than_the_data(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(3, 3), NULL);
    oct_value *ix = constant(f, OCT_DTYPE_I64, DIMS(2, 2), (double[]){1, 0, -1, 0});
    oct_node *n = NODE(f, &oct_op_gather_elements, 1, x, ix);

    assert_gives(n, DIMS(2, 2), (float[]){3, 1, 6, 1});
    ix = constant(f, OCT_DTYPE_I64, DIMS(1, 4), (double[]){0, 0, 0, 0});
    assert_refuses(NODE(f, &oct_op_gather_elements, 1, x, ix), OCT_ERR_SHAPE, "4 indices");
}

static void scatter_reduces_in_every_type(void **state)
{
    static const oct_dtype types[] = {OCT_DTYPE_F32, OCT_DTYPE_F16, OCT_DTYPE_F64, OCT_DTYPE_I8,
                                      OCT_DTYPE_U8,  OCT_DTYPE_I64, OCT_DTYPE_BF16};
    static const struct {
        const char *word;
        float want[3];
    } cases[] = {
        {"add", {10, 2, 6}},
        {"mul", {20, 2, 9}},
        {"max", {5, 2, 3}},
        {"min", {1, 2, 3}},
    };
    fixture *f = *state;

    for (size_t t = 0; t < OCT_COUNT(types); t++)
        for (size_t i = 0; i < OCT_COUNT(cases); i++) {
            oct_value *x = constant(f, types[t], DIMS(3), (double[]){1, 2, 3});
            oct_value *u = constant(f, types[t], DIMS(3), (double[]){5, 3, 4});
            oct_node *n = NODE(f, &oct_op_scatter_elements, 1, x, INTS(f, 0, -1, 0), u);

            assert_ok(f->ctx, oct_node_set_str(n, "reduction", cases[i].word));
            assert_gives(n, DIMS(3), cases[i].want);
        }
}

static void scatter_checks_shapes_and_indices(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(2, 2), NULL);
    oct_value *u = constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){8, 9});
    oct_value *ix = constant(f, OCT_DTYPE_I64, DIMS(1, 1), (double[]){-1});
    oct_value *bad = constant(f, OCT_DTYPE_I64, DIMS(1, 1), (double[]){2});
    oct_value *one = constant(f, OCT_DTYPE_F32, DIMS(1, 2), (double[]){8, 9});
    oct_node *n = NODE(f, &oct_op_scatter_nd, 1, x, ix, one);

    assert_gives(n, DIMS(2, 2), (float[]){0, 1, 8, 9});
    assert_refuses(NODE(f, &oct_op_scatter_nd, 1, x, bad, one), OCT_ERR_SHAPE, "index 2");
    assert_refuses(NODE(f, &oct_op_scatter_nd, 1, x, ix, u), OCT_ERR_SHAPE, "updates");
    assert_refuses(NODE(f, &oct_op_scatter_elements, 1, x, ix, one), OCT_ERR_SHAPE, "updates");
    assert_ok(f->ctx, oct_node_set_str(n, "reduction", "average"));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "average");
}

static void one_hot_ignores_what_is_out_of_range(void **state)
{
    fixture *f = *state;
    oct_value *ix = constant(f, OCT_DTYPE_F32, DIMS(3), (double[]){1, -1, 7});
    oct_value *depth = constant(f, OCT_DTYPE_F32, SCALAR, (double[]){3});
    oct_value *v = constant(f, OCT_DTYPE_I8, DIMS(2), (double[]){2, 5});
    oct_node *n = NODE(f, &oct_op_one_hot, 1, ix, depth, v);

    assert_ok(f->ctx, oct_node_set_int(n, "axis", 0));
    assert_gives(n, DIMS(3, 3), (float[]){2, 2, 2, 5, 2, 2, 2, 5, 2});
    depth = constant(f, OCT_DTYPE_F32, SCALAR, (double[]){-3});
    assert_refuses(NODE(f, &oct_op_one_hot, 1, ix, depth, v), OCT_ERR_SHAPE, "depth");
}

static void unique_knows_nan_and_large_integers(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(6), (double[]){2, NAN, 1, NAN, 2, -0.0});
    oct_node *n = NODE(f, &oct_op_unique, 4, x);
    oct_tensor *out[4] = {NULL};

    assert_ok(f->ctx, evaluate(n, out));
    assert_all_close(out[0], (float[]){0, 1, 2, NAN}, 4, 0);
    assert_all_close(out[1], (float[]){5, 2, 0, 1}, 4, 0);
    assert_all_close(out[2], (float[]){2, 3, 1, 3, 2, 0}, 6, 0);
    assert_all_close(out[3], (float[]){1, 1, 2, 2}, 4, 0);
    for (int i = 0; i < 4; i++)
        oct_tensor_unref(out[i]);
    n = NODE(f, &oct_op_unique, 1, INTS(f, INT64_MAX, -1, INT64_MAX - 1, INT64_MIN, -1));
    assert_ok(f->ctx, evaluate(n, out));
    assert_int_equal(oct_tensor_len(out[0]), 4);
    assert_true(oct_tensor_get_i64(out[0], 2) == INT64_MAX - 1);
    oct_tensor_unref(out[0]);
}

static void compress_and_non_zero_of_nothing(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(2, 3), NULL);
    oct_value *none = constant(f, OCT_DTYPE_BOOL, DIMS(2), (double[]){0, 0});
    oct_value *zero = constant(f, OCT_DTYPE_I8, SCALAR, (double[]){0});
    oct_value *one = constant(f, OCT_DTYPE_I8, SCALAR, (double[]){-3});

    assert_gives(NODE(f, &oct_op_compress, 1, x, none), DIMS(0), NULL);
    assert_gives(NODE(f, &oct_op_non_zero, 1, x), DIMS(2, 5),
                 (float[]){0, 0, 1, 1, 1, 1, 2, 0, 1, 2});
    assert_gives(NODE(f, &oct_op_non_zero, 1, zero), DIMS(0, 0), NULL);
    assert_gives(NODE(f, &oct_op_non_zero, 1, one), DIMS(0, 1), NULL);
}

static void nms_survives_odd_boxes(void **state)
{
    fixture *f = *state;
    const double boxes[] = {0, 0, 1, 1, 1, 1, 0, 0, NAN, 0, 1, 1, 5, 5, 5, 5, 5, 5, 6, 6};
    const double scores[] = {0.5, 0.5, 0.9, NAN, 0.7};
    oct_value *b = constant(f, OCT_DTYPE_F32, DIMS(1, 5, 4), boxes);
    oct_value *s = constant(f, OCT_DTYPE_F32, DIMS(1, 1, 5), scores);
    oct_value *max = constant(f, OCT_DTYPE_I64, SCALAR, (double[]){10});
    oct_value *iou = constant(f, OCT_DTYPE_F32, SCALAR, (double[]){0.5});
    oct_node *n = NODE(f, &oct_op_non_max_suppression, 1, b, s, max, iou);

    assert_gives(n, DIMS(3, 3), (float[]){0, 0, 2, 0, 0, 4, 0, 0, 0});
    assert_gives(NODE(f, &oct_op_non_max_suppression, 1, b, s), DIMS(0, 3), NULL);
    iou = constant(f, OCT_DTYPE_F32, SCALAR, (double[]){NAN});
    assert_refuses(NODE(f, &oct_op_non_max_suppression, 1, b, s, max, iou), OCT_ERR_SHAPE, "iou");
}

static void sampling_far_outside_is_harmless(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(1, 1, 2, 2), NULL);
    oct_value *grid =
        constant(f, OCT_DTYPE_F32, DIMS(1, 1, 3, 2), (double[]){NAN, INFINITY, -1e30, 1e30, 0, 0});
    oct_node *n = NODE(f, &oct_op_grid_sample, 1, x, grid);

    assert_gives(n, DIMS(1, 1, 1, 3), (float[]){0, 0, 1.5});
    assert_ok(f->ctx, oct_node_set_str(n, "padding_mode", "border"));
    assert_gives(n, DIMS(1, 1, 1, 3), (float[]){2, 2, 1.5});
    /* 0.3 beyond the border's pixel: on the border, as ONNX says (docs/differences.md) */
    grid = constant(f, OCT_DTYPE_F32, DIMS(1, 1, 1, 2), (double[]){-1.3, 0.5});
    n = NODE(f, &oct_op_grid_sample, 1, x, grid);
    assert_ok(f->ctx, oct_node_set_str(n, "mode", "cubic"));
    assert_ok(f->ctx, oct_node_set_str(n, "padding_mode", "border"));
    assert_gives(n, DIMS(1, 1, 1, 1), (float[]){2});
    oct_value *rois = constant(f, OCT_DTYPE_F32, DIMS(1, 4), (double[]){-1e30, 0, 1e30, 1});
    n = NODE(f, &oct_op_roi_align, 1, x, rois, INTS(f, 0));
    assert_refuses(n, OCT_ERR_SHAPE, "region");
    rois = constant(f, OCT_DTYPE_F32, DIMS(1, 4), (double[]){0, 0, 1, 1});
    assert_refuses(NODE(f, &oct_op_roi_align, 1, x, rois, INTS(f, 1)), OCT_ERR_SHAPE, "picture");
}

static void resize_checks_what_it_is_told(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(1, 4), NULL);
    oct_value *scales = constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){1, 0.5});
    oct_value *wild = constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){1, 1e30});
    oct_value *nan = constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){NAN, 1});
    oct_node *n = NODE(f, &oct_op_resize, 1, x, NULL, scales);

    assert_gives(n, DIMS(1, 2), (float[]){0, 2});
    assert_ok(f->ctx, oct_node_set_str(n, "mode", "linear"));
    assert_gives(n, DIMS(1, 2), (float[]){0.5, 2.5});
    assert_gives(NODE(f, &oct_op_resize, 1, x, NULL, NULL, INTS(f, 2, 2)), DIMS(2, 2),
                 (float[]){0, 2, 0, 2});
    assert_refuses(NODE(f, &oct_op_resize, 1, x, NULL, wild), OCT_ERR_SHAPE, "scale");
    assert_refuses(NODE(f, &oct_op_resize, 1, x, NULL, nan), OCT_ERR_SHAPE, "scale");
    assert_refuses(NODE(f, &oct_op_resize, 1, x), OCT_ERR_FORMAT, "neither");
    assert_refuses(NODE(f, &oct_op_resize, 1, x, NULL, NULL, INTS(f, 1, -4)), OCT_ERR_SHAPE,
                   "size");
    assert_infers(NODE(f, &oct_op_resize, 1, x, NULL, unknown(f, OCT_DTYPE_F32, DIMS(2))),
                  DIMS(-1, -1));
    assert_infers(NODE(f, &oct_op_resize, 1, unknown(f, OCT_DTYPE_F32, DIMS(-1, 4)), NULL, scales),
                  DIMS(-1, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gather_refuses_what_is_out_of_range, setup, teardown),
        cmocka_unit_test_setup_teardown(gather_elements_may_be_smaller_than_the_data, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(scatter_reduces_in_every_type, setup, teardown),
        cmocka_unit_test_setup_teardown(scatter_checks_shapes_and_indices, setup, teardown),
        cmocka_unit_test_setup_teardown(one_hot_ignores_what_is_out_of_range, setup, teardown),
        cmocka_unit_test_setup_teardown(unique_knows_nan_and_large_integers, setup, teardown),
        cmocka_unit_test_setup_teardown(compress_and_non_zero_of_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(nms_survives_odd_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(sampling_far_outside_is_harmless, setup, teardown),
        cmocka_unit_test_setup_teardown(resize_checks_what_it_is_told, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
