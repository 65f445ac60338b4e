/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: when each slot lives, and where in the activation block it lies. */
#include <stdlib.h>

#include "exec/kernel.h"

#define ALIGN 64 /* bytes: a cache line, and the widest vector */

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
        if (p->slots[i].pinned) touch(p, i, p->n_steps, false);
}

typedef struct item {
    int32_t slot;
    size_t size;
} item;

static int by_size(const void *a, const void *b)
{
    const item *x = a, *y = b;

    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return x->slot < y->slot ? -1 : 1;
}

static bool overlap_in_time(const oct_slot *a, const oct_slot *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest gap that is large enough between items alive at the same time. */
static size_t find_gap(const oct_plan *p, const item *placed, int32_t n, const item *it)
{
    const oct_slot *s = &p->slots[it->slot];
    size_t at = 0;

    for (int32_t i = 0; i < n; i++) { /* placed is sorted by where items begin */
        const oct_slot *o = &p->slots[placed[i].slot];

        if (!overlap_in_time(s, o)) continue;
        if (o->at >= at && o->at - at >= it->size) break;
        at = OCT_MAX(at, o->at + placed[i].size);
    }
    return at;
}

static oct_status place(oct_plan *p, item *items, int32_t n, item *placed)
{
    qsort(items, (size_t)n, sizeof(*items), by_size);
    for (int32_t i = 0; i < n; i++) {
        oct_slot *s = &p->slots[items[i].slot];
        size_t end;
        int32_t k = i;

        s->at = find_gap(p, placed, i, &items[i]);
        if (!oct_add_size(s->at, items[i].size, &end))
            return oct_fail(p->ctx, OCT_ERR_MEMORY, "the activations are too large");
        p->block_size = OCT_MAX(p->block_size, end);
        for (; k > 0 && p->slots[placed[k - 1].slot].at > s->at; k--)
            placed[k] = placed[k - 1];
        placed[k] = items[i];
    }
    return OCT_OK;
}

oct_status oct_plan_place(oct_plan *p)
{
    item *items = oct_calloc(p->ctx, (size_t)p->n_slots + 1, sizeof(*items));
    item *placed = oct_calloc(p->ctx, (size_t)p->n_slots + 1, sizeof(*placed));
    int32_t n = 0;
    oct_status st = items && placed ? OCT_OK : OCT_ERR_MEMORY;

    find_lifetimes(p);
    for (int32_t i = 0; i < p->n_slots && !st; i++) {
        const oct_slot *s = &p->slots[i];
        size_t size;

        if (s->parent >= 0 || s->data || s->first < 0) continue;
        if (!oct_type_bytes(&s->type, &size) || !oct_add_size(size, 2 * ALIGN, &size))
            st = oct_fail(p->ctx, OCT_ERR_MEMORY, "value '%s' is too large", s->value->name);
        else /* a vector load may read past the end of the last row */
            items[n++] = (item){i, size / ALIGN * ALIGN};
    }
    if (!st) st = place(p, items, n, placed);
    oct_free(p->ctx, items);
    oct_free(p->ctx, placed);
    return st;
}
