/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: known values, and the shape of the normal distribution. */
#include "tests/test.h"

#include "base/rng.h"

static void known_numbers(void **state)
{
    oct_rng r;

    (void)state;
    oct_rng_init(&r, 0); /* splitmix64's published first numbers */
    assert_true(oct_rng_u64(&r) == 0xe220a8397b1dcdafu);
    assert_true(oct_rng_u64(&r) == 0x6e789e6aa1b965f4u);
    assert_true(oct_rng_u64(&r) == 0x06c45d188009454fu);
}

static void normal_has_its_moments(void **state)
{
    const int n = 200000;
    double sum = 0, squares = 0, fourth = 0;
    int within = 0;
    oct_rng r;

    (void)state;
    oct_rng_init(&r, 42);
    for (int i = 0; i < n; i++) {
        const double x = oct_rng_normal(&r);

        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        within += fabs(x) < 1;
    }
    assert_true(fabs(sum / n) < 0.01);
    assert_true(fabs(squares / n - 1) < 0.02);
    assert_true(fabs(fourth / n - 3) < 0.15);
    assert_true(fabs((double)within / n - 0.6827) < 0.005);
}

/* The same steps with libm's logarithm give the same numbers, but for the last bits. */
static void normal_agrees_with_libm(void **state)
{
    oct_rng a, b;

    (void)state;
    oct_rng_init(&a, 7);
    oct_rng_init(&b, 7);
    for (int i = 0; i < 10000; i++) {
        double u, v, s, want;

        do {
            u = 2 * oct_rng_f64(&b) - 1;
            v = 2 * oct_rng_f64(&b) - 1;
            s = u * u + v * v;
        } while (s >= 1 || s <= 0);
        want = u * sqrt(-2 * log(s) / s);
        assert_true(fabs(oct_rng_normal(&a) - want) <= 1e-14 * fabs(want));
    }
}

static void ranges_hold(void **state)
{
    int seen[7] = {0};
    oct_rng r;

    (void)state;
    oct_rng_init(&r, 3);
    for (int i = 0; i < 7000; i++) {
        const double x = oct_rng_f64(&r);

        assert_true(x >= 0 && x < 1);
        seen[oct_rng_below(&r, 7)]++;
    }
    for (int i = 0; i < 7; i++)
        assert_true(seen[i] > 850 && seen[i] < 1150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_numbers),
        cmocka_unit_test(normal_has_its_moments),
        cmocka_unit_test(normal_agrees_with_libm),
        cmocka_unit_test(ranges_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
