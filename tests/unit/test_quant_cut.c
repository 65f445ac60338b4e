/* SPDX-License-Identifier: Apache-2.0 */
/* Minimum cuts against all ways to part a few things. */
#include "tests/test.h"

#include "base/rng.h"
#include "quant/fallback/min_cut.h"

enum { N = 9 };

typedef struct problem {
    int64_t here[N], there[N], part[N][N];
} problem;

static int64_t total(const problem *p, const uint8_t *is_here)
{
    int64_t sum = 0;

    for (int i = 0; i < N; i++) {
        sum += is_here[i] ? p->here[i] : p->there[i];
        for (int k = 0; k < N; k++)
            if (is_here[i] && !is_here[k]) sum += p->part[i][k];
    }
    return sum;
}

static int64_t cheapest(const problem *p)
{
    int64_t best = INT64_MAX;

    for (unsigned bits = 0; bits < 1u << N; bits++) {
        uint8_t is_here[N];

        for (int i = 0; i < N; i++)
            is_here[i] = bits >> i & 1;
        best = OCT_MIN(best, total(p, is_here));
    }
    return best;
}

static int64_t draw(oct_rng *rng, int64_t below)
{
    return (int64_t)(oct_rng_f64(rng) * (double)below);
}

static void solve(fixture *f, const problem *p, uint8_t *is_here)
{
    oct_arena *a = oct_arena_new(f->ctx);
    oct_min_cut *c = NULL;

    assert_non_null(a);
    assert_ok(f->ctx, oct_min_cut_new(a, N, &c));
    for (int i = 0; i < N; i++) {
        assert_ok(f->ctx, oct_min_cut_terminals(c, i, p->here[i], p->there[i]));
        for (int k = 0; k < N; k++)
            assert_ok(f->ctx, oct_min_cut_edge(c, i, k, p->part[i][k]));
    }
    assert_ok(f->ctx, oct_min_cut_solve(c, is_here));
    oct_arena_free(a);
}

static void no_way_is_cheaper(void **state)
{
    fixture *f = *state;
    oct_rng rng;

    oct_rng_init(&rng, 1);
    for (int round = 0; round < 200; round++) {
        problem p = {0};
        uint8_t is_here[N];

        for (int i = 0; i < N; i++) {
            p.here[i] = draw(&rng, 100);
            p.there[i] = draw(&rng, 100);
            for (int k = 0; k < N; k++)
                if (i != k && draw(&rng, 3) == 0) p.part[i][k] = draw(&rng, 60);
        }
        solve(f, &p, is_here);
        assert_int_equal(total(&p, is_here), cheapest(&p));
    }
}

/* 0 gains by being here, 1 must not be there alone, 2 must be there. */
static void prices_that_are_never_paid_bind(void **state)
{
    problem p = {.there = {50, 0, 0}, .here = {0, 20, OCT_MIN_CUT_INFINITE}};
    uint8_t is_here[N];

    p.part[0][1] = OCT_MIN_CUT_INFINITE;
    solve(*state, &p, is_here);
    assert_true(is_here[0] && is_here[1] && !is_here[2]);
    p.here[1] = 80; /* more than there is to gain */
    solve(*state, &p, is_here);
    assert_false(is_here[0] || is_here[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_way_is_cheaper, setup, teardown),
        cmocka_unit_test_setup_teardown(prices_that_are_never_paid_bind, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
