/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of oct_ctx; only base/ looks at it. */
#ifndef OCT_BASE_CTX_H
#define OCT_BASE_CTX_H

#include <stdatomic.h>

#include <octet/file.h>

#include "base/status.h"

struct oct_ctx {
    oct_allocator allocator;
    oct_log_fn log;
    void *log_user;
    oct_progress_fn progress;
    void *progress_user;
    oct_write_fn write_check;
    void *write_check_user;
    oct_read_fn read_check;
    void *read_check_user;
    atomic_size_t mem_used; /* bytes held through oct_alloc */
    size_t mem_limit;
    int64_t work_limit;
    int32_t n_threads;  /* 0: not set, see oct_ctx_threads() */
    atomic_int n_cores; /* 0: not asked yet */
    atomic_int depth;   /* public functions that are at work, one inside the other */
    char error[1024];
    void *ops; /* registered operators (op/custom.c); NULL: none */
    void (*ops_free)(oct_ctx *ctx, void *ops);
};

#endif
