/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoded pictures. The cache keeps the first pictures it meets until it is full and then never
 * changes: in an epoch every picture is as likely as any other, so none is worth more.
 */
#include "augment/pictures.h"

#include <pthread.h>

struct oct_pictures {
    oct_ctx *ctx;
    const oct_dataset *d;
    int64_t most, used; /* bytes; `used` is of the lock */
    pthread_mutex_t lock;
    bool has_lock;
    _Atomic(oct_image *) *cached; /* by picture; set once */
};

oct_status oct_pictures_new(oct_ctx *ctx, const oct_dataset *d, int64_t most, oct_pictures **out)
{
    oct_pictures *p = oct_calloc(ctx, 1, sizeof(*p));

    if (!p) return OCT_ERR_MEMORY;
    p->ctx = ctx;
    p->d = d;
    p->most = most;
    p->cached = oct_calloc(ctx, d->n_items + 1, sizeof(*p->cached));
    if (!p->cached) {
        oct_pictures_free(p);
        return OCT_ERR_MEMORY;
    }
    if (pthread_mutex_init(&p->lock, NULL)) {
        oct_pictures_free(p);
        return oct_fail(ctx, OCT_ERR_MEMORY, "batches: no memory for a lock");
    }
    p->has_lock = true;
    *out = p;
    return OCT_OK;
}

void oct_pictures_free(oct_pictures *p)
{
    if (!p) return;
    for (size_t i = 0; p->cached && i < p->d->n_items; i++)
        oct_image_free(atomic_load(&p->cached[i]));
    if (p->has_lock) pthread_mutex_destroy(&p->lock);
    oct_free(p->ctx, p->cached);
    oct_free(p->ctx, p);
}

/* True: the cache owns it now. Another thread may have been faster with the same picture. */
static bool keep(oct_pictures *p, int64_t i, oct_image *im)
{
    const int64_t size = (int64_t)im->width * im->height * 3;
    bool kept = false;

    pthread_mutex_lock(&p->lock);
    if (p->used + size <= p->most && !atomic_load(&p->cached[i])) {
        p->used += size;
        atomic_store(&p->cached[i], im);
        kept = true;
    }
    pthread_mutex_unlock(&p->lock);
    return kept;
}

/* With skip_bad, as in the loader; memory that is short is no fault of the picture. */
static oct_status broken(oct_picture_user *u, oct_item *item, oct_status st)
{
    const oct_dataset *d = u->pictures->d;

    if ((!d->skip_bad && item->frame < 0) || st == OCT_ERR_MEMORY) return st;
    if (atomic_exchange(&item->state, OCT_ITEM_BROKEN) != OCT_ITEM_BROKEN)
        oct_notes_add(d->notes, OCT_NOTE_BROKEN, oct_ctx_error(u->ctx));
    return OCT_OK;
}

oct_status oct_picture_get(oct_picture_user *u, int64_t i, const oct_image **out)
{
    oct_pictures *p = u->pictures;
    oct_item *item = &p->d->items[i];
    oct_image *im = NULL;
    oct_status st;

    *out = atomic_load(&p->cached[i]);
    if (*out || atomic_load(&item->state) == OCT_ITEM_BROKEN) return OCT_OK;
    if (u->n_held >= OCT_PICTURES_HELD)
        return oct_fail(u->ctx, OCT_ERR_STATE, "batches: more than %d pictures at a time",
                        OCT_PICTURES_HELD);
    if ((st = oct_picture_read(&u->reader, u->ctx, item, &im))) return broken(u, item, st);
    atomic_store(&item->state, OCT_ITEM_GOOD);
    if (!keep(p, i, im)) u->held[u->n_held++] = im;
    *out = im;
    return OCT_OK;
}

void oct_picture_user_done(oct_picture_user *u)
{
    while (u->n_held > 0)
        oct_image_free(u->held[--u->n_held]);
}

void oct_picture_user_close(oct_picture_user *u)
{
    oct_picture_user_done(u);
    oct_picture_reader_close(&u->reader);
}
