/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures (or tensors) into runs, in order, for several threads at once. */
#include "feed/feed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "detect/detector.h"
#include "detect/input_preprocess.h"

struct oct_feed {
    oct_ctx *ctx;
    const oct_dataset *d;
    oct_preprocess preprocess;
    oct_dtype dtype;
    const char *input; /* the picture's; NULL: items are tensors for all inputs */
    const oct_graph *bound;
    pthread_mutex_t lock; /* guards what follows */
    oct_loader *loader;
    int64_t next, limit;
};

/* --- making one --- */

/* Who feeds a network need not understand its outputs. */
static oct_status want_preprocess(const oct_graph *g, const char *family, oct_status st)
{
    if (st != OCT_ERR_SHAPE || (family && strcmp(family, "auto") != 0)) return st;
    return oct_fail(g->ctx, st,
                    "%s. No family is needed here: say how pictures are prepared (--preprocess "
                    "size=640x640,scale=255), or give tensors instead of pictures (FILE.npz)",
                    oct_ctx_error(g->ctx));
}

static oct_status feed_pictures(oct_feed *f, const oct_graph *g, const oct_feed_options *o,
                                oct_graph **bound)
{
    oct_detector *family = NULL;
    const oct_value *input = NULL;
    oct_status st;

    oct_preprocess_init(&f->preprocess);
    if (!o->preprocess) {
        if ((st = oct_detector_new(g, o->family, &family)))
            return want_preprocess(g, o->family, st);
        oct_detector_preprocess(family, &f->preprocess);
        oct_detector_free(family);
    }
    if (o->preprocess)
        memcpy(&f->preprocess, o->preprocess,
               OCT_MIN(o->preprocess->struct_size, sizeof(f->preprocess)));
    OCT_TRY(oct_picture_check(g, &f->preprocess));
    OCT_TRY(oct_detector_bind(g, 1, f->preprocess.width, f->preprocess.height, bound));
    OCT_TRY(oct_detector_input(*bound, &input));
    f->input = input->name;
    f->dtype = input->type.dtype;
    return OCT_OK;
}

/* The shapes of the first item; the others must have the same. */
static oct_status feed_tensors(oct_feed *f, const oct_graph *g, oct_graph **bound)
{
    OCT_TRY(oct_graph_clone(g, bound));
    for (int32_t i = 0; i < (*bound)->n_inputs; i++) {
        const char *name = (*bound)->inputs[i]->name;
        oct_tensor *t = NULL;
        oct_status st;

        OCT_TRY(oct_dataset_tensor(f->d, 0, name, &t));
        st = oct_graph_set_input_shape(*bound, name, t->type.rank, t->type.dim);
        oct_tensor_unref(t);
        if (st) return st;
    }
    return OCT_OK;
}

oct_status oct_feed_new(const oct_graph *g, const oct_dataset *d, const oct_feed_options *o,
                        oct_graph **bound, oct_feed **out)
{
    oct_feed *f;
    oct_status st;

    if (oct_dataset_size(d) < 1)
        return oct_fail(g->ctx, OCT_ERR_ARG, "there are no pictures to calibrate with");
    if (!(f = oct_calloc(g->ctx, 1, sizeof(*f)))) return OCT_ERR_MEMORY;
    f->ctx = g->ctx;
    f->d = d;
    (void)pthread_mutex_init(&f->lock, NULL);
    *bound = NULL;
    st = oct_dataset_is_tensors(d) ? feed_tensors(f, g, bound) : feed_pictures(f, g, o, bound);
    f->bound = *bound;
    if (!st) st = oct_feed_rewind(f, o->limit);
    if (st) {
        oct_feed_free(f);
        oct_graph_free(*bound);
        *bound = NULL;
        return st;
    }
    *out = f;
    return OCT_OK;
}

void oct_feed_free(oct_feed *f)
{
    if (!f) return;
    oct_loader_free(f->loader);
    (void)pthread_mutex_destroy(&f->lock);
    oct_free(f->ctx, f);
}

int64_t oct_feed_size(const oct_feed *f)
{
    return f->limit;
}

const char *oct_feed_name(const oct_feed *f, int64_t i)
{
    size_t at = 0;
    const char *path;

    for (; at < f->d->n_items; at++)
        if (f->d->items[at].state != OCT_ITEM_BROKEN && i-- == 0) break;
    path = oct_dataset_path(f->d, (int64_t)at);
    return path ? path : "an item of the data";
}

static oct_status new_loader(oct_feed *f, int32_t n_threads, oct_loader **out)
{
    oct_loader_options o;

    oct_loader_options_init(&o);
    o.preprocess = &f->preprocess;
    o.dtype = (int32_t)f->dtype;
    o.n_threads = n_threads;
    return oct_loader_new(f->ctx, f->d, &o, out);
}

/* How many of the first pictures up to `limit` good ones are known to be good; -1: not all known.
 */
static int64_t count_good(const oct_feed *f, int64_t limit)
{
    int64_t n = 0;

    for (size_t i = 0; i < f->d->n_items && n < limit; i++) {
        if (f->d->items[i].state == OCT_ITEM_UNKNOWN) return -1;
        n += f->d->items[i].state == OCT_ITEM_GOOD;
    }
    return n;
}

/*
 * Where broken pictures are left out, those to come are decoded once before the work: statistics
 * and corrections must know how many they will see.
 */
static oct_status find_good(oct_feed *f, int64_t limit)
{
    oct_loader *l = NULL;
    const oct_loaded *item = NULL;
    oct_status st = OCT_OK;
    int64_t n = 0;

    if ((f->limit = count_good(f, limit)) > 0) return OCT_OK;
    OCT_TRY(new_loader(f, oct_ctx_threads(f->ctx), &l));
    do {
        if ((st = oct_loader_take(l, f->ctx, &item)) || !item) break;
        oct_loader_done(l, item);
    } while (++n < limit);
    oct_loader_free(l);
    f->limit = n;
    return st;
}

oct_status oct_feed_rewind(oct_feed *f, int64_t limit)
{
    const int64_t size = oct_dataset_size(f->d);

    f->next = 0;
    f->limit = limit > 0 ? OCT_MIN(limit, size) : size;
    oct_loader_free(f->loader);
    f->loader = NULL;
    if (f->input && (f->d->skip_bad || f->d->has_video)) OCT_TRY(find_good(f, f->limit));
    return f->input ? new_loader(f, 1, &f->loader) : OCT_OK;
}

/* --- taking --- */

static oct_status take_picture(oct_feed *f, oct_ctx *ctx, oct_run *r, int64_t *index)
{
    const oct_loaded *l = NULL;
    void *to = NULL;
    size_t size = 0;
    oct_status st;

    OCT_TRY(oct_loader_take(f->loader, ctx, &l));
    if (!l) {
        *index = -1;
        return OCT_OK;
    }
    if (!(st = oct_run_input(r, f->input, &to, &size))) {
        if (to)
            memcpy(to, l->data, size);
        else
            st = oct_fail(ctx, OCT_ERR_UNSUPPORTED, "the network ignores its picture");
    }
    oct_loader_done(f->loader, l);
    return st;
}

static oct_status take_tensors(oct_feed *f, oct_ctx *ctx, oct_run *r, int64_t i)
{
    for (int32_t k = 0; k < f->bound->n_inputs; k++) {
        const char *name = f->bound->inputs[k]->name;
        oct_tensor *t = NULL;
        oct_status st = oct_dataset_tensor(f->d, i, name, &t);

        if (st) return oct_fail(ctx, st, "%s", oct_ctx_error(f->ctx));
        st = oct_run_set_input(r, name, t);
        oct_tensor_unref(t);
        if (st) return st;
    }
    return OCT_OK;
}

oct_status oct_feed_take(oct_feed *f, oct_ctx *ctx, oct_run *r, int64_t *index)
{
    oct_status st = OCT_OK;

    (void)pthread_mutex_lock(&f->lock);
    *index = f->next < f->limit ? f->next++ : -1;
    if (*index >= 0)
        st = f->input ? take_picture(f, ctx, r, index) : take_tensors(f, ctx, r, *index);
    if (st) { /* no later item is taken, which may be broken as well */
        f->next = f->limit;
        *index = oct_dataset_size(f->d);
    }
    (void)pthread_mutex_unlock(&f->lock);
    return st;
}

/* --- all of them --- */

typedef struct each {
    oct_feed *f;
    const oct_plan *plan;
    const oct_feed_job *job;
    oct_run *runs[OCT_MAX_WORKERS];
    atomic_bool is_stopped;
    atomic_int_least64_t done;
} each;

static oct_status init_worker(void *user, int32_t worker, oct_ctx *ctx)
{
    each *e = user;

    return oct_run_new(ctx, e->plan, &e->runs[worker]);
}

/* *index is the item at work, -1 before the first. */
static oct_status work(void *user, int32_t worker, oct_ctx *ctx, int64_t *index)
{
    each *e = user;
    const oct_feed_job *j = e->job;
    oct_run *run = e->runs[worker];

    *index = -1;
    if (j->begin) OCT_TRY(j->begin(j->user, worker, run));
    while (!atomic_load(&e->is_stopped)) {
        int64_t done;

        OCT_TRY(oct_feed_take(e->f, ctx, run, index));
        if (*index < 0) return OCT_OK;
        OCT_TRY(oct_run_execute(run));
        if (j->one) OCT_TRY(j->one(j->user, worker, ctx, run, *index));
        done = atomic_fetch_add(&e->done, 1) + 1;
        if (worker == 0 && j->what) OCT_TRY(oct_progress(ctx, j->what, done, e->f->limit));
    }
    return OCT_OK;
}

static void stop(void *user)
{
    each *e = user;

    atomic_store(&e->is_stopped, true);
}

static void fini_worker(void *user, int32_t worker)
{
    each *e = user;

    if (e->job->end) e->job->end(e->job->user, worker);
    oct_run_free(e->runs[worker]);
}

oct_status oct_feed_each(oct_feed *f, const oct_plan *plan, const oct_feed_job *job)
{
    each e = {.f = f, .plan = plan, .job = job};
    const oct_job all = {
        .user = &e,
        .n_workers = OCT_MAX(1, OCT_MIN(job->n_workers, (int32_t)OCT_MAX_WORKERS)),
        .init = init_worker,
        .work = work,
        .stop = stop,
        .fini = fini_worker,
    };

    return oct_job_run(f->ctx, &all);
}

void oct_feed_workers(const oct_feed *f, oct_ctx *ctx, int32_t *n_workers, int32_t *n_threads)
{
    const int32_t all = oct_ctx_threads(ctx);

    *n_workers = oct_job_workers(all, f->limit);
    *n_threads = all / *n_workers;
}
