/* SPDX-License-Identifier: Apache-2.0 */
/* The context: allocator, limits, callbacks and the text of the last error. */
#include "base/ctx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <octet/version.h>

#include "base/machine.h"
#include "base/mem.h"

#define OCT_ALIGN 64

/* Minutes of plain kernels. A decoder of 600 million weights in a Loop of 448 rounds fits. */
#define WORK_LIMIT ((int64_t)1 << 38)

static void *default_alloc(void *user, size_t size)
{
    (void)user;
    if (size > SIZE_MAX - OCT_ALIGN) return NULL;
    /* aligned_alloc wants a multiple of the alignment */
    return aligned_alloc(OCT_ALIGN, (size + OCT_ALIGN - 1) / OCT_ALIGN * OCT_ALIGN);
}

static void default_free(void *user, void *p)
{
    (void)user;
    free(p);
}

oct_ctx *oct_ctx_new(const oct_allocator *allocator)
{
    const oct_allocator def = {default_alloc, default_free, NULL};
    const oct_allocator a = allocator ? *allocator : def;
    oct_ctx *ctx = a.alloc(a.user, sizeof(*ctx));

    if (!ctx) return NULL;
    memset(ctx, 0, sizeof(*ctx));
    ctx->allocator = a;
    ctx->mem_limit = oct_machine_memory();
    ctx->work_limit = WORK_LIMIT;
    return ctx;
}

oct_ctx *oct_ctx_new_like(const oct_ctx *ctx)
{
    oct_ctx *copy = oct_ctx_new(&ctx->allocator);

    if (!copy) return NULL;
    copy->mem_limit = ctx->mem_limit;
    copy->write_check = ctx->write_check;
    copy->write_check_user = ctx->write_check_user;
    copy->read_check = ctx->read_check;
    copy->read_check_user = ctx->read_check_user;
    copy->work_limit = ctx->work_limit;
    return copy;
}

void oct_ctx_free(oct_ctx *ctx)
{
    if (!ctx) return;
    if (ctx->ops) ctx->ops_free(ctx, ctx->ops);
    ctx->allocator.free(ctx->allocator.user, ctx);
}

void oct_ctx_set_log(oct_ctx *ctx, oct_log_fn log, void *user)
{
    ctx->log = log;
    ctx->log_user = user;
}

void oct_ctx_set_progress(oct_ctx *ctx, oct_progress_fn progress, void *user)
{
    ctx->progress = progress;
    ctx->progress_user = user;
}

void oct_ctx_set_write_check(oct_ctx *ctx, oct_write_fn check, void *user)
{
    ctx->write_check = check;
    ctx->write_check_user = user;
}

void oct_ctx_set_read_check(oct_ctx *ctx, oct_read_fn check, void *user)
{
    ctx->read_check = check;
    ctx->read_check_user = user;
}

void oct_ctx_set_memory_limit(oct_ctx *ctx, size_t mem_bytes)
{
    ctx->mem_limit = mem_bytes ? mem_bytes : oct_machine_memory();
}

void oct_ctx_set_work_limit(oct_ctx *ctx, int64_t n_operations)
{
    ctx->work_limit = n_operations > 0 ? n_operations : WORK_LIMIT;
}

int64_t oct_ctx_work_limit(const oct_ctx *ctx)
{
    return ctx->work_limit;
}

void oct_ctx_set_threads(oct_ctx *ctx, int32_t n_threads)
{
    ctx->n_threads = n_threads > 0 ? n_threads : 0;
}

int32_t oct_ctx_threads(const oct_ctx *ctx)
{
    atomic_int *n_cores = &((oct_ctx *)ctx)->n_cores; /* a cache: the answer never changes */

    if (ctx->n_threads) return ctx->n_threads;
    if (!atomic_load(n_cores)) atomic_store(n_cores, oct_machine_cores());
    return atomic_load(n_cores);
}

const char *oct_ctx_error(const oct_ctx *ctx)
{
    /* It ends up behind a file's name: a line that breaks off there helps nobody. */
    return ctx->error[0] ? ctx->error : "no reason was recorded";
}

oct_ctx *oct_enter(oct_ctx *ctx)
{
    if (atomic_fetch_add(&ctx->depth, 1) == 0) ctx->error[0] = '\0';
    return ctx;
}

void oct_leave(oct_ctx **ctx)
{
    atomic_fetch_sub(&(*ctx)->depth, 1);
}

#define OCT_TEXT_(x) #x
#define OCT_TEXT(x)  OCT_TEXT_(x)

const char *oct_version(void)
{
    return OCT_TEXT(OCT_VERSION_MAJOR) "." OCT_TEXT(OCT_VERSION_MINOR) "." OCT_TEXT(
        OCT_VERSION_PATCH);
}

int32_t oct_version_number(void)
{
    return OCT_VERSION_NUMBER;
}

oct_status oct_vfail(oct_ctx *ctx, oct_status status, const char *fmt, va_list args)
{
    char text[sizeof(ctx->error)]; /* an argument may be the old text */

    vsnprintf(text, sizeof(text), fmt, args);
    memcpy(ctx->error, text, strlen(text) + 1);
    return status;
}

#undef oct_fail
oct_status oct_fail(oct_ctx *ctx, oct_status status, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    oct_vfail(ctx, status, fmt, args);
    va_end(args);
    return status;
}

oct_status oct_fail_at(oct_ctx *ctx, oct_status status, const char *where)
{
    return oct_fail(ctx, status, "%s: %s", where, ctx->error);
}

void oct_log(oct_ctx *ctx, oct_log_level level, const char *fmt, ...)
{
    char text[sizeof(ctx->error)];
    va_list args;

    if (!ctx->log) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ctx->log(ctx->log_user, level, text);
}

oct_status oct_progress(oct_ctx *ctx, const char *what, int64_t done, int64_t total)
{
    if (!ctx->progress || !ctx->progress(ctx->progress_user, what, done, total)) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_CANCELLED, "%s: cancelled", what);
}

bool oct_mul_size(size_t a, size_t b, size_t *out)
{
    size_t r;

    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

bool oct_add_size(size_t a, size_t b, size_t *out)
{
    size_t r;

    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

bool oct_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;

    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

bool oct_add_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;

    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}
