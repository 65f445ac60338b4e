/* SPDX-License-Identifier: Apache-2.0 */
/* Running only the steps downstream of a change. */
#include "exec/rerun.h"

#include <string.h>

#include "base/parallel.h"
#include "exec/layout.h"

/* --- slots --- */

int32_t oct_plan_slot_of(const oct_plan *p, const char *name)
{
    for (int32_t i = 0; i < p->n_steps; i++) {
        const oct_step *s = &p->steps[i];

        for (int32_t k = 0; s->node && k < s->n_out; k++)
            if (s->out[k] >= 0 && strcmp(p->slots[s->out[k]].value->name, name) == 0)
                return s->out[k];
    }
    return -1;
}

/* Rows of `width` elements, `pitch` apart: the extent of a slot in the memory of its root. */
typedef struct extent {
    int32_t root;
    int64_t offset, rows, width, pitch;
    bool is_partly_made; /* part of it is there already, and is not written */
} extent;

static extent extent_of(const oct_plan *p, int32_t slot)
{
    const oct_slot *s = &p->slots[slot], *whole = s;
    extent e = {.rows = 1, .width = oct_type_len(&s->type)};

    e.root = oct_slot_root(p, slot, &e.offset);
    e.pitch = e.width;
    if (!s->strided) return e;
    while (whole->parent >= 0 && whole->strided)
        whole = &p->slots[whole->parent];
    if (s->layout == OCT_LAYOUT_CLAST) { /* some channels of each pixel */
        e.width = oct_slot_channels(s);
        e.pitch = oct_slot_channels(whole);
        e.rows = s->type.dim[0] * oct_type_pixels(&s->type);
    } else { /* some pixels of each channel */
        e.width = oct_type_pixels(&s->type);
        e.pitch = oct_type_pixels(&whole->type);
        e.rows = oct_type_len(&s->type) / OCT_MAX(e.width, (int64_t)1);
    }
    return e;
}

/* A false positive costs time only. */
static bool overlap(const extent *a, const extent *b)
{
    const int64_t end_a = a->offset + (a->rows - 1) * a->pitch + a->width;
    const int64_t end_b = b->offset + (b->rows - 1) * b->pitch + b->width;

    if (a->root != b->root || end_a <= b->offset || end_b <= a->offset) return false;
    if (a->rows < 2 || b->rows < 2 || a->pitch != b->pitch) return true;
    if (a->offset + a->width > a->pitch || b->offset + b->width > b->pitch) return true;
    return a->offset < b->offset + b->width && b->offset < a->offset + a->width;
}

/* --- what depends on the change --- */

typedef struct tracer {
    const oct_plan *p;
    const oct_aims *aims;
    extent *dirty; /* what has been written so far */
    int32_t n_dirty;
    uint8_t *is_made, *is_needed; /* by slot that owns memory */
} tracer;

static bool is_dirty(const tracer *t, int32_t slot)
{
    extent e;

    if (slot < 0 || t->p->slots[slot].data) return false;
    e = extent_of(t->p, slot);
    for (int32_t i = 0; i < t->n_dirty; i++)
        if (overlap(&e, &t->dirty[i])) return true;
    return false;
}

static bool is_listed(const tracer *t, int32_t slot)
{
    const extent e = extent_of(t->p, slot);

    for (int32_t i = 0; i < t->n_dirty; i++) {
        const extent *d = &t->dirty[i];

        if (d->root == e.root && d->offset == e.offset && d->rows == e.rows &&
            d->width == e.width && d->pitch == e.pitch)
            return true;
    }
    return false;
}

/* The producers of a Concat may have written into its result: then it copies nothing for them. */
static bool has_part_in(const oct_plan *p, const oct_step *s, int32_t root)
{
    for (int32_t i = 0; s && i < s->n_in; i++)
        if (s->in[i] >= 0 && !p->slots[s->in[i]].data && oct_slot_root(p, s->in[i], NULL) == root)
            return true;
    return false;
}

/* s NULL: the value is put there. */
static void write_slot(tracer *t, const oct_step *s, int32_t slot)
{
    extent *e = &t->dirty[t->n_dirty];

    if (slot < 0) return;
    *e = extent_of(t->p, slot);
    e->is_partly_made = has_part_in(t->p, s, e->root);
    t->is_made[e->root] = 1;
    t->n_dirty++;
}

static bool follows(const tracer *t, const oct_step *s)
{
    for (int32_t i = 0; i < s->n_in; i++)
        if (is_dirty(t, s->in[i])) return true;
    return false;
}

static void read_slots(tracer *t, const oct_step *s)
{
    for (int32_t i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 && !t->p->slots[s->in[i]].data)
            t->is_needed[oct_slot_root(t->p, s->in[i], NULL)] = 1;
}

/* Is the memory of this slot fully rewritten? */
static bool is_whole(const tracer *t, int32_t root)
{
    const extent all = extent_of(t->p, root);
    const int64_t channels = oct_slot_channels(&t->p->slots[root]);
    int64_t sum = 0;

    for (int32_t i = 0; i < t->n_dirty; i++) {
        const extent *e = &t->dirty[i];

        if (e->root != root || e->is_partly_made) continue;
        if (e->rows == 1 && e->offset == 0 && e->width == all.width) return true;
        if (e->rows > 1 && e->pitch == channels && e->rows * e->pitch == all.width) sum += e->width;
        for (int32_t k = 0; k < i; k++) /* the same part twice would be counted twice */
            if (t->dirty[k].root == root && !t->dirty[k].is_partly_made && overlap(e, &t->dirty[k]))
                return false;
    }
    return sum == channels;
}

static oct_status list_slots(oct_arena *a, const uint8_t *mark, int32_t n_slots, int32_t **out,
                             int32_t *n)
{
    *n = 0;
    for (int32_t i = 0; i < n_slots; i++)
        *n += mark[i];
    if (!(*out = oct_arena_array(a, (size_t)*n + 1, sizeof(**out)))) return OCT_ERR_MEMORY;
    for (int32_t i = 0, k = 0; i < n_slots; i++)
        if (mark[i]) (*out)[k++] = i;
    return OCT_OK;
}

/* The first step after those that produce the values: parts of them may be read before, where
 * they are views of something larger. */
static int32_t first_after(const oct_plan *p, const oct_change *c)
{
    for (int32_t i = p->n_steps - 1; i >= 0; i--)
        for (int32_t k = 0; k < p->steps[i].n_out; k++)
            for (int32_t j = 0; j < c->n; j++)
                if (p->steps[i].out[k] == c->to[j]) return i + 1;
    return 0;
}

static oct_status trace(tracer *t, oct_arena *a, oct_change *c)
{
    const oct_plan *p = t->p;

    c->n_steps = 0;
    if (!(c->steps = oct_arena_array(a, (size_t)p->n_steps + 1, sizeof(*c->steps))))
        return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < c->n; i++)
        write_slot(t, NULL, c->to[i]);
    for (int32_t i = first_after(p, c); i < p->n_steps; i++) {
        const oct_step *s = &p->steps[i];

        if (!t->aims->leads[i] || !follows(t, s)) continue;
        c->steps[c->n_steps++] = i;
        c->macs += s->macs;
        read_slots(t, s);
        for (int32_t k = 0; k < s->n_out; k++)
            write_slot(t, s, s->out[k]);
    }
    for (int32_t i = 0; i < t->aims->n; i++)
        if (is_dirty(t, t->aims->slots[i]))
            t->is_needed[oct_slot_root(p, t->aims->slots[i], NULL)] = 1;
    for (int32_t i = 0; i < p->n_slots; i++)
        if (t->is_needed[i] && t->is_made[i] && is_whole(t, i)) t->is_needed[i] = 0;
    OCT_TRY(list_slots(a, t->is_needed, p->n_slots, &c->needed, &c->n_needed));
    return list_slots(a, t->is_made, p->n_slots, &c->made, &c->n_made);
}

oct_status oct_aims_find(const oct_plan *p, oct_arena *a, oct_aims *m)
{
    tracer t = {.p = p, .n_dirty = 0}; /* here: what is read */
    uint8_t *leads = oct_arena_alloc(a, (size_t)p->n_steps + 1);

    t.dirty = oct_calloc(p->ctx, (size_t)p->n_slots + (size_t)m->n + 1, sizeof(*t.dirty));
    if (!t.dirty || !leads) {
        oct_free(p->ctx, t.dirty);
        return OCT_ERR_MEMORY;
    }
    for (int32_t i = 0; i < m->n; i++)
        t.dirty[t.n_dirty++] = extent_of(p, m->slots[i]);
    for (int32_t i = p->n_steps - 1; i >= 0; i--) {
        const oct_step *s = &p->steps[i];

        for (int32_t k = 0; k < s->n_out; k++)
            leads[i] |= is_dirty(&t, s->out[k]);
        for (int32_t k = 0; k < s->n_in && leads[i]; k++)
            if (s->in[k] >= 0 && !p->slots[s->in[k]].data && !is_listed(&t, s->in[k]))
                t.dirty[t.n_dirty++] = extent_of(p, s->in[k]);
    }
    oct_free(p->ctx, t.dirty);
    m->leads = leads;
    return OCT_OK;
}

oct_status oct_change_find(const oct_plan *p, const oct_aims *m, oct_arena *a, oct_change *c)
{
    const size_t n = (size_t)p->n_slots + 1;
    tracer t = {.p = p, .aims = m};
    oct_status st;

    t.dirty = oct_calloc(p->ctx, n + (size_t)c->n, sizeof(*t.dirty));
    t.is_made = oct_calloc(p->ctx, n, 1);
    t.is_needed = oct_calloc(p->ctx, n, 1);
    st = t.dirty && t.is_made && t.is_needed ? trace(&t, a, c) : OCT_ERR_MEMORY;
    oct_free(p->ctx, t.dirty);
    oct_free(p->ctx, t.is_made);
    oct_free(p->ctx, t.is_needed);
    return st;
}

bool oct_change_reaches(const oct_plan *p, const oct_change *c, int32_t slot)
{
    const extent e = extent_of(p, slot);

    for (int32_t i = 0; i < c->n; i++) {
        const extent d = extent_of(p, c->to[i]);

        if (overlap(&e, &d)) return true;
    }
    for (int32_t i = 0; i < c->n_steps; i++) {
        const oct_step *s = &p->steps[c->steps[i]];

        for (int32_t k = 0; k < s->n_out; k++) {
            const extent d = s->out[k] >= 0 ? extent_of(p, s->out[k]) : (extent){.root = -1};

            if (d.root >= 0 && overlap(&e, &d)) return true;
        }
    }
    return false;
}

/* --- running --- */

oct_status oct_rerun_new(oct_ctx *ctx, const oct_plan *p, oct_rerun *out)
{
    oct_rerun x = {.is_stale = oct_calloc(ctx, (size_t)p->n_slots + 1, 1)};
    oct_status st;

    if (!x.is_stale) return OCT_ERR_MEMORY;
    if ((st = oct_run_new(ctx, p, &x.run))) {
        oct_free(ctx, x.is_stale);
        return st;
    }
    *out = x;
    oct_rerun_reset(out);
    return OCT_OK;
}

void oct_rerun_free(oct_rerun *x)
{
    if (x->run) oct_free(x->run->ctx, x->is_stale);
    oct_run_free(x->run);
    *x = (oct_rerun){.run = NULL};
}

void oct_rerun_reset(oct_rerun *x)
{
    memset(x->is_stale, 1, (size_t)x->run->plan->n_slots);
}

static void copy(const oct_run *from, int32_t a, oct_run *to, int32_t b)
{
    const oct_plan *p = to->plan;
    const oct_slot *sa = &p->slots[a], *sb = &p->slots[b];
    const extent x = extent_of(p, a), y = extent_of(p, b);
    const size_t size = oct_dtype_size(p->slots[b].type.dtype);
    const char *src = oct_run_address(from, a);
    char *dst = oct_run_address(to, b);
    const int64_t width = OCT_MIN(x.width, y.width), rows = OCT_MAX(x.rows, y.rows);
    /* One of them may be dense: a single row. */
    const size_t step_x = (size_t)(x.rows > 1 ? x.pitch : width) * size;
    const size_t step_y = (size_t)(y.rows > 1 ? y.pitch : width) * size;

    if (sa->layout != sb->layout && oct_type_has_channels(&sb->type)) {
        oct_relayout(&sb->type, (oct_seen_layout){sa->layout, oct_slot_pitch(p, a)}, src,
                     (oct_seen_layout){sb->layout, oct_slot_pitch(p, b)}, dst);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        memcpy(dst + (size_t)i * step_y, src + (size_t)i * step_x, (size_t)width * size);
}

oct_status oct_rerun_run(oct_rerun *x, const oct_run *first, const oct_change *c)
{
    oct_run *r = x->run;

    oct_parallel_set_threads(r->plan->n_threads);
    for (int32_t i = 0; i < c->n_needed; i++) {
        if (!x->is_stale[c->needed[i]]) continue;
        copy(first, c->needed[i], r, c->needed[i]);
        x->is_stale[c->needed[i]] = 0;
    }
    for (int32_t i = 0; i < c->n_made; i++)
        x->is_stale[c->made[i]] = 1;
    for (int32_t i = 0; i < c->n; i++)
        copy(first, c->from[i], r, c->to[i]);
    for (int32_t i = 0; i < c->n_steps; i++) {
        const oct_bound *b = &r->bound[c->steps[i]];

        OCT_TRY(b->step->kernel->run(b));
    }
    return OCT_OK;
}
