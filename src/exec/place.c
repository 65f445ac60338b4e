/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: when each slot lives, and where in the activation block it lies. */
#include <stdlib.h>
#include <string.h>

#include "exec/kernel.h"

#define ALIGN  64  /* bytes: a cache line, and the widest vector */
#define ROUNDS 40  /* tries to make a block smaller */
#define MANY   600 /* slots: more are placed only once in each order */

static void touch(oct_plan *p, int32_t slot, int32_t step, bool makes)
{
    oct_slot *s;

    if (slot < 0) return;
    s = &p->slots[oct_slot_root(p, slot, NULL)];
    if (s->first < 0 || (makes && step < s->first)) s->first = step;
    if (step > s->last) s->last = step;
}

static void find_lifetimes(oct_plan *p)
{
    for (int32_t i = 0; i < p->n_slots; i++) {
        p->slots[i].first = -1;
        p->slots[i].last = -1;
    }
    for (int32_t i = 0; i < p->g->n_inputs; i++) /* the caller fills inputs before the first step */
        touch(p, p->slot_of[OCT_LAYOUT_PLAIN][p->g->inputs[i]->id], 0, true);
    for (int32_t i = 0; i < p->n_steps; i++) {
        const oct_step *s = &p->steps[i];

        for (int32_t k = 0; k < s->n_in; k++)
            touch(p, s->in[k], i, false);
        for (int32_t k = 0; k < s->n_out; k++)
            touch(p, s->out[k], i, true);
    }
    for (int32_t i = 0; i < p->n_slots; i++)
        if (p->slots[i].pinned || (p->is_apart && p->slots[i].first >= 0))
            touch(p, i, p->n_steps, false);
}

/* Bytes a slot takes: a vector load may read past the end of the last row. */
static oct_status room_of(const oct_plan *p, const oct_slot *s, size_t *size)
{
    if (!oct_type_bytes(&s->type, size) || !oct_add_size(*size, 2 * ALIGN, size))
        return oct_fail(p->ctx, OCT_ERR_MEMORY, "value '%s' is too large", s->value->name);
    *size = *size / ALIGN * ALIGN;
    return OCT_OK;
}

static bool owns_memory(const oct_slot *s)
{
    return s->parent < 0 && !s->data && s->first >= 0;
}

size_t oct_plan_live_bytes(const oct_plan *p, int32_t step)
{
    size_t total = 0, size;

    for (int32_t i = 0; i < p->n_slots; i++) {
        const oct_slot *s = &p->slots[i];

        if (!owns_memory(s) || s->is_input || s->first > step || s->last < step) continue;
        if (room_of(p, s, &size) || !oct_add_size(total, size, &total)) return SIZE_MAX;
    }
    return total;
}

/* By step: bytes in use. */
static oct_status find_live(const oct_plan *p, size_t *live)
{
    for (int32_t i = 0; i < p->n_slots; i++) {
        const oct_slot *s = &p->slots[i];
        size_t size;

        if (!owns_memory(s) || s->is_input) continue;
        OCT_TRY(room_of(p, s, &size));
        for (int32_t k = s->first; k <= s->last; k++)
            if (!oct_add_size(live[k], size, &live[k]))
                return oct_fail(p->ctx, OCT_ERR_MEMORY, "the activations are too large");
    }
    return OCT_OK;
}

oct_status oct_plan_peak(oct_plan *p, size_t *out)
{
    size_t *live = oct_calloc(p->ctx, (size_t)p->n_steps + 1, sizeof(*live));
    oct_status st;

    *out = 0;
    if (!live) return OCT_ERR_MEMORY;
    find_lifetimes(p);
    st = find_live(p, live);
    for (int32_t i = 0; i <= p->n_steps; i++)
        *out = OCT_MAX(*out, live[i]);
    oct_free(p->ctx, live);
    return st;
}

typedef struct item {
    int32_t slot;
    size_t size;
    size_t key; /* the largest goes first */
} item;

typedef struct placer {
    oct_plan *p;
    item *items, *placed;
    int32_t n;
    size_t *live; /* by step: bytes in use */
    size_t *best; /* by slot: where it lies in the smallest block so far */
} placer;

static int by_key(const void *a, const void *b)
{
    const item *x = a, *y = b;

    if (x->key != y->key) return x->key < y->key ? 1 : -1;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return x->slot < y->slot ? -1 : 1;
}

static bool overlap_in_time(const oct_slot *a, const oct_slot *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest gap that is large enough between the first n placed that live at the same time. */
static size_t find_gap(const placer *r, int32_t n, const item *it)
{
    const oct_slot *slots = r->p->slots, *s = &slots[it->slot];
    size_t at = 0;

    for (int32_t i = 0; i < n; i++) { /* sorted by where they begin */
        const oct_slot *o = &slots[r->placed[i].slot];

        if (!overlap_in_time(s, o)) continue;
        if (o->at >= at && o->at - at >= it->size) break;
        at = OCT_MAX(at, o->at + r->placed[i].size);
    }
    return at;
}

/* One item after the other; *total: bytes of the block. */
static oct_status place(placer *r, size_t *total)
{
    oct_slot *slots = r->p->slots;

    *total = 0;
    for (int32_t i = 0; i < r->n; i++) {
        const item *it = &r->items[i];
        oct_slot *s = &slots[it->slot];
        size_t end;
        int32_t k = i;

        s->at = find_gap(r, i, it);
        if (!oct_add_size(s->at, it->size, &end))
            return oct_fail(r->p->ctx, OCT_ERR_MEMORY, "the activations are too large");
        *total = OCT_MAX(*total, end);
        for (; k > 0 && slots[r->placed[k - 1].slot].at > s->at; k--)
            r->placed[k] = r->placed[k - 1];
        r->placed[k] = *it;
    }
    return OCT_OK;
}

static void keep(placer *r, size_t total)
{
    r->p->block_size = total;
    for (int32_t i = 0; i < r->n; i++)
        r->best[r->items[i].slot] = r->p->slots[r->items[i].slot].at;
}

/* --- orders to try: none is the best for all networks --- */

static size_t key_size(const placer *r, const item *it)
{
    (void)r;
    return it->size;
}

static size_t key_area(const placer *r, const item *it)
{
    const oct_slot *s = &r->p->slots[it->slot];

    return it->size / ALIGN * (size_t)(s->last - s->first + 1);
}

/* Those alive at the fullest step first: nothing else can raise what they need. */
static size_t key_peak(const placer *r, const item *it)
{
    const oct_slot *s = &r->p->slots[it->slot];
    size_t most = 0;

    for (int32_t i = s->first; i <= s->last; i++)
        most = OCT_MAX(most, r->live[i]);
    return most;
}

static size_t (*const keys[])(const placer *, const item *) = {key_size, key_area, key_peak};

static oct_status place_by(placer *r, size_t (*key)(const placer *, const item *), size_t *total)
{
    for (int32_t i = 0; i < r->n; i++)
        r->items[i].key = key(r, &r->items[i]);
    qsort(r->items, (size_t)r->n, sizeof(*r->items), by_key);
    return place(r, total);
}

/* The item that ends last goes first, again and again, until nothing can be gained. */
static oct_status promote(placer *r, size_t bound, size_t *total)
{
    const int rounds = r->n <= MANY ? ROUNDS : 0;

    for (int i = 0; i<rounds && * total> bound; i++) {
        int32_t last = 0;
        item it;

        while (last < r->n && r->p->slots[r->items[last].slot].at + r->items[last].size < *total)
            last++;
        it = r->items[last];
        memmove(r->items + 1, r->items, (size_t)last * sizeof(*r->items));
        r->items[0] = it;
        OCT_TRY(place(r, total));
        if (*total < r->p->block_size) keep(r, *total);
    }
    return OCT_OK;
}

static oct_status place_best(placer *r)
{
    size_t bound = 0, total = 0;

    for (int32_t i = 0; i <= r->p->n_steps; i++)
        bound = OCT_MAX(bound, r->live[i]);
    r->p->block_size = SIZE_MAX;
    for (size_t i = 0; i < OCT_COUNT(keys) && r->p->block_size > bound; i++) {
        OCT_TRY(place_by(r, keys[i], &total));
        if (total < r->p->block_size) keep(r, total);
        OCT_TRY(promote(r, bound, &total));
    }
    for (int32_t i = 0; i < r->n; i++)
        r->p->slots[r->items[i].slot].at = r->best[r->items[i].slot];
    return OCT_OK;
}

/* One behind the other: all of them are there before the first step. */
static oct_status place_inputs(oct_plan *p)
{
    p->input_size = 0;
    for (int32_t i = 0; i < p->n_slots; i++) {
        oct_slot *s = &p->slots[i];
        size_t size;

        if (!s->is_input || s->parent >= 0) continue;
        OCT_TRY(room_of(p, s, &size));
        s->at = p->input_size;
        if (!oct_add_size(p->input_size, size, &p->input_size))
            return oct_fail(p->ctx, OCT_ERR_MEMORY, "the inputs are too large");
    }
    return OCT_OK;
}

static oct_status find_items(placer *r)
{
    const oct_plan *p = r->p;

    for (int32_t i = 0; i < p->n_slots; i++) {
        const oct_slot *s = &p->slots[i];
        item *it = &r->items[r->n];

        if (!owns_memory(s) || s->is_input) continue;
        it->slot = i;
        OCT_TRY(room_of(p, s, &it->size));
        r->n++;
    }
    return OCT_OK;
}

oct_status oct_plan_place(oct_plan *p)
{
    placer r = {.p = p};
    oct_status st = OCT_ERR_MEMORY;

    find_lifetimes(p);
    r.items = oct_calloc(p->ctx, (size_t)p->n_slots + 1, sizeof(*r.items));
    r.placed = oct_calloc(p->ctx, (size_t)p->n_slots + 1, sizeof(*r.placed));
    r.live = oct_calloc(p->ctx, (size_t)p->n_steps + 1, sizeof(*r.live));
    r.best = oct_calloc(p->ctx, (size_t)p->n_slots + 1, sizeof(*r.best));
    if (r.items && r.placed && r.live && r.best) st = place_inputs(p);
    if (!st) st = find_items(&r);
    if (!st) st = find_live(p, r.live);
    if (!st) st = place_best(&r);
    oct_free(p->ctx, r.items);
    oct_free(p->ctx, r.placed);
    oct_free(p->ctx, r.live);
    oct_free(p->ctx, r.best);
    return st;
}
