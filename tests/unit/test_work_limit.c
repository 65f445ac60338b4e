/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes whose windows or sums are too much work: refused when compiled, and by plain kernels. */
#include "unit/quant_net.h"

static oct_value *pool(fixture *f, const oct_op *op, oct_value *x, int64_t kernel, int64_t pad,
                       int64_t stride)
{
    oct_node *n = node(f, op, x, NULL, NULL);
    const int64_t kernels[] = {kernel, kernel}, pads[] = {pad, pad, pad, pad};
    const int64_t strides[] = {stride, stride};

    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", kernels, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "pads", pads, 4));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", strides, 2));
    return infer(f, n);
}

static oct_value *square(fixture *f, int64_t size)
{
    return picture(f, 1, 1, size, size);
}

static void assert_too_much(fixture *f, oct_status st, const char *node_text)
{
    assert_int_equal(st, OCT_ERR_UNSUPPORTED);
    assert_non_null(strstr(oct_ctx_error(f->ctx), node_text));
    assert_non_null(strstr(oct_ctx_error(f->ctx), "operations, the limit for one node"));
}

/* As compiled, in float and in integers, and as evaluated by plain kernels. */
static void assert_refused(fixture *f, oct_value *y, const char *node_text)
{
    const oct_value *x = f->g->inputs[0];
    oct_tensor *in = NULL, *out = NULL;
    oct_plan *p = NULL;

    output(f, y);
    assert_too_much(f, oct_plan_new(f->g, NULL, &p), node_text);
    assert_null(p);
    assert_ok(f->ctx, oct_tensor_make(f->ctx, &x->type, &in));
    assert_too_much(f, oct_graph_eval(f->g, &in, &out, NULL), node_text);
    assert_null(out);
    oct_tensor_unref(in);
}

/* Four million windows of a million elements each: an hour, from a file of 200 bytes. */
static void windows_as_large_as_the_picture(void **state)
{
    fixture *f = *state;

    assert_refused(f, pool(f, &oct_op_max_pool, square(f, 1000), 999, 998, 1), "(MaxPool)");
}

static void averages_of_such_windows(void **state)
{
    fixture *f = *state;

    assert_refused(f, pool(f, &oct_op_average_pool, square(f, 1000), 999, 998, 1), "(AveragePool)");
}

static void norms_of_such_windows(void **state)
{
    fixture *f = *state;

    assert_refused(f, pool(f, &oct_op_lp_pool, square(f, 1000), 999, 998, 1), "(LpPool)");
}

static void such_windows_on_codes(void **state)
{
    static const float scale = 0.02f;
    fixture *f = *state;
    oct_value *x = qdq(f, square(f, 1000), OCT_DTYPE_U8, &scale, NULL, 1, 1);

    assert_refused(
        f, qdq(f, pool(f, &oct_op_average_pool, x, 999, 998, 1), OCT_DTYPE_U8, &scale, NULL, 1, 1),
        "(AveragePool)");
}

static void a_filter_as_large_as_the_picture(void **state)
{
    fixture *f = *state;
    oct_value *x = square(f, 1000);
    oct_rng rng;

    oct_rng_init(&rng, 1);
    assert_refused(f, conv(f, &rng, x, &(conv_case){1, 1, 999, 1, 1, 998, 1}), "(Conv)");
}

/* Hardly anything of these windows lies in the picture: no kernel may walk through the padding. */
static void windows_of_padding(void **state)
{
    static const float scale = 0.02f;
    const int64_t size = 1 << 20;
    fixture *f = *state;
    oct_value *x = qdq(f, square(f, 16), OCT_DTYPE_U8, &scale, NULL, 1, 1);
    oct_value *y = pool(f, &oct_op_max_pool, x, size, size - 1, size / 2);
    oct_tensor *out[1];

    output(f, qdq(f, y, OCT_DTYPE_U8, &scale, NULL, 1, 1));
    run_graph(f, NULL, out);
    assert_int_equal(out[0]->type.dim[3], 3);
    oct_tensor_unref(out[0]);
}

/* A detector's largest layer on a large batch is not. */
static void large_batches_are_planned(void **state)
{
    const int64_t dims[] = {256, 320, 80, 80};
    const int64_t w[] = {320, 320, 3, 3};
    fixture *f = *state;
    oct_value *x = graph_input(f, "x", OCT_DTYPE_F32, 4, dims);
    oct_rng rng;
    oct_node *n;

    oct_rng_init(&rng, 1);
    n = node(f, &oct_op_conv, x, weights(f, &rng, 4, w), NULL);
    infer(f, n);
    assert_ok(f->ctx, oct_node_check_work(n));
    oct_ctx_set_work_limit(f->ctx, 1 << 30);
    assert_too_much(f, oct_node_check_work(n), "(Conv)");
    oct_ctx_set_work_limit(f->ctx, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(windows_as_large_as_the_picture, setup, teardown),
        cmocka_unit_test_setup_teardown(averages_of_such_windows, setup, teardown),
        cmocka_unit_test_setup_teardown(norms_of_such_windows, setup, teardown),
        cmocka_unit_test_setup_teardown(such_windows_on_codes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_filter_as_large_as_the_picture, setup, teardown),
        cmocka_unit_test_setup_teardown(windows_of_padding, setup, teardown),
        cmocka_unit_test_setup_teardown(large_batches_are_planned, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
