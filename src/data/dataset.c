/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets: recognising the kind, reading it, and selecting what was asked for. */
#include "data/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/files.h"
#include "data/tensors.h"

void oct_dataset_options_init_sized(oct_dataset_options *o, size_t struct_size)
{
    const oct_dataset_options all = {.struct_size = struct_size};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

/* --- for readers --- */

oct_status oct_dataset_add(oct_dataset *d, const char *path)
{
    OCT_TRY(oct_grow(d->ctx, &d->items, &d->cap_items, d->n_items + 1, sizeof(*d->items)));
    d->items[d->n_items++] = (oct_item){.path = path, .frame = -1, .class_index = -1};
    return OCT_OK;
}

oct_status oct_dataset_add_category(oct_dataset *d, const char *name, int64_t id)
{
    if (d->n_categories >= INT32_MAX)
        return oct_fail(d->ctx, OCT_ERR_UNSUPPORTED, "too many categories");
    OCT_TRY(oct_grow(d->ctx, &d->categories, &d->cap_categories, d->n_categories + 1,
                     sizeof(*d->categories)));
    d->categories[d->n_categories++] = (oct_category){name, id};
    return OCT_OK;
}

oct_status oct_dataset_bad(oct_dataset *d, oct_status st, const char *where)
{
    if (where) oct_fail_at(d->ctx, st, where);
    if (!d->skip_bad || st == OCT_ERR_MEMORY) return st;
    oct_log(d->ctx, OCT_LOG_WARN, "left out: %s", oct_ctx_error(d->ctx));
    oct_notes_add(d->notes, OCT_NOTE_ENTRY, oct_ctx_error(d->ctx));
    d->skipped++;
    return OCT_OK;
}

const char *oct_dataset_join(oct_dataset *d, const char *folder, const char *name)
{
    if (!folder) return oct_arena_strdup(d->arena, name);
    return oct_arena_printf(d->arena, "%s%s%s", folder,
                            *folder && folder[strlen(folder) - 1] == '/' ? "" : "/", name);
}

oct_status oct_labels_add(oct_ctx *ctx, oct_labels *l, const oct_label *label)
{
    OCT_TRY(oct_grow(ctx, &l->items, &l->cap, l->n + 1, sizeof(*l->items)));
    l->items[l->n++] = *label;
    return OCT_OK;
}

oct_status oct_labels_give(oct_dataset *d, oct_labels *l, oct_item *item)
{
    oct_label *copy;

    if (!l->n) return OCT_OK;
    copy = oct_arena_array(d->arena, l->n, sizeof(*copy));
    if (!copy) return OCT_ERR_MEMORY;
    memcpy(copy, l->items, l->n * sizeof(*copy));
    item->labels = copy;
    item->n_labels = (int32_t)l->n;
    l->n = 0;
    return OCT_OK;
}

#define MAX_COORDINATE 1e9 /* beyond any picture; products stay exact enough */

oct_status oct_label_check(oct_ctx *ctx, const oct_label *l)
{
    const double v[4] = {l->x, l->y, l->width, l->height};

    for (int i = 0; i < 4; i++) {
        if (!isfinite(v[i]) || fabs(v[i]) > MAX_COORDINATE)
            return oct_fail(ctx, OCT_ERR_FORMAT, "a box of %g, %g, %g x %g", v[0], v[1], v[2],
                            v[3]);
    }
    if (v[2] < 0 || v[3] < 0)
        return oct_fail(ctx, OCT_ERR_FORMAT, "a box of negative size, %g x %g", v[2], v[3]);
    return OCT_OK;
}

oct_status oct_label_check_inside(oct_ctx *ctx, const oct_label *l, int64_t width, int64_t height)
{
    const bool left = l->x + l->width < 0 || (width > 0 && l->x > (double)width);
    const bool above = l->y + l->height < 0 || (height > 0 && l->y > (double)height);

    if (!left && !above) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_FORMAT,
                    "the box %g, %g, %g x %g lies outside its picture of %lld x %lld", l->x, l->y,
                    l->width, l->height, (long long)width, (long long)height);
}

bool oct_label_is_empty(oct_dataset *d, const oct_label *l, const char *file)
{
    if (l->width > 0 && l->height > 0) return false;
    oct_notes_add(d->notes, OCT_NOTE_EMPTY_BOX, file);
    d->skipped++;
    return true;
}

/* --- selection --- */

static int by_value(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x < y ? -1 : x > y;
}

/* The first m of a shuffle, put back in order: any m of n are equally likely. */
static oct_status pick_random(oct_ctx *ctx, size_t n, size_t m, uint64_t seed, size_t **out)
{
    size_t *order = oct_alloc(ctx, n * sizeof(*order));
    oct_rng rng;

    if (!order) return OCT_ERR_MEMORY;
    oct_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = 0; i < m; i++) {
        const size_t k = i + (size_t)oct_rng_below(&rng, n - i), t = order[i];

        order[i] = order[k];
        order[k] = t;
    }
    qsort(order, m, sizeof(*order), by_value);
    *out = order;
    return OCT_OK;
}

/* First `limit`, then of what is left `subset_size`: evenly (k * n / m) or at random. */
static oct_status cut_down(oct_dataset *d, const oct_dataset_options *o)
{
    size_t *order = NULL, n = d->n_items, m = n;

    if (o->limit > 0) n = m = OCT_MIN(n, (size_t)o->limit);
    if (o->subset_size > 0) m = OCT_MIN(n, (size_t)o->subset_size);
    if (m < n && o->random) OCT_TRY(pick_random(d->ctx, n, m, o->seed, &order));
    for (size_t i = 0; i < m; i++)
        d->items[i] = d->items[order ? order[i] : (size_t)((uint64_t)i * n / m)];
    d->n_items = m;
    oct_free(d->ctx, order);
    return OCT_OK;
}

/* Labels name pictures that may not be there: better said before hours of work than after them. */
static oct_status find_missing(oct_dataset *d)
{
    const char *first = NULL;
    size_t n = 0, n_missing = 0;

    if (d->tensors) return OCT_OK;
    for (size_t i = 0; i < d->n_items; i++) {
        const oct_item item = d->items[i];

        if (item.frame > 0 || oct_is_file(item.path)) { /* the file of a video is asked for once */
            d->items[n++] = item;
            continue;
        }
        if (!n_missing++) first = item.path;
        if (d->skip_bad) oct_notes_add(d->notes, OCT_NOTE_MISSING, item.path);
    }
    if (!n_missing) return OCT_OK;
    if (d->n_items == 1) return oct_fail(d->ctx, OCT_ERR_IO, "%s: there is no such file", first);
    if (!d->skip_bad || !n)
        return oct_fail(d->ctx, OCT_ERR_IO,
                        "%s: there is no such file; of %zu pictures %zu %s missing", first,
                        d->n_items, n_missing, n_missing == 1 ? "is" : "are");
    d->skipped += (int64_t)n_missing;
    d->n_items = n;
    return OCT_OK;
}

static oct_status read_all(oct_dataset *d, const oct_dataset_options *o)
{
    if (!o->n_more_images && (o->annotations || !oct_is_inputs(o->images)))
        return oct_dataset_recognise(d, o->images, o->annotations);
    OCT_TRY(oct_read_input(d, o->images));
    for (int32_t i = 0; i < o->n_more_images; i++)
        OCT_TRY(oct_read_input(d, o->more_images[i]));
    return OCT_OK;
}

static oct_status check_options(oct_ctx *ctx, const oct_dataset_options *o)
{
    if (!o->images && !o->annotations)
        return oct_fail(ctx, OCT_ERR_ARG, "dataset: neither images nor annotations are given");
    if (o->annotations && (o->n_more_images || (o->images && oct_is_inputs(o->images))))
        return oct_fail(ctx, OCT_ERR_ARG, "dataset: with labels, pictures are one folder");
    if (o->n_more_images < 0 || o->every < 0)
        return oct_fail(ctx, OCT_ERR_ARG, "dataset: n_more_images %d, every %d", o->n_more_images,
                        o->every);
    if (o->limit < 0 || o->subset_size < 0)
        return oct_fail(ctx, OCT_ERR_ARG, "dataset: limit %d, subset_size %d", o->limit,
                        o->subset_size);
    return OCT_OK;
}

oct_status oct_dataset_new(oct_ctx *ctx, oct_dataset **out)
{
    oct_dataset *d = oct_calloc(ctx, 1, sizeof(*d));
    oct_status st;

    if (!d) return OCT_ERR_MEMORY;
    d->ctx = ctx;
    d->kind = "nothing";
    d->top_class = -1;
    d->every = 1;
    st = (d->arena = oct_arena_new(ctx)) ? oct_notes_new(ctx, &d->notes) : OCT_ERR_MEMORY;
    if (st) {
        oct_dataset_close(d);
        return st;
    }
    *out = d;
    return OCT_OK;
}

oct_status oct_dataset_open(oct_ctx *ctx, const oct_dataset_options *options, oct_dataset **out)
{
    OCT_ENTER(ctx);
    oct_dataset_options o;
    oct_dataset *d = NULL;
    oct_status st;

    oct_dataset_options_init(&o);
    memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    OCT_TRY(check_options(ctx, &o));
    OCT_TRY(oct_dataset_new(ctx, &d));
    d->skip_bad = o.skip_bad != 0;
    d->every = OCT_MAX(o.every, 1);
    st = read_all(d, &o);
    if (!st && !d->n_items)
        st = oct_fail(ctx, OCT_ERR_FORMAT, "%s: there is nothing in it%s",
                      o.images ? o.images : o.annotations, d->skipped ? " that is not broken" : "");
    if (!st) st = cut_down(d, &o);
    if (!st && o.need_files) st = find_missing(d);
    if (st) {
        oct_dataset_close(d);
        return st;
    }
    *out = d;
    return OCT_OK;
}

void oct_dataset_close(oct_dataset *d)
{
    if (!d) return;
    oct_picture_reader_close(&d->reader);
    oct_tensors_free(d->tensors);
    oct_source_free(d->source);
    oct_notes_free(d->notes);
    oct_free(d->ctx, d->items);
    oct_free(d->ctx, d->categories);
    oct_arena_free(d->arena);
    oct_free(d->ctx, d);
}

/* --- reading --- */

static const oct_item *item_at(const oct_dataset *d, int64_t i)
{
    return i >= 0 && (uint64_t)i < d->n_items ? &d->items[i] : NULL;
}

static const oct_category *category_at(const oct_dataset *d, int32_t i)
{
    return i >= 0 && (size_t)i < d->n_categories ? &d->categories[i] : NULL;
}

const char *oct_dataset_kind(const oct_dataset *d)
{
    return d->kind;
}

int64_t oct_dataset_size(const oct_dataset *d)
{
    return (int64_t)d->n_items;
}

int32_t oct_dataset_n_categories(const oct_dataset *d)
{
    return (int32_t)d->n_categories;
}

const char *oct_dataset_category_name(const oct_dataset *d, int32_t i)
{
    const oct_category *c = category_at(d, i);

    return c ? c->name : NULL;
}

int64_t oct_dataset_category_id(const oct_dataset *d, int32_t i)
{
    const oct_category *c = category_at(d, i);

    return c ? c->id : -1;
}

const char *oct_dataset_path(const oct_dataset *d, int64_t i)
{
    const oct_item *item = item_at(d, i);

    return item ? item->path : NULL;
}

int64_t oct_dataset_image_id(const oct_dataset *d, int64_t i)
{
    const oct_item *item = item_at(d, i);

    return item && d->has_ids ? item->id : i;
}

const oct_label *oct_dataset_labels(const oct_dataset *d, int64_t i, int32_t *n)
{
    const oct_item *item = item_at(d, i);

    *n = item ? item->n_labels : 0;
    return *n ? item->labels : NULL;
}

int32_t oct_dataset_class(const oct_dataset *d, int64_t i)
{
    const oct_item *item = item_at(d, i);

    return item ? item->class_index : -1;
}

int64_t oct_dataset_skipped(const oct_dataset *d)
{
    return d->skipped;
}

const char *oct_dataset_note(const oct_dataset *d, int32_t i)
{
    return oct_notes_text(d->notes, i);
}

int32_t oct_dataset_is_tensors(const oct_dataset *d)
{
    return d->tensors || d->source;
}

oct_status oct_dataset_tensor(const oct_dataset *d, int64_t i, const char *name, oct_tensor **out)
{
    OCT_ENTER(d->ctx);
    const oct_item *item = item_at(d, i);

    if (!oct_dataset_is_tensors(d))
        return oct_fail(d->ctx, OCT_ERR_STATE, "a dataset of pictures (%s) has no tensors",
                        d->kind);
    if (!item)
        return oct_fail(d->ctx, OCT_ERR_ARG, "there is no item %lld of %zu", (long long)i,
                        d->n_items);
    return d->source ? oct_source_get(d->source, item->id, name, out)
                     : oct_tensors_get(d->tensors, item->id, name, out);
}
