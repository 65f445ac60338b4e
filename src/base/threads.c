/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share one job: their contexts, and which of their failures is reported. */
#include "base/threads.h"

#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"

typedef struct state {
    const oct_job *job;
    pthread_mutex_t lock; /* guards what follows */
    oct_status status;
    int64_t failed; /* the item that status and error are about */
    char error[1024];
} state;

typedef struct worker {
    state *s;
    int32_t number;
    oct_ctx *ctx;
    pthread_t thread;
    bool is_started;
} worker;

static void *worker_main(void *arg)
{
    worker *w = arg;
    state *s = w->s;
    int64_t item = -1;
    const oct_status st = s->job->work(s->job->user, w->number, w->ctx, &item);

    if (!st) return NULL;
    (void)pthread_mutex_lock(&s->lock);
    if (!s->status || item < s->failed) {
        s->status = st;
        s->failed = item;
        (void)snprintf(s->error, sizeof(s->error), "%s", oct_ctx_error(w->ctx));
    }
    (void)pthread_mutex_unlock(&s->lock);
    s->job->stop(s->job->user);
    return NULL;
}

static oct_status init(worker *w, oct_ctx *ctx)
{
    const oct_job *job = w->s->job;
    oct_status st;

    if (w->number == 0)
        w->ctx = ctx;
    else if (!(w->ctx = oct_ctx_new_like(ctx)))
        return oct_fail(ctx, OCT_ERR_MEMORY, "no memory for another thread");
    st = job->init(job->user, w->number, w->ctx);
    return st && w->number > 0 ? oct_fail(ctx, st, "%s", oct_ctx_error(w->ctx)) : st;
}

static oct_status run(state *s, oct_ctx *ctx, worker *workers)
{
    for (int32_t i = 1; i < s->job->n_workers; i++)
        workers[i].is_started =
            pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) == 0;
    (void)worker_main(&workers[0]);
    for (int32_t i = 1; i < s->job->n_workers; i++)
        if (workers[i].is_started) (void)pthread_join(workers[i].thread, NULL);
    return s->status ? oct_fail(ctx, s->status, "%s", s->error) : OCT_OK;
}

oct_status oct_job_run(oct_ctx *ctx, const oct_job *job)
{
    state s = {.job = job};
    worker workers[OCT_MAX_WORKERS] = {{0}};
    oct_status st = OCT_OK;

    (void)pthread_mutex_init(&s.lock, NULL);
    for (int32_t i = 0; i < job->n_workers && !st; i++) {
        workers[i] = (worker){.s = &s, .number = i};
        st = init(&workers[i], ctx);
    }
    if (!st) st = run(&s, ctx, workers);
    for (int32_t i = 0; i < job->n_workers; i++) {
        job->fini(job->user, i);
        if (i > 0) oct_ctx_free(workers[i].ctx);
    }
    (void)pthread_mutex_destroy(&s.lock);
    return st;
}

int32_t oct_job_workers(int32_t n_threads, int64_t n_items)
{
    int32_t n = (int32_t)OCT_MIN((int64_t)OCT_MIN(n_threads, (int32_t)OCT_MAX_WORKERS), n_items);

    while (n > 1 && n_threads % n)
        n--;
    return OCT_MAX(n, 1);
}
