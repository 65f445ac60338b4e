/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of operators that read or write pixels at given places. */
#include "tests/unit/grad_case.h"

static void grid_samples(void **state)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const pads[] = {"zeros", "border", "reflection"};
    static const grad_case more[] = {
        GRAD_CASE(grid_sample, "2x2x3x4x3 2x2x2x3x3", NULL),
        GRAD_CASE(grid_sample, "1x2x6 1x5x1", NULL),
        GRAD_CASE(grid_sample, "2x2x5x4 =2x2x3x2", NULL),
        GRAD_CASE(grid_sample, "=2x2x5x4 2x2x3x2", "mode=cubic"),
    };

    (void)state;
    for (size_t m = 0; m < OCT_COUNT(modes); m++)
        for (size_t p = 0; p < OCT_COUNT(pads); p++) {
            char attrs[96];
            const grad_case c = GRAD_CASE(grid_sample, "2x2x4x5 2x3x2x2", attrs);

            (void)snprintf(attrs, sizeof(attrs), "mode=%s padding_mode=%s align_corners=%d",
                           modes[m], pads[p], (int)((m + p) % 2));
            check_grad(&c, 2 + m);
            attrs[strlen(attrs) - 1] ^= 1;
            check_grad(&c, 20 + p);
        }
    check_grads(more);
}

static void grids_and_columns(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(affine_grid, "2x2x3 i:2,3,4,5", "align_corners=0..1"),
        GRAD_CASE(affine_grid, "2x3x4 i:2,1,3,2,4", "align_corners=0..1"),
        GRAD_CASE(affine_grid, "1x2x3 i:1,1,1,4", "align_corners=1"),
        GRAD_CASE(col2im, "1x4x12 i:4,5 i:2,2", NULL),
        GRAD_CASE(col2im, "2x8x6 i:4,5 i:2,2", "strides=2,2 pads=1,1,0,0"),
        GRAD_CASE(col2im, "1x6x12 i:5,6 i:3,2", "dilations=2,3 pads=1,1,1,2 strides=2,1"),
        GRAD_CASE(col2im, "2x3x4 i:6 i:3", NULL),
    };

    (void)state;
    check_grads(cases);
}

static void deformed(void **state)
{
    static const grad_case cases[] = {
        {&oct_op_deform_conv, "2x2x4x5 3x2x2x2 2x8x3x4 3", NULL, 0, -1.5, 1.5},
        {&oct_op_deform_conv, "1x4x5x5 4x2x3x3 1x36x3x3 4 1x18x3x3",
         "group=2 offset_group=2 strides=2,2 pads=1,1,1,1", 0, -1.5, 1.5},
        {&oct_op_deform_conv, "2x2x5x4 2x2x2x1 2x4x4x3 - 2x2x4x3",
         "strides=1,2 pads=1,1,0,0 dilations=2,1", 0, -.9, .9},
    };

    (void)state;
    check_grads(cases);
}

static void unpooling(void **state)
{
    static const double x[] = {1, 2, 3, 4}, w[] = {.5, 1, 2, 4, 8, 16, 32, 64, 128};
    static const double places[] = {8, 0, 4, 5}, want[] = {128, .5, 8, 16};
    fixture *f = *state;
    const int64_t in[] = {1, 1, 2, 2}, out[] = {1, 1, 3, 3};
    oct_value *v = graph_input(f, "x", OCT_DTYPE_F64, 4, in), *dx, *y;
    oct_value *index = oct_value_const(f->g, NULL, tensor_of(f->ctx, OCT_DTYPE_I64, 4, in, places));
    oct_value *by = oct_value_const(f->g, NULL, tensor_of(f->ctx, OCT_DTYPE_F64, 4, out, w));
    oct_tensor *t = tensor_of(f->ctx, OCT_DTYPE_F64, 4, in, x), *got = NULL;
    oct_node *n = oct_emit_node(&f->b, &oct_op_max_unpool, (oct_value *[]){v, index}, 2, 1), *sum;

    oct_emit_ints(&f->b, n, "kernel_shape", (int64_t[]){2, 2}, 2);
    y = oct_emit(&f->b, &oct_op_mul, oct_emitted(&f->b, n), by, NULL);
    sum = oct_emit_node(&f->b, &oct_op_reduce_sum, &y, 1, 1);
    oct_emit_int(&f->b, sum, "keepdims", 0);
    assert_ok(f->ctx, oct_grad(f->g, oct_emitted(&f->b, sum), &v, 1, &dx));
    assert_ok(f->ctx, oct_graph_add_output(f->g, dx));
    assert_ok(f->ctx, oct_graph_eval(f->g, &t, &got, NULL));
    assert_dims(&got->type, 4, in);
    for (int64_t i = 0; i < 4; i++)
        assert_true(oct_tensor_get_f64(got, i) == want[i]);
    oct_tensor_unref(t);
    oct_tensor_unref(got);
}

/* The reference kernel computes in f32; but averages are linear in x: the loss is <dx, x>. */
static void regions(void **state)
{
    static const char *const coords[] = {"half_pixel", "output_half_pixel"};
    static const double rois[] = {1, 2, 9, 7, -3, 0, 30, 4, 5, 5, 5.5, 6, 0, 0, 12, 12};

    (void)state;
    for (int k = 0; k < 8; k++) {
        const oct_type map = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){2, 2, 7, 8});
        oct_tensor *out[2] = {0};
        void *mine = NULL;
        double dot = 0;
        fixture *f;

        assert_int_equal(setup(&mine), 0);
        f = mine;
        grad_test t = {.f = f, .dtype = OCT_DTYPE_F32};
        oct_rng_init(&t.rng, (uint64_t)k);
        oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, map.dim), *dx, *loss;
        oct_tensor *in = grad_random(&t, &map, -2, 2);
        oct_value *boxes = oct_value_const(
            f->g, NULL, tensor_of(f->ctx, OCT_DTYPE_F32, 2, (int64_t[]){4, 4}, rois));
        oct_node *n = oct_emit_node(
            &f->b, &oct_op_roi_align,
            (oct_value *[]){x, boxes, oct_ints(&f->b, (int64_t[]){0, 1, 1, 0}, 4)}, 3, 1);

        oct_emit_str(&f->b, n, "coordinate_transformation_mode", coords[k % 2]);
        oct_emit_int(&f->b, n, "output_height", 3);
        oct_emit_int(&f->b, n, "output_width", 2);
        oct_emit_int(&f->b, n, "sampling_ratio", k / 2 % 2 ? 0 : 2);
        oct_emit_f32(&f->b, n, "spatial_scale", k < 4 ? 1 : .5f);
        assert_non_null(oct_emitted(&f->b, n));
        loss = grad_loss(&t, n);
        assert_ok(f->ctx, oct_grad(f->g, loss, &x, 1, &dx));
        assert_ok(f->ctx, oct_graph_add_output(f->g, loss));
        assert_ok(f->ctx, oct_graph_add_output(f->g, dx));
        assert_ok(f->ctx, oct_graph_eval(f->g, &in, out, NULL));
        for (int64_t i = 0; i < oct_tensor_len(in); i++)
            dot += oct_tensor_get_f64(in, i) * oct_tensor_get_f64(out[1], i);
        assert_true(fabs(dot) > 1e-3);
        assert_true(fabs(dot - oct_tensor_get_f64(out[0], 0)) < 1e-5 * (1 + fabs(dot)));
        for (int i = 0; i < 2; i++)
            oct_tensor_unref(out[i]);
        oct_tensor_unref(in);
        assert_int_equal(teardown(&mine), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(grid_samples, setup, teardown),
        cmocka_unit_test_setup_teardown(grids_and_columns, setup, teardown),
        cmocka_unit_test_setup_teardown(deformed, setup, teardown),
        cmocka_unit_test_setup_teardown(regions, setup, teardown),
        cmocka_unit_test_setup_teardown(unpooling, setup, teardown),
    };

    return run_test_group(tests);
}
