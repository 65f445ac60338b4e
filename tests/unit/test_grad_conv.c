/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of Conv and ConvTranspose: ranks, groups, strides, dilations, pads. */
#include "tests/unit/grad_case.h"

static void convolutions(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(conv, "2x3x5x6 4x3x3x3 4", "pads=1,1,1,1"),
        GRAD_CASE(conv, "1x2x6x5 3x2x1x1", NULL),
        GRAD_CASE(conv, "2x4x6x5 6x2x3x3 6", "group=2 pads=1,1,1,1 strides=2,2"),
        GRAD_CASE(conv, "1x4x7x6 4x1x3x3 4", "group=4 strides=2,1 pads=1,0,1,2"),
        GRAD_CASE(conv, "1x3x7x6 6x1x3x2", "group=3 dilations=2,3"),
        GRAD_CASE(conv, "2x2x9x8 3x2x3x3 3", "dilations=2,2 strides=3,2 pads=2,0,1,3"),
        GRAD_CASE(conv, "1x2x7x8 3x2x3x2 3", "auto_pad=SAME_UPPER strides=2,3"),
        GRAD_CASE(conv, "1x2x7x8 3x2x4x3 3", "auto_pad=SAME_LOWER strides=2,2"),
        GRAD_CASE(conv, "1x2x8x8 2x2x1x1", "auto_pad=SAME_UPPER strides=3,3"),
        GRAD_CASE(conv, "1x2x7x8 3x2x4x3 3", "auto_pad=VALID strides=2,2"),
        GRAD_CASE(conv, "2x3x9 4x3x3 4", "pads=2,1 strides=2"),
        GRAD_CASE(conv, "2x4x11 4x2x2 4", "group=2 dilations=3 strides=2 pads=0,3"),
        GRAD_CASE(conv, "1x2x4x5x3 3x2x2x3x2 3", "pads=1,1,0,0,1,1 strides=1,2,1"),
        GRAD_CASE(conv, "1x4x5x4x4 4x2x3x2x2", "group=2 dilations=2,1,1 strides=1,2,2"),
        /* Rows and columns at the end that no window reads. */
        GRAD_CASE(conv, "1x1x8x9 2x1x2x3", "strides=3,4"),
        GRAD_CASE(conv, "NxCxHx5 MxCx1x3 M", "pads=0..2,0..2,0..2,0..2 strides=1..3,1..3"),
        /* Only some of the gradients are asked for. */
        GRAD_CASE(conv, "=2x3x5x6 4x3x3x3 =4", "pads=1,1,1,1"),
        GRAD_CASE(conv, "=2x3x5x6 =4x3x3x3 4", "pads=1,1,1,1"),
        GRAD_CASE(conv, "2x3x5x6 =4x3x3x3 =4", "pads=1,1,1,1 strides=2,2"),
    };

    (void)state;
    check_grads(cases);
}

static void transposed(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(conv_transpose, "2x3x4x5 3x2x3x3 2", NULL),
        GRAD_CASE(conv_transpose, "1x4x3x4 4x3x2x2 6", "group=2 strides=2,2"),
        GRAD_CASE(conv_transpose, "1x4x3x4 4x1x3x3 4", "group=4 strides=2,2 pads=1,1,1,1"),
        GRAD_CASE(conv_transpose, "2x2x3x4 2x3x3x3 3",
                  "strides=2,3 pads=1,0,0,2 output_padding=1,2"),
        GRAD_CASE(conv_transpose, "1x2x4x3 2x2x3x2 2", "dilations=2,3 pads=1,1,2,0"),
        /* output_padding beyond the stride, as wide dilations allow: the convolution is cut. */
        GRAD_CASE(conv_transpose, "1x2x4x3 2x2x3x2", "dilations=3,3 output_padding=2,2"),
        GRAD_CASE(conv_transpose, "1x2x4x5 2x2x3x3 2", "strides=2,2 output_shape=8,10"),
        GRAD_CASE(conv_transpose, "1x2x4x5 2x2x3x3 2", "strides=2,2 output_shape=12,13"),
        GRAD_CASE(conv_transpose, "1x2x4x5 2x2x3x3", "auto_pad=SAME_UPPER strides=2,2"),
        GRAD_CASE(conv_transpose, "1x2x4x5 2x2x4x3", "auto_pad=SAME_LOWER strides=3,2"),
        GRAD_CASE(conv_transpose, "1x2x4x5 2x2x1x1", "auto_pad=SAME_UPPER strides=3,2"),
        GRAD_CASE(conv_transpose, "2x3x6 3x2x4 2", "strides=3 pads=1,2"),
        GRAD_CASE(conv_transpose, "1x2x2x3x4 2x2x2x2x3 2", "strides=2,1,2 pads=0,1,1,1,0,1"),
        GRAD_CASE(conv_transpose, "=2x3x4x5 =3x2x3x3 2", NULL),
    };

    (void)state;
    check_grads(cases);
}

/* Some dozens of thousands of products for each weight: f32 against f64. */
static void larger_shapes(void **state)
{
    static const grad_case cases[] = {
        GRAD_CASE(conv, "2x8x40x40 8x8x3x3 8", "pads=1,1,1,1"),
        GRAD_CASE(conv, "2x16x40x40 16x1x3x3 16", "pads=1,1,1,1 strides=2,2 group=16"),
        GRAD_CASE(conv_transpose, "2x8x20x20 8x8x2x2 8", "strides=2,2"),
    };

    (void)state;
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_tensor *got[GRAD_MAX_IN + 1] = {0};
        grad_test t = {.c = &cases[i], .dtype = OCT_DTYPE_F64};
        void *mine = NULL;

        assert_int_equal(setup(&mine), 0);
        t.f = mine;
        grad_build(&t, 5 + i, got);
        grad_compare_f32(&cases[i], 5 + i, got);
        grad_free(&t, got);
        assert_int_equal(teardown(&mine), 0);
    }
}

/* Gradients of x, weights, bias and what is added, into got[]. `fused`: as one node. */
static void build_layer(fixture *f, bool fused, const char *act, const oct_op *op, oct_tensor **got)
{
    static const int64_t dims[4][4] = {{2, 4, 5, 6}, {6, 2, 3, 3}, {6}, {2, 6, 5, 6}};
    const float bounds[] = {-.5f, 1.5f};
    grad_test t = {.f = f, .dtype = OCT_DTYPE_F32, .n_wrt = 4};
    oct_value *y, *dx[4];
    oct_node *n;

    oct_rng_init(&t.rng, 3);
    for (int i = 0; i < 4; i++) {
        const oct_type type = oct_type_make(OCT_DTYPE_F32, i == 2 ? 1 : 4, dims[i]);

        t.x[i] = grad_random(&t, &type, -1, 1);
        t.wrt[i] = graph_input(f, NULL, OCT_DTYPE_F32, type.rank, type.dim);
    }
    n = oct_emit_node(&f->b, fused ? &oct_op_fused_conv : &oct_op_conv, t.wrt, fused ? 4 : 3, 1);
    oct_emit_ints(&f->b, n, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    oct_emit_int(&f->b, n, "group", 2);
    if (fused) {
        oct_emit_str(&f->b, n, "activation", act);
        assert_ok(f->ctx,
                  oct_node_set_attr(n, "activation_params",
                                    &(oct_attr){.kind = OCT_ATTR_F32S, .n = 2, .fs = bounds}));
    }
    y = oct_emitted(&f->b, n);
    if (!fused) {
        y = oct_emit(&f->b, &oct_op_add, y, t.wrt[3], NULL);
        if (op == &oct_op_clip)
            y = oct_emit(&f->b, op, y, oct_scalar(&f->b, -.5f), oct_scalar(&f->b, 1.5f));
        else if (op)
            y = oct_emit(&f->b, op, y, NULL, NULL);
    }
    assert_non_null(y);
    y = grad_loss(&t, y->producer);
    assert_ok(f->ctx, oct_grad(f->g, y, t.wrt, 4, dx));
    for (int i = 0; i < 4; i++)
        assert_ok(f->ctx,
                  oct_graph_add_output(f->g, oct_emit(&f->b, &oct_op_identity, dx[i], NULL, NULL)));
    assert_ok(f->ctx, oct_graph_eval(f->g, t.x, got, NULL));
    for (int i = 0; i < 4; i++)
        oct_tensor_unref(t.x[i]);
}

static void fused_as_apart(void **state)
{
    static const struct {
        const char *name;
        const oct_op *op;
    } acts[] = {{"", NULL},
                {"Relu", &oct_op_relu},
                {"Tanh", &oct_op_tanh},
                {"Sigmoid", &oct_op_sigmoid},
                {"Clip", &oct_op_clip}};

    (void)state;
    for (size_t k = 0; k < OCT_COUNT(acts); k++) {
        void *one = NULL, *two = NULL;
        oct_tensor *have[4], *want[4];

        assert_int_equal(setup(&one) + setup(&two), 0);
        build_layer(one, true, acts[k].name, NULL, have);
        build_layer(two, false, NULL, acts[k].op, want);
        for (int i = 0; i < 4; i++) {
            assert_all_close(have[i], want[i]->data, oct_tensor_len(want[i]), 1e-5f);
            oct_tensor_unref(have[i]);
            oct_tensor_unref(want[i]);
        }
        assert_int_equal(teardown(&one) + teardown(&two), 0);
    }
}

/* dy that does not fit is refused by the shape function. */
static void what_does_not_fit_is_refused(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 4, 6, 6});
    oct_value *dy = graph_input(f, "dy", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 6, 6});
    oct_node *n = oct_emit_node(&f->b, &oct_op_conv_grad_weight, (oct_value *[]){x, dy}, 2, 2);

    oct_emit_ints(&f->b, n, "kernel_shape", (int64_t[]){3, 3}, 2);
    assert_fails(f->ctx, oct_node_infer(n), OCT_ERR_SHAPE, "windows fit");
    oct_emit_ints(&f->b, n, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    assert_ok(f->ctx, oct_node_infer(n));
    assert_dims(&n->out[0]->type, 4, (int64_t[]){3, 4, 3, 3});
    assert_dims(&n->out[1]->type, 1, (int64_t[]){3});
    oct_emit_int(&f->b, n, "group", 2);
    assert_fails(f->ctx, oct_node_infer(n), OCT_ERR_SHAPE, "groups");
    oct_emit_int(&f->b, n, "group", 0);
    assert_fails(f->ctx, oct_node_infer(n), OCT_ERR_SHAPE, "group is 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(convolutions, setup, teardown),
        cmocka_unit_test_setup_teardown(transposed, setup, teardown),
        cmocka_unit_test_setup_teardown(larger_shapes, setup, teardown),
        cmocka_unit_test_setup_teardown(fused_as_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, setup, teardown),
    };

    return run_test_group(tests);
}
