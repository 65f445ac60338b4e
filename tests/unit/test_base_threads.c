/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs on several threads: all items are done, and the failure of the lowest one is reported. */
#include "tests/test.h"

#include <stdatomic.h>

#include "base/threads.h"

enum { N_ITEMS = 500 };

typedef struct board {
    atomic_int next, done, n_stops;
    atomic_bool is_stopped;
    int fails_from;     /* items from here on fail */
    int init_fails;     /* the worker whose init fails; -1: none */
    int n_init, n_fini; /* of the calling thread only */
    oct_ctx *ctx[OCT_MAX_WORKERS];
} board;

static oct_status init(void *user, int32_t worker, oct_ctx *ctx)
{
    board *b = user;

    b->n_init++;
    b->ctx[worker] = ctx;
    return worker == b->init_fails ? oct_fail(ctx, OCT_ERR_STATE, "worker %d cannot start", worker)
                                   : OCT_OK;
}

static oct_status work(void *user, int32_t worker, oct_ctx *ctx, int64_t *item)
{
    board *b = user;

    if (ctx != b->ctx[worker]) return OCT_ERR_STATE;
    while (!atomic_load(&b->is_stopped)) {
        *item = atomic_fetch_add(&b->next, 1);
        if (*item >= N_ITEMS) return OCT_OK;
        if (*item >= b->fails_from) return oct_fail(ctx, OCT_ERR_FORMAT, "item %d", (int)*item);
        atomic_fetch_add(&b->done, 1);
    }
    return OCT_OK;
}

static void stop(void *user)
{
    board *b = user;

    atomic_fetch_add(&b->n_stops, 1);
    atomic_store(&b->is_stopped, true);
}

static void fini(void *user, int32_t worker)
{
    board *b = user;

    (void)worker;
    b->n_fini++;
}

static oct_status run(oct_ctx *ctx, board *b, int32_t n_workers)
{
    const oct_job job = {
        .user = b, .n_workers = n_workers, .init = init, .work = work, .stop = stop, .fini = fini};

    return oct_job_run(ctx, &job);
}

static void all_items_are_done(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);

    (void)state;
    for (int32_t n = 1; n <= OCT_MAX_WORKERS; n++) {
        board b = {.fails_from = N_ITEMS, .init_fails = -1};

        assert_ok(ctx, run(ctx, &b, n));
        assert_int_equal(atomic_load(&b.done), N_ITEMS);
        assert_int_equal(b.n_init, n);
        assert_int_equal(b.n_fini, n);
        assert_int_equal(atomic_load(&b.n_stops), 0);
        assert_ptr_equal(b.ctx[0], ctx);
    }
    oct_ctx_free(ctx);
}

static void the_lowest_failure_is_reported(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);

    (void)state;
    for (int round = 0; round < 50; round++) {
        board b = {.fails_from = 40, .init_fails = -1};

        assert_fails(ctx, run(ctx, &b, 4), OCT_ERR_FORMAT, "item 40");
        assert_int_equal(atomic_load(&b.done), 40);
        assert_true(atomic_load(&b.n_stops) >= 1);
        assert_int_equal(b.n_fini, 4);
    }
    oct_ctx_free(ctx);
}

static void a_failed_init_ends_the_job(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);

    (void)state;
    for (int at = 0; at < 3; at++) {
        board b = {.fails_from = N_ITEMS, .init_fails = at};

        assert_fails(ctx, run(ctx, &b, 3), OCT_ERR_STATE, "cannot start");
        assert_int_equal(atomic_load(&b.done), 0);
        assert_int_equal(b.n_init, at + 1);
        assert_int_equal(b.n_fini, 3);
    }
    oct_ctx_free(ctx);
}

static void workers_divide_the_threads(void **state)
{
    (void)state;
    assert_int_equal(oct_job_workers(1, 100), 1);
    assert_int_equal(oct_job_workers(6, 100), 6);
    assert_int_equal(oct_job_workers(6, 5), 3);
    assert_int_equal(oct_job_workers(7, 5), 1);
    assert_int_equal(oct_job_workers(32, 100), OCT_MAX_WORKERS);
    assert_int_equal(oct_job_workers(4, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_items_are_done),
        cmocka_unit_test(the_lowest_failure_is_reported),
        cmocka_unit_test(a_failed_init_ends_the_job),
        cmocka_unit_test(workers_divide_the_threads),
    };

    return run_test_group(tests);
}
