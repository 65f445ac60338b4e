/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling with and without windows, and its reverse. */
#include "op_case.h"

#include <float.h>

#define F32 OCT_DTYPE_F32

static void set_window(oct_node *n, int64_t kernel, int64_t stride, int64_t pad)
{
    oct_ctx *ctx = n->graph->ctx;

    assert_ok(ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){kernel, kernel}, 2));
    assert_ok(ctx, oct_node_set_ints(n, "strides", (int64_t[]){stride, stride}, 2));
    assert_ok(ctx, oct_node_set_ints(n, "pads", (int64_t[]){pad, pad, pad, pad}, 4));
}

static void max_pool_tells_where(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 2, 2, 2), (double[]){1, 4, 3, 2, 5, 5, 9, NAN});
    oct_node *n = NODE(f, &oct_op_max_pool, 2, x);
    oct_tensor *out[2] = {NULL};

    set_window(n, 2, 2, 0);
    for (int column_major = 0; column_major < 2; column_major++) {
        assert_ok(f->ctx, oct_node_set_int(n, "storage_order", column_major));
        assert_ok(f->ctx, evaluate(n, out));
        assert_all_close(out[0], (float[]){4, NAN}, 2, 0);
        assert_all_close(out[1], column_major ? (float[]){2, 7} : (float[]){1, 7}, 2, 0);
        oct_tensor_unref(out[0]);
        oct_tensor_unref(out[1]);
    }
}

static void max_pool_takes_bytes(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_I8, DIMS(1, 1, 2, 2), (double[]){-7, -5, -128, -9});
    oct_node *n = NODE(f, &oct_op_max_pool, 1, x);

    set_window(n, 1, 1, 1); /* windows that see nothing give the lowest number */
    assert_gives(n, DIMS(1, 1, 4, 4),
                 (float[]){-128, -128, -128, -128, -128, -7, -5, -128, -128, -128, -9, -128, -128,
                           -128, -128, -128});
}

/* As oneDNN's kernel and ONNX Runtime: no infinity. */
static void max_pool_of_padding_is_finite(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 1, 1, 1), (double[]){5});
    oct_node *n = NODE(f, &oct_op_max_pool, 1, x);

    set_window(n, 1, 1, 1);
    assert_gives(n, DIMS(1, 1, 3, 3),
                 (float[]){-FLT_MAX, -FLT_MAX, -FLT_MAX, -FLT_MAX, 5, -FLT_MAX, -FLT_MAX, -FLT_MAX,
                           -FLT_MAX});
}

static void average_counts_padding_on_request(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 1, 2, 2), (double[]){4, 4, 4, 4});
    oct_node *n = NODE(f, &oct_op_average_pool, 1, x);

    set_window(n, 2, 2, 1);
    assert_gives(n, DIMS(1, 1, 2, 2), (float[]){4, 4, 4, 4});
    assert_ok(f->ctx, oct_node_set_int(n, "count_include_pad", 1));
    assert_gives(n, DIMS(1, 1, 2, 2), (float[]){1, 1, 1, 1});
}

static void what_ceil_mode_adds_is_not_padding(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 1, 3, 3), (double[]){4, 4, 4, 4, 4, 4, 4, 4, 4});
    oct_node *n = NODE(f, &oct_op_average_pool, 1, x);

    set_window(n, 2, 2, 0);
    assert_ok(f->ctx, oct_node_set_int(n, "ceil_mode", 1));
    assert_ok(f->ctx, oct_node_set_int(n, "count_include_pad", 1));
    assert_gives(n, DIMS(1, 1, 2, 2), (float[]){4, 4, 4, 4});
}

static void lp_pool_takes_roots(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F64, DIMS(1, 1, 1, 2), (double[]){3, -4});
    oct_node *n = NODE(f, &oct_op_lp_pool, 1, x), *g = NODE(f, &oct_op_global_lp_pool, 1, x);

    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){1, 2}, 2));
    assert_gives(n, DIMS(1, 1, 1, 1), (float[]){5});
    assert_gives(g, DIMS(1, 1, 1, 1), (float[]){5});
    assert_ok(f->ctx, oct_node_set_int(n, "p", 1));
    assert_ok(f->ctx, oct_node_set_int(g, "p", 1));
    assert_gives(n, DIMS(1, 1, 1, 1), (float[]){7});
    assert_gives(g, DIMS(1, 1, 1, 1), (float[]){7});
    assert_ok(f->ctx, oct_node_set_int(n, "p", 3));
    assert_gives(n, DIMS(1, 1, 1, 1), (float[]){4.4979414f});
    assert_ok(f->ctx, oct_node_set_int(n, "p", 0));
    assert_refuses(n, OCT_ERR_UNSUPPORTED, "p is 0");
    assert_ok(f->ctx, oct_node_set_int(g, "p", -1));
    assert_refuses(g, OCT_ERR_UNSUPPORTED, "p is -1");
}

static void global_pools_leave_one_pixel(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F16, DIMS(1, 2, 3), NULL);
    oct_value *open = unknown(f, F32, DIMS(-1, 4, -1, -1));

    assert_gives(NODE(f, &oct_op_global_average_pool, 1, x), DIMS(1, 2, 1), (float[]){1, 4});
    assert_gives(NODE(f, &oct_op_global_max_pool, 1, x), DIMS(1, 2, 1), (float[]){2, 5});
    assert_infers(NODE(f, &oct_op_global_max_pool, 1, open), DIMS(-1, 4, 1, 1));
    assert_refuses(NODE(f, &oct_op_global_max_pool, 1, constant(f, F32, DIMS(3), NULL)),
                   OCT_ERR_SHAPE, "1 dims");
}

static void unpooling_puts_elements_back(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 1, 1, 2), (double[]){7, 8});
    oct_value *at = INTS(f, 1, 6);
    oct_value *index = constant(f, OCT_DTYPE_I64, DIMS(1, 1, 1, 2), (double[]){1, 6});
    oct_node *n = NODE(f, &oct_op_max_unpool, 1, x, index);

    set_window(n, 2, 2, 0);
    assert_gives(n, DIMS(1, 1, 2, 4), (float[]){0, 7, 0, 0, 0, 0, 8, 0});
    n = NODE(f, &oct_op_max_unpool, 1, x, index, INTS(f, 1, 1, 3, 3));
    set_window(n, 2, 2, 0);
    assert_gives(n, DIMS(1, 1, 3, 3), (float[]){0, 7, 0, 0, 0, 8, 0, 0, 0});
    n = NODE(f, &oct_op_max_unpool, 1, x,
             constant(f, OCT_DTYPE_I64, DIMS(1, 1, 1, 2), (double[]){1, 8}));
    set_window(n, 2, 2, 0);
    assert_refuses(n, OCT_ERR_SHAPE, "index 8 is outside");
    n = NODE(f, &oct_op_max_unpool, 1, x, at);
    set_window(n, 2, 2, 0);
    assert_refuses(n, OCT_ERR_SHAPE, "differ in shape");
}

static void a_pool_needs_its_kernel(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 1, 2, 2), NULL);
    oct_node *n = NODE(f, &oct_op_max_pool, 1, x);

    assert_refuses(n, OCT_ERR_FORMAT, "kernel_shape is missing");
    set_window(n, INT32_MAX, 1, 0);
    assert_refuses(n, OCT_ERR_SHAPE, "larger than the padded input");
    set_window(n, 1, 1, INT32_MAX);
    assert_refuses(n, OCT_ERR_SHAPE, "too large");
}

static void columns_add_up_to_images(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 2, 2), (double[]){1, 2, 3, 4});
    oct_value *image = INTS(f, 3), *block = INTS(f, 2);
    oct_node *n = NODE(f, &oct_op_col2im, 1, x, image, block);

    assert_gives(n, DIMS(1, 1, 3), (float[]){1, 5, 4});
    assert_gives(
        NODE(f, &oct_op_col2im, 1, constant(f, OCT_DTYPE_I32, DIMS(1, 2, 2), NULL), image, block),
        DIMS(1, 1, 3), (float[]){0, 3, 3});
    assert_refuses(NODE(f, &oct_op_col2im, 1, x, image, INTS(f, 4)), OCT_ERR_SHAPE, "larger");
    assert_refuses(NODE(f, &oct_op_col2im, 1, x, image, INTS(f, 1, 1)), OCT_ERR_SHAPE, "block 2");
    assert_refuses(NODE(f, &oct_op_col2im, 1, x, INTS(f, 5), block), OCT_ERR_SHAPE, "4 columns");
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (int64_t[]){0}, 1));
    assert_refuses(n, OCT_ERR_SHAPE, "strides[0] is 0");
}

static void grids_cover_the_unit_square(void **state)
{
    fixture *f = *state;
    oct_value *theta = constant(f, F32, DIMS(1, 2, 3), (double[]){1, 0, 0, 0, 1, 0.5});
    oct_value *size = INTS(f, 1, 1, 1, 2);
    oct_node *n = NODE(f, &oct_op_affine_grid, 1, theta, size);

    assert_gives(n, DIMS(1, 1, 2, 2), (float[]){-0.5f, 0.5f, 0.5f, 0.5f});
    assert_ok(f->ctx, oct_node_set_int(n, "align_corners", 1));
    assert_gives(n, DIMS(1, 1, 2, 2), (float[]){-1, 0.5f, 1, 0.5f});
    assert_refuses(NODE(f, &oct_op_affine_grid, 1, theta, INTS(f, 1, 1, 1)), OCT_ERR_SHAPE,
                   "size has 3");
    assert_refuses(NODE(f, &oct_op_affine_grid, 1, theta, INTS(f, 2, 1, 1, 1)), OCT_ERR_SHAPE,
                   "theta");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(max_pool_tells_where, setup, teardown),
        cmocka_unit_test_setup_teardown(max_pool_takes_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(max_pool_of_padding_is_finite, setup, teardown),
        cmocka_unit_test_setup_teardown(average_counts_padding_on_request, setup, teardown),
        cmocka_unit_test_setup_teardown(what_ceil_mode_adds_is_not_padding, setup, teardown),
        cmocka_unit_test_setup_teardown(lp_pool_takes_roots, setup, teardown),
        cmocka_unit_test_setup_teardown(global_pools_leave_one_pixel, setup, teardown),
        cmocka_unit_test_setup_teardown(unpooling_puts_elements_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pool_needs_its_kernel, setup, teardown),
        cmocka_unit_test_setup_teardown(columns_add_up_to_images, setup, teardown),
        cmocka_unit_test_setup_teardown(grids_cover_the_unit_square, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
