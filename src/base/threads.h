/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share one job, each with a context of its own; the calling thread is worker 0. */
#ifndef OCT_BASE_THREADS_H
#define OCT_BASE_THREADS_H

#include "base/status.h"

enum { OCT_MAX_WORKERS = 8 }; /* each has its own activations */

typedef struct oct_job {
    void *user;
    int32_t n_workers; /* 1 to OCT_MAX_WORKERS */
    /* On the calling thread, for one worker after another, before any begins. Errors go to ctx. */
    oct_status (*init)(void *user, int32_t worker, oct_ctx *ctx);
    /* On the worker's thread. If it fails, *item is the number of what it failed at. */
    oct_status (*work)(void *user, int32_t worker, oct_ctx *ctx, int64_t *item);
    /* A worker failed: the others should return soon. On its thread; may come several times. */
    void (*stop)(void *user);
    /* On the calling thread, for each worker, also for those that were not initialised. */
    void (*fini)(void *user, int32_t worker);
} oct_job;

/*
 * Worker 0 has ctx, the others have contexts like it. If threads cannot be started, fewer workers
 * do the work. Of several failures that of the lowest item is reported to ctx: where items are
 * taken in order, the items before it were taken before it and are finished, so that the result
 * does not depend on timing.
 */
oct_status oct_job_run(oct_ctx *ctx, const oct_job *job);

/* As many workers for n_items as divide the threads evenly. */
int32_t oct_job_workers(int32_t n_threads, int64_t n_items);

#endif
