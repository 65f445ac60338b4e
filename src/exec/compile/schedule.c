/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of steps. The file's order is one of many; another may need less memory, e.g. when one
 * branch of a detector's head ends before the next begins. Each candidate is evaluated with the
 * aliasing and lifetimes that follow from it, and the file's order is kept unless another is
 * better.
 */
#include <string.h>

#include "exec/kernel.h"

#define WORTH     50   /* an order must save 1/50 of the memory */
#define MAX_STEPS 4000 /* of a plan whose steps are moved one by one: time grows as the square */

/* One order, depth first from the outputs: a step's producers come right before it, the first or
 * the last operand first. */
typedef struct orderer {
    oct_plan *p;
    int32_t *maker; /* by slot: the step that makes it, or -1 */
    uint8_t *state; /* by step: 0 not yet, 1 waits for operands, 2 done */
    int32_t *stack; /* steps that wait for operands */
    int32_t *order; /* steps, first to last */
    int32_t *at;    /* by step: its place in the order */
    int32_t *reads; /* by slot: how many operands read it */
    size_t *room;   /* by slot: bytes of the memory that it is, or is a part of */
    int32_t n;
    bool from_last, late;
} orderer;

static void find_makers(orderer *o)
{
    const oct_plan *p = o->p;

    for (int32_t i = 0; i < p->n_slots; i++) {
        o->maker[i] = -1;
        o->reads[i] = p->slots[i].pinned;
    }
    for (int32_t i = 0; i < p->n_steps; i++) {
        for (int32_t k = 0; k < p->steps[i].n_out; k++)
            if (p->steps[i].out[k] >= 0) o->maker[p->steps[i].out[k]] = i;
        for (int32_t k = 0; k < p->steps[i].n_in; k++)
            if (p->steps[i].in[k] >= 0) o->reads[p->steps[i].in[k]]++;
    }
    for (int32_t i = 0; i < p->n_slots; i++) /* the same bytes in another layout */
        if (o->maker[i] < 0 && p->slots[i].parent >= 0)
            o->maker[i] = o->maker[oct_slot_root(p, i, NULL)];
}

/* An operand of the step that is not computed yet, or -1. */
static int32_t missing(const orderer *o, const oct_step *s)
{
    for (int32_t i = 0; i < s->n_in; i++) {
        const int32_t slot = s->in[o->from_last ? s->n_in - 1 - i : i];
        const int32_t maker = slot >= 0 ? o->maker[slot] : -1;

        if (maker >= 0 && o->state[maker] == 0) return maker;
    }
    return -1;
}

static void visit(orderer *o, int32_t step)
{
    int32_t depth = 0;

    if (step < 0 || o->state[step]) return;
    o->stack[depth++] = step;
    o->state[step] = 1;
    while (depth > 0) {
        const int32_t top = o->stack[depth - 1], next = missing(o, &o->p->steps[top]);

        if (next >= 0) {
            o->stack[depth++] = next;
            o->state[next] = 1;
            continue;
        }
        o->state[top] = 2;
        o->order[o->n++] = top;
        depth--;
    }
}

/* Bytes that the step allocates for its results, and bytes of operands that it frees. */
static size_t taken(const orderer *o, const oct_step *s)
{
    size_t total = 0;

    for (int32_t i = 0; i < s->n_out; i++)
        if (s->out[i] >= 0) total += o->room[s->out[i]];
    return total;
}

static size_t freed(const orderer *o, const oct_step *s)
{
    size_t total = 0, size;

    for (int32_t i = 0; i < s->n_in; i++) {
        const oct_slot *in = s->in[i] >= 0 ? &o->p->slots[s->in[i]] : NULL;

        if (in && !in->data && !in->is_input && o->reads[s->in[i]] == 1 &&
            oct_type_bytes(&in->type, &size))
            total += size;
    }
    return total;
}

/* A step that frees less than it allocates is delayed until its result is read. */
static void move_late(orderer *o, int32_t *first_read)
{
    oct_plan *p = o->p;

    for (int32_t i = 0; i < p->n_steps; i++) {
        o->at[o->order[i]] = i;
        first_read[i] = p->n_steps;
    }
    for (int32_t i = p->n_steps - 1; i >= 0; i--) {
        const int32_t step = o->order[i], to = first_read[step] - 1;
        const oct_step *s = &p->steps[step];

        if (to > i && to < p->n_steps - 1 && taken(o, s) > freed(o, s)) {
            memmove(o->order + i, o->order + i + 1, (size_t)(to - i) * sizeof(*o->order));
            o->order[to] = step;
            for (int32_t k = i; k <= to; k++)
                o->at[o->order[k]] = k;
            for (int32_t k = 0; k < p->n_steps; k++)
                if (first_read[k] > i && first_read[k] <= to) first_read[k]--;
            p->work += p->n_steps;
        }
        for (int32_t k = 0; k < s->n_in; k++) {
            const int32_t maker = s->in[k] >= 0 ? o->maker[s->in[k]] : -1;

            if (maker >= 0) first_read[maker] = OCT_MIN(first_read[maker], o->at[step]);
        }
    }
}

static void find_order(orderer *o)
{
    const oct_plan *p = o->p;

    o->n = 0;
    memset(o->state, 0, (size_t)p->n_steps);
    for (int32_t i = 0; i < p->n_outputs; i++) {
        const int32_t id = p->g->outputs[i]->id;
        const int32_t slot = id < p->n_ids ? p->slot_of[OCT_LAYOUT_PLAIN][id] : -1;

        if (slot >= 0) visit(o, o->maker[slot]);
    }
    for (int32_t i = 0; i < p->n_steps; i++)
        visit(o, i);
    if (o->late) move_late(o, o->stack);
}

/* What aliasing and placement change, so that it can be restored. */
typedef struct copies {
    oct_slot *slots;
    oct_step *steps;
    int32_t n_steps;
} copies;

static void restore(oct_plan *p, const copies *c, const int32_t *order)
{
    memcpy(p->slots, c->slots, (size_t)p->n_slots * sizeof(*p->slots));
    p->n_steps = c->n_steps;
    for (int32_t i = 0; i < c->n_steps; i++)
        p->steps[i] = c->steps[order ? order[i] : i];
}

static void find_rooms(const oct_plan *p, size_t *room)
{
    for (int32_t i = 0; i < p->n_slots; i++) {
        const oct_slot *root = &p->slots[oct_slot_root(p, i, NULL)];

        if (root->data || root->is_input || !oct_type_bytes(&root->type, &room[i])) room[i] = 0;
    }
}

/* room, if not NULL, gets the bytes of each slot. */
static oct_status try_order(oct_plan *p, const copies *c, const int32_t *order, size_t *peak,
                            size_t *room)
{
    oct_status st;

    restore(p, c, order);
    st = oct_plan_alias(p);
    if (!st) st = oct_plan_peak(p, peak);
    if (!st && room) find_rooms(p, room);
    restore(p, c, NULL);
    return st;
}

static oct_status choose(oct_plan *p, const copies *c, orderer *o)
{
    size_t best, peak;
    static const struct {
        bool from_last, late;
    } tries[] = {{false, false}, {true, false}, {false, true}, {true, true}};
    int found = -1;

    OCT_TRY(try_order(p, c, NULL, &best, o->room));
    best -= best / WORTH;
    find_makers(o);
    for (int i = 0; i < (int)OCT_COUNT(tries); i++) {
        o->from_last = tries[i].from_last;
        o->late = tries[i].late;
        if (o->late && p->n_steps > MAX_STEPS) break;
        find_order(o);
        OCT_TRY(try_order(p, c, o->order, &peak, NULL));
        if (peak >= best) continue;
        best = peak;
        found = i;
    }
    if (found < 0) return OCT_OK;
    o->from_last = tries[found].from_last;
    o->late = tries[found].late;
    find_order(o);
    restore(p, c, o->order);
    return OCT_OK;
}

oct_status oct_plan_schedule(oct_plan *p)
{
    const size_t n = (size_t)p->n_steps + 1;
    copies c = {.n_steps = p->n_steps};
    orderer o = {.p = p};
    oct_status st = OCT_ERR_MEMORY;

    if (p->n_steps < 2 || p->options.plain || p->options.keep_all || p->is_apart) return OCT_OK;
    c.slots = oct_calloc(p->ctx, (size_t)p->n_slots + 1, sizeof(*c.slots));
    c.steps = oct_calloc(p->ctx, n, sizeof(*c.steps));
    o.maker = oct_calloc(p->ctx, (size_t)p->n_slots + 1, sizeof(*o.maker));
    o.state = oct_calloc(p->ctx, n, 1);
    o.stack = oct_calloc(p->ctx, n, sizeof(*o.stack));
    o.order = oct_calloc(p->ctx, n, sizeof(*o.order));
    o.at = oct_calloc(p->ctx, n, sizeof(*o.at));
    o.reads = oct_calloc(p->ctx, (size_t)p->n_slots + 1, sizeof(*o.reads));
    o.room = oct_calloc(p->ctx, (size_t)p->n_slots + 1, sizeof(*o.room));
    if (c.slots && c.steps && o.maker && o.state && o.stack && o.order && o.at && o.reads &&
        o.room) {
        memcpy(c.slots, p->slots, (size_t)p->n_slots * sizeof(*c.slots));
        memcpy(c.steps, p->steps, (size_t)p->n_steps * sizeof(*c.steps));
        st = choose(p, &c, &o);
    }
    oct_free(p->ctx, c.slots);
    oct_free(p->ctx, c.steps);
    oct_free(p->ctx, o.maker);
    oct_free(p->ctx, o.state);
    oct_free(p->ctx, o.stack);
    oct_free(p->ctx, o.order);
    oct_free(p->ctx, o.at);
    oct_free(p->ctx, o.reads);
    oct_free(p->ctx, o.room);
    return st;
}
