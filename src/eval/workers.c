/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of an evaluation: threads that run the network, and the order of their results. */
#include "eval/workers.h"

#include <stdio.h>
#include <string.h>

#include "base/machine.h"
#include "base/mem.h"
#include "data/dataset.h"
#include "detect/detector.h"

typedef struct worker {
    oct_eval_job *j;
    oct_ctx *ctx;
    oct_run *run;
    oct_detector *detector;
    void *input;
    oct_eval_times times;
} worker;

/* --- feeding --- */

/* The part's slot in the ring, once it is free. NULL: the work stops. */
static oct_eval_part *reserve(oct_eval_job *j, int64_t part)
{
    bool stopped;

    (void)pthread_mutex_lock(&j->lock);
    while (!j->is_stopped && part - j->next_part >= j->n_ring)
        (void)pthread_cond_wait(&j->moved, &j->lock);
    stopped = j->is_stopped;
    (void)pthread_mutex_unlock(&j->lock);
    return stopped ? NULL : &j->ring[part % j->n_ring];
}

/* Copies a picture into place `i` of the run's input. */
static void feed_picture(worker *w, int32_t i, const oct_loaded *l, oct_eval_item *it)
{
    it->index = l->index;
    it->map = l->map;
    it->n_found = 0;
    w->times.decode += l->decode_ns;
    w->times.preprocess += l->preprocess_ns;
    memcpy((char *)w->input + (size_t)i * w->j->item_size, l->data, w->j->item_size);
}

/*
 * Fills the input with the next pictures, at most a batch. *part NULL: there are no more, or the
 * work stops. Called with `feed` held: the loader must get its pictures back in order.
 */
static oct_status feed(worker *w, oct_eval_part **part)
{
    oct_eval_job *j = w->j;
    oct_eval_part *p = j->is_fed ? NULL : reserve(j, j->n_parts_taken);

    *part = NULL;
    if (!p) return OCT_OK;
    for (p->n = 0; p->n < j->batch; p->n++) {
        const oct_loaded *l = NULL;
        const oct_status st = oct_loader_take(j->loader, w->ctx, &l);

        j->is_fed = l == NULL; /* also after a failed one: the first failure is reported */
        if (st) return st;
        if (!l) break;
        feed_picture(w, p->n, l, &p->items[p->n]);
        oct_loader_done(j->loader, l);
    }
    if (!p->n) return OCT_OK;
    j->n_parts_taken++;
    *part = p;
    return OCT_OK;
}

/* --- reading the outputs --- */

/* Maps classes to the dataset's categories; classes without one are dropped. */
static int32_t to_categories(const oct_eval_job *j, oct_detection *found, int32_t n)
{
    int32_t kept = 0;

    for (int32_t i = 0; i < n; i++) {
        const int32_t k = found[i].category;

        if (k >= j->n_to_category || j->to_category[k] < 0) continue;
        found[kept] = found[i];
        found[kept++].category = j->to_category[k];
    }
    return kept;
}

static oct_status read_picture(worker *w, oct_eval_item *it, int32_t index)
{
    oct_eval_job *j = w->j;
    const float *scores = NULL;
    int32_t n = 0, right;

    if (j->boxes) {
        OCT_TRY(oct_detector_decode(w->detector, w->run, index, &it->map, &j->nms, it->found, &n));
        it->n_found = to_categories(j, it->found, n);
        return OCT_OK;
    }
    OCT_TRY(oct_detector_scores(w->detector, w->run, index, &scores, &n));
    right = oct_dataset_class(j->d, it->index);
    oct_topk_init(&it->topk);
    oct_topk_see(&it->topk, scores, n,
                 right >= 0 && right < j->n_to_category ? j->to_category[right] : right);
    return OCT_OK;
}

static oct_status run_part(worker *w, oct_eval_part *p)
{
    int64_t start = oct_time_ns(), end;

    OCT_TRY(oct_run_execute(w->run));
    end = oct_time_ns();
    w->times.network += end - start;
    for (int32_t i = 0; i < p->n; i++)
        OCT_TRY(read_picture(w, &p->items[i], i));
    w->times.post += oct_time_ns() - end;
    return OCT_OK;
}

/* --- scoring, in order --- */

static oct_status score_part(oct_eval_job *j, const oct_eval_part *p)
{
    for (int32_t i = 0; i < p->n; i++) {
        const oct_eval_item *it = &p->items[i];

        j->n_done++;
        j->n_seen = it->index + 1;
        if (!j->boxes)
            oct_topk_merge(&j->topk, &it->topk);
        else
            OCT_TRY(oct_box_eval_see(j->boxes, it->index, it->found, it->n_found));
        if (j->results)
            OCT_TRY(oct_results_put(j->results, j->d, it->index, it->found, it->n_found));
    }
    return OCT_OK;
}

/* Scores all parts that are ready, in order. Called with the lock held. */
static oct_status advance(oct_eval_job *j)
{
    const int64_t start = oct_time_ns();
    oct_status st = OCT_OK;

    while (!st && j->ring[j->next_part % j->n_ring].is_ready) {
        oct_eval_part *p = &j->ring[j->next_part % j->n_ring];

        st = score_part(j, p);
        p->is_ready = false;
        j->next_part++;
        (void)pthread_cond_broadcast(&j->moved);
    }
    j->times.score += oct_time_ns() - start;
    return st;
}

/* Why scoring failed is told to the context of the job; it is copied to that of the worker. */
static oct_status deliver(worker *w, oct_eval_part *p)
{
    oct_eval_job *j = w->j;
    char why[1024] = "";
    oct_status st;

    (void)pthread_mutex_lock(&j->lock);
    p->is_ready = true;
    if ((st = advance(j))) (void)snprintf(why, sizeof(why), "%s", oct_ctx_error(j->ctx));
    (void)pthread_mutex_unlock(&j->lock);
    return st ? oct_fail(w->ctx, st, "%s", why) : OCT_OK;
}

/* --- progress --- */

/* The metric so far, at growing intervals: the total cost is that of a few finishes. */
static void refresh_metric(oct_eval_job *j)
{
    oct_box_metrics m;
    double top1, top5;

    if (j->n_done < j->next_metric) return;
    j->next_metric = j->n_done + OCT_MAX(j->n_done / 2, 16);
    if (j->boxes) {
        if (oct_box_eval_finish(j->boxes, 0, &m) == OCT_OK && m.ap >= 0)
            (void)snprintf(j->what, sizeof(j->what), "AP %.3f so far", m.ap);
    } else {
        oct_topk_finish(&j->topk, &top1, &top5);
        if (top1 >= 0) (void)snprintf(j->what, sizeof(j->what), "top-1 %.3f so far", top1);
    }
}

static oct_status report(oct_eval_job *j)
{
    int64_t done;

    (void)pthread_mutex_lock(&j->lock);
    refresh_metric(j);
    done = j->n_seen;
    (void)pthread_mutex_unlock(&j->lock);
    return oct_progress(j->ctx, j->what, done, oct_dataset_size(j->d));
}

/* --- threads --- */

/* *part is the number of the part at work. */
static oct_status run_parts(worker *w, bool reports, int64_t *part)
{
    oct_eval_job *j = w->j;

    for (;;) {
        oct_eval_part *p = NULL;
        oct_status st;

        (void)pthread_mutex_lock(&j->feed);
        *part = j->n_parts_taken;
        st = feed(w, &p);
        (void)pthread_mutex_unlock(&j->feed);
        if (st || !p) return st;
        OCT_TRY(run_part(w, p));
        OCT_TRY(deliver(w, p));
        if (reports) OCT_TRY(report(j));
    }
}

static oct_status work(void *user, int32_t number, oct_ctx *ctx, int64_t *part)
{
    worker *w = (worker *)user + number;
    oct_eval_job *j = w->j;
    const oct_status st = run_parts(w, number == 0, part);

    (void)ctx;
    (void)pthread_mutex_lock(&j->lock);
    j->times.decode += w->times.decode;
    j->times.preprocess += w->times.preprocess;
    j->times.network += w->times.network;
    j->times.post += w->times.post;
    (void)pthread_mutex_unlock(&j->lock);
    return st;
}

static oct_status init_worker(void *user, int32_t number, oct_ctx *ctx)
{
    worker *w = (worker *)user + number;
    const oct_eval_job *j = w->j;

    w->ctx = ctx;
    OCT_TRY(oct_run_new(ctx, j->plan, &w->run));
    OCT_TRY(oct_run_input(w->run, j->input, &w->input, NULL));
    if (!w->input) return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "the network ignores its picture");
    return oct_detector_copy(ctx, j->detector, &w->detector);
}

static void stop(void *user)
{
    oct_eval_job *j = ((worker *)user)->j;

    (void)pthread_mutex_lock(&j->lock);
    j->is_stopped = true;
    (void)pthread_cond_broadcast(&j->moved);
    (void)pthread_mutex_unlock(&j->lock);
}

static void fini_worker(void *user, int32_t number)
{
    worker *w = (worker *)user + number;

    oct_detector_free(w->detector);
    oct_run_free(w->run);
}

static oct_status make_ring(oct_eval_job *j)
{
    const size_t room = j->boxes ? (size_t)j->nms.max_detections : 0;

    if (!(j->ring = oct_calloc(j->ctx, (size_t)j->n_ring, sizeof(*j->ring)))) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < j->n_ring; i++) {
        oct_eval_part *p = &j->ring[i];

        if (!(p->items = oct_calloc(j->ctx, (size_t)j->batch, sizeof(*p->items))))
            return OCT_ERR_MEMORY;
        for (int32_t k = 0; k < j->batch && room; k++)
            if (!(p->items[k].found = oct_calloc(j->ctx, room, sizeof(oct_detection))))
                return OCT_ERR_MEMORY;
    }
    return OCT_OK;
}

static void free_ring(oct_eval_job *j)
{
    for (int32_t i = 0; j->ring && i < j->n_ring; i++) {
        for (int32_t k = 0; j->ring[i].items && k < j->batch; k++)
            oct_free(j->ctx, j->ring[i].items[k].found);
        oct_free(j->ctx, j->ring[i].items);
    }
    oct_free(j->ctx, j->ring);
    j->ring = NULL;
}

oct_status oct_eval_work(oct_eval_job *j)
{
    worker workers[OCT_MAX_WORKERS] = {{0}};
    const oct_job job = {
        .user = workers,
        .n_workers = OCT_MIN(j->n_workers, (int32_t)OCT_MAX_WORKERS),
        .init = init_worker,
        .work = work,
        .stop = stop,
        .fini = fini_worker,
    };
    oct_status st;

    for (int32_t i = 0; i < job.n_workers; i++)
        workers[i].j = j;
    (void)pthread_mutex_init(&j->feed, NULL);
    (void)pthread_mutex_init(&j->lock, NULL);
    (void)pthread_cond_init(&j->moved, NULL);
    (void)snprintf(j->what, sizeof(j->what), "evaluating");
    oct_topk_init(&j->topk);
    j->n_ring = 4 * job.n_workers;
    if (!(st = make_ring(j))) st = oct_job_run(j->ctx, &job);
    if (!st) st = report(j); /* other workers may have finished since the last report */
    free_ring(j);
    (void)pthread_cond_destroy(&j->moved);
    (void)pthread_mutex_destroy(&j->lock);
    (void)pthread_mutex_destroy(&j->feed);
    return st;
}
