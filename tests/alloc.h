/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that fails when told to, and counts what is not given back. */
#ifndef OCT_TESTS_ALLOC_H
#define OCT_TESTS_ALLOC_H

#include <stdatomic.h>

#include "tests/test.h"

typedef struct failing {
    int fail_at;                /* the allocation that fails, from 1; 0: none */
    atomic_int n_asked, n_live; /* workers allocate too */
} failing;

static inline void *failing_alloc(void *user, size_t size)
{
    failing *f = user;
    void *p;

    if (++f->n_asked == f->fail_at) return NULL;
    p = aligned_alloc(64, (size + 63) / 64 * 64);
    if (p) f->n_live++;
    return p;
}

static inline void failing_free(void *user, void *p)
{
    failing *f = user;

    if (p) f->n_live--;
    free(p);
}

static inline oct_ctx *failing_ctx(failing *f)
{
    const oct_allocator a = {failing_alloc, failing_free, f};
    oct_ctx *ctx;

    *f = (failing){0};
    ctx = oct_ctx_new(&a);
    assert_non_null(ctx);
    f->n_asked = 0; /* the context itself is not what is tested */
    return ctx;
}

/*
 * Runs `work` with the first, the second, ... allocation failing, until none does. It must fail
 * for want of memory, say so, and leave nothing behind.
 */
static inline void fail_each_allocation(oct_status (*work)(oct_ctx *ctx))
{
    for (int n = 1;; n++) {
        failing f;
        oct_ctx *ctx = failing_ctx(&f);
        oct_status st;

        f.fail_at = n;
        st = work(ctx);
        assert_int_equal(st, f.n_asked < n ? OCT_OK : OCT_ERR_MEMORY);
        if (st) assert_non_null(strstr(oct_ctx_error(ctx), "memory"));
        assert_int_equal(atomic_load(&ctx->mem_used), 0);
        assert_int_equal(f.n_live, 1);
        oct_ctx_free(ctx);
        assert_int_equal(f.n_live, 0);
        if (!st) return;
        assert_true(n < 10000);
    }
}

/* A fresh folder for a test's files; remove_folder() takes it away with all in it. */
static inline char *make_folder(char path[64])
{
    strcpy(path, "/tmp/octet-test-XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

static inline void remove_folder(const char *path)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

#endif
