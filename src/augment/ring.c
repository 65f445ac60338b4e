/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that make samples ahead. Sample n belongs to batch n / B, which has slot (n / B) % depth;
 * threads take samples in order while their batch is among the next `depth` ones. What a sample is
 * depends on its number only, so it does not matter who makes it, or when.
 */
#include "augment/ring.h"

#include <signal.h>
#include <string.h>

/* --- what a sample is --- */

/* The permutation of one epoch: kept until another one is asked for. Holds the lock. */
static const int64_t *permutation(oct_batches *b, uint64_t number)
{
    const oct_train_labels *l = &b->labels;
    oct_rng r;

    if (b->has_order && b->order_of == number) return b->order;
    memcpy(b->order, l->usable, (size_t)l->n_usable * sizeof(*b->order));
    oct_rng_init(&r, oct_key_mix(b->seed, number));
    for (int64_t i = l->n_usable - 1; i > 0 && b->shuffle; i--) {
        const int64_t k = (int64_t)oct_rng_below(&r, (uint64_t)i + 1), t = b->order[i];

        b->order[i] = b->order[k];
        b->order[k] = t;
    }
    b->order_of = number;
    b->has_order = true;
    return b->order;
}

/* Job of sample number n. What an epoch needs beyond its pictures comes from a further permutation.
 * Holds the lock. */
static oct_sample_job job_of(oct_batches *b, int64_t n)
{
    const int64_t per_epoch = b->count * b->batch, size = b->labels.n_usable;
    const int64_t epoch = n / per_epoch, at = n % per_epoch, lap = at / size;
    const uint64_t epoch_key = oct_key_mix(oct_key_mix(b->seed, 1), (uint64_t)epoch);
    const int64_t *order = permutation(b, oct_key_mix(epoch_key, (uint64_t)lap));
    oct_ring_slot *slot = &b->slots[n / b->batch % b->depth];
    const int64_t i = n % b->batch;
    const size_t pixels = (size_t)b->p.width * (size_t)b->p.height * 3;
    const double close = b->sampler.numbers.close;

    return (oct_sample_job){
        .key = oct_key_mix(epoch_key, ~(uint64_t)at),
        .index = order[at % size],
        .is_closed = b->n_epochs > 0 && (double)epoch >= (double)b->n_epochs - close,
        .rgb = slot->rgb + (size_t)i * pixels,
        .labels = slot->labels ? slot->labels + i * b->sampler.max_boxes * 5 : NULL,
        .picture = slot->classes ? slot->classes + i : NULL,
    };
}

/* --- threads --- */

static bool has_work(const oct_batches *b)
{
    const int64_t batch = b->next_sample / b->batch;

    if (b->is_paused || batch >= b->next_batch + b->depth) return false;
    return !b->n_epochs || batch < b->n_epochs * b->count;
}

/* The first failure of a batch is the one to tell, whichever thread was faster. Holds the lock. */
static void note_failure(oct_ring_slot *slot, int32_t at, oct_status st, const char *text)
{
    const size_t len = OCT_MIN(strlen(text), sizeof(slot->error) - 1);

    if (slot->status && slot->failed_at < at) return;
    slot->status = st;
    slot->failed_at = at;
    memcpy(slot->error, text, len);
    slot->error[len] = '\0';
}

static void *work(void *arg)
{
    oct_ring_worker *w = arg;
    oct_batches *b = w->b;

    pthread_mutex_lock(&b->lock);
    while (!b->stop) {
        int32_t n_boxes = 0, n_dropped = 0;
        oct_ring_slot *slot;
        oct_sample_job job;
        oct_status st;
        int64_t n;

        if (!has_work(b)) {
            pthread_cond_wait(&b->changed_work, &b->lock);
            continue;
        }
        n = b->next_sample++;
        job = job_of(b, n);
        slot = &b->slots[n / b->batch % b->depth];
        b->n_working++;
        pthread_mutex_unlock(&b->lock);
        st = oct_sample_make(w->ctx, &b->sampler, &w->scratch, &job, &n_boxes, &n_dropped);
        pthread_mutex_lock(&b->lock);
        if (st) note_failure(slot, (int32_t)(n % b->batch), st, oct_ctx_error(w->ctx));
        slot->n_boxes += n_boxes;
        slot->n_dropped += n_dropped;
        slot->n_done++;
        b->n_working--;
        pthread_cond_broadcast(&b->changed_done);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* --- the caller's side --- */

static void clear_slot(oct_ring_slot *s)
{
    s->n_done = 0;
    s->n_boxes = s->n_dropped = 0;
    s->status = OCT_OK;
    s->error[0] = '\0';
}

oct_ring_slot *oct_ring_wait(oct_batches *b)
{
    oct_ring_slot *slot = &b->slots[b->next_batch % b->depth];

    pthread_mutex_lock(&b->lock);
    while (slot->n_done < b->batch)
        pthread_cond_wait(&b->changed_done, &b->lock);
    pthread_mutex_unlock(&b->lock);
    return slot;
}

void oct_ring_done(oct_batches *b, oct_ring_slot *slot)
{
    pthread_mutex_lock(&b->lock);
    clear_slot(slot);
    b->next_batch++;
    pthread_cond_broadcast(&b->changed_work);
    pthread_mutex_unlock(&b->lock);
}

void oct_ring_seek(oct_batches *b, int64_t batch)
{
    pthread_mutex_lock(&b->lock);
    b->is_paused = true;
    while (b->n_working)
        pthread_cond_wait(&b->changed_done, &b->lock);
    for (int32_t i = 0; i < b->depth; i++)
        clear_slot(&b->slots[i]);
    b->next_batch = batch;
    b->next_sample = batch * b->batch;
    b->is_paused = false;
    pthread_cond_broadcast(&b->changed_work);
    pthread_mutex_unlock(&b->lock);
}

/* --- life --- */

static oct_status make_slots(oct_batches *b)
{
    size_t rgb, labels;

    if (!oct_mul_size((size_t)b->p.width * (size_t)b->p.height * 3, (size_t)b->batch, &rgb) ||
        !oct_mul_size((size_t)b->sampler.max_boxes * 5 * sizeof(float), (size_t)b->batch, &labels))
        return oct_fail(b->ctx, OCT_ERR_MEMORY, "batches: a batch of %d pictures is too large",
                        (int)b->batch);
    b->slots = oct_calloc(b->ctx, (size_t)b->depth, sizeof(*b->slots));
    b->order = oct_calloc(b->ctx, (size_t)b->labels.n_usable, sizeof(*b->order));
    if (!b->slots || !b->order) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < b->depth; i++) {
        oct_ring_slot *s = &b->slots[i];

        if (!(s->rgb = oct_alloc(b->ctx, rgb))) return OCT_ERR_MEMORY;
        if (b->labels.classes)
            s->classes = oct_calloc(b->ctx, (size_t)b->batch, sizeof(*s->classes));
        else
            s->labels = oct_alloc(b->ctx, labels);
        if (!s->labels && !s->classes) return OCT_ERR_MEMORY;
    }
    return OCT_OK;
}

static oct_status make_lock(oct_batches *b)
{
    if (pthread_mutex_init(&b->lock, NULL))
        return oct_fail(b->ctx, OCT_ERR_MEMORY, "batches: no memory for a lock");
    if (pthread_cond_init(&b->changed_work, NULL)) {
        pthread_mutex_destroy(&b->lock);
        return oct_fail(b->ctx, OCT_ERR_MEMORY, "batches: no memory for a lock");
    }
    if (pthread_cond_init(&b->changed_done, NULL)) {
        pthread_cond_destroy(&b->changed_work);
        pthread_mutex_destroy(&b->lock);
        return oct_fail(b->ctx, OCT_ERR_MEMORY, "batches: no memory for a lock");
    }
    b->has_lock = true;
    return OCT_OK;
}

/* Signals are for the program's own threads: these block all of them. */
static oct_status start_threads(oct_batches *b)
{
    sigset_t all, before;
    oct_status st = OCT_OK;

    b->workers = oct_calloc(b->ctx, (size_t)b->n_workers, sizeof(*b->workers));
    if (!b->workers) return OCT_ERR_MEMORY;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int32_t i = 0; !st && i < b->n_workers; i++) {
        oct_ring_worker *w = &b->workers[i];

        w->b = b;
        if (!(w->ctx = oct_ctx_new_like(b->ctx))) {
            st = oct_fail(b->ctx, OCT_ERR_MEMORY, "batches: no memory for a thread");
            break;
        }
        w->scratch.user = (oct_picture_user){.pictures = b->pictures, .ctx = w->ctx};
        if (pthread_create(&w->thread, NULL, work, w))
            st = oct_fail(b->ctx, OCT_ERR_MEMORY, "batches: cannot start thread %d", i + 1);
        else
            w->started = true;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st;
}

oct_status oct_ring_start(oct_batches *b)
{
    OCT_TRY(make_slots(b));
    OCT_TRY(make_lock(b));
    return start_threads(b);
}

void oct_ring_stop(oct_batches *b)
{
    if (b->has_lock) {
        pthread_mutex_lock(&b->lock);
        b->stop = true;
        pthread_cond_broadcast(&b->changed_work);
        pthread_mutex_unlock(&b->lock);
    }
    for (int32_t i = 0; b->workers && i < b->n_workers; i++)
        if (b->workers[i].started) pthread_join(b->workers[i].thread, NULL);
    oct_pictures_free(b->pictures); /* its pictures were made in the workers' contexts */
    for (int32_t i = 0; b->workers && i < b->n_workers; i++) {
        if (b->workers[i].ctx) oct_scratch_free(&b->workers[i].scratch, b->workers[i].ctx);
        oct_ctx_free(b->workers[i].ctx);
    }
    if (b->has_lock) {
        pthread_cond_destroy(&b->changed_done);
        pthread_cond_destroy(&b->changed_work);
        pthread_mutex_destroy(&b->lock);
    }
    for (int32_t i = 0; b->slots && i < b->depth; i++) {
        oct_free(b->ctx, b->slots[i].rgb);
        oct_free(b->ctx, b->slots[i].labels);
        oct_free(b->ctx, b->slots[i].classes);
    }
    oct_free(b->ctx, b->slots);
    oct_free(b->ctx, b->order);
    oct_free(b->ctx, b->workers);
}
