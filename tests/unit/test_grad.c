/* SPDX-License-Identifier: Apache-2.0 */
/* Differentiation itself: sums over uses, broadcasting, what is refused. */
#include "tests/unit/grad_case.h"

static void arithmetic(void **state)
{
    static const grad_case cases[] = {
        {&oct_op_add, "2x3 2x3", NULL, 0, 0, 0},    {&oct_op_add, "2x3x4 3x1", NULL, 0, 0, 0},
        {&oct_op_add, "1 2x1x3", NULL, 0, 0, 0},    {&oct_op_sub, "2x1x4 2x3x1", NULL, 0, 0, 0},
        {&oct_op_sub, "scalar 2x3", NULL, 0, 0, 0}, {&oct_op_mul, "2x3x4 3x1", NULL, 0, 0, 0},
        {&oct_op_mul, "4 scalar", NULL, 0, 0, 0},   {&oct_op_mul, "2x3 =2x3", NULL, 0, 0, 0},
        {&oct_op_div, "2x3x4 +3x1", NULL, 0, 0, 0}, {&oct_op_div, "=5 +5", NULL, 0, 0, 0},
    };

    (void)state;
    check_grads(cases);
}

/* Mul is read three times, and one of its operands is not differentiated. */
static void uses_are_summed(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F64, 0, NULL), *dx;
    oct_value *xx = oct_emit(&f->b, &oct_op_mul, x, x, NULL);
    oct_value *y =
        oct_emit(&f->b, &oct_op_add, oct_emit(&f->b, &oct_op_mul, xx, x, NULL), xx, NULL);
    oct_tensor *t = tensor_of(f->ctx, OCT_DTYPE_F64, 0, NULL, (double[]){3}), *got = NULL;

    assert_ok(f->ctx, oct_grad(f->g, y, &x, 1, &dx));
    assert_ok(f->ctx, oct_graph_add_output(f->g, dx));
    assert_ok(f->ctx, oct_graph_eval(f->g, &t, &got, NULL));
    assert_true(fabs(oct_tensor_get_f64(got, 0) - (3 * 9 + 2 * 3)) < 1e-12);
    oct_tensor_unref(t);
    oct_tensor_unref(got);
}

static void what_has_no_gradient_is_named(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F64, 2, (int64_t[]){3, 3}), *dx;
    oct_value *y = oct_emit(&f->b, &oct_op_det, x, NULL, NULL);
    const int32_t n_nodes = f->g->n_nodes;

    y->producer->name = "the determinant";
    assert_fails(f->ctx, oct_grad(f->g, y, &x, 1, &dx), OCT_ERR_UNSUPPORTED, "the determinant");
    assert_int_equal(f->g->n_nodes, n_nodes);
}

/* What would train a part of the network only, without a word, is refused. */
static void quantized_and_narrow_values_are_refused(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 0, NULL), *dx;
    oct_value *scale = oct_scalar(&f->b, .1f);
    oct_value *q = oct_emit(&f->b, &oct_op_quantize_linear, x, scale, NULL);
    oct_value *y = oct_emit(&f->b, &oct_op_dequantize_linear, q, scale, NULL);
    oct_value *half = oct_grad_cast(&f->b, oct_grad_cast(&f->b, x, OCT_DTYPE_F16), OCT_DTYPE_F32);

    assert_ok(f->ctx, f->b.status);
    assert_fails(f->ctx, oct_grad(f->g, y, &x, 1, &dx), OCT_ERR_UNSUPPORTED,
                 "quantized values carry no gradient");
    assert_fails(f->ctx, oct_grad(f->g, half, &x, 1, &dx), OCT_ERR_TYPE, "float16");
    /* Not on the way to the loss. */
    assert_ok(f->ctx, oct_grad(f->g, oct_emit(&f->b, &oct_op_neg, x, NULL, NULL), &x, 1, &dx));
}

static void independent_values_have_zeros(void **state)
{
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 0, NULL), *d[2];
    oct_value *other = graph_input(f, "other", OCT_DTYPE_F32, 1, (int64_t[]){3});
    oct_value *y = oct_emit(&f->b, &oct_op_add, x, x, NULL);

    assert_ok(f->ctx, oct_grad(f->g, y, (oct_value *[]){x, other}, 2, d));
    assert_non_null(d[1]->data);
    assert_dims(&d[1]->type, 1, (int64_t[]){3});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(arithmetic, setup, teardown),
        cmocka_unit_test_setup_teardown(uses_are_summed, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_no_gradient_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(quantized_and_narrow_values_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(independent_values_have_zeros, setup, teardown),
    };

    return run_test_group(tests);
}
