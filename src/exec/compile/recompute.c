/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Less memory for more work: a value that only waits while the block is fullest is forgotten, and
 * made again just before it is read. A training plan holds most values of its forward part like
 * that until its backward part reads them.
 *
 * Works on steps that have their kernels and their order already. So a copy computes the same bytes
 * as the step it repeats, no pass merges the two, and none moves a copy to where its result would
 * have to wait again. The change with the most bytes for its work comes first; aliasing and
 * lifetimes are found anew after each, until the block is as small as was asked for.
 */
#include "exec/compile/recompute.h"

#include <stdlib.h>
#include <string.h>

/* A block of memory that could be freed at the peak. */
typedef struct candidate {
    int32_t root;
    double value; /* bytes for an operation */
} candidate;

/* --- looking at an order --- */

static oct_status save(oct_recompute *r)
{
    oct_plan *p = r->p;

    OCT_TRY(oct_grow(p->ctx, &r->saved_slots, &r->cap_saved_slots, (size_t)p->n_slots + 1,
                     sizeof(*p->slots)));
    OCT_TRY(oct_grow(p->ctx, &r->saved_steps, &r->cap_saved_steps, (size_t)p->n_steps + 1,
                     sizeof(*p->steps)));
    memcpy(r->saved_slots, p->slots, (size_t)p->n_slots * sizeof(*p->slots));
    memcpy(r->saved_steps, p->steps, (size_t)p->n_steps * sizeof(*p->steps));
    return OCT_OK;
}

static void restore(oct_recompute *r, int32_t n_slots, int32_t n_steps)
{
    oct_plan *p = r->p;

    memcpy(p->slots, r->saved_slots, (size_t)n_slots * sizeof(*p->slots));
    memcpy(p->steps, r->saved_steps, (size_t)n_steps * sizeof(*p->steps));
    p->n_slots = n_slots;
    p->n_steps = n_steps;
}

/* Aliasing and, if asked for, the real size of the block, which gaps make larger than the peak. */
static oct_status alias(oct_recompute *r, int32_t *root, size_t *block)
{
    oct_plan *p = r->p;
    const int32_t n_slots = p->n_slots, n_steps = p->n_steps;
    oct_arena *const own = p->arena;
    oct_status st = save(r);

    if (st) return st;
    oct_arena_reset(r->scratch);
    p->arena = r->scratch;
    st = oct_plan_alias(p);
    for (int32_t i = 0; root && i < n_slots; i++)
        root[i] = oct_slot_root(p, i, NULL);
    if (!st && block) {
        st = oct_plan_place(p);
        *block = p->block_size;
    }
    p->arena = own;
    restore(r, n_slots, n_steps);
    return st;
}

static void touch(oct_recompute_view *v, int32_t slot, int32_t step)
{
    const int32_t root = slot < 0 ? -1 : v->root[slot];

    if (root < 0) return;
    if (v->first[root] < 0) v->first[root] = step;
    v->last[root] = OCT_MAX(v->last[root], step);
}

static void find_lifetimes(const oct_plan *p, oct_recompute_view *v)
{
    for (int32_t i = 0; i < v->n_slots; i++)
        v->maker[i] = v->first[i] = v->last[i] = -1;
    for (int32_t i = 0; i < p->n_steps; i++) {
        const oct_step *s = &p->steps[i];

        for (int32_t k = 0; k < s->n_in; k++)
            touch(v, s->in[k], i);
        for (int32_t k = 0; k < s->n_out; k++) {
            touch(v, s->out[k], i);
            if (s->out[k] >= 0) v->maker[s->out[k]] = i;
        }
    }
    for (int32_t i = 0; i < v->n_slots; i++)
        if (p->slots[i].pinned) touch(v, i, p->n_steps);
}

static void find_live(const oct_plan *p, oct_recompute_view *v)
{
    for (int32_t i = 0; i < v->n_slots; i++) {
        const oct_slot *s = &p->slots[i];

        if (v->root[i] != i || s->data || s->is_input || v->first[i] < 0) continue;
        if (!oct_type_bytes(&s->type, &v->room[i])) v->room[i] = 0; /* refused by placement */
        v->live[v->first[i]] += v->room[i];
        v->live[v->last[i] + 1] -= v->room[i]; /* modulo 2^N, which the sum undoes */
    }
    v->peak = 0;
    v->n_at_top = 0;
    for (int32_t i = 0; i <= p->n_steps; i++) {
        if (i) v->live[i] += v->live[i - 1];
        if (v->live[i] > v->peak) {
            v->peak = v->live[i];
            v->at = i;
            v->n_at_top = 0;
        }
        v->n_at_top += v->live[i] == v->peak;
    }
}

static oct_status look(oct_recompute *r, oct_recompute_view *v)
{
    const oct_plan *p = r->p;
    const size_t slots = (size_t)p->n_slots + 1, steps = (size_t)p->n_steps + 2;

    oct_arena_reset(v->arena);
    v->n_slots = p->n_slots;
    v->n_steps = p->n_steps;
    v->root = oct_arena_array(v->arena, slots, sizeof(*v->root));
    v->maker = oct_arena_array(v->arena, slots, sizeof(*v->maker));
    v->first = oct_arena_array(v->arena, slots, sizeof(*v->first));
    v->last = oct_arena_array(v->arena, slots, sizeof(*v->last));
    v->room = oct_arena_array(v->arena, slots, sizeof(*v->room));
    v->live = oct_arena_array(v->arena, steps, sizeof(*v->live));
    if (!v->root || !v->maker || !v->first || !v->last || !v->room || !v->live)
        return OCT_ERR_MEMORY;
    OCT_TRY(alias(r, v->root, NULL));
    find_lifetimes(p, v);
    find_live(p, v);
    return OCT_OK;
}

/* --- choosing --- */

/* By root: it cannot be forgotten at the peak, because it is in use then, or written later, or
 * an output. */
static oct_status find_fixed(const oct_recompute *r, uint8_t *is_fixed)
{
    const oct_plan *p = r->p;
    const oct_recompute_view *v = &r->now;

    for (int32_t i = 0; i < v->n_slots; i++)
        if (p->slots[i].pinned || p->is_kept[p->slots[i].value->id]) is_fixed[v->root[i]] = 1;
    for (int32_t i = v->at; i < p->n_steps; i++) {
        const oct_step *s = &p->steps[i];

        for (int32_t k = 0; k < s->n_in && i == v->at; k++)
            if (s->in[k] >= 0) is_fixed[v->root[s->in[k]]] = 1;
        for (int32_t k = 0; k < s->n_out; k++)
            if (s->out[k] >= 0) is_fixed[v->root[s->out[k]]] = 1;
    }
    return OCT_OK;
}

static int by_value(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    if (x->value > y->value || x->value < y->value) return x->value < y->value ? 1 : -1;
    return x->root < y->root ? -1 : 1;
}

static oct_status find_candidates(oct_recompute *r, candidate **out, int32_t *n)
{
    const oct_recompute_view *v = &r->now;
    uint8_t *is_fixed = oct_arena_array(v->arena, (size_t)v->n_slots + 1, 1);
    candidate *c = oct_arena_array(v->arena, (size_t)v->n_slots + 1, sizeof(*c));

    *n = 0;
    *out = c;
    if (!is_fixed || !c) return OCT_ERR_MEMORY;
    OCT_TRY(find_fixed(r, is_fixed));
    r->is_dry = true;
    for (int32_t i = 0; i < v->n_slots; i++) {
        if (v->root[i] != i || !v->room[i] || is_fixed[i]) continue;
        if (v->first[i] >= v->at || v->last[i] <= v->at) continue;
        r->block = i;
        OCT_TRY(oct_recompute_change(r));
        if (r->is_too_long || r->extended >= v->room[i]) continue;
        c[*n] = (candidate){i, (double)(v->room[i] - r->extended) / (r->cost + 1)};
        ++*n;
    }
    r->is_dry = false;
    qsort(c, (size_t)*n, sizeof(*c), by_value);
    return OCT_OK;
}

/* The steps as they were before a change; its slots are dropped. */
typedef struct old_order {
    oct_step *steps;
    int32_t n_steps, n_slots;
} old_order;

static oct_status remember(const oct_plan *p, old_order *o)
{
    o->n_steps = p->n_steps;
    o->n_slots = p->n_slots;
    o->steps = oct_calloc(p->ctx, (size_t)p->n_steps + 1, sizeof(*o->steps));
    if (!o->steps) return OCT_ERR_MEMORY;
    memcpy(o->steps, p->steps, (size_t)p->n_steps * sizeof(*o->steps));
    return OCT_OK;
}

static void go_back(oct_plan *p, const old_order *o)
{
    memcpy(p->steps, o->steps, (size_t)o->n_steps * sizeof(*o->steps)); /* never fewer than these */
    p->n_steps = o->n_steps;
    p->n_slots = o->n_slots;
}

/* Tries changes, the best one first, until one makes the peak lower. */
static oct_status improve(oct_recompute *r, bool *found)
{
    old_order old = {0};
    candidate *c = NULL;
    int32_t n = 0;
    oct_status st;

    *found = false;
    OCT_TRY(find_candidates(r, &c, &n));
    OCT_TRY(remember(r->p, &old));
    for (int32_t i = 0; i < n && !*found; i++) {
        r->block = c[i].root;
        st = oct_recompute_change(r);
        if (!st) st = look(r, &r->next);
        if (st) {
            oct_free(r->p->ctx, old.steps);
            return st;
        }
        *found = r->next.peak < r->now.peak ||
                 (r->next.peak == r->now.peak && r->next.n_at_top < r->now.n_at_top);
        if (!*found) go_back(r->p, &old);
    }
    if (*found) {
        const oct_recompute_view v = r->now;

        r->now = r->next;
        r->next = v;
    }
    oct_free(r->p->ctx, old.steps);
    return OCT_OK;
}

static oct_status shrink(oct_recompute *r, size_t bytes)
{
    size_t block = 0, want = bytes;
    bool found = true;

    OCT_TRY(look(r, &r->now));
    OCT_TRY(alias(r, NULL, &block));
    while (block > bytes && found) {
        OCT_TRY(improve(r, &found));
        if (!found || r->now.peak > want) continue;
        OCT_TRY(alias(r, NULL, &block));
        /* What placement adds to the peak is about the same next time. */
        want = r->now.peak > block - bytes ? r->now.peak - (block - bytes) / 2 - 1 : 0;
    }
    return OCT_OK;
}

oct_status oct_plan_recompute(oct_plan *p, size_t bytes)
{
    oct_recompute r = {.p = p, .n_given = p->n_slots};
    oct_status st = OCT_ERR_MEMORY;

    if (!bytes || p->n_steps < 2 || p->options.plain || p->options.keep_all || p->is_apart)
        return OCT_OK;
    r.scratch = oct_arena_new(p->ctx);
    r.now.arena = oct_arena_new(p->ctx);
    r.next.arena = oct_arena_new(p->ctx);
    if (r.scratch && r.now.arena && r.next.arena)
        st = oct_grow(p->ctx, &r.origin, &r.cap_origin, (size_t)p->n_slots + 1, sizeof(int32_t));
    for (int32_t i = 0; i < p->n_slots && !st; i++)
        r.origin[i] = i;
    if (!st) st = shrink(&r, bytes);
    oct_arena_free(r.scratch);
    oct_arena_free(r.now.arena);
    oct_arena_free(r.next.arena);
    oct_free(p->ctx, r.origin);
    oct_free(p->ctx, r.saved_slots);
    oct_free(p->ctx, r.saved_steps);
    oct_free(p->ctx, r.is_moved);
    oct_free(p->ctx, r.is_copied);
    oct_free(p->ctx, r.inserts);
    return st;
}
