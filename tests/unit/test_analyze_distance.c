/* SPDX-License-Identifier: Apache-2.0 */
/* Measures of error, against figures worked out by hand. */
#include "tests/test.h"

#include "stat/distance.h"

typedef struct meter {
    oct_distance d;
    uint64_t counts[2 * OCT_DISTANCE_SLOTS];
} meter;

static void start(meter *m)
{
    memset(m->counts, 0, sizeof(m->counts));
    oct_distance_init(&m->d, m->counts);
}

static oct_error measure(const float *x, const float *y, int64_t n)
{
    meter m;

    start(&m);
    oct_distance_see(&m.d, x, y, n);
    return oct_distance_error(&m.d);
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12 * fmax(1, fabs(want))))
        fail_msg("%.17g, want %.17g", got, want);
}

static void noise_cosine_and_mse(void **state)
{
    const oct_error e = measure((float[]){1, 2, 2}, (float[]){1, 2, 4}, 3);

    (void)state;
    assert_near(e.noise, 4.0 / 9); /* (4 - 2)^2 over 1 + 4 + 4 */
    assert_near(e.mse, 4.0 / 3);
    assert_near(e.cosine, 13 / (3 * sqrt(21)));
}

static void divergence_of_histograms(void **state)
{
    const oct_error e = measure((float[]){0, 0, 1, 1}, (float[]){0, 1, 1, 1}, 4);

    (void)state;
    assert_near(e.kl, 0.5 * log(0.5 / 0.25) + 0.5 * log(0.5 / 0.75));
}

static void an_empty_bin_counts_half(void **state)
{
    const oct_error e = measure((float[]){0, 1}, (float[]){0, 0}, 2);

    (void)state; /* q is 2 and a half, of 2.5 */
    assert_near(e.kl, 0.5 * log(0.5 / (2 / 2.5)) + 0.5 * log(0.5 / (0.5 / 2.5)));
}

static void equal_numbers_have_no_error(void **state)
{
    const float x[] = {-3, 0, 0.25f, 1e6f};
    const oct_error e = measure(x, x, 4);

    (void)state;
    assert_true(e.noise == 0 && e.mse == 0 && e.kl == 0 && e.cosine == 1);
}

static void nothing_and_silence(void **state)
{
    const oct_error none = measure(NULL, NULL, 0);
    const oct_error zeros = measure((float[]){0, 0}, (float[]){0, 0}, 2);
    const oct_error lost = measure((float[]){1, 1}, (float[]){0, 0}, 2);
    const oct_error made = measure((float[]){0, 0}, (float[]){1, 0}, 2);

    (void)state;
    assert_true(none.noise < 0);
    assert_true(zeros.noise == 0 && zeros.cosine == 1);
    assert_true(lost.noise == 1 && lost.cosine == 0);
    assert_true(made.noise == 1 && made.mse == 0.5);
}

static void what_is_not_finite_is_left_out(void **state)
{
    const oct_error e = measure((float[]){1, NAN, 2, 2, INFINITY}, (float[]){1, 5, 2, 4, 0}, 5);

    (void)state;
    assert_near(e.noise, 4.0 / 9);
    assert_near(e.mse, 4.0 / 3);
}

/* Pictures seen by several workers, in any order. */
static void merging_changes_nothing(void **state)
{
    float x[999], y[999];
    meter all, parts[3];
    oct_error a, b;

    (void)state;
    start(&all);
    for (int i = 0; i < 999; i++) {
        x[i] = sinf((float)i) * (float)(i % 17);
        y[i] = x[i] + cosf((float)i) * 0.01f;
    }
    for (int k = 0; k < 3; k++) {
        start(&parts[k]);
        oct_distance_see(&parts[k].d, x + 333 * k, y + 333 * k, 333);
    }
    oct_distance_see(&all.d, x, y, 999);
    oct_distance_merge(&parts[2].d, &parts[0].d);
    oct_distance_merge(&parts[2].d, &parts[1].d);
    a = oct_distance_error(&all.d);
    b = oct_distance_error(&parts[2].d);
    assert_near(b.noise, a.noise);
    assert_near(b.cosine, a.cosine);
    assert_near(b.mse, a.mse);
    assert_true(a.kl == b.kl && a.kl > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_cosine_and_mse),
        cmocka_unit_test(divergence_of_histograms),
        cmocka_unit_test(an_empty_bin_counts_half),
        cmocka_unit_test(equal_numbers_have_no_error),
        cmocka_unit_test(nothing_and_silence),
        cmocka_unit_test(what_is_not_finite_is_left_out),
        cmocka_unit_test(merging_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
