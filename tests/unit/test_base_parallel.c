/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel loops: every index once, the same chunks for any number of threads. */
#include "tests/test.h"

#include <stdatomic.h>
#include <time.h>

#include "base/parallel.h"

#define N 10007

typedef struct seen {
    atomic_int at[N];
    atomic_int begins[N + 1]; /* at a chunk's begin: its length */
} seen;

static void mark(void *arg, int64_t begin, int64_t end)
{
    seen *s = arg;

    atomic_store(&s->begins[begin], (int)(end - begin));
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add(&s->at[i], 1);
}

static void every_index_once_in_fixed_chunks(void **state)
{
    const int64_t grains[] = {0, 1, 7, 1000, N - 1, N, N + 1, INT64_MAX};
    static seen s;

    (void)state;
    for (int threads = 0; threads <= 4; threads++) {
        for (size_t g = 0; g < OCT_COUNT(grains); g++) {
            const int64_t grain = OCT_MAX(grains[g], 1);

            memset(&s, 0, sizeof(s));
            oct_parallel_for(threads, N, grains[g], mark, &s);
            for (int64_t i = 0; i < N; i++) {
                const int64_t want = i % grain ? 0 : OCT_MIN(grain, N - i);

                assert_int_equal(atomic_load(&s.at[i]), 1);
                assert_int_equal(atomic_load(&s.begins[i]), want);
            }
        }
    }
}

static void nothing_to_do(void **state)
{
    (void)state;
    oct_parallel_for(2, 0, 1, mark, NULL);
    oct_parallel_for(2, -5, 1, mark, NULL);
}

static void inner(void *arg, int64_t begin, int64_t end)
{
    oct_parallel_for(2, end - begin, 3, mark, (seen *)arg);
}

static void nested_loops_finish(void **state)
{
    static seen s;

    (void)state;
    memset(&s, 0, sizeof(s));
    oct_parallel_for(2, 40, 10, inner, &s);
    for (int i = 0; i < 10; i++)
        assert_int_equal(atomic_load(&s.at[i]), 4);
}

/* --- a team --- */

typedef struct many {
    seen s;
    int32_t sum[300]; /* not atomic: a loop's end makes all of it visible */
    int n_threads, n_wrong;
} many;

static void count(void *arg, int64_t begin, int64_t end)
{
    many *m = arg;

    if (oct_parallel_thread() >= m->n_threads) m->n_wrong++;
    for (int64_t i = begin; i < end; i++)
        m->sum[i]++;
}

/* Many short loops, some of fewer threads, one inside another, and a pause in which helpers sleep.
 */
static void loops_of_a_team(void *arg)
{
    many *m = arg;

    for (int i = 0; i < 300; i++) {
        m->n_threads = 2 + i % 2;
        oct_parallel_for(m->n_threads, 300, 1 + i % 50, count, m);
        for (int k = 0; k < 300; k++)
            if (m->sum[k] != i + 1) m->n_wrong++;
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    oct_parallel_for(3, 40, 10, inner, &m->s);
}

static void a_team_runs_every_loop(void **state)
{
    static many m;

    (void)state;
    for (int threads = 0; threads <= 4; threads++) {
        memset(&m, 0, sizeof(m));
        oct_parallel_team(threads, loops_of_a_team, &m);
        assert_int_equal(m.n_wrong, 0);
        for (int i = 0; i < 10; i++)
            assert_int_equal(atomic_load(&m.s.at[i]), 4);
    }
}

/* More threads than a loop is cut into parts. */
static void loop_of_many(void *arg)
{
    oct_parallel_for(20, N, 7, mark, arg);
    oct_parallel_for(20, N, N / 18, mark, arg);
}

static void many_threads_share_parts(void **state)
{
    static seen s;

    (void)state;
    memset(&s, 0, sizeof(s));
    oct_parallel_team(20, loop_of_many, &s);
    for (int64_t i = 0; i < N; i++)
        assert_int_equal(atomic_load(&s.at[i]), 2);
}

/* What oneDNN's loops ask; there may be no OpenMP. */
int omp_get_max_threads(void) __attribute__((weak));

static void threads_can_be_set(void **state)
{
    static const int cases[][2] = {{2, 2}, {0, 1}, {3, 3}, {-5, 1}, {1, 1}};

    (void)state;
    if (!omp_get_max_threads) skip_test("OpenMP is not linked in");
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_parallel_set_threads(cases[i][0]);
        assert_int_equal(omp_get_max_threads(), cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_once_in_fixed_chunks),
        cmocka_unit_test(nothing_to_do),
        cmocka_unit_test(nested_loops_finish),
        cmocka_unit_test(a_team_runs_every_loop),
        cmocka_unit_test(many_threads_share_parts),
        cmocka_unit_test(threads_can_be_set),
    };

    return run_test_group(tests);
}
