/* SPDX-License-Identifier: Apache-2.0 */
/* Moving averages of weights: decays by name, updates, averages that start from zeros. */
#include "base/rng.h"
#include "optim/ema.h"
#include "tests/test.h"

static double decay_of(const char *name, int64_t n, int64_t total)
{
    const oct_ema_row *row = oct_ema_find(name);

    assert_non_null(row);
    return row->at(row->decay, n, total);
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12)) fail_msg("%.17g, want %.17g", got, want);
}

static void decays_by_name(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 20000; n = n * 3 + 1) {
        const double x = (double)n, rise = 1 - exp(-x / 2000);

        assert_near(decay_of("ultralytics", n, 0), 0.9999 * rise);
        assert_near(decay_of("yolox", n, 0), 0.9998 * rise);
        assert_near(decay_of("nanodet", n, 0), 0.9998 * rise);
        assert_near(decay_of("threshold", n, 0), fmin(0.9997, (1 + x) / (10 + x)));
        assert_near(decay_of("exp", n, 5000), 0.9999 * (1 - exp(-15 * x / 5000)));
        assert_near(decay_of("paddle", n, 0), fmin(0.9998, x / (9 + x)));
        assert_near(decay_of("constant", n, 0), 0.9998);
    }
    assert_near(decay_of("threshold", 1000000, 0), 0.9997);
    assert_null(oct_ema_find("none"));
}

static void updates(void **state)
{
    const oct_ema_row *row = oct_ema_find("threshold");
    const float live[2] = {1, -4};
    float average[2], out[2];

    (void)state;
    oct_ema_start(row, average, (float[]){3, 2}, 2);
    oct_ema_read(row, 0, 0, 100, average, live, out, 2, 1);
    assert_memory_equal(out, live, sizeof(live));
    oct_ema_update(row, 0, 1, 100, average, live, 2, 1); /* 2/11 of the old */
    assert_true(fabs((double)average[0] - (3.0 * 2 + 1 * 9) / 11) < 1e-6);
    assert_true(fabs((double)average[1] - (2.0 * 2 - 4 * 9) / 11) < 1e-6);
    oct_ema_update(row, 0.1, 2, 100, average, live, 2, 1); /* another decay: at most 0.1 */
    assert_true(fabs((double)average[0] - (0.1 * 15 / 11 + 0.9)) < 1e-6);
    oct_ema_read(row, 0, 2, 100, average, live, out, 2, 1);
    assert_memory_equal(out, average, sizeof(out));
}

static void averages_from_zeros_are_divided(void **state)
{
    const oct_ema_row *row = oct_ema_find("paddle");
    const float live[1] = {5};
    float average[1], out[1];

    (void)state;
    oct_ema_start(row, average, live, 1);
    assert_true(average[0] == 0);
    oct_ema_update(row, 0, 1, 100, average, live, 1, 1); /* d = .1 */
    assert_true(fabs((double)average[0] - 4.5) < 1e-6);
    oct_ema_read(row, 0, 1, 100, average, live, out, 1, 1);
    assert_true(fabs((double)out[0] - 5) < 1e-6);
    oct_ema_update(row, 0, 2, 100, average, live, 1, 1); /* d = 2/11 */
    oct_ema_read(row, 0, 2, 100, average, live, out, 1, 1);
    assert_near(oct_ema_weight(row, 0, 2, 100), 1 - 4.0 / 121);
    assert_true(fabs((double)out[0] - (4.5 * 2 / 11 + 45.0 / 11) / (1 - 4.0 / 121)) < 1e-5);
}

static void bytes_do_not_depend_on_threads(void **state)
{
    fixture *f = *state;
    enum { N = 100001 };
    float *live = oct_calloc(f->ctx, N, sizeof(float)), *average[2];
    oct_rng rng;

    oct_rng_init(&rng, 3);
    for (int i = 0; i < N; i++)
        live[i] = (float)oct_rng_normal(&rng);
    for (int k = 0; k < 2; k++) {
        average[k] = oct_calloc(f->ctx, N, sizeof(float));
        for (int n = 1; n < 4; n++)
            oct_ema_update(oct_ema_find("yolox"), 0, n, 10, average[k], live, N, k ? 4 : 1);
    }
    assert_memory_equal(average[0], average[1], N * sizeof(float));
    for (int k = 0; k < 2; k++)
        oct_free(f->ctx, average[k]);
    oct_free(f->ctx, live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(decays_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(updates, setup, teardown),
        cmocka_unit_test_setup_teardown(averages_from_zeros_are_divided, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_do_not_depend_on_threads, setup, teardown),
    };

    return run_test_group(tests);
}
