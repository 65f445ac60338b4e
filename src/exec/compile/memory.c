/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: when each slot lives, and where in the activation block it lies. */
#include <stdlib.h>
#include <string.h>

#include "exec/kernel.h"

#define ALIGN  64  /* bytes: a cache line, and the widest vector */
#define ROUNDS 40  /* tries to make a block smaller */
#define MANY   600 /* slots: above this, each order is tried only once */

#define SHORT_LIFE                                                                                 \
    32 /* steps: a lifetime this long is recorded at none of its steps but in a                    \
        * list */

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

/* By step: bytes in use; live has n_steps + 2 zeros. First the change at each step (freed bytes
 * are subtracted modulo 2^N, which the sum undoes), then their prefix sum. */
static oct_status find_live(oct_plan *p, size_t *live)
{
    size_t total = 0;

    for (int32_t i = 0; i < p->n_slots; i++) {
        const oct_slot *s = &p->slots[i];
        size_t size;

        if (!owns_memory(s) || s->is_input) continue;
        OCT_TRY(room_of(p, s, &size));
        if (!oct_add_size(total, size, &total))
            return oct_fail(p->ctx, OCT_ERR_MEMORY, "the activations are too large");
        live[s->first] += size;
        live[s->last + 1] -= size;
    }
    for (int32_t i = 1; i <= p->n_steps + 1; i++)
        live[i] += live[i - 1];
    p->work += p->n_slots + p->n_steps;
    return OCT_OK;
}

oct_status oct_plan_peak(oct_plan *p, size_t *out)
{
    size_t *live = oct_calloc(p->ctx, (size_t)p->n_steps + 2, sizeof(*live));
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

/* An address range that is in use at the same time. */
typedef struct span {
    size_t begin, end;
} span;

/* A placed item in the list of a step during which it is alive. */
typedef struct link {
    int32_t item, next; /* next: -1 ends the list */
} link;

typedef struct placer {
    oct_plan *p;
    item *items;
    int32_t n;
    size_t *live; /* by step: bytes in use */
    size_t *best; /* by slot: its offset in the smallest block so far */

    /* Items placed so far: short lifetimes by step, long ones in one list. A short one is
     * compared with items alive at its own steps only; otherwise a network of 100,000 values
     * would take minutes. */
    int32_t *head; /* by step: index into links, or -1 */
    link *links;
    int32_t n_links;
    int32_t *lasting; /* items with long lifetimes */
    int32_t n_lasting;
    int32_t *seen; /* by item: the last one it was compared with */
    span *spans;
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

static bool is_short(const oct_slot *s)
{
    return s->last - s->first < SHORT_LIFE;
}

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Adds item k to the spans if its lifetime overlaps that of item i. */
static void compare(placer *r, int32_t i, int32_t k, int32_t *n)
{
    const oct_slot *slots = r->p->slots, *o = &slots[r->items[k].slot];

    r->p->work++;
    if (r->seen[k] == i || !overlap_in_time(&slots[r->items[i].slot], o)) return;
    r->seen[k] = i;
    r->spans[(*n)++] = (span){o->at, o->at + r->items[k].size};
}

/* The lowest gap that is large enough for item i between the items placed before. */
static size_t find_gap(placer *r, int32_t i)
{
    const item *it = &r->items[i];
    const oct_slot *s = &r->p->slots[it->slot];
    size_t at = 0;
    int32_t n = 0;

    if (is_short(s)) {
        for (int32_t k = s->first; k <= s->last; k++)
            for (int32_t l = r->head[k]; l >= 0; l = r->links[l].next)
                compare(r, i, r->links[l].item, &n);
        for (int32_t k = 0; k < r->n_lasting; k++)
            compare(r, i, r->lasting[k], &n);
    } else {
        for (int32_t k = 0; k < i; k++)
            compare(r, i, k, &n);
    }
    if (n > 1) qsort(r->spans, (size_t)n, sizeof(*r->spans), by_begin);
    for (int32_t k = 0; k < n; k++) {
        if (r->spans[k].begin >= at && r->spans[k].begin - at >= it->size) break;
        at = OCT_MAX(at, r->spans[k].end);
    }
    return at;
}

static void remember(placer *r, int32_t i)
{
    const oct_slot *s = &r->p->slots[r->items[i].slot];

    if (!is_short(s)) {
        r->lasting[r->n_lasting++] = i;
        return;
    }
    for (int32_t k = s->first; k <= s->last; k++) {
        r->links[r->n_links] = (link){i, r->head[k]};
        r->head[k] = r->n_links++;
    }
}

/* Places one item after the other; *total: bytes of the block. */
static oct_status place(placer *r, size_t *total)
{
    *total = 0;
    r->n_links = 0;
    r->n_lasting = 0;
    memset(r->head, -1, ((size_t)r->p->n_steps + 1) * sizeof(*r->head));
    memset(r->seen, -1, (size_t)r->n * sizeof(*r->seen));
    for (int32_t i = 0; i < r->n; i++) {
        oct_slot *s = &r->p->slots[r->items[i].slot];
        size_t end;

        s->at = find_gap(r, i);
        if (!oct_add_size(s->at, r->items[i].size, &end))
            return oct_fail(r->p->ctx, OCT_ERR_MEMORY, "the activations are too large");
        *total = OCT_MAX(*total, end);
        remember(r, i);
    }
    return OCT_OK;
}

static void keep(placer *r, size_t total)
{
    r->p->block_size = total;
    for (int32_t i = 0; i < r->n; i++)
        r->best[r->items[i].slot] = r->p->slots[r->items[i].slot].at;
}

/* --- orders to try: no single one is best for all networks --- */

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

/* Items alive at the step with the highest use first: only they determine the lower bound. */
static size_t key_peak(const placer *r, const item *it)
{
    const oct_slot *s = &r->p->slots[it->slot];
    size_t most = 0;

    for (int32_t i = s->first; i <= s->last; i++)
        most = OCT_MAX(most, r->live[i]);
    r->p->work += s->last - s->first + 1;
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

/* Moves the item that ends at the highest address to the front of the order and tries again,
 * until nothing is gained. */
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

/* Inputs lie one after the other: all of them are alive before the first step. */
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

static oct_status placer_init(placer *r)
{
    oct_plan *p = r->p;
    const size_t n = (size_t)p->n_slots + 1, steps = (size_t)p->n_steps + 2;
    size_t n_links = 1;

    for (int32_t i = 0; i < p->n_slots; i++)
        if (owns_memory(&p->slots[i]) && is_short(&p->slots[i]))
            n_links += (size_t)(p->slots[i].last - p->slots[i].first) + 1;
    r->items = oct_calloc(p->ctx, n, sizeof(*r->items));
    r->live = oct_calloc(p->ctx, steps, sizeof(*r->live));
    r->best = oct_calloc(p->ctx, n, sizeof(*r->best));
    r->head = oct_calloc(p->ctx, steps, sizeof(*r->head));
    r->links = oct_calloc(p->ctx, n_links, sizeof(*r->links));
    r->lasting = oct_calloc(p->ctx, n, sizeof(*r->lasting));
    r->seen = oct_calloc(p->ctx, n, sizeof(*r->seen));
    r->spans = oct_calloc(p->ctx, n, sizeof(*r->spans));
    return r->items && r->live && r->best && r->head && r->links && r->lasting && r->seen &&
                   r->spans
               ? OCT_OK
               : OCT_ERR_MEMORY;
}

static void placer_fini(placer *r)
{
    oct_ctx *ctx = r->p->ctx;

    oct_free(ctx, r->items);
    oct_free(ctx, r->live);
    oct_free(ctx, r->best);
    oct_free(ctx, r->head);
    oct_free(ctx, r->links);
    oct_free(ctx, r->lasting);
    oct_free(ctx, r->seen);
    oct_free(ctx, r->spans);
}

oct_status oct_plan_place(oct_plan *p)
{
    placer r = {.p = p};
    oct_status st;

    find_lifetimes(p);
    st = placer_init(&r);
    if (!st) st = place_inputs(p);
    if (!st) st = find_items(&r);
    if (!st) st = find_live(p, r.live);
    if (!st) st = place_best(&r);
    placer_fini(&r);
    return st;
}
