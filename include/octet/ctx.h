/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * The context: errors, log, memory. Everything octet does happens in one.
 *
 * Rules of all headers, where a comment does not say otherwise:
 * - A context belongs to one thread at a time, and so does whatever was made in it. Another thread
 *   may take it over, but two may not use it at once. There is no global state, nothing to set up.
 * - What a function returns through `**out` is the caller's, who frees it before the context.
 * - Pointers that are returned are borrowed: from the object that was asked, as long as it lives
 *   and is not changed.
 * - Arguments (strings, arrays, options) are needed during the call only.
 * - Structs with a struct_size grow at their end; the library reads and writes no more of them than
 *   the caller's struct_size says. `_init()` sets it, or the caller where the comment says so.
 */
#ifndef OCTET_CTX_H
#define OCTET_CTX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OCT_API __attribute__((visibility("default")))
#else
#define OCT_API
#endif

/** What every function that can fail returns. On failure, out-parameters are untouched. */
typedef enum oct_status {
    OCT_OK = 0,
    OCT_ERR_MEMORY = 1,      /**< out of memory, or the context's limit was reached */
    OCT_ERR_IO = 2,          /**< a file could not be read or written */
    OCT_ERR_FORMAT = 3,      /**< a file's content is broken */
    OCT_ERR_SHAPE = 4,       /**< shapes do not fit together */
    OCT_ERR_TYPE = 5,        /**< element types do not fit together */
    OCT_ERR_UNSUPPORTED = 6, /**< valid, but octet cannot do it */
    OCT_ERR_ARG = 7,         /**< the caller passed something wrong (bad name, bad option) */
    OCT_ERR_STATE = 8,       /**< called in the wrong order */
    OCT_ERR_CANCELLED = 9    /**< the progress callback or oct_run_cancel() asked to stop */
} oct_status;

typedef enum oct_log_level {
    OCT_LOG_ERROR = 0,
    OCT_LOG_WARN = 1,
    OCT_LOG_INFO = 2,
    OCT_LOG_DEBUG = 3
} oct_log_level;

/** Errors, log, limits and memory of everything that is made in it. */
typedef struct oct_ctx oct_ctx;

/** Receives one line, without newline; borrowed during the call. May come from octet's threads. */
typedef void (*oct_log_fn)(void *user, oct_log_level level, const char *msg);

/**
 * Reports long work: `done` of `total` units. Return non-zero to cancel: the work ends with
 * OCT_ERR_CANCELLED. Called on the thread that called octet; `what` is borrowed during the call.
 */
typedef int (*oct_progress_fn)(void *user, const char *what, int64_t done, int64_t total);

/**
 * Where the context takes memory from. Both functions are called from any thread, at the same time
 * too. The struct will not grow.
 */
typedef struct oct_allocator {
    void *(*alloc)(void *user, size_t size); /**< at least 64-byte aligned, or NULL */
    void (*free)(void *user, void *p);       /**< accepts NULL */
    void *user;
} oct_allocator;

/**
 * Makes a context, which the caller frees. `allocator` may be NULL (the C library's) and is copied;
 * its `user` must outlive the context. Returns NULL only if there is no memory. Any thread.
 */
OCT_API oct_ctx *oct_ctx_new(const oct_allocator *allocator);

/** Frees the context. Everything made with it must have been freed before. Accepts NULL. */
OCT_API void oct_ctx_free(oct_ctx *ctx);

/** Sets the log callback; NULL (the default) is silent. `user` must live as long as it is set. */
OCT_API void oct_ctx_set_log(oct_ctx *ctx, oct_log_fn log, void *user);

/** Sets the progress callback; NULL (the default) means none. `user` as for the log. */
OCT_API void oct_ctx_set_progress(oct_ctx *ctx, oct_progress_fn progress, void *user);

/**
 * The most bytes that tensors and graphs of this context may hold at one time.
 * 0 (the default) means: what the machine or its control group allows.
 */
OCT_API void oct_ctx_set_memory_limit(oct_ctx *ctx, size_t mem_bytes);

/**
 * The most operations one node of a network may take, all rounds of the bodies inside it together:
 * a Loop that does not end, an Einsum over too many indices or a pooling of huge windows fails with
 * OCT_ERR_UNSUPPORTED, when it is compiled if sizes tell, or else when it runs. An operation is an
 * element read, made or multiplied; each node and each round of a body counts as some thousand, on
 * fast kernels 32 multiplications as one. 0 (the default) means 2^38, minutes of work.
 */
OCT_API void oct_ctx_set_work_limit(oct_ctx *ctx, int64_t n_operations);

/**
 * Threads to use for what is made from now on; 0 (the default) means the physical cores this
 * process may use.
 */
OCT_API void oct_ctx_set_threads(oct_ctx *ctx, int32_t n_threads);

/** The number of threads in use. */
OCT_API int32_t oct_ctx_threads(const oct_ctx *ctx);

/**
 * Why the last call on this context failed. Never empty: if it did not, it says that no reason was
 * recorded. Borrowed until the next call.
 */
OCT_API const char *oct_ctx_error(const oct_ctx *ctx);

/** The version of the library in use as "MAJOR.MINOR.PATCH", borrowed for ever. Any thread. */
OCT_API const char *oct_version(void);

/**
 * The same as a number, MAJOR * 10000 + MINOR * 100 + PATCH. A program that wants the library to be
 * no older than its headers compares it with OCT_VERSION_NUMBER of <octet/version.h>. Any thread.
 */
OCT_API int32_t oct_version_number(void);

#ifdef __cplusplus
}
#endif

#endif
