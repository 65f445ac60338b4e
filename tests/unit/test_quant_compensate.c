/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding with compensation: codes of weights that make up for each other. */
#include "quant/learn/compensate.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "stat/least_squares.h"
#include "tests/test.h"

enum { N_TURN = 7 };

/* (q - w)' h (q - w) */
static double cost_of(const double *h, const double *q, const double *w)
{
    double sum = 0;

    for (int i = 0; i < N_TURN; i++)
        for (int j = 0; j < N_TURN; j++)
            sum += (q[i] - w[i]) * h[i * N_TURN + j] * (q[j] - w[j]);
    return sum;
}

/* Second moments of inputs that have much in common; the first is a constant. */
static void make_moments(oct_rng *rng, double *h)
{
    memset(h, 0, N_TURN * N_TURN * sizeof(*h));
    for (int s = 0; s < 40; s++) {
        double x[N_TURN] = {1};
        const double common = oct_rng_f64(rng);

        for (int i = 1; i < N_TURN; i++)
            x[i] = common + .3 * oct_rng_f64(rng);
        for (int i = 0; i < N_TURN * N_TURN; i++)
            h[i] += x[i / N_TURN] * x[i % N_TURN] / 40;
    }
}

/* Over all rounds less than half of the error of nearest codes with the best constant beside them.
 */
static void weights_make_up_for_each_other(void **state)
{
    double h[N_TURN * N_TURN], l[N_TURN * N_TURN], scratch[N_TURN], nearest = 0, in_turn = 0;
    const double unit[N_TURN] = {0, .25, .25, .5, .25, .125, .25};
    oct_rng rng;

    (void)state;
    oct_rng_init(&rng, 3);
    for (int round = 0; round < 50; round++) {
        double w[N_TURN], q[N_TURN], near[N_TURN], pull = 0, found;

        make_moments(&rng, h);
        memcpy(l, h, sizeof(l));
        assert_true(oct_factorize(l, N_TURN));
        for (int i = 0; i < N_TURN; i++) {
            w[i] = q[i] = 2 * oct_rng_f64(&rng) - 1;
            near[i] = i ? unit[i] * rint(w[i] / unit[i]) : w[i];
            pull += i ? h[i] * (near[i] - w[i]) : 0;
        }
        near[0] -= pull / h[0];
        found = oct_round_in_turn(l, N_TURN, unit, -7, 7, q, scratch);
        assert_true(fabs(found - cost_of(h, q, w)) < 1e-9);
        for (int i = 1; i < N_TURN; i++) {
            const double code = q[i] / unit[i];

            assert_true(code == rint(code) && fabs(code) <= 7);
        }
        nearest += cost_of(h, near, w);
        in_turn += cost_of(h, q, w);
    }
    assert_true(in_turn < .5 * nearest);
}

/* Inputs that have nothing in common: the nearest codes, within their limits. */
static void alone_weights_are_rounded_to_the_nearest(void **state)
{
    double l[N_TURN * N_TURN] = {0}, scratch[N_TURN];
    double w[N_TURN] = {.3, .3, -.3, .9, 5, -5, .1};
    const double unit[N_TURN] = {0, .5, .5, .5, .5, .5, .5};
    const double want[N_TURN] = {.3, .5, -.5, 1, 3.5, -3.5, 0};

    (void)state;
    for (int i = 0; i < N_TURN; i++)
        l[i * (N_TURN + 1)] = 1 + i;
    oct_round_in_turn(l, N_TURN, unit, -7, 7, w, scratch);
    for (int i = 0; i < N_TURN; i++)
        assert_true(w[i] == want[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_make_up_for_each_other),
        cmocka_unit_test(alone_weights_are_rounded_to_the_nearest),
    };

    return run_test_group(tests);
}
