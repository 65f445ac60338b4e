/* SPDX-License-Identifier: Apache-2.0 */
/* Counted memory, growing arrays, arenas. */
#include "tests/alloc.h"

#include "base/mem.h"

static void memory_is_aligned_counted_and_limited(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    void *p = oct_alloc(ctx, 1000), *q;

    (void)state;
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 64, 0);
    assert_true(atomic_load(&ctx->mem_used) >= 1000);

    oct_ctx_set_memory_limit(ctx, 4000);
    assert_null(oct_alloc(ctx, 3000));
    assert_non_null(strstr(oct_ctx_error(ctx), "limit"));
    assert_null(oct_alloc(ctx, 1000000));
    assert_null(oct_alloc(ctx, SIZE_MAX));
    assert_null(oct_alloc(ctx, SIZE_MAX - 64));
    assert_null(oct_calloc(ctx, SIZE_MAX / 2, 3));
    q = oct_alloc(ctx, 2000); /* what failed was not counted */
    assert_non_null(q);
    oct_free(ctx, p);
    p = oct_alloc(ctx, 1000);
    assert_non_null(p);
    oct_free(ctx, p);
    oct_free(ctx, q);
    oct_free(ctx, NULL);
    assert_int_equal(atomic_load(&ctx->mem_used), 0);

    p = oct_alloc(ctx, 0);
    assert_non_null(p);
    oct_free(ctx, p);
    oct_ctx_free(ctx);
}

static void grow_keeps_what_was_there(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    size_t cap = 0;
    int *items = NULL;

    (void)state;
    for (size_t i = 0; i < 10000; i++) {
        assert_ok(ctx, oct_grow(ctx, &items, &cap, i + 1, sizeof(*items)));
        assert_true(cap > i);
        items[i] = (int)i;
    }
    for (int i = 0; i < 10000; i++)
        assert_int_equal(items[i], i);
    assert_fails(ctx, oct_grow(ctx, &items, &cap, SIZE_MAX / 2, sizeof(*items)), OCT_ERR_MEMORY,
                 "memory");
    assert_int_equal(items[9999], 9999);
    oct_free(ctx, items);
    assert_int_equal(atomic_load(&ctx->mem_used), 0);
    oct_ctx_free(ctx);
}

static void arena_gives_zeroed_aligned_memory(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_arena *a = oct_arena_new(ctx);

    (void)state;
    assert_ptr_equal(oct_arena_ctx(a), ctx);
    for (int round = 0; round < 3; round++) {
        for (size_t size = 0; size < 3000; size += 7) {
            unsigned char *p = oct_arena_alloc(a, size);

            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(p[i], 0);
            memset(p, 0xff, size);
        }
        oct_arena_reset(a);
    }
    assert_null(oct_arena_alloc(a, SIZE_MAX));
    assert_null(oct_arena_alloc(a, SIZE_MAX - 15));
    assert_null(oct_arena_array(a, SIZE_MAX / 2, 3));
    assert_null(oct_arena_strndup(a, "", SIZE_MAX));
    assert_non_null(oct_arena_array(a, 10, 10));
    oct_arena_free(a);
    oct_arena_free(NULL);
    assert_int_equal(atomic_load(&ctx->mem_used), 0);
    oct_ctx_free(ctx);
}

static void arena_makes_strings(void **state)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_arena *a = oct_arena_new(ctx);

    (void)state;
    assert_string_equal(oct_arena_strdup(a, "conv"), "conv");
    assert_string_equal(oct_arena_strndup(a, "conv", 2), "co");
    assert_string_equal(oct_arena_strndup(a, NULL, 0), "");
    assert_string_equal(oct_arena_printf(a, "%s_%d", "conv", 3), "conv_3");
    oct_arena_free(a);
    oct_ctx_free(ctx);
}

static void arena_reset_reaches_a_steady_state(void **state)
{
    failing f;
    oct_ctx *ctx = failing_ctx(&f);
    oct_arena *a = oct_arena_new(ctx);
    int after_two;

    (void)state;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 2000; i++)
            assert_non_null(oct_arena_alloc(a, 500));
        assert_non_null(oct_arena_alloc(a, 3 << 20));
        oct_arena_reset(a);
        if (round == 0) after_two = f.n_asked;
    }
    assert_int_equal(f.n_asked, after_two);
    oct_arena_free(a);
    oct_ctx_free(ctx);
    assert_int_equal(f.n_live, 0);
}

static oct_status use_arena(oct_ctx *ctx)
{
    oct_arena *a = oct_arena_new(ctx);
    oct_status st = OCT_ERR_MEMORY;

    if (!a) return st;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++) {
            if (!oct_arena_alloc(a, 300)) goto done;
        }
        if (!oct_arena_alloc(a, 100000)) goto done;
        if (!oct_arena_printf(a, "%d", round)) goto done;
    }
    st = OCT_OK;
done:
    oct_arena_free(a);
    return st;
}

static void arena_survives_every_failure(void **state)
{
    (void)state;
    fail_each_allocation(use_arena);
}

static void reset_without_memory_leaves_a_usable_arena(void **state)
{
    failing f;
    oct_ctx *ctx = failing_ctx(&f);
    oct_arena *a = oct_arena_new(ctx);

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_non_null(oct_arena_alloc(a, 500));
    f.fail_at = f.n_asked + 1;
    oct_arena_reset(a);
    assert_non_null(oct_arena_alloc(a, 500));
    oct_arena_free(a);
    oct_ctx_free(ctx);
    assert_int_equal(f.n_live, 0);
}

static oct_status use_heap(oct_ctx *ctx)
{
    char *s = oct_strdup(ctx, "text"), *items = NULL;
    oct_status st = OCT_ERR_MEMORY;
    size_t cap = 0;

    if (!s) return st;
    for (size_t need = 1; need < 1000; need *= 3) {
        if ((st = oct_grow(ctx, &items, &cap, need, 1))) goto done;
    }
done:
    oct_free(ctx, s);
    oct_free(ctx, items);
    return st;
}

static void heap_survives_every_failure(void **state)
{
    (void)state;
    fail_each_allocation(use_heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_counted_and_limited),
        cmocka_unit_test(grow_keeps_what_was_there),
        cmocka_unit_test(arena_gives_zeroed_aligned_memory),
        cmocka_unit_test(arena_makes_strings),
        cmocka_unit_test(arena_reset_reaches_a_steady_state),
        cmocka_unit_test(arena_survives_every_failure),
        cmocka_unit_test(reset_without_memory_leaves_a_usable_arena),
        cmocka_unit_test(heap_survives_every_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
