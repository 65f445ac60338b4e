/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader: threads take pictures in order, each into its own slot of a ring, and the caller
 * receives them in order. A slot is empty, being filled, ready, or the caller's; a thread whose
 * next slot is not empty waits, so memory is bounded by the ring.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/machine.h"
#include "data/dataset.h"
#include "data/image/preprocess.h"

#define MAX_THREADS      256
#define MAX_DEPTH        4096
#define DEPTH_PER_THREAD 4
#define ERROR_SIZE       512

typedef enum slot_state { SLOT_EMPTY, SLOT_FILLING, SLOT_READY, SLOT_GIVEN } slot_state;

typedef struct slot {
    oct_loaded item; /* first: the caller hands back a pointer to it */
    slot_state state;
    void *data;
    char error[ERROR_SIZE];
} slot;

typedef struct worker {
    oct_loader *loader;
    oct_ctx *ctx; /* its own */
    oct_picture_reader reader;
    pthread_t thread;
    bool started;
} worker;

struct oct_loader {
    oct_ctx *ctx;
    const oct_dataset *d;
    oct_preprocess p;
    oct_dtype dtype;
    worker *workers;
    int32_t n_workers;
    slot *slots;
    int32_t depth;
    bool has_lock;
    pthread_mutex_t lock; /* of all below, and of the slots' states */
    pthread_cond_t changed_slot, changed_ready;
    int64_t next_load, next_give;
    int64_t n_good; /* given by oct_loader_take() */
    bool stop;
};

/* The number of frames of a video is certain only after decoding: missing ones are no error. */
static bool may_skip(const oct_loader *l, int64_t index)
{
    return l->d->skip_bad || l->d->items[index].frame >= 0;
}

static void load(worker *w, slot *s, int64_t index)
{
    const oct_loader *l = w->loader;
    const int64_t start = oct_time_ns();
    int64_t decoded;
    oct_image *im = NULL;
    oct_status st;

    s->item = (oct_loaded){.index = index, .data = s->data};
    if (may_skip(l, index) && l->d->items[index].state == OCT_ITEM_BROKEN) {
        s->item.status = OCT_ERR_FORMAT; /* known from an earlier pass, and noted then */
        s->item.error = "broken";
        return;
    }
    st = oct_picture_read(&w->reader, w->ctx, &l->d->items[index], &im);
    decoded = oct_time_ns();
    if (!st) st = oct_preprocess_run(w->ctx, &l->p, im, l->dtype, s->data, &s->item.map);
    oct_image_free(im);
    s->item.decode_ns = decoded - start;
    s->item.preprocess_ns = oct_time_ns() - decoded;
    s->item.status = st;
    if (st) {
        const char *text = oct_ctx_error(w->ctx);
        const size_t len = OCT_MIN(strlen(text), ERROR_SIZE - 1);

        memcpy(s->error, text, len);
        s->error[len] = '\0';
        s->item.error = s->error;
    }
}

/* The slot of the next picture, once it is empty; NULL: nothing more to do. Holds the lock. */
static slot *wait_for_work(oct_loader *l, int64_t *index)
{
    for (;;) {
        slot *s = &l->slots[l->next_load % l->depth];

        if (l->stop || l->next_load >= oct_dataset_size(l->d)) return NULL;
        if (s->state == SLOT_EMPTY) {
            s->state = SLOT_FILLING;
            *index = l->next_load++;
            return s;
        }
        pthread_cond_wait(&l->changed_slot, &l->lock);
    }
}

static void *work(void *arg)
{
    worker *w = arg;
    oct_loader *l = w->loader;
    int64_t index = 0;
    slot *s;

    pthread_mutex_lock(&l->lock);
    while ((s = wait_for_work(l, &index))) {
        pthread_mutex_unlock(&l->lock);
        load(w, s, index);
        pthread_mutex_lock(&l->lock);
        s->state = SLOT_READY;
        pthread_cond_signal(&l->changed_ready);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static oct_status make_slots(oct_loader *l)
{
    const size_t size = oct_preprocess_size(&l->p, l->dtype);

    if (!(l->slots = oct_calloc(l->ctx, (size_t)l->depth, sizeof(*l->slots))))
        return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < l->depth; i++) {
        if (!(l->slots[i].data = oct_alloc(l->ctx, size))) return OCT_ERR_MEMORY;
    }
    return OCT_OK;
}

static oct_status make_lock(oct_loader *l)
{
    if (pthread_mutex_init(&l->lock, NULL))
        return oct_fail(l->ctx, OCT_ERR_MEMORY, "loader: no memory for a lock");
    if (pthread_cond_init(&l->changed_slot, NULL)) {
        pthread_mutex_destroy(&l->lock);
        return oct_fail(l->ctx, OCT_ERR_MEMORY, "loader: no memory for a lock");
    }
    if (pthread_cond_init(&l->changed_ready, NULL)) {
        pthread_cond_destroy(&l->changed_slot);
        pthread_mutex_destroy(&l->lock);
        return oct_fail(l->ctx, OCT_ERR_MEMORY, "loader: no memory for a lock");
    }
    l->has_lock = true;
    return OCT_OK;
}

/* Signals are for the program's own threads: these block all of them. */
static oct_status start_threads(oct_loader *l)
{
    sigset_t all, before;
    oct_status st = OCT_OK;

    l->workers = oct_calloc(l->ctx, (size_t)l->n_workers, sizeof(*l->workers));
    if (!l->workers) return OCT_ERR_MEMORY;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int32_t i = 0; !st && i < l->n_workers; i++) {
        worker *w = &l->workers[i];

        w->loader = l;
        if (!(w->ctx = oct_ctx_new_like(l->ctx)))
            st = oct_fail(l->ctx, OCT_ERR_MEMORY, "loader: no memory for a thread");
        else if (pthread_create(&w->thread, NULL, work, w))
            st = oct_fail(l->ctx, OCT_ERR_MEMORY, "loader: cannot start thread %d", i + 1);
        else
            w->started = true;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st;
}

static oct_status check_arguments(oct_ctx *ctx, const oct_dataset *d, const oct_preprocess *p,
                                  oct_dtype dtype, int32_t n_threads, int32_t depth)
{
    if (oct_dataset_is_tensors(d))
        return oct_fail(ctx, OCT_ERR_ARG, "loader: the dataset (%s) has tensors, not pictures",
                        oct_dataset_kind(d));
    if (dtype != OCT_DTYPE_F32 && dtype != OCT_DTYPE_F16 && dtype != OCT_DTYPE_U8)
        return oct_fail(ctx, OCT_ERR_TYPE,
                        "loader: pictures become float32, float16 or uint8, not %s",
                        oct_dtype_name(dtype));
    if (n_threads < 0 || n_threads > MAX_THREADS || depth < 0 || depth > MAX_DEPTH)
        return oct_fail(ctx, OCT_ERR_ARG, "loader: %d threads, depth %d", n_threads, depth);
    return oct_preprocess_check(ctx, p);
}

void oct_loader_options_init_sized(oct_loader_options *o, size_t struct_size)
{
    const oct_loader_options all = {
        .struct_size = struct_size, .dtype = OCT_DTYPE_F32, .n_threads = 1};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

oct_status oct_loader_new(oct_ctx *ctx, const oct_dataset *d, const oct_loader_options *options,
                          oct_loader **out)
{
    OCT_ENTER(ctx);
    oct_loader_options o;
    oct_preprocess all;
    oct_loader *l;
    oct_status st;

    oct_loader_options_init(&o);
    memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    if (!o.preprocess) return oct_fail(ctx, OCT_ERR_ARG, "loader: no preprocessing is given");
    oct_preprocess_read(&all, o.preprocess);
    OCT_TRY(check_arguments(ctx, d, &all, (oct_dtype)o.dtype, o.n_threads, o.depth));
    if (!(l = oct_calloc(ctx, 1, sizeof(*l)))) return OCT_ERR_MEMORY;
    l->ctx = ctx;
    l->d = d;
    l->p = all;
    l->dtype = (oct_dtype)o.dtype;
    l->n_workers = OCT_MAX(o.n_threads, 1);
    l->depth = o.depth ? o.depth : DEPTH_PER_THREAD * l->n_workers;
    if ((st = make_slots(l)) || (st = make_lock(l)) || (st = start_threads(l))) {
        oct_loader_free(l);
        return st;
    }
    *out = l;
    return OCT_OK;
}

void oct_loader_free(oct_loader *l)
{
    if (!l) return;
    if (l->has_lock) {
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_broadcast(&l->changed_slot);
        pthread_mutex_unlock(&l->lock);
    }
    for (int32_t i = 0; l->workers && i < l->n_workers; i++) {
        if (l->workers[i].started) pthread_join(l->workers[i].thread, NULL);
        oct_picture_reader_close(&l->workers[i].reader);
        oct_ctx_free(l->workers[i].ctx);
    }
    if (l->has_lock) {
        pthread_cond_destroy(&l->changed_ready);
        pthread_cond_destroy(&l->changed_slot);
        pthread_mutex_destroy(&l->lock);
    }
    for (int32_t i = 0; l->slots && i < l->depth; i++)
        oct_free(l->ctx, l->slots[i].data);
    oct_free(l->ctx, l->slots);
    oct_free(l->ctx, l->workers);
    oct_free(l->ctx, l);
}

oct_status oct_loader_next(oct_loader *l, const oct_loaded **out)
{
    OCT_ENTER(l->ctx);
    slot *s;

    if (l->next_give >= oct_dataset_size(l->d))
        return oct_fail(l->ctx, OCT_ERR_STATE, "loader: there are no more pictures");
    s = &l->slots[l->next_give % l->depth];
    pthread_mutex_lock(&l->lock);
    if (s->state == SLOT_GIVEN) { /* waiting would never end */
        pthread_mutex_unlock(&l->lock);
        return oct_fail(l->ctx, OCT_ERR_STATE, "loader: all %d pictures are given out", l->depth);
    }
    while (s->state != SLOT_READY)
        pthread_cond_wait(&l->changed_ready, &l->lock);
    s->state = SLOT_GIVEN;
    pthread_mutex_unlock(&l->lock);
    l->next_give++;
    *out = &s->item;
    return OCT_OK;
}

void oct_loader_done(oct_loader *l, const oct_loaded *item)
{
    slot *s = &l->slots[item->index % l->depth];

    pthread_mutex_lock(&l->lock);
    if (&s->item == item && s->state == SLOT_GIVEN) s->state = SLOT_EMPTY;
    pthread_cond_broadcast(&l->changed_slot);
    pthread_mutex_unlock(&l->lock);
}

/* With skip_bad: no picture could be used. */
static oct_status none_left(const oct_loader *l, oct_ctx *ctx)
{
    const char *why = oct_notes_about(l->d->notes, OCT_NOTE_BROKEN);

    return oct_fail(ctx, OCT_ERR_FORMAT, "no picture is left: %s", why ? why : "all are broken");
}

oct_status oct_loader_take(oct_loader *l, oct_ctx *ctx, const oct_loaded **out)
{
    *out = NULL;
    while (l->next_give < oct_dataset_size(l->d)) {
        const oct_loaded *item = NULL;
        oct_status st = oct_loader_next(l, &item);
        oct_item *of;

        if (st) return ctx == l->ctx ? st : oct_fail(ctx, st, "%s", oct_ctx_error(l->ctx));
        of = &l->d->items[item->index];
        if (!item->status) {
            of->state = OCT_ITEM_GOOD;
            l->n_good++;
            *out = item;
            return OCT_OK;
        }
        if (!may_skip(l, item->index) || item->status == OCT_ERR_MEMORY)
            st = oct_fail(ctx, item->status, "%s", item->error);
        else if (of->state != OCT_ITEM_BROKEN)
            oct_notes_add(l->d->notes, OCT_NOTE_BROKEN, item->error);
        of->state = OCT_ITEM_BROKEN;
        oct_loader_done(l, item);
        if (st) return st;
    }
    return l->n_good ? OCT_OK : none_left(l, ctx);
}
