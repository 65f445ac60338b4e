/* SPDX-License-Identifier: Apache-2.0 */
/* What calibration does with numbers: each instruction set against plain loops. */
#include "tests/test.h"

#include <math.h>

#include "base/rng.h"
#include "exec/simd/simd.h"

enum { ROWS = 37, PITCH = 70, SLOTS = 64 };

static const int widths[] = {1, 3, 4, 7, 8, 16, 17, 31, 48, 63, 64};

static void draw(float *x)
{
    oct_rng r;

    oct_rng_init(&r, 5);
    for (int i = 0; i < ROWS * PITCH; i++)
        x[i] = i % 7 == 0 ? 0 : (float)oct_rng_normal(&r);
}

static void plain_scan(oct_column_stats *l, const float *x, int width)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < width; j++) {
            const float v = x[i * PITCH + j];

            if (v < l->low[j]) l->low[j] = v;
            if (v > l->high[j]) l->high[j] = v;
            l->bad[j] += v - v;
            l->zeros[j] += v == 0;
        }
}

static void start(oct_column_stats *l)
{
    for (int j = 0; j < OCT_STATS_LANES; j++) {
        l->low[j] = INFINITY;
        l->high[j] = -INFINITY;
        l->bad[j] = l->zeros[j] = 0;
    }
}

static void columns_are_scanned(void **state)
{
    float x[ROWS * PITCH];
    const oct_simd *s;

    (void)state;
    draw(x);
    for (int i = 0; (s = oct_simd_at(i)); i++)
        for (size_t k = 0; k < sizeof(widths) / sizeof(widths[0]); k++) {
            oct_column_stats got, want;

            start(&got);
            start(&want);
            plain_scan(&want, x, widths[k]);
            s->stats->scan(&got, x, ROWS, PITCH, widths[k]);
            assert_memory_equal(&got, &want, sizeof(got));
        }
}

static void bad_numbers_leave_a_mark(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    const oct_simd *s;

    (void)state;
    for (int i = 0; (s = oct_simd_at(i)); i++)
        for (int k = 0; k < 3; k++) {
            float x[ROWS * PITCH];
            oct_column_stats l;

            draw(x);
            start(&l);
            x[20 * PITCH + 18] = bad[k];
            s->stats->scan(&l, x, ROWS, PITCH, 33);
            assert_true(isnan(l.bad[18]) && l.bad[17] == 0);
            assert_false(isnan(l.low[18]) || isnan(l.high[18]));
        }
}

/* Columns are on their own, so sums are the same to the bit. */
static void columns_are_summed(void **state)
{
    float x[ROWS * PITCH];
    const oct_simd *s;

    (void)state;
    draw(x);
    for (int i = 0; (s = oct_simd_at(i)); i++)
        for (int width = 1; width <= PITCH; width += 3) {
            double got[PITCH] = {0};

            s->stats->sum(got, x, ROWS, PITCH, width);
            for (int j = 0; j < PITCH; j++) {
                double want = 0;

                for (int r = 0; r < ROWS && j < width; r += 16) {
                    float part = 0;

                    for (int q = r; q < r + 16 && q < ROWS; q++)
                        part += x[q * PITCH + j];
                    want += (double)part;
                }
                assert_true(got[j] == want);
            }
        }
}

static void numbers_are_counted(void **state)
{
    float x[ROWS * PITCH], inv[OCT_STATS_LANES];
    int32_t base[OCT_STATS_LANES];
    const oct_simd *s;

    (void)state;
    draw(x);
    for (int j = 0; j < OCT_STATS_LANES; j++) {
        inv[j] = j % 2 ? 4.0f : 2.0f;
        base[j] = -SLOTS / 2 - j * SLOTS;
    }
    for (int i = 0; (s = oct_simd_at(i)); i++)
        for (size_t k = 0; k < sizeof(widths) / sizeof(widths[0]); k++) {
            static uint64_t got[OCT_STATS_LANES * SLOTS], want[OCT_STATS_LANES * SLOTS];

            memset(got, 0, sizeof(got));
            memset(want, 0, sizeof(want));
            s->stats->count(got, x, ROWS, PITCH, widths[k], inv, base, 3);
            for (int r = 0; r < ROWS; r++)
                for (int j = 0; j < widths[k]; j++)
                    want[(int)floorf(x[r * PITCH + j] * inv[j]) - base[j]] += 3;
            assert_memory_equal(got, want, sizeof(got));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_scanned),
        cmocka_unit_test(bad_numbers_leave_a_mark),
        cmocka_unit_test(columns_are_summed),
        cmocka_unit_test(numbers_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
