/* SPDX-License-Identifier: Apache-2.0 */
/* One change of recompute.c: copies of the steps that make the values of a block again. */
#include <string.h>

#include "exec/compile/recompute.h"
#include "op/grad/rules.h"

enum {
    MAX_COPIES = 96, /* steps of one change: beyond that it is never worth it */
    SMALL = 16,      /* a value of 1/16 of the block's bytes is kept rather than made again */
    BYTE_COST = 4,   /* multiply-adds in the time of moving a byte */
};

/* May the step run twice? Losses may not: their time is not that of their operands' bytes. */
static bool is_repeatable(const oct_step *s)
{
    const oct_op *op = s->node ? s->node->op : NULL;

    if (!op) return true; /* a reorder */
    if (op->flags & (OCT_OP_RANDOM | OCT_OP_DATA_SHAPE | OCT_OP_HAS_BODY)) return false;
    return !*oct_op_domain(op) || op == &oct_op_batch_norm_train;
}

static double cost_of(const oct_plan *p, const oct_step *s)
{
    double bytes = 0;

    for (int32_t i = 0; i < s->n_in + s->n_out; i++) {
        const int32_t slot = i < s->n_in ? s->in[i] : s->out[i - s->n_in];
        size_t size;

        if (slot >= 0 && oct_type_bytes(&p->slots[slot].type, &size)) bytes += (double)size;
    }
    return (double)s->macs + BYTE_COST * bytes;
}

static oct_status add_slot(oct_recompute *r, int32_t from, int32_t parent, int32_t *out)
{
    oct_slot s = r->p->slots[from];

    s.parent = parent;
    s.pinned = false;
    OCT_TRY(oct_plan_add_slot(r->p, &s, out));
    OCT_TRY(oct_grow(r->p->ctx, &r->origin, &r->cap_origin, (size_t)*out + 1, sizeof(int32_t)));
    r->origin[*out] = r->origin[from];
    return OCT_OK;
}

static oct_status insert(oct_recompute *r, const oct_step *s, int32_t before)
{
    OCT_TRY(oct_grow(r->p->ctx, &r->inserts, &r->cap_inserts, (size_t)r->n_inserts + 1,
                     sizeof(*r->inserts)));
    r->inserts[r->n_inserts++] = (oct_recompute_insert){before, *s};
    return OCT_OK;
}

static oct_status need(oct_recompute *r, int32_t slot, int32_t at, int32_t *out);

/* The operands of a step that is to run before step `at`. */
static oct_status operands(oct_recompute *r, oct_step *s, int32_t at)
{
    int32_t *in = r->is_dry ? NULL : oct_plan_alloc(r->p, (size_t)s->n_in + 1, sizeof(*in));

    if (!r->is_dry && !in) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < s->n_in && !r->is_too_long; i++) {
        int32_t slot = s->in[i];

        if (slot >= 0) OCT_TRY(need(r, slot, at, &slot));
        if (in) in[i] = slot;
    }
    if (in) s->in = in;
    return OCT_OK;
}

/* A copy that runs too late for another copy runs earlier. */
static oct_status move_earlier(oct_recompute *r, int32_t step, int32_t at)
{
    oct_step s = r->p->steps[step];

    if (r->is_moved[step]) return OCT_OK;
    r->is_moved[step] = 1;
    OCT_TRY(operands(r, &s, at));
    return r->is_dry ? OCT_OK : insert(r, &s, at);
}

static oct_status copy(oct_recompute *r, int32_t step, int32_t at, int32_t slot, int32_t *out)
{
    oct_step s = r->p->steps[step];
    int32_t *outs;

    *out = slot;
    if (r->is_dry && r->is_copied[step]) return OCT_OK;
    if (++r->n_steps_used > MAX_COPIES) r->is_too_long = true;
    if (r->is_too_long) return OCT_OK;
    r->is_copied[step] = 1;
    r->cost += cost_of(r->p, &s);
    OCT_TRY(operands(r, &s, at));
    if (r->is_dry) return OCT_OK;
    outs = oct_plan_alloc(r->p, (size_t)s.n_out + 1, sizeof(*outs));
    if (!outs) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < s.n_out; i++) {
        outs[i] = -1;
        if (s.out[i] >= 0) OCT_TRY(add_slot(r, s.out[i], -1, &outs[i]));
        if (s.out[i] == slot) *out = outs[i];
    }
    s.out = outs;
    return insert(r, &s, at);
}

/* A slot that is there before step `at`, without that its memory is needed for longer. */
static bool is_there(const oct_recompute *r, int32_t slot, int32_t at)
{
    const oct_recompute_view *v = &r->now;
    int32_t root;

    if (slot >= v->n_slots) return true; /* of this change, whose steps come in order */
    root = v->root[slot];
    if (r->p->slots[root].data || r->p->slots[root].is_input) return true;
    if (root == r->block || v->maker[slot] < 0) return false;
    if (r->is_moved[v->maker[slot]]) return true;
    return v->maker[slot] < at && (v->last[root] >= at || v->maker[slot] > v->at);
}

/* A copy of the same value: one that is there, else one that is made later (*is_late). Copies are
 * the slots from n_given on; what they are copies of comes last. */
static int32_t find_twin(const oct_recompute *r, int32_t slot, int32_t at, bool *is_late)
{
    const oct_recompute_view *v = &r->now;
    int32_t late = -1;

    *is_late = false;
    for (int32_t k = r->p->n_slots - 1; k >= r->n_given - 1; k--) {
        const int32_t i = k >= r->n_given ? k : r->origin[slot];

        if (r->origin[i] != r->origin[slot] || i == slot) continue;
        if (is_there(r, i, at)) return i;
        if (i < v->n_slots && v->root[i] != r->block && v->maker[i] >= at &&
            (late < 0 || v->maker[i] < v->maker[late]))
            late = i;
    }
    *is_late = late >= 0;
    return late;
}

/* The same bytes in another layout: a view of what its parent becomes. */
static oct_status need_view(oct_recompute *r, int32_t slot, int32_t at, int32_t *out)
{
    const int32_t parent = r->p->slots[slot].parent;
    int32_t to = parent;

    OCT_TRY(need(r, parent, at, &to));
    *out = slot;
    if (to == parent || r->is_dry) return OCT_OK;
    for (int32_t i = 0; i < r->p->n_slots; i++)
        if (r->p->slots[i].parent == to && r->origin[i] == r->origin[slot]) {
            *out = i;
            return OCT_OK;
        }
    return add_slot(r, slot, to, out);
}

/* A slot with the value of `slot` that can be read before step `at`. */
static oct_status need(oct_recompute *r, int32_t slot, int32_t at, int32_t *out)
{
    const oct_recompute_view *v = &r->now;
    const size_t small = v->room[r->block] / SMALL;
    const int32_t root = slot < v->n_slots ? v->root[slot] : slot;
    bool is_late = false;
    int32_t twin;

    *out = slot;
    if (is_there(r, slot, at)) return OCT_OK;
    if (r->p->slots[slot].parent >= 0) return need_view(r, slot, at, out);
    if (v->maker[slot] >= at) return move_earlier(r, v->maker[slot], at);
    if (root != r->block && v->room[root] <= small) {
        r->extended += v->room[root];
        return OCT_OK;
    }
    twin = find_twin(r, slot, at, &is_late);
    if (twin >= 0) {
        *out = twin;
        return is_late ? move_earlier(r, v->maker[twin], at) : OCT_OK;
    }
    if (v->maker[slot] >= 0 && is_repeatable(&r->p->steps[v->maker[slot]]))
        return copy(r, v->maker[slot], at, slot, out);
    r->extended += v->room[root];
    return OCT_OK;
}

/* --- reading the copies --- */

/* Later steps read `to` instead of `from`. Arrays of operands may be shared with a saved order. */
static oct_status redirect(oct_recompute *r, int32_t from, int32_t to)
{
    for (int32_t i = r->now.at + 1; i < r->p->n_steps; i++) {
        oct_step *s = &r->p->steps[i];
        int32_t *in = NULL;

        for (int32_t k = 0; k < s->n_in; k++) {
            if (s->in[k] != from) continue;
            if (!in) {
                if (!(in = oct_plan_alloc(r->p, (size_t)s->n_in + 1, sizeof(*in))))
                    return OCT_ERR_MEMORY;
                memcpy(in, s->in, (size_t)s->n_in * sizeof(*in));
                s->in = in;
            }
            s->in[k] = to;
        }
    }
    return OCT_OK;
}

/* The order with the inserted steps. */
static oct_status rebuild(oct_recompute *r)
{
    oct_plan *p = r->p;
    const int32_t n = p->n_steps;
    oct_step *old = p->steps;
    oct_status st = OCT_OK;

    p->steps = NULL;
    p->n_steps = 0;
    p->cap_steps = 0;
    for (int32_t i = 0; i < n && !st; i++) {
        for (int32_t k = 0; k < r->n_inserts && !st; k++)
            if (r->inserts[k].before == i) st = oct_plan_add_step(p, &r->inserts[k].step, NULL);
        if (!st && !r->is_moved[i]) st = oct_plan_add_step(p, &old[i], NULL);
    }
    oct_free(p->ctx, old);
    return st;
}

oct_status oct_recompute_change(oct_recompute *r)
{
    oct_plan *p = r->p;
    const int32_t n_steps = p->n_steps;

    r->n_inserts = r->n_steps_used = 0;
    r->cost = 0;
    r->extended = 0;
    r->is_too_long = false;
    OCT_TRY(oct_grow(p->ctx, &r->is_moved, &r->cap_moved, (size_t)n_steps + 1, 1));
    OCT_TRY(oct_grow(p->ctx, &r->is_copied, &r->cap_copied, (size_t)n_steps + 1, 1));
    memset(r->is_moved, 0, (size_t)n_steps + 1);
    memset(r->is_copied, 0, (size_t)n_steps + 1);
    for (int32_t i = r->now.at + 1; i < n_steps && !r->is_too_long; i++)
        for (int32_t k = 0; k < p->steps[i].n_in && !r->is_moved[i]; k++) {
            const int32_t slot = p->steps[i].in[k];
            int32_t to = slot;

            if (slot < 0 || slot >= r->now.n_slots || r->now.root[slot] != r->block) continue;
            OCT_TRY(need(r, slot, i, &to));
            if (!r->is_dry && to != slot) OCT_TRY(redirect(r, slot, to));
        }
    return r->is_dry || r->is_too_long ? OCT_OK : rebuild(r);
}
