/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that a function of the program's gives, item by item. */
#include <string.h>

#include "base/mem.h"
#include "data/dataset.h"

/* The tensors of one item are kept until another one is asked for: inputs are asked one by one. */
struct oct_source {
    oct_ctx *ctx;
    oct_next_fn next;
    void *user;
    const char *name;
    const char **inputs; /* of the dataset's arena */
    int32_t n_inputs;
    int64_t at; /* the item that `tensors` are of; -1: none */
    oct_tensor **tensors;
};

void oct_source_options_init_sized(oct_source_options *o, size_t struct_size)
{
    const oct_source_options all = {.struct_size = struct_size, .size = -1};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

static void drop(oct_source *s)
{
    for (int32_t i = 0; s->tensors && i < s->n_inputs; i++) {
        oct_tensor_unref(s->tensors[i]);
        s->tensors[i] = NULL;
    }
    s->at = -1;
}

void oct_source_free(oct_source *s)
{
    if (!s) return;
    drop(s);
    oct_free(s->ctx, s);
}

/* *found: whether there is such an item. */
static oct_status fetch(oct_source *s, int64_t i, bool *found)
{
    oct_status st;

    *found = true;
    if (s->at == i) return OCT_OK;
    drop(s);
    st = s->next(s->user, i, s->tensors);
    if (st == OCT_ERR_STATE) {
        drop(s);
        *found = false;
        return OCT_OK;
    }
    if (st) {
        drop(s);
        return oct_fail(s->ctx, st, "%s: item %lld cannot be had (status %d)", s->name,
                        (long long)i, (int)st);
    }
    for (int32_t k = 0; k < s->n_inputs; k++) {
        if (s->tensors[k]) continue;
        drop(s);
        return oct_fail(s->ctx, OCT_ERR_ARG, "%s: item %lld has no tensor for input '%s'", s->name,
                        (long long)i, s->inputs[k]);
    }
    s->at = i;
    return OCT_OK;
}

oct_status oct_source_get(oct_source *s, int64_t i, const char *name, oct_tensor **out)
{
    bool found;

    OCT_TRY(fetch(s, i, &found));
    if (!found)
        return oct_fail(s->ctx, OCT_ERR_ARG, "%s: there is no item %lld, though it was promised",
                        s->name, (long long)i);
    for (int32_t k = 0; k < s->n_inputs; k++) {
        if (strcmp(s->inputs[k], name) != 0) continue;
        *out = oct_tensor_ref(s->tensors[k]);
        return OCT_OK;
    }
    return oct_fail(s->ctx, OCT_ERR_ARG, "%s: gives nothing for the network's input '%s'", s->name,
                    name);
}

static oct_status check_options(oct_ctx *ctx, const oct_source_options *o)
{
    if (!o->next) return oct_fail(ctx, OCT_ERR_ARG, "source: there is no function");
    if (o->n_inputs < 1 || !o->inputs)
        return oct_fail(ctx, OCT_ERR_ARG, "source: no input of the network is named");
    if (o->size < -1 || o->size == 0)
        return oct_fail(ctx, OCT_ERR_ARG, "source: a size of %lld", (long long)o->size);
    return OCT_OK;
}

static oct_status copy_options(oct_source *s, oct_arena *a, const oct_source_options *o)
{
    s->next = o->next;
    s->user = o->user;
    s->n_inputs = o->n_inputs;
    s->name = oct_arena_strdup(a, o->name ? o->name : "the callback");
    s->inputs = oct_arena_array(a, (size_t)o->n_inputs, sizeof(*s->inputs));
    s->tensors = oct_arena_array(a, (size_t)o->n_inputs, sizeof(*s->tensors));
    if (!s->name || !s->inputs || !s->tensors) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < o->n_inputs; i++)
        if (!(s->inputs[i] = oct_arena_strdup(a, o->inputs[i]))) return OCT_ERR_MEMORY;
    return OCT_OK;
}

/* Calibration must know how many items it will see: where nobody says, they are counted. */
static oct_status add_items(oct_dataset *d, int64_t size)
{
    bool found = true;

    for (int64_t i = 0; size < 0 || i < size; i++) {
        if (size < 0) OCT_TRY(fetch(d->source, i, &found));
        if (!found) break;
        OCT_TRY(oct_dataset_add(d, d->source->name));
        d->items[i].id = i;
    }
    if (!d->n_items)
        return oct_fail(d->ctx, OCT_ERR_ARG, "%s: there is not a single item", d->source->name);
    return OCT_OK;
}

oct_status oct_dataset_from_source(oct_ctx *ctx, const oct_source_options *options,
                                   oct_dataset **out)
{
    OCT_ENTER(ctx);
    oct_source_options o;
    oct_dataset *d = NULL;
    oct_status st;

    oct_source_options_init(&o);
    memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    OCT_TRY(check_options(ctx, &o));
    OCT_TRY(oct_dataset_new(ctx, &d));
    d->kind = "callback";
    if (!(d->source = oct_calloc(ctx, 1, sizeof(*d->source)))) {
        oct_dataset_close(d);
        return OCT_ERR_MEMORY;
    }
    d->source->ctx = ctx;
    d->source->at = -1;
    st = copy_options(d->source, d->arena, &o);
    if (!st) st = add_items(d, o.size);
    if (st) {
        oct_dataset_close(d);
        return st;
    }
    *out = d;
    return OCT_OK;
}
