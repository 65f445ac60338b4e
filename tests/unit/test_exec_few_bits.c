/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of 4 and 2 bits in integer kernels: bytes that end at a code of their own. */
#include "tests/unit/quant_net.h"

#include "op/quant.h"

/* Types of few bits; values from about -2 to 2 fill the codes and go beyond both ends. */
static const struct {
    oct_dtype dtype;
    float step;
    int32_t zero;
} kinds[] = {
    {OCT_DTYPE_U4, 0.2017f, 7},
    {OCT_DTYPE_I4, 0.2017f, -1},
    {OCT_DTYPE_U2, 0.71f, 1},
    {OCT_DTYPE_I2, 0.71f, 0},
};

static oct_value *narrow(fixture *f, oct_value *x, size_t i)
{
    return qdq(f, x, kinds[i].dtype, &kinds[i].step, &kinds[i].zero, 1, 1);
}

/* As the results of positive activations are: the code of 0 is the first. */
static oct_value *narrow_positive(fixture *f, oct_value *x, size_t i)
{
    int32_t low, high;

    oct_quant_limits(kinds[i].dtype, &low, &high);
    return qdq(f, x, kinds[i].dtype, &kinds[i].step, &low, 1, 1);
}

/* --- networks of one kind of codes --- */

/* Every short form of the epilogue and the general one; with weights of few bits, too. */
static void convolve(fixture *f, size_t i)
{
    static const oct_op *const acts[] = {NULL, &oct_op_relu, &oct_op_swish, &oct_op_hard_swish,
                                         &oct_op_sigmoid};

    for (size_t k = 0; k < sizeof(acts) / sizeof(*acts); k++) {
        const qconv_case q = {
            {24, 33, 3, 1, 1, 1, 1}, 0, k % 2 ? OCT_DTYPE_I4 : OCT_DTYPE_I8, 0, NULL};
        oct_value *y;

        restart(f);
        y = qconv(f, narrow(f, picture(f, 2, 24, 19, 17), i), &q);
        if (acts[k]) y = emit(f, acts[k], y, NULL);
        output(f, k == 1 ? narrow_positive(f, y, i) : narrow(f, y, i));
        assert_int_equal(count_steps(f, NULL, "FakeQuantize"), 0);
        assert_integer(f, "int8 conv", 1, kinds[i].step);
    }
}

static void add_what_skipped(fixture *f, size_t i)
{
    const qconv_case q = {{24, 24, 3, 1, 1, 1, 24}, 0, OCT_DTYPE_I8, 0, NULL};
    oct_value *x = narrow(f, picture(f, 2, 24, 19, 17), i), *y;

    y = emit(f, &oct_op_add, emit(f, &oct_op_relu, qconv(f, x, &q), NULL), x);
    output(f, narrow(f, y, i));
    assert_int_equal(count_steps(f, NULL, "Add"), 0);
    assert_integer(f, "int8 depthwise", 1, kinds[i].step);
}

static void compute_with_two(fixture *f, size_t i)
{
    static const oct_op *const ops[] = {&oct_op_add, &oct_op_mul};
    const float step = kinds[i].step * 0.6181f;

    for (int k = 0; k < 2; k++) {
        const int64_t dims[] = {2, 24, 9, 9};
        oct_value *a, *b;

        restart(f);
        a = narrow(f, graph_input(f, "a", OCT_DTYPE_F32, 4, dims), i);
        b = qdq_u8(f, graph_input(f, "b", OCT_DTYPE_F32, 4, dims), 0.0131f);
        output(f, qdq(f, emit(f, ops[k], a, b), kinds[i].dtype, &step, &kinds[i].zero, 1, 1));
        assert_integer(f, "int8 binary", 1, step);
    }
}

static void pool_and_look_up(fixture *f, size_t i)
{
    const float small = kinds[i].step * 0.1237f;
    oct_value *x = narrow(f, picture(f, 2, 24, 19, 17), i), *y;

    output(f, narrow(f, max_pool(f, x), i));
    y = emit(f, &oct_op_global_average_pool, x, NULL);
    output(f, qdq(f, y, kinds[i].dtype, &small, &kinds[i].zero, 1, 1));
    output(f, narrow(f, emit(f, &oct_op_sigmoid, x, NULL), i));
    assert_int_equal(count_kernels(f, NULL, "int8 pool"), 2);
    assert_integer(f, "int8 table", 1, kinds[i].step);
}

/* From codes of few bits to others and back: only what is the same may be left out. */
static void change_lengths(fixture *f, size_t i)
{
    oct_value *x = picture(f, 2, 8, 19, 17);
    int32_t low, high, zero;

    oct_quant_limits(kinds[i].dtype, &low, &high);
    zero = kinds[i].zero - low;
    x = qdq(f, x, OCT_DTYPE_U8, &kinds[i].step, &(int32_t){100}, 1, 1);
    x = qdq(f, x, OCT_DTYPE_U8, &kinds[i].step, &zero, 1, 1);
    x = narrow(f, x, i);
    output(f, qdq(f, x, OCT_DTYPE_U8, &kinds[i].step, &zero, 1, 1));
    assert_codes(f, kinds[i].step);
}

static void give_channels_scales(fixture *f, size_t i)
{
    enum { C = 24 };
    const qconv_case q = {{C, C, 3, 1, 1, 1, C}, 0, OCT_DTYPE_I8, 0, NULL};
    oct_value *x = picture(f, 2, C, 19, 17);
    float scale[C];
    int32_t zero[C];

    for (int c = 0; c < C; c++) {
        scale[c] = kinds[i].step * (0.5f + 0.0417f * (float)c);
        zero[c] = kinds[i].zero + c % 2;
    }
    x = qdq(f, x, kinds[i].dtype, scale, zero, C, 1);
    output(f, qdq(f, qconv(f, x, &q), kinds[i].dtype, scale, zero, C, 1));
    assert_integer(f, "int8 depthwise", 1, kinds[i].step * 1.5f);
}

/* --- tests: all kinds of codes --- */

static void for_kinds(void **state, void (*check)(fixture *, size_t))
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        restart(*state);
        check(*state, i);
    }
}

#define FOR_KINDS(name, check)                                                                     \
    static void name(void **state)                                                                 \
    {                                                                                              \
        for_kinds(state, check);                                                                   \
    }

FOR_KINDS(convolutions, convolve)
FOR_KINDS(sums_with_what_skipped, add_what_skipped)
FOR_KINDS(arithmetic, compute_with_two)
FOR_KINDS(pools_and_tables, pool_and_look_up)
FOR_KINDS(codes_of_other_lengths, change_lengths)
FOR_KINDS(channels_have_scales, give_channels_scales)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(convolutions, setup, teardown),
        cmocka_unit_test_setup_teardown(sums_with_what_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(arithmetic, setup, teardown),
        cmocka_unit_test_setup_teardown(pools_and_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(codes_of_other_lengths, setup, teardown),
        cmocka_unit_test_setup_teardown(channels_have_scales, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
