/* SPDX-License-Identifier: Apache-2.0 */
/* Batches to train on: options, sizes, and what the caller gets. */
#include "augment/batches.h"

#include <stdio.h>
#include <string.h>

#include "augment/ring.h"
#include "data/image/preprocess.h"

enum { MAX_BATCH = 65536, MAX_THREADS = 256, MAX_DEPTH = 1024, MAX_ROWS = 65536, MOST_ROWS = 300 };

#define DEFAULT_CACHE ((int64_t)256 << 20)
#define MAX_EPOCHS    ((int64_t)1 << 31)

/* --- options --- */

static oct_status check_options(oct_ctx *ctx, const oct_batches_options *o)
{
    if (!o->preprocess) return oct_fail(ctx, OCT_ERR_ARG, "batches: no preprocessing is given");
    if (o->batch < 1 || o->batch > MAX_BATCH)
        return oct_fail(ctx, OCT_ERR_ARG, "batches: a batch of %d pictures, must be 1 to %d",
                        (int)o->batch, MAX_BATCH);
    if (o->n_threads < 0 || o->n_threads > MAX_THREADS || o->depth < 0 || o->depth > MAX_DEPTH)
        return oct_fail(ctx, OCT_ERR_ARG, "batches: %d threads, depth %d", (int)o->n_threads,
                        (int)o->depth);
    if (o->max_boxes < 0 || o->max_boxes > MAX_ROWS)
        return oct_fail(ctx, OCT_ERR_ARG, "batches: room for %d boxes, must be at most %d",
                        (int)o->max_boxes, MAX_ROWS);
    if (o->n_classes < 0 || o->n_epochs < 0 || o->n_epochs > MAX_EPOCHS)
        return oct_fail(ctx, OCT_ERR_ARG, "batches: %d classes, %lld epochs", (int)o->n_classes,
                        (long long)o->n_epochs);
    if (o->cache_bytes < -1)
        return oct_fail(ctx, OCT_ERR_ARG, "batches: a cache of %lld bytes",
                        (long long)o->cache_bytes);
    return OCT_OK;
}

/* The numbers for the last epochs. */
static oct_augment closed(const oct_augment *a)
{
    oct_augment c = *a;

    c.mosaic = c.mixup = 0;
    if (a->close_affine >= 0.5) c.affine = 0;
    return c;
}

static oct_status set_numbers(oct_batches *b, const oct_batches_options *o)
{
    oct_augment *a = &b->sampler.numbers;

    if (o->augment)
        *a = *o->augment;
    else
        oct_augment_init(a, NULL);
    OCT_TRY(oct_augment_check(b->ctx, a));
    if (o->classes && (a->mosaic > 0 || a->mixup > 0))
        return oct_fail(
            b->ctx, OCT_ERR_ARG,
            "augment: %s needs boxes, these labels are classes of pictures; set it to 0",
            a->mosaic > 0 ? "mosaic" : "mixup");
    b->sampler.closed = closed(a);
    return OCT_OK;
}

/* Boxes that can come together in one sample, at most. */
static int32_t worst_boxes(const oct_batches *b)
{
    const oct_augment *a = &b->sampler.numbers;
    const int64_t tiles = a->mosaic > 0 ? OCT_MAX_TILES : 1;
    const int64_t others = a->mixup <= 0 ? 0 : a->mixup_whole >= 0.5 ? tiles : 1;

    return (int32_t)OCT_MIN((tiles + others) * b->labels.most_boxes, MOST_ROWS);
}

/* --- life --- */

static oct_status init(oct_batches *b, const oct_batches_options *o)
{
    OCT_TRY(oct_preprocess_check(b->ctx, &b->p));
    OCT_TRY(set_numbers(b, o));
    OCT_TRY(oct_train_labels_new(b->ctx, b->d, o, &b->labels));
    oct_to_input_init(&b->to_input, &b->p);
    b->sampler.labels = &b->labels;
    b->sampler.p = &b->p;
    b->sampler.max_boxes = o->max_boxes ? o->max_boxes : worst_boxes(b);
    b->count = o->drop_last ? OCT_MAX(b->labels.n_usable / b->batch, 1)
                            : oct_ceil_div(b->labels.n_usable, b->batch);
    OCT_TRY(oct_pictures_new(b->ctx, b->d, b->cache_bytes, &b->pictures));
    return oct_ring_start(b);
}

oct_status oct_batches_new(oct_ctx *ctx, const oct_dataset *d, const oct_batches_options *options,
                           oct_batches **out)
{
    OCT_ENTER(ctx);
    const oct_batches_options *o = options;
    oct_batches *b;
    oct_status st;

    OCT_TRY(check_options(ctx, o));
    if (!(b = oct_calloc(ctx, 1, sizeof(*b)))) return OCT_ERR_MEMORY;
    b->ctx = ctx;
    b->d = d;
    oct_preprocess_read(&b->p, o->preprocess);
    b->seed = o->seed;
    b->shuffle = o->shuffle;
    b->batch = o->batch;
    b->depth = o->depth ? o->depth : 2;
    b->n_workers = OCT_MAX(o->n_threads, 1);
    b->n_epochs = o->n_epochs;
    b->cache_bytes = o->cache_bytes ? OCT_MAX(o->cache_bytes, 0) : DEFAULT_CACHE;
    if ((st = init(b, o))) {
        oct_batches_free(b);
        return st;
    }
    *out = b;
    return OCT_OK;
}

void oct_batches_free(oct_batches *b)
{
    if (!b) return;
    oct_ring_stop(b);
    oct_train_labels_free(&b->labels);
    oct_free(b->ctx, b);
}

/* --- facts --- */

int64_t oct_batches_count(const oct_batches *b)
{
    return b->count;
}

int32_t oct_batches_max_boxes(const oct_batches *b)
{
    return b->sampler.max_boxes;
}

size_t oct_batches_image_size(const oct_batches *b)
{
    return oct_to_input_size(&b->to_input) * (size_t)b->batch;
}

const oct_preprocess *oct_batches_preprocess(const oct_batches *b)
{
    return &b->p;
}

/* A canvas is of twice the sides with mosaic; it is needed only where something is turned. */
int64_t oct_batches_bytes(const oct_batches *b)
{
    const oct_augment *a = &b->sampler.numbers;
    const int64_t pixels = (int64_t)b->p.width * b->p.height * 3;
    const int64_t rows = b->labels.classes ? 0 : (int64_t)b->sampler.max_boxes * 5 * 4;
    const bool turns = a->affine > 0 && (a->degrees > 0 || a->shear > 0);
    const int64_t scratch =
        (a->mixup > 0 ? pixels : 0) + (turns ? (a->mosaic > 0 ? 4 : 1) * pixels : 0);

    return b->depth * b->batch * (pixels + rows) + b->n_workers * scratch + b->cache_bytes;
}

const char *oct_batches_note(oct_batches *b, int32_t i)
{
    const oct_train_labels *l = &b->labels;
    const struct {
        int64_t n;
        const char *what;
    } notes[] = {
        {l->n_unknown, "none of the network's classes"},
        {l->n_empty, "without area"},
        {l->n_crowds, "of crowds"},
        {b->n_dropped, "more boxes than rows in a sample, of which the smallest go"},
    };

    for (size_t k = 0; k < OCT_COUNT(notes); k++) {
        if (!notes[k].n || i-- > 0) continue;
        (void)snprintf(b->note, sizeof(b->note), "%lld label%s %s left out: %s",
                       (long long)notes[k].n, notes[k].n == 1 ? "" : "s",
                       notes[k].n == 1 ? "was" : "were", notes[k].what);
        return b->note;
    }
    return NULL;
}

/* --- batches --- */

oct_status oct_batches_seek(oct_batches *b, int64_t epoch, int64_t batch)
{
    OCT_ENTER(b->ctx);

    if (epoch < 0 || epoch > MAX_EPOCHS || batch < 0 || batch >= b->count)
        return oct_fail(b->ctx, OCT_ERR_ARG,
                        "batches: there is no batch %lld of epoch %lld; an epoch has %lld",
                        (long long)batch, (long long)epoch, (long long)b->count);
    oct_ring_seek(b, epoch * b->count + batch);
    return OCT_OK;
}

oct_status oct_batches_next(oct_batches *b, float *images, void *labels, oct_batch_info *info)
{
    OCT_ENTER(b->ctx);
    const size_t pixels = (size_t)b->p.width * (size_t)b->p.height * 3;
    const size_t size = oct_to_input_size(&b->to_input);
    const oct_batch_info where = {.epoch = b->next_batch / b->count,
                                  .batch = b->next_batch % b->count};
    oct_ring_slot *slot;

    if (b->n_epochs && where.epoch >= b->n_epochs)
        return oct_fail(b->ctx, OCT_ERR_STATE, "batches: the %lld epochs are over",
                        (long long)b->n_epochs);
    slot = oct_ring_wait(b);
    if (slot->status) return oct_fail(b->ctx, slot->status, "%s", slot->error);
    for (int32_t i = 0; i < b->batch; i++)
        oct_to_input_run(&b->to_input, slot->rgb + (size_t)i * pixels, images + (size_t)i * size);
    if (slot->labels)
        memcpy(labels, slot->labels,
               (size_t)b->batch * (size_t)b->sampler.max_boxes * 5 * sizeof(float));
    else
        memcpy(labels, slot->classes, (size_t)b->batch * sizeof(int64_t));
    if (info) {
        *info = where;
        info->n_boxes = slot->n_boxes;
        info->n_dropped = slot->n_dropped;
    }
    b->n_dropped += slot->n_dropped;
    oct_ring_done(b, slot);
    return OCT_OK;
}
