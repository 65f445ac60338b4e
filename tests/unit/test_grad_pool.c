/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of pooling and of resampling. */
#include "tests/unit/grad_case.h"

static void max_pools(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(max_pool, "2x3x6x7", "kernel_shape=2,2 strides=2,2"),
        GRAD_CASE(max_pool, "2x2x7x6", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"),
        GRAD_CASE(max_pool, "1x2x7x6", "kernel_shape=3,2 strides=2,3 pads=1,0,0,1 ceil_mode=1"),
        GRAD_CASE(max_pool, "1x2x9x8", "kernel_shape=3,2 dilations=2,3 strides=1,2"),
        GRAD_CASE(max_pool, "1x2x7x8", "kernel_shape=3,2 auto_pad=SAME_UPPER strides=2,2"),
        GRAD_CASE(max_pool, "1x2x7x8", "kernel_shape=4,3 auto_pad=SAME_LOWER strides=2,2"),
        GRAD_CASE(max_pool, "1x2x5x5", "kernel_shape=5,5 pads=2,2,2,2"),
        GRAD_CASE(max_pool, "2x3x9", "kernel_shape=3 strides=2 pads=1,0"),
        GRAD_CASE(max_pool, "1x2x4x5x4", "kernel_shape=2,3,2 strides=2,1,2"),
        {&oct_op_max_pool, "1x2x5x6", "kernel_shape=2,2", 2, 0, 0},
        GRAD_CASE(global_max_pool, "2x3x4x5", NULL),
        GRAD_CASE(global_max_pool, "2x3x7", NULL),
        GRAD_CASE(global_max_pool, "2x3", NULL),
    };

    (void)state;
    check_grads(cases);
}

static void average_pools(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(average_pool, "2x3x6x7", "kernel_shape=2,2 strides=2,2"),
        GRAD_CASE(average_pool, "2x2x7x6", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"),
        GRAD_CASE(average_pool, "2x2x7x6",
                  "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 count_include_pad=1"),
        GRAD_CASE(average_pool, "1x2x8x7",
                  "kernel_shape=3,2 strides=3,2 pads=1,0,0,1 ceil_mode=1 count_include_pad=0..1"),
        GRAD_CASE(average_pool, "1x2x9x8", "kernel_shape=3,2 dilations=2,3 pads=1,2,0,1"),
        GRAD_CASE(average_pool, "1x2x7x8", "kernel_shape=3,2 auto_pad=SAME_UPPER strides=2,2"),
        GRAD_CASE(average_pool, "1x2x7x8",
                  "kernel_shape=4,3 auto_pad=SAME_LOWER strides=2,2 count_include_pad=1"),
        GRAD_CASE(average_pool, "2x3x9", "kernel_shape=3 strides=2 pads=1,0"),
        GRAD_CASE(average_pool, "1x2x4x5x4", "kernel_shape=2,3,2 strides=2,1,2"),
        GRAD_CASE(global_average_pool, "2x3x4x5", NULL),
        GRAD_CASE(global_average_pool, "2x3x7", NULL),
        GRAD_CASE(global_average_pool, "2x3", NULL),
    };

    (void)state;
    check_grads(cases);
}

static void norms(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(lp_pool, "2x3x6x7", "kernel_shape=2,2 strides=2,2"),
        GRAD_CASE(lp_pool, "1x2x7x6", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 p=1..4"),
        GRAD_CASE(lp_pool, "1x2x8x7", "kernel_shape=3,2 strides=3,2 pads=1,0,0,1 ceil_mode=1 p=3"),
        GRAD_CASE(lp_pool, "1x2x9", "kernel_shape=3 dilations=2 auto_pad=SAME_LOWER p=3"),
        GRAD_CASE(global_lp_pool, "2x3x4x5", "p=1..4"),
        GRAD_CASE(global_lp_pool, "2x3x6", NULL),
    };

    (void)state;
    check_grads(cases);
}

/* Equal elements: the first of them gets all. Zeros under a norm: no NaN. */
static void ties_and_zeros(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 3, (int64_t[]){1, 1, 4}), *y, *z, *dx;
    oct_tensor *t = tensor_of(f->ctx, OCT_DTYPE_F32, 3, (int64_t[]){1, 1, 4}, (double[4]){0}), *got;
    oct_node *pool = oct_emit_node(&f->b, &oct_op_max_pool, &x, 1, 1), *sum;
    const double want[] = {1, 1, 1, 0};

    oct_emit_ints(&f->b, pool, "kernel_shape", (int64_t[]){2}, 1);
    y = oct_emitted(&f->b, pool);
    z = oct_emit(&f->b, &oct_op_global_lp_pool, x, NULL, NULL);
    sum = oct_emit_node(&f->b, &oct_op_reduce_sum,
                        (oct_value *[]){oct_emit(&f->b, &oct_op_add, y, z, NULL)}, 1, 1);
    oct_emit_int(&f->b, sum, "keepdims", 0);
    assert_ok(f->ctx, oct_grad(f->g, oct_emitted(&f->b, sum), &x, 1, &dx));
    assert_ok(f->ctx, oct_graph_add_output(f->g, dx));
    assert_ok(f->ctx, oct_graph_eval(f->g, &t, &got, NULL));
    for (int64_t i = 0; i < 4; i++)
        assert_true(oct_tensor_get_f64(got, i) == want[i]);
    oct_tensor_unref(t);
    oct_tensor_unref(got);
}

#define RESIZE(in, attrs) GRAD_CASE(resize, in, attrs)

static void nearest(void **state)
{
    static const char *const coords[] = {"half_pixel",         "half_pixel_symmetric",
                                         "pytorch_half_pixel", "align_corners",
                                         "asymmetric",         "tf_half_pixel_for_nn"};
    static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                         "ceil"};
    static const grad_case more[] = {
        RESIZE("1x2x3x4 - f:1,1,2,2", "coordinate_transformation_mode=asymmetric"),
        RESIZE("1x2x3x4 - - i:1,2,7,5", NULL),
        RESIZE("2x3x5x4 - - i:8,3", "axes=2,3"),
        RESIZE("2x3x5x4 - - i:8,3", "axes=-1,-2"),
        RESIZE("2x3x5 - f:2,1,1.4", NULL),
        RESIZE("1x2x3x4x5 - f:1,1,2,.5,1", NULL),
        GRAD_CASE(upsample, "1x2x3x4 f:1,1,2,2.5", NULL),
    };

    (void)state;
    for (size_t i = 0; i < OCT_COUNT(coords); i++)
        for (size_t k = 0; k < OCT_COUNT(rounds); k++) {
            char attrs[128];
            const grad_case c = RESIZE("1x1x4x3 - f:1,1,1.75,.75", attrs);

            (void)snprintf(attrs, sizeof(attrs),
                           "coordinate_transformation_mode=%s nearest_mode=%s", coords[i],
                           rounds[k]);
            check_grad(&c, 3);
        }
    check_grads(more);
}

static void interpolated(void **state)
{
    static const char *const coords[] = {"half_pixel",         "half_pixel_symmetric",
                                         "pytorch_half_pixel", "align_corners",
                                         "asymmetric",         "tf_half_pixel_for_nn"};
    static const grad_case more[] = {
        RESIZE("1x2x3x4 - - i:1,2,7,5", "mode=linear"),
        RESIZE("1x2x5x4 - - i:8,3", "mode=linear axes=2,3"),
        RESIZE("2x5 - - i:3,8", "mode=linear"),
        RESIZE("1x2x7 - - i:1,2,4", "mode=linear antialias=1"),
        RESIZE("1x1x3x4x5 - f:1,1,2,.5,1.3", "mode=linear"),
        RESIZE("1x2x7x6 - f:1,1,.4,.6", "mode=linear antialias=1"),
        RESIZE("1x2x7x6 - f:1,1,.4,1.6", "mode=cubic antialias=1"),
        RESIZE("1x2x5x6 - f:1,1,1.4,1.6", "mode=cubic cubic_coeff_a=-.5"),
        RESIZE("1x2x5x6 - f:1,1,1.4,.7", "mode=cubic exclude_outside=1"),
        RESIZE("1x2x5x6 - - i:9,4", "mode=linear axes=2,3 keep_aspect_ratio_policy=not_larger"),
        RESIZE("1x2x5x6 - - i:9,4", "mode=linear axes=2,3 keep_aspect_ratio_policy=not_smaller"),
        RESIZE("1x2x5x6 f:0,0,.2,.1,1,1,.7,1.4 f:1,1,1.4,1.5",
               "mode=linear coordinate_transformation_mode=tf_crop_and_resize"),
        RESIZE("1x2x5x6 f:.2,-.3,.7,1.4 - i:5,6",
               "axes=2,3 coordinate_transformation_mode=tf_crop_and_resize"),
        GRAD_CASE(upsample, "1x2x3x4 f:1,1,2,2.5", "mode=linear"),
    };

    (void)state;
    for (size_t i = 0; i < OCT_COUNT(coords); i++)
        for (int k = 0; k < 2; k++) {
            char attrs[128];
            const grad_case c = RESIZE("1x1x4x3 - f:1,1,1.75,.75", attrs);

            (void)snprintf(attrs, sizeof(attrs), "coordinate_transformation_mode=%s mode=%s",
                           coords[i], k ? "linear" : "cubic");
            check_grad(&c, 3);
        }
    check_grads(more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(max_pools, setup, teardown),
        cmocka_unit_test_setup_teardown(average_pools, setup, teardown),
        cmocka_unit_test_setup_teardown(norms, setup, teardown),
        cmocka_unit_test_setup_teardown(ties_and_zeros, setup, teardown),
        cmocka_unit_test_setup_teardown(nearest, setup, teardown),
        cmocka_unit_test_setup_teardown(interpolated, setup, teardown),
    };

    return run_test_group(tests);
}
