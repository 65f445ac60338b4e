/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, order and running sums. */
#include "op_case.h"

#define F32 OCT_DTYPE_F32

static void each_reduction_has_its_formula(void **state)
{
    static const struct {
        const oct_op *op;
        float want; /* of 3, -4 */
    } cases[] = {
        {&oct_op_reduce_l1, 7},        {&oct_op_reduce_l2, 5},
        {&oct_op_reduce_max, 3},       {&oct_op_reduce_mean, -0.5f},
        {&oct_op_reduce_min, -4},      {&oct_op_reduce_prod, -12},
        {&oct_op_reduce_sum, -1},      {&oct_op_reduce_sum_square, 25},
        {&oct_op_reduce_log_sum, NAN}, {&oct_op_reduce_log_sum_exp, 3.000911466f},
    };
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 2), (double[]){3, -4}), *axes = INTS(f, -1);

    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        assert_gives(NODE(f, cases[i].op, 1, x, axes), DIMS(1, 1), &cases[i].want);
}

static void reductions_over_nothing(void **state)
{
    static const struct {
        const oct_op *op;
        float want;
    } cases[] = {
        {&oct_op_reduce_l1, 0},
        {&oct_op_reduce_l2, 0},
        {&oct_op_reduce_max, -INFINITY},
        {&oct_op_reduce_mean, NAN},
        {&oct_op_reduce_min, INFINITY},
        {&oct_op_reduce_prod, 1},
        {&oct_op_reduce_sum, 0},
        {&oct_op_reduce_sum_square, 0},
        {&oct_op_reduce_log_sum, -INFINITY},
        {&oct_op_reduce_log_sum_exp, -INFINITY},
    };
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(1, 0, 1), NULL), *axes = INTS(f, 1);

    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        assert_gives(NODE(f, cases[i].op, 1, x, axes), DIMS(1, 1, 1), &cases[i].want);
}

static void integers_keep_their_type(void **state)
{
    fixture *f = *state;
    oct_value *u64 = constant(f, OCT_DTYPE_U64, DIMS(2), (double[]){1, 0x1p63});
    oct_value *i8 = constant(f, OCT_DTYPE_I8, DIMS(2), (double[]){100, 100});
    oct_value *i32 = constant(f, OCT_DTYPE_I32, DIMS(2), (double[]){3, 4});
    oct_value *flags = constant(f, OCT_DTYPE_BOOL, DIMS(2), (double[]){1, 0});
    oct_value *none = constant(f, OCT_DTYPE_BOOL, DIMS(0), NULL);
    oct_value *no_bytes = constant(f, OCT_DTYPE_U8, DIMS(0), NULL);

    assert_gives(NODE(f, &oct_op_reduce_max, 1, u64), DIMS(1), (float[]){0x1p63f});
    assert_gives(NODE(f, &oct_op_reduce_min, 1, u64), DIMS(1), (float[]){1});
    assert_gives(NODE(f, &oct_op_reduce_sum, 1, i8), DIMS(1), (float[]){-56});
    assert_gives(NODE(f, &oct_op_reduce_l2, 1, i32), DIMS(1), (float[]){5});
    assert_gives(NODE(f, &oct_op_reduce_mean, 1, i32), DIMS(1), (float[]){3});
    assert_gives(NODE(f, &oct_op_reduce_max, 1, flags), DIMS(1), (float[]){1});
    assert_gives(NODE(f, &oct_op_reduce_min, 1, flags), DIMS(1), (float[]){0});
    assert_gives(NODE(f, &oct_op_reduce_max, 1, none), DIMS(1), (float[]){0});
    assert_gives(NODE(f, &oct_op_reduce_min, 1, none), DIMS(1), (float[]){1});
    assert_gives(NODE(f, &oct_op_reduce_min, 1, no_bytes), DIMS(1), (float[]){255});
    assert_gives(NODE(f, &oct_op_reduce_max, 1, constant(f, OCT_DTYPE_I8, DIMS(0), NULL)), DIMS(1),
                 (float[]){-128});
    assert_refuses(NODE(f, &oct_op_reduce_sum, 1, flags), OCT_ERR_TYPE, "bool");
}

static void any_axes_can_go(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(2, 3, 2), NULL);
    oct_node *n = NODE(f, &oct_op_reduce_sum, 1, x, INTS(f, 0, 2));

    assert_gives(n, DIMS(1, 3, 1), (float[]){14, 22, 30});
    assert_ok(f->ctx, oct_node_set_int(n, "keepdims", 0));
    assert_gives(n, DIMS(3), (float[]){14, 22, 30});
    n = NODE(f, &oct_op_reduce_sum_square, 1, constant(f, F32, DIMS(2), (double[]){2, 3}));
    assert_ok(f->ctx, oct_node_set_int(n, "noop_with_empty_axes", 1));
    assert_gives(n, DIMS(2), (float[]){4, 9}); /* nothing goes, the square stays */
    assert_gives(NODE(f, &oct_op_reduce_max, 1, constant(f, F32, SCALAR, NULL)), SCALAR,
                 (float[]){0});
    assert_refuses(NODE(f, &oct_op_reduce_sum, 1, x, INTS(f, 3)), OCT_ERR_SHAPE, "axis 3");
    assert_infers(NODE(f, &oct_op_reduce_sum, 1, unknown(f, F32, DIMS(-1, 3)), INTS(f, 1)),
                  DIMS(-1, 1));
    assert_infers(NODE(f, &oct_op_reduce_sum, 1, unknown(f, F32, DIMS(4, 1)),
                       unknown(f, OCT_DTYPE_I64, DIMS(1))),
                  DIMS(-1, 1));
}

static void arg_max_breaks_ties(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(2, 3), (double[]){1, 3, 3, 0, NAN, 5});
    oct_node *n = NODE(f, &oct_op_arg_max, 1, x);

    assert_ok(f->ctx, oct_node_set_int(n, "axis", 1));
    assert_gives(n, DIMS(2, 1), (float[]){1, 1});
    assert_ok(f->ctx, oct_node_set_int(n, "select_last_index", 1));
    assert_ok(f->ctx, oct_node_set_int(n, "keepdims", 0));
    assert_gives(n, DIMS(2), (float[]){2, 1});
    assert_gives(
        NODE(f, &oct_op_arg_min, 1, constant(f, OCT_DTYPE_U64, DIMS(2), (double[]){0x1p63, 1})),
        DIMS(1), (float[]){1});
    assert_refuses(NODE(f, &oct_op_arg_min, 1, constant(f, F32, DIMS(0), NULL)), OCT_ERR_SHAPE,
                   "axis 0 is empty");
}

static void top_k_is_stable(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, F32, DIMS(6), (double[]){2, 5, 1, 5, NAN, -INFINITY});
    oct_node *n = NODE(f, &oct_op_top_k, 2, x, INTS(f, 3));
    oct_tensor *out[2] = {NULL};

    assert_ok(f->ctx, evaluate(n, out));
    assert_all_close(out[0], (float[]){NAN, 5, 5}, 3, 0);
    assert_all_close(out[1], (float[]){4, 1, 3}, 3, 0);
    oct_tensor_unref(out[0]);
    oct_tensor_unref(out[1]);
    assert_ok(f->ctx, oct_node_set_int(n, "largest", 0));
    assert_gives(n, DIMS(3), (float[]){-INFINITY, 1, 2});
    assert_gives(NODE(f, &oct_op_top_k, 2, x, INTS(f, 0)), DIMS(0), (float[]){0});
    assert_refuses(NODE(f, &oct_op_top_k, 2, x, INTS(f, 7)), OCT_ERR_SHAPE, "k is 7");
    assert_refuses(NODE(f, &oct_op_top_k, 2, x, INTS(f, -1)), OCT_ERR_SHAPE, "negative");
    assert_infers(NODE(f, &oct_op_top_k, 2, x, unknown(f, OCT_DTYPE_I64, DIMS(1))), DIMS(-1));
}

static void running_sums(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_I32, DIMS(3), (double[]){1, 2, 3});
    oct_node *n = NODE(f, &oct_op_cum_sum, 1, x, INTS(f, 0));

    assert_gives(n, DIMS(3), (float[]){1, 3, 6});
    assert_ok(f->ctx, oct_node_set_int(n, "exclusive", 1));
    assert_gives(n, DIMS(3), (float[]){0, 1, 3});
    assert_ok(f->ctx, oct_node_set_int(n, "reverse", 1));
    assert_gives(n, DIMS(3), (float[]){5, 3, 0});
    assert_refuses(NODE(f, &oct_op_cum_sum, 1, x, INTS(f, 1)), OCT_ERR_SHAPE, "axis 1");
}

static void softmax_sums_to_one(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F64, DIMS(2, 1), (double[]){1000, 1000});
    oct_node *n = NODE(f, &oct_op_softmax, 1, x);

    assert_gives(n, DIMS(2, 1), (float[]){1, 1});
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 0));
    assert_gives(n, DIMS(2, 1), (float[]){0.5f, 0.5f});
    n = NODE(f, &oct_op_log_softmax, 1, x);
    assert_ok(f->ctx, oct_node_set_int(n, "axis", -2));
    assert_gives(n, DIMS(2, 1), (float[]){-0.693147f, -0.693147f});
    n = NODE(f, &oct_op_hardmax, 1, x);
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 0));
    assert_gives(n, DIMS(2, 1), (float[]){1, 0});
    assert_ok(f->ctx, oct_node_set_int(n, "axis", 2));
    assert_refuses(n, OCT_ERR_SHAPE, "axis 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_reduction_has_its_formula, setup, teardown),
        cmocka_unit_test_setup_teardown(reductions_over_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(integers_keep_their_type, setup, teardown),
        cmocka_unit_test_setup_teardown(any_axes_can_go, setup, teardown),
        cmocka_unit_test_setup_teardown(arg_max_breaks_ties, setup, teardown),
        cmocka_unit_test_setup_teardown(top_k_is_stable, setup, teardown),
        cmocka_unit_test_setup_teardown(running_sums, setup, teardown),
        cmocka_unit_test_setup_teardown(softmax_sums_to_one, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
