/* SPDX-License-Identifier: Apache-2.0 */
/* Exponents of power-of-two scales that shifters can do. */
#include <math.h>

#include "quant/solve/solve.h"
#include "tests/unit/exec_net.h"

/* A point with the scales 2^-e of one or more channels. */
static int32_t add(oct_qmap *m, const oct_value *v, const oct_node *reader, int32_t operand,
                   oct_qrole role, const int *e, int64_t n)
{
    const oct_qpoint p = {.value = v,
                          .node = reader,
                          .operand = operand,
                          .role = role,
                          .spec = {.bits = role == OCT_QROLE_BIAS ? 16 : 8,
                                   .is_signed = true,
                                   .is_symmetric = true,
                                   .is_pow2 = true,
                                   .axis = n > 1 ? 0 : OCT_QSPEC_PER_TENSOR},
                          .dominator = -1};
    float scale[4];
    int32_t zero[4] = {0}, i;

    for (int64_t k = 0; k < n; k++)
        scale[k] = ldexpf(1.0f, -e[k]);
    assert_ok(m->ctx, oct_qmap_add(m, &p, &i));
    assert_ok(m->ctx, oct_qpoint_set(m, i, scale, zero, n, "test"));
    return i;
}

static void assert_exponent(const oct_qmap *m, int32_t point, int64_t k, int e)
{
    assert_true(m->points[point].scale[k] == ldexpf(1.0f, -e));
}

/* Exponents before and after, for two operands and the result. */
typedef struct binary_case {
    const oct_op *op;
    int before[3], after[3];
} binary_case;

static void operands_and_results_of_sums_and_products(void **state)
{
    static const int64_t dims[] = {1, 3, 2, 2};
    static const binary_case cases[] = {
        {&oct_op_add, {4, 5, 3}, {4, 5, 3}},     /* fits */
        {&oct_op_add, {2, 12, 3}, {2, 9, 3}},    /* operands too far apart */
        {&oct_op_sub, {12, 2, 3}, {9, 2, 3}},    /* the other way */
        {&oct_op_add, {1, 1, 12}, {1, 1, 8}},    /* result too fine */
        {&oct_op_add, {28, 28, 0}, {28, 28, 3}}, /* result too coarse for the shift */
        {&oct_op_mul, {4, 4, 6}, {4, 4, 6}},     /* fits */
        {&oct_op_mul, {2, 2, 6}, {2, 2, 4}},     /* finer than the product */
        {&oct_op_mul, {20, 20, 4}, {20, 20, 8}}, /* shift of more than 32 */
    };

    (void)state;
    for (size_t c = 0; c < OCT_COUNT(cases); c++) {
        fixture *f = NULL;
        oct_value *a, *b, *y;
        oct_qmap *m = NULL;

        assert_int_equal(setup((void **)&f), 0);
        a = graph_input(f, "a", OCT_DTYPE_F32, 4, dims);
        b = graph_input(f, "b", OCT_DTYPE_F32, 4, dims);
        y = emit(f, cases[c].op, a, b);
        assert_ok(f->ctx, oct_qmap_new(f->g, oct_target_named("npu-pow2"), &m));
        add(m, a, NULL, 0, OCT_QROLE_ACT, &cases[c].before[0], 1);
        add(m, b, NULL, 0, OCT_QROLE_ACT, &cases[c].before[1], 1);
        add(m, y, NULL, 0, OCT_QROLE_ACT, &cases[c].before[2], 1);
        assert_ok(f->ctx, oct_npu_shifts(m));
        for (int i = 0; i < 3; i++)
            assert_exponent(m, i, 0, cases[c].after[i]);
        oct_qmap_free(m);
        assert_int_equal(teardown((void **)&f), 0);
    }
}

/* Exponents of input, two channels' weights, bias and result. */
typedef struct layer_case {
    int before[5], after[5];
} layer_case;

static void weights_and_biases_of_layers(void **state)
{
    static const layer_case cases[] = {
        {{5, 7, 7, 10, 4}, {5, 7, 7, 10, 4}},     /* fits */
        {{8, 20, 12, 15, 4}, {8, 12, 12, 15, 4}}, /* one channel's sum is cut by more than 16 */
        {{2, 3, 3, 5, 9}, {2, 3, 3, 5, 5}},       /* a result finer than its sum */
        {{5, 15, 15, 2, 8}, {5, 12, 12, 2, 8}},   /* a bias far coarser than the sum */
        {{4, 4, 4, 40, 4}, {4, 4, 4, 20, 4}},     /* a bias far finer */
    };

    (void)state;
    for (size_t c = 0; c < OCT_COUNT(cases); c++) {
        const conv_case k = {3, 2, 1, 1, 1, 1, 1};
        fixture *f = NULL;
        oct_value *x, *y, *relu;
        oct_node *conv_node;
        oct_qmap *m = NULL;
        const int *e = cases[c].before;
        oct_rng rng;

        assert_int_equal(setup((void **)&f), 0);
        oct_rng_init(&rng, 1);
        x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 2, 2});
        y = conv(f, &rng, x, &k);
        relu = emit(f, &oct_op_relu, y, NULL); /* part of the layer: the point is behind it */
        conv_node = y->producer;
        assert_ok(f->ctx, oct_qmap_new(f->g, oct_target_named("npu-pow2-pc"), &m));
        add(m, x, NULL, 0, OCT_QROLE_ACT, &e[0], 1);
        add(m, conv_node->in[1], conv_node, 1, OCT_QROLE_WEIGHT, &e[1], 2);
        add(m, conv_node->in[2], conv_node, 2, OCT_QROLE_BIAS, &e[3], 1);
        add(m, relu, NULL, 0, OCT_QROLE_ACT, &e[4], 1);
        assert_ok(f->ctx, oct_npu_shifts(m));
        assert_exponent(m, 0, 0, cases[c].after[0]);
        assert_exponent(m, 1, 0, cases[c].after[1]);
        assert_exponent(m, 1, 1, cases[c].after[2]);
        assert_exponent(m, 2, 0, cases[c].after[3]);
        assert_exponent(m, 3, 0, cases[c].after[4]);
        oct_qmap_free(m);
        assert_int_equal(teardown((void **)&f), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_and_results_of_sums_and_products),
        cmocka_unit_test(weights_and_biases_of_layers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
