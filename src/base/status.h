/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: a status is returned, the reason is set once in the context, where it is discovered. */
#ifndef OCT_BASE_STATUS_H
#define OCT_BASE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <octet/ctx.h>

#if defined(__GNUC__)
#define OCT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define OCT_PRINTF(fmt, args)
#endif

/* For functions that own nothing: passes a failure on. */
#define OCT_TRY(call)                                                                              \
    do {                                                                                           \
        const oct_status oct_try_status_ = (call);                                                 \
        if (oct_try_status_) return oct_try_status_;                                               \
    } while (0)

#define OCT_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OCT_MIN(a, b)    ((a) < (b) ? (a) : (b))
#define OCT_MAX(a, b)    ((a) > (b) ? (a) : (b))

/* a / b, rounded up; a is not negative. */
static inline int64_t oct_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Sets the context's error text and returns `status`. */
oct_status oct_fail(oct_ctx *ctx, oct_status status, const char *fmt, ...) OCT_PRINTF(3, 4);
oct_status oct_vfail(oct_ctx *ctx, oct_status status, const char *fmt, va_list args);

/* Lets the compiler see that a failure is one, so that it does not suspect callers of using what
 * was never set. `status` is evaluated twice. */
static inline oct_status oct_status_known(oct_status set, oct_status status)
{
    (void)set;
    return status;
}

#define oct_fail(ctx, status, ...) oct_status_known(oct_fail(ctx, status, __VA_ARGS__), status)

/*
 * The first line of every public function that returns a status: forgets why an earlier call
 * failed, so that nobody is shown a reason that is not the one. Public functions called inside
 * leave the text alone; the outermost call began with none.
 */
#define OCT_ENTER(ctx)                                                                             \
    oct_ctx *oct_entered_ __attribute__((cleanup(oct_leave), unused)) = oct_enter(ctx)

oct_ctx *oct_enter(oct_ctx *ctx);
void oct_leave(oct_ctx **ctx);

/* Puts "WHERE: " in front of the error text already set (a file's name, say); returns `status`. */
oct_status oct_fail_at(oct_ctx *ctx, oct_status status, const char *where);

void oct_log(oct_ctx *ctx, oct_log_level level, const char *fmt, ...) OCT_PRINTF(3, 4);

/* What oct_ctx_set_work_limit() set, or the default. */
int64_t oct_ctx_work_limit(const oct_ctx *ctx);

/* Reports progress; OCT_ERR_CANCELLED if the caller wants to stop. */
oct_status oct_progress(oct_ctx *ctx, const char *what, int64_t done, int64_t total);

/* Checked arithmetic for everything that comes from a file. False: overflow, *out untouched. */
bool oct_mul_size(size_t a, size_t b, size_t *out);
bool oct_add_size(size_t a, size_t b, size_t *out);
bool oct_mul_i64(int64_t a, int64_t b, int64_t *out);
bool oct_add_i64(int64_t a, int64_t b, int64_t *out);

#endif
