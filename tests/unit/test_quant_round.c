/* SPDX-License-Identifier: Apache-2.0 */
/* Weights to codes whose errors cancel. */
#include "tests/test.h"

#include <math.h>

#include "base/rng.h"
#include "op/op.h"
#include "quant/solve/round_weights.h"

static const oct_qspec s8 = {
    .bits = 8, .is_signed = true, .is_symmetric = true, .is_narrow = true, .axis = 0};
static const oct_qspec u4 = {.bits = 4, .axis = OCT_QSPEC_PER_TENSOR};

static double sum_of_errors(const float *x, float scale, int32_t zero, const int32_t *code, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += code[i] - zero - (double)(x[i] / scale);
    return sum;
}

/* Codes that are not the nearest are the one beside it, and those weights were nearer to a tie than
 * all others with an error of that sign. */
static void assert_cheapest(const oct_qspec *s, const float *x, float scale, int32_t zero,
                            const int32_t *code, int n)
{
    double moved = 1, stayed = 0;
    int way = 0; /* of the codes that moved */

    for (int i = 0; i < n; i++) {
        const int32_t nearest = oct_qspec_code(s, scale, zero, x[i]);

        assert_in_range(code[i] - nearest + 1, 0, 2);
        if (code[i] == nearest) continue;
        assert_true(way == 0 || way == code[i] - nearest);
        way = code[i] - nearest;
        moved = fmin(moved, -way * sum_of_errors(x + i, scale, zero, &nearest, 1));
    }
    for (int i = 0; i < n; i++) {
        const int32_t nearest = oct_qspec_code(s, scale, zero, x[i]);

        if (code[i] == nearest)
            stayed = fmax(stayed, -way * sum_of_errors(x + i, scale, zero, &nearest, 1));
    }
    assert_true(moved >= stayed);
}

static void sums_of_kernels_are_kept(void **state)
{
    const oct_qspec *specs[] = {&s8, &u4};
    oct_rng r;

    (void)state;
    oct_rng_init(&r, 3);
    for (int trial = 0; trial < 2000; trial++) {
        const oct_qspec *s = specs[trial % 2];
        const float scale = s == &s8 ? 0.01f : 0.3f;
        const int32_t zero = s == &s8 ? 0 : 7;
        const int n = 2 + trial % 24;
        float x[OCT_MAX_TAPS];
        int32_t code[OCT_MAX_TAPS];

        for (int i = 0; i < n; i++)
            x[i] = (float)(oct_rng_normal(&r) * 0.2); /* far from the limits */
        oct_round_weights(s, scale, zero, x, code, n);
        assert_true(fabs(sum_of_errors(x, scale, zero, code, n)) <= 0.5001);
        assert_cheapest(s, x, scale, zero, code, n);
    }
}

static void nothing_else_changes(void **state)
{
    const float even[] = {0.1f, 0.2f, -0.3f}, nan[] = {NAN, 0.004f, 0.004f};
    int32_t code[OCT_MAX_TAPS];

    (void)state;
    oct_round_weights(&s8, 0.1f, 0, even, code, 3); /* all have codes */
    assert_true(code[0] == 1 && code[1] == 2 && code[2] == -3);
    oct_round_weights(&s8, 0.01f, 0, nan, code, 3);
    assert_true(code[0] == -127 && code[1] == 0 && code[2] == 0);
    oct_round_weights(&s8, 0.01f, 0, &nan[2], code, 1); /* alone: the nearest */
    assert_int_equal(code[0], 0);
}

static void clipping_is_not_made_up_for(void **state)
{
    const float over[] = {9, 9, 0.003f, 0.001f}, under[] = {-9, -0.003f, -0.001f};
    const float both[] = {9, 0.004f, 0.0045f, 0.004f};
    const float end[] = {1.274f, 0.003f}; /* rounded to the last code, not clipped */
    int32_t code[OCT_MAX_TAPS];

    (void)state;
    oct_round_weights(&s8, 0.01f, 0, over, code, 4);
    assert_true(code[0] == 127 && code[1] == 127 && code[2] == 0 && code[3] == 0);
    oct_round_weights(&s8, 0.01f, 0, under, code, 3);
    assert_true(code[0] == -127 && code[1] == 0 && code[2] == 0);
    oct_round_weights(&s8, 0.01f, 0, both, code, 4); /* errors of rounding still cancel */
    assert_true(code[0] == 127 && code[1] == 0 && code[2] == 1 && code[3] == 0);
    oct_round_weights(&s8, 0.01f, 0, end, code, 2);
    assert_true(code[0] == 127 && code[1] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_kernels_are_kept),
        cmocka_unit_test(nothing_else_changes),
        cmocka_unit_test(clipping_is_not_made_up_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
