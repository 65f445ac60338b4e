/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise rows: broadcasting, every element type, odd numbers, and what must be refused. */
#include "op/elementwise.h"
#include "op_case.h"

static void broadcasting_knows_what_can_be_known(void **state)
{
    fixture *f = *state;

    assert_infers(NODE(f, &oct_op_add, 1, unknown(f, OCT_DTYPE_F32, DIMS(2, -1, 1)),
                       unknown(f, OCT_DTYPE_F32, DIMS(3, -1))),
                  DIMS(2, 3, -1));
    assert_infers(NODE(f, &oct_op_add, 1, unknown(f, OCT_DTYPE_F32, DIMS(-1, 4)),
                       unknown(f, OCT_DTYPE_F32, DIMS(1, 1))),
                  DIMS(-1, 4));
    assert_infers(NODE(f, &oct_op_less, 1, unknown(f, OCT_DTYPE_F32, DIMS(0)),
                       unknown(f, OCT_DTYPE_F32, DIMS(1))),
                  DIMS(0));
    assert_fails(f->ctx,
                 oct_node_infer(NODE(f, &oct_op_add, 1, unknown(f, OCT_DTYPE_F32, DIMS(2)),
                                     unknown(f, OCT_DTYPE_F32, DIMS(3)))),
                 OCT_ERR_SHAPE, "do not broadcast");
    assert_fails(f->ctx,
                 oct_node_infer(NODE(f, &oct_op_add, 1, unknown(f, OCT_DTYPE_F32, DIMS(2)),
                                     unknown(f, OCT_DTYPE_I32, DIMS(2)))),
                 OCT_ERR_TYPE, "int32");
}

static void operands_broadcast_along_any_axes(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(2, 1, 3), NULL);
    oct_value *y = constant(f, OCT_DTYPE_F32, DIMS(2, 1), (double[]){10, 20});
    oct_value *s = constant(f, OCT_DTYPE_F32, SCALAR, (double[]){100});
    const float want[] = {10, 11, 12, 20, 21, 22, 13, 14, 15, 23, 24, 25};
    const float minus[] = {100, 99, 98, 97, 96, 95};

    assert_gives(NODE(f, &oct_op_add, 1, x, y), DIMS(2, 2, 3), want);
    assert_gives(NODE(f, &oct_op_sub, 1, s, x), DIMS(2, 1, 3), minus);
    assert_gives(NODE(f, &oct_op_sum, 1, y, x), DIMS(2, 2, 3), want);
    assert_gives(NODE(f, &oct_op_mean, 1, s, s), SCALAR, (float[]){100});
    assert_gives(NODE(f, &oct_op_max, 1, y, s, y), DIMS(2, 1), (float[]){100, 100});
    assert_gives(NODE(f, &oct_op_add, 1, constant(f, OCT_DTYPE_F32, DIMS(0, 3), NULL), s),
                 DIMS(0, 3), want);
}

static void every_type_adds(void **state)
{
    static const oct_dtype types[] = {OCT_DTYPE_F32, OCT_DTYPE_F64, OCT_DTYPE_F16, OCT_DTYPE_BF16,
                                      OCT_DTYPE_U8,  OCT_DTYPE_I8,  OCT_DTYPE_U16, OCT_DTYPE_I16,
                                      OCT_DTYPE_U32, OCT_DTYPE_I32, OCT_DTYPE_U64, OCT_DTYPE_I64};
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(types); i++) {
        oct_value *x = constant(f, types[i], DIMS(3), (double[]){1, 2, 100});
        oct_value *y = constant(f, types[i], DIMS(3), (double[]){4, 2, 5});

        assert_gives(NODE(f, &oct_op_add, 1, x, y), DIMS(3), (float[]){5, 4, 105});
        assert_gives(NODE(f, &oct_op_div, 1, x, y), DIMS(3),
                     oct_dtype_is_float(types[i]) ? (float[]){0.25f, 1, 20} : (float[]){0, 1, 20});
    }
}

static void long_tensors_go_in_pieces(void **state)
{
    fixture *f = *state;
    const int64_t n = 70001;
    oct_value *x = constant(f, OCT_DTYPE_I16, DIMS(70001), NULL);
    oct_node *node = NODE(f, &oct_op_neg, 1, x);
    oct_tensor *out = NULL;

    assert_ok(f->ctx, evaluate(node, &out));
    for (int64_t i = 0; i < n; i += 997)
        assert_int_equal(((const int16_t *)out->data)[i], (int16_t) - (int16_t)i);
    oct_tensor_unref(out);
}

static void integers_never_trap(void **state)
{
    fixture *f = *state;
    oct_tensor *t = NULL, *out = NULL;
    oct_value *x, *minus = INTS(f, -1), *zero = INTS(f, 0);
    static const oct_op *const ops[] = {&oct_op_div, &oct_op_mod, &oct_op_add,
                                        &oct_op_sub, &oct_op_mul, &oct_op_pow};

    assert_ok(f->ctx, oct_tensor_vec_i64(f->ctx, (int64_t[]){INT64_MIN}, 1, &t));
    x = oct_value_const(f->g, NULL, t);
    for (size_t i = 0; i < OCT_COUNT(ops); i++) {
        assert_ok(f->ctx, evaluate(NODE(f, ops[i], 1, x, minus), &out));
        oct_tensor_unref(out);
        assert_ok(f->ctx, evaluate(NODE(f, ops[i], 1, x, zero), &out));
        oct_tensor_unref(out);
    }
    assert_ok(f->ctx, evaluate(NODE(f, &oct_op_abs, 1, x), &out));
    oct_tensor_unref(out);
}

static void remainders_follow_python_or_c(void **state)
{
    fixture *f = *state;
    oct_value *x = INTS(f, -7, 7, -7), *y = INTS(f, 3, -3, -3);
    oct_value *xf = constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){-7, 7});
    oct_value *yf = constant(f, OCT_DTYPE_F32, DIMS(2), (double[]){3, -3});
    oct_node *n = NODE(f, &oct_op_mod, 1, x, y), *nf = NODE(f, &oct_op_mod, 1, xf, yf);

    assert_gives(n, DIMS(3), (float[]){2, -2, -1});
    assert_gives(nf, DIMS(2), (float[]){2, -2});
    assert_ok(f->ctx, oct_node_set_int(n, "fmod", 1));
    assert_ok(f->ctx, oct_node_set_int(nf, "fmod", 1));
    assert_gives(n, DIMS(3), (float[]){-1, 1, -1});
    assert_gives(nf, DIMS(2), (float[]){-1, 1});
}

static void powers_mix_types(void **state)
{
    fixture *f = *state;
    oct_value *i = INTS(f, 2, -3, 10), *half = constant(f, OCT_DTYPE_F32, DIMS(1), (double[]){0.5});
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(3), (double[]){4, 9, 2});

    assert_gives(NODE(f, &oct_op_pow, 1, x, i), DIMS(3), (float[]){16, 1.0f / 729, 1024});
    assert_gives(NODE(f, &oct_op_pow, 1, i, INTS(f, 3)), DIMS(3), (float[]){8, -27, 1000});
    assert_gives(NODE(f, &oct_op_pow, 1, INTS(f, 16, 2), half), DIMS(2), (float[]){4, 1});
}

static void shifts_beyond_the_width_leave_nothing(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_U8, DIMS(3), (double[]){255, 1, 128});
    oct_value *y = constant(f, OCT_DTYPE_U8, DIMS(3), (double[]){1, 100, 7});
    oct_node *n = NODE(f, &oct_op_bit_shift, 1, x, y);

    assert_refuses(n, OCT_ERR_FORMAT, "direction");
    assert_ok(f->ctx, oct_node_set_str(n, "direction", "LEFT"));
    assert_gives(n, DIMS(3), (float[]){254, 0, 0});
    assert_ok(f->ctx, oct_node_set_str(n, "direction", "RIGHT"));
    assert_gives(n, DIMS(3), (float[]){127, 0, 1});
    assert_ok(f->ctx, oct_node_set_str(n, "direction", "UP"));
    assert_refuses(n, OCT_ERR_FORMAT, "UP");
}

static void bits_and_truth(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_I8, DIMS(2), (double[]){12, -1});
    oct_value *y = constant(f, OCT_DTYPE_I8, DIMS(2), (double[]){10, 7});
    oct_value *b = constant(f, OCT_DTYPE_BOOL, DIMS(2), (double[]){1, 0});

    assert_gives(NODE(f, &oct_op_bitwise_and, 1, x, y), DIMS(2), (float[]){8, 7});
    assert_gives(NODE(f, &oct_op_bitwise_or, 1, x, y), DIMS(2), (float[]){14, -1});
    assert_gives(NODE(f, &oct_op_bitwise_xor, 1, x, y), DIMS(2), (float[]){6, -8});
    assert_gives(NODE(f, &oct_op_bitwise_not, 1, x), DIMS(2), (float[]){-13, 0});
    assert_gives(NODE(f, &oct_op_not, 1, b), DIMS(2), (float[]){0, 1});
    assert_gives(NODE(f, &oct_op_xor, 1, b, b), DIMS(2), (float[]){0, 0});
    assert_refuses(NODE(f, &oct_op_and, 1, x, y), OCT_ERR_TYPE, "int8");
}

static void unsigned_numbers_compare_as_such(void **state)
{
    fixture *f = *state;
    const oct_type t = oct_type_make(OCT_DTYPE_U64, 1, (int64_t[]){2});
    oct_tensor *x = NULL;
    oct_value *big, *one = constant(f, OCT_DTYPE_U64, SCALAR, (double[]){1});

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &t, &x));
    ((uint64_t *)x->data)[0] = UINT64_MAX;
    big = oct_value_const(f->g, NULL, x);
    assert_gives(NODE(f, &oct_op_greater, 1, big, one), DIMS(2), (float[]){1, 0});
    assert_gives(NODE(f, &oct_op_less_or_equal, 1, big, one), DIMS(2), (float[]){0, 1});
    assert_gives(NODE(f, &oct_op_min, 1, big, one), DIMS(2), (float[]){1, 0});
}

static void not_a_number_stays_one(void **state)
{
    fixture *f = *state;
    const double v[] = {(double)NAN, -1, 2};
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(3), v);
    oct_value *zero = constant(f, OCT_DTYPE_F32, SCALAR, (double[]){0});
    oct_node *inf = NODE(f, &oct_op_is_inf, 1,
                         constant(f, OCT_DTYPE_F16, DIMS(2), (double[]){-(double)INFINITY, 1}));

    assert_gives(NODE(f, &oct_op_max, 1, x, zero), DIMS(3), (float[]){NAN, 0, 2});
    assert_gives(NODE(f, &oct_op_min, 1, zero, x), DIMS(3), (float[]){NAN, -1, 0});
    assert_gives(NODE(f, &oct_op_relu, 1, x), DIMS(3), (float[]){NAN, 0, 2});
    assert_gives(NODE(f, &oct_op_sign, 1, x), DIMS(3), (float[]){NAN, -1, 1});
    assert_gives(NODE(f, &oct_op_is_nan, 1, x), DIMS(3), (float[]){1, 0, 0});
    assert_gives(NODE(f, &oct_op_clip, 1, x, zero), DIMS(3), (float[]){NAN, 0, 2});
    assert_gives(inf, DIMS(2), (float[]){1, 0});
    assert_ok(f->ctx, oct_node_set_int(inf, "detect_negative", 0));
    assert_gives(inf, DIMS(2), (float[]){0, 0});
}

static void clip_checks_its_bounds(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_I32, DIMS(3), (double[]){-5, 0, 5});
    oct_value *low = constant(f, OCT_DTYPE_I32, SCALAR, (double[]){2});
    oct_value *high = constant(f, OCT_DTYPE_I32, DIMS(1), (double[]){1});
    oct_value *two = constant(f, OCT_DTYPE_I32, DIMS(2), NULL);
    oct_value *real = constant(f, OCT_DTYPE_F32, SCALAR, NULL);

    assert_gives(NODE(f, &oct_op_clip, 1, x, low), DIMS(3), (float[]){2, 2, 5});
    assert_gives(NODE(f, &oct_op_clip, 1, x, low, high), DIMS(3), (float[]){1, 1, 1});
    assert_gives(NODE(f, &oct_op_clip, 1, x), DIMS(3), (float[]){-5, 0, 5});
    assert_refuses(NODE(f, &oct_op_clip, 1, x, two), OCT_ERR_SHAPE, "bound");
    assert_refuses(NODE(f, &oct_op_clip, 1, x, real), OCT_ERR_TYPE, "float32");
}

static void slopes_broadcast_one_way(void **state)
{
    fixture *f = *state;
    oct_value *x = constant(f, OCT_DTYPE_F32, DIMS(2, 2), (double[]){-1, 1, -2, 2});
    oct_value *s = constant(f, OCT_DTYPE_F32, DIMS(2, 1), (double[]){0.5, 0.25});
    oct_value *wide = constant(f, OCT_DTYPE_F32, DIMS(1, 2, 2), NULL);

    assert_gives(NODE(f, &oct_op_p_relu, 1, x, s), DIMS(2, 2), (float[]){-0.5f, 1, -0.5f, 2});
    assert_refuses(NODE(f, &oct_op_p_relu, 1, x, wide), OCT_ERR_SHAPE, "slope");
    assert_infers(NODE(f, &oct_op_p_relu, 1, unknown(f, OCT_DTYPE_F32, DIMS(1, -1)),
                       unknown(f, OCT_DTYPE_F32, DIMS(-1, 1))),
                  DIMS(1, -1));
}

static void where_chooses_any_type(void **state)
{
    static const oct_dtype types[] = {OCT_DTYPE_U8, OCT_DTYPE_F16, OCT_DTYPE_F32, OCT_DTYPE_I64};
    fixture *f = *state;
    oct_value *c = constant(f, OCT_DTYPE_BOOL, DIMS(2, 1), (double[]){1, 0});

    for (size_t i = 0; i < OCT_COUNT(types); i++) {
        oct_value *x = constant(f, types[i], DIMS(2), (double[]){1, 2});
        oct_value *y = constant(f, types[i], SCALAR, (double[]){7});

        assert_gives(NODE(f, &oct_op_where, 1, c, x, y), DIMS(2, 2), (float[]){1, 2, 7, 7});
    }
    assert_refuses(NODE(f, &oct_op_where, 1, c, c, INTS(f, 1)), OCT_ERR_TYPE, "int64");
    assert_refuses(NODE(f, &oct_op_where, 1, INTS(f, 1), c, c), OCT_ERR_TYPE, "operand 0");
}

static void activations_have_their_defaults(void **state)
{
    static const struct {
        const oct_op *op;
        float want[3]; /* at -2, 0.25 and 3 */
    } cases[] = {
        {&oct_op_relu, {0, 0.25f, 3}},
        {&oct_op_leaky_relu, {-0.02f, 0.25f, 3}},
        {&oct_op_elu, {-0.8646647f, 0.25f, 3}},
        {&oct_op_selu, {-1.520166f, 0.262675f, 3.152103f}},
        {&oct_op_celu, {-0.8646647f, 0.25f, 3}},
        {&oct_op_sigmoid, {0.1192029f, 0.5621765f, 0.9525741f}},
        {&oct_op_hard_sigmoid, {0.1f, 0.55f, 1}},
        {&oct_op_hard_swish, {-1.0f / 3, 0.1354167f, 3}},
        {&oct_op_swish, {-0.2384058f, 0.1405441f, 2.857722f}},
        {&oct_op_mish, {-0.2525015f, 0.1695724f, 2.986535f}},
        {&oct_op_softplus, {0.126928f, 0.8259395f, 3.048587f}},
        {&oct_op_softsign, {-2.0f / 3, 0.2f, 0.75f}},
        {&oct_op_thresholded_relu, {0, 0, 3}},
        {&oct_op_shrink, {-2, 0, 3}},
        {&oct_op_gelu, {-0.0455003f, 0.1496767f, 2.995950f}},
        {&oct_op_ms_gelu, {-0.0455003f, 0.1496767f, 2.995950f}},
        {&oct_op_quick_gelu, {-0.0643367f, 0.1511980f, 2.981919f}},
        {&oct_op_tanh, {-0.9640276f, 0.2449187f, 0.9950548f}},
        {&oct_op_erf, {-0.9953223f, 0.2763264f, 0.9999779f}},
    };
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        for (int wide = 0; wide < 2; wide++) {
            const oct_dtype t = wide ? OCT_DTYPE_F64 : OCT_DTYPE_F32;
            oct_value *x = constant(f, t, DIMS(3), (double[]){-2, 0.25, 3});

            assert_gives(NODE(f, cases[i].op, 1, x), DIMS(3), cases[i].want);
        }
}

static void gelu_knows_two_formulas(void **state)
{
    fixture *f = *state;
    oct_node *n = NODE(f, &oct_op_gelu, 1, constant(f, OCT_DTYPE_F32, DIMS(1), (double[]){1}));

    assert_ok(f->ctx, oct_node_set_str(n, "approximate", "tanh"));
    assert_gives(n, DIMS(1), (float[]){0.841192f});
    assert_ok(f->ctx, oct_node_set_str(n, "approximate", "fast"));
    assert_refuses(n, OCT_ERR_FORMAT, "fast");
}

static void texts_and_foreign_types_are_refused(void **state)
{
    fixture *f = *state;
    oct_value *text = unknown(f, OCT_DTYPE_STRING, DIMS(1));
    oct_value *b = constant(f, OCT_DTYPE_BOOL, DIMS(1), NULL);

    assert_fails(f->ctx, oct_node_infer(NODE(f, &oct_op_equal, 1, text, text)), OCT_ERR_UNSUPPORTED,
                 "string");
    assert_refuses(NODE(f, &oct_op_sqrt, 1, INTS(f, 4)), OCT_ERR_TYPE, "int64");
    assert_refuses(NODE(f, &oct_op_neg, 1, constant(f, OCT_DTYPE_U8, DIMS(1), NULL)), OCT_ERR_TYPE,
                   "uint8");
    assert_refuses(NODE(f, &oct_op_add, 1, b, b), OCT_ERR_TYPE, "bool");
    assert_gives(NODE(f, &oct_op_equal, 1, b, b), DIMS(1), (float[]){1});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(broadcasting_knows_what_can_be_known),
        TEST(operands_broadcast_along_any_axes),
        TEST(every_type_adds),
        TEST(long_tensors_go_in_pieces),
        TEST(integers_never_trap),
        TEST(remainders_follow_python_or_c),
        TEST(powers_mix_types),
        TEST(shifts_beyond_the_width_leave_nothing),
        TEST(bits_and_truth),
        TEST(unsigned_numbers_compare_as_such),
        TEST(not_a_number_stays_one),
        TEST(clip_checks_its_bounds),
        TEST(slopes_broadcast_one_way),
        TEST(where_chooses_any_type),
        TEST(activations_have_their_defaults),
        TEST(gelu_knows_two_formulas),
        TEST(texts_and_foreign_types_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
