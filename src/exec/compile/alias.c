/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views instead of copies: Reshape shares its operand's memory, the producers of a Concat write
 * straight into its result, the consumers of a Split read its operand.
 */
#include <string.h>

#include "exec/f32/concat_split.h"
#include "exec/kernel.h"

typedef struct aliaser {
    oct_plan *p;
    int32_t *maker;   /* by slot: the step that makes it, or -1 */
    uint8_t *reads;   /* by slot: all consumers accept strided views */
    int32_t *n_reads; /* by slot: number of operands that read it */
    int32_t *n_views; /* by slot: number of slots that are views of it */
} aliaser;

/* Some consumer of the slot, or of its parent, needs it dense. Each slot is visited once, so all
 * calls together are linear in the number of slots. */
static void need_dense(aliaser *a, int32_t slot)
{
    for (; slot >= 0 && a->reads[slot]; slot = a->p->slots[slot].parent) {
        a->reads[slot] = 0;
        a->p->work++;
    }
}

/* A consumer of a view reads its parent; views that are not strided need a dense parent. */
static void spread(aliaser *a, int32_t slot)
{
    const oct_slot *s = &a->p->slots[slot];

    if (s->parent >= 0 && (!s->strided || !a->reads[slot] || s->pinned)) need_dense(a, s->parent);
}

static void make_view(aliaser *a, int32_t slot, int32_t parent, int64_t offset, bool strided)
{
    oct_slot *s = &a->p->slots[slot];

    s->parent = parent;
    s->offset = offset;
    s->strided = strided;
    a->n_views[parent]++;
}

/* Concat and Split keep pitches only along channels. */
static bool cuts_pixels(const oct_step *s)
{
    const oct_axis_slices *parts = s->slices;

    return (s->kernel == &oct_kernel_concat || s->kernel == &oct_kernel_split) &&
           !parts->is_channel;
}

static void scan_step(aliaser *a, int32_t i)
{
    const oct_plan *p = a->p;
    const oct_step *s = &p->steps[i];

    for (int32_t k = 0; k < s->n_out; k++)
        if (s->out[k] >= 0) a->maker[s->out[k]] = i;
    for (int32_t k = 0; k < s->n_in; k++) {
        if (s->in[k] < 0) continue;
        a->n_reads[s->in[k]]++;
        if ((s->kernel->flags & OCT_KERNEL_VIEW) && p->slots[s->out[0]].parent == s->in[k])
            continue; /* only a view: its own consumers count */
        if (!(s->kernel->flags & OCT_KERNEL_STRIDED_IN) || cuts_pixels(s)) a->reads[s->in[k]] = 0;
    }
}

/* Finds producers and consumers of all slots once; views made later update what they need. */
static void scan(aliaser *a)
{
    const oct_plan *p = a->p;

    for (int32_t i = 0; i < p->n_slots; i++) {
        a->maker[i] = -1;
        a->reads[i] = 1;
        a->n_reads[i] = 0;
    }
    for (int32_t i = 0; i < p->n_steps; i++)
        scan_step(a, i);
    for (int32_t i = 0; i < p->n_slots; i++)
        spread(a, i);
    a->p->work += p->n_slots + p->n_steps;
}

/* A whole-tensor view: the output is the input under another type. */
static bool alias_view(aliaser *a, const oct_step *s)
{
    const oct_slot *out = &a->p->slots[s->out[0]];
    const oct_slot *in = &a->p->slots[s->in[0]];

    if (in->data || out->parent >= 0) return false;
    make_view(a, s->out[0], s->in[0], 0,
              out->layout == OCT_LAYOUT_CLAST && in->layout == OCT_LAYOUT_CLAST);
    return true;
}

/* An NCHW result that only a Concat along the pixels reads is written straight into the Concat. */
static bool nchw_fits(const aliaser *a, const oct_axis_slices *parts, int32_t slot)
{
    const oct_slot *s = &a->p->slots[slot];

    return parts->is_pixel && a->n_reads[slot] == 1 && !s->pinned && !a->p->is_kept[s->value->id] &&
           (a->p->steps[a->maker[slot]].kernel->flags & OCT_KERNEL_NCHW_OUT);
}

/* Is the part one contiguous block of the whole, or do its producer and consumers accept a
 * pitch? */
static bool part_fits(const aliaser *a, const oct_axis_slices *parts, int32_t slot,
                      bool maker_strides)
{
    if (oct_axis_slices_are_blocks(parts)) return true;
    return parts->is_channel && maker_strides && a->reads[slot] && !a->p->slots[slot].pinned;
}

/* Operands i.. of a Concat that are, in order, all parts of one slot (the results of a Split):
 * that slot and their number, else -1. */
static int32_t whole_of(const oct_plan *p, const oct_step *s, int32_t i, int32_t *n)
{
    const int32_t whole = p->slots[s->in[i]].parent;
    int64_t c = 0;

    if (whole < 0 || !p->slots[s->in[i]].strided) return -1;
    for (*n = 0; i + *n < s->n_in; ++*n) {
        const oct_slot *part = &p->slots[s->in[i + *n]];

        if (part->parent != whole || !part->strided || part->offset != c) break;
        c += oct_slot_channels(part);
        if (c == oct_slot_channels(&p->slots[whole])) {
            ++*n;
            return whole;
        }
    }
    return -1;
}

static void alias_operand(aliaser *a, const oct_step *s, int32_t slot, int64_t offset)
{
    const oct_axis_slices *parts = s->slices;
    const oct_slot *in = &a->p->slots[slot];
    const int32_t maker = a->maker[slot];
    const oct_step *by;
    bool strides;

    if (in->data || in->parent >= 0 || maker < 0 || in->pinned) return;
    by = &a->p->steps[maker];
    strides = (by->kernel->flags & OCT_KERNEL_STRIDED_OUT) && !cuts_pixels(by);
    if (!part_fits(a, parts, slot, strides) && !nchw_fits(a, parts, slot)) return;
    make_view(a, slot, s->out[0], offset,
              (parts->is_channel || parts->is_pixel) && !oct_axis_slices_are_blocks(parts));
    spread(a, slot);
}

static void alias_concat(aliaser *a, const oct_step *s)
{
    const oct_axis_slices *parts = s->slices;

    for (int32_t i = 0, n = 1; i < s->n_in; i += n) {
        const int32_t whole = whole_of(a->p, s, i, &n);

        if (whole < 0) n = 1;
        alias_operand(a, s, whole >= 0 ? whole : s->in[i], parts->offset[i]);
    }
}

static void alias_split(aliaser *a, const oct_step *s)
{
    oct_plan *p = a->p;
    const oct_axis_slices *parts = s->slices;

    if (p->slots[s->in[0]].data) return;
    for (int32_t i = 0; i < s->n_out; i++) {
        const oct_slot *out = s->out[i] >= 0 ? &p->slots[s->out[i]] : NULL;

        if (!out || out->parent >= 0 || out->pinned) continue;
        if (!part_fits(a, parts, s->out[i], true)) continue;
        make_view(a, s->out[i], s->in[0], parts->offset[i],
                  parts->is_channel && !oct_axis_slices_are_blocks(parts));
        spread(a, s->out[i]);
    }
}

/* No copy is left: every part is already in its place. */
static bool is_done(const oct_plan *p, const oct_step *s)
{
    const oct_axis_slices *parts = s->slices;

    if (s->kernel == &oct_kernel_concat) {
        for (int32_t i = 0; i < s->n_in; i++)
            if (!oct_axis_slice_is_in_place(p, s->in[i], s->out[0], parts->offset[i])) return false;
        return true;
    }
    if (s->kernel == &oct_kernel_split) {
        for (int32_t i = 0; i < s->n_out; i++)
            if (s->out[i] >= 0 &&
                !oct_axis_slice_is_in_place(p, s->out[i], s->in[0], parts->offset[i]))
                return false;
        return true;
    }
    return (s->kernel->flags & OCT_KERNEL_VIEW) && p->slots[s->out[0]].parent == s->in[0];
}

/* The operand must own its memory: it is no view of another slot and no slot is a view of it. */
static bool may_overwrite(const aliaser *a, int32_t k, const oct_slot *out)
{
    const oct_plan *p = a->p;
    const oct_slot *in = k >= 0 ? &p->slots[k] : NULL;

    if (!in || in->data || in->pinned || in->parent >= 0 || a->n_reads[k] != 1) return false;
    return a->maker[k] >= 0 && a->reads[k] && a->n_views[k] == 0 &&
           oct_type_equal(&in->type, &out->type) && in->layout == out->layout;
}

/* A pointwise kernel may overwrite an operand that no later step reads. */
static void alias_in_place(aliaser *a, const oct_step *s)
{
    oct_plan *p = a->p;
    const oct_slot *out = &p->slots[s->out[0]];

    if (!(s->kernel->flags & OCT_KERNEL_IN_PLACE) || p->is_apart) return;
    for (int32_t i = 0; i < s->n_in; i++) {
        const int32_t k = s->in[i];

        if (!may_overwrite(a, k, out)) continue;
        if (out->parent < 0) {
            make_view(a, s->out[0], k, 0, false);
            return;
        }
        /* The result is a part of a Concat: its operand may be written there as well. */
        if (out->strided && (!(p->steps[a->maker[k]].kernel->flags & OCT_KERNEL_STRIDED_OUT) ||
                             cuts_pixels(&p->steps[a->maker[k]])))
            continue;
        make_view(a, k, s->out[0], 0, out->strided);
        return;
    }
}

static oct_status find_parts(oct_plan *p)
{
    for (int32_t i = 0; i < p->n_steps; i++) {
        oct_step *s = &p->steps[i];

        if (s->kernel == &oct_kernel_concat || s->kernel == &oct_kernel_split)
            OCT_TRY(oct_step_axis_slices(p, s, &s->slices));
    }
    return OCT_OK;
}

static void alias_steps(aliaser *a)
{
    oct_plan *p = a->p;

    for (int32_t i = 0; i < p->n_slots; i++) /* the same bytes in another layout (choose.c) */
        if (p->slots[i].parent >= 0) a->n_views[p->slots[i].parent]++;
    for (int32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].kernel->flags & OCT_KERNEL_VIEW) alias_view(a, &p->steps[i]);
    scan(a);
    for (int32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].kernel == &oct_kernel_split) alias_split(a, &p->steps[i]);
    for (int32_t i = p->n_steps - 1; i >= 0; i--) /* outer Concats first */
        if (p->steps[i].kernel == &oct_kernel_concat) alias_concat(a, &p->steps[i]);
    for (int32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].n_out == 1 && p->steps[i].out[0] >= 0) alias_in_place(a, &p->steps[i]);
}

/* A step without work is kept if a hook is to see its result. */
static bool is_watched(const oct_plan *p, const oct_step *s)
{
    for (int32_t i = 0; i < s->n_out; i++)
        if (s->out[i] >= 0 && p->is_kept[p->slots[s->out[i]].value->id]) return true;
    return false;
}

static void drop_done(oct_plan *p)
{
    int32_t n = 0;

    for (int32_t i = 0; i < p->n_steps; i++) {
        oct_step *s = &p->steps[i];

        if (is_done(p, s) && !is_watched(p, s)) continue;
        p->steps[n++] = *s;
    }
    p->n_steps = n;
}

oct_status oct_plan_alias(oct_plan *p)
{
    const size_t n = (size_t)p->n_slots + 1;
    aliaser a = {.p = p};

    a.maker = oct_plan_alloc(p, n, sizeof(int32_t));
    a.reads = oct_plan_alloc(p, n, 1);
    a.n_reads = oct_plan_alloc(p, n, sizeof(int32_t));
    a.n_views = oct_plan_alloc(p, n, sizeof(int32_t));
    if (!a.maker || !a.reads || !a.n_reads || !a.n_views) return OCT_ERR_MEMORY;
    OCT_TRY(find_parts(p));
    if (!p->options.plain) alias_steps(&a);
    drop_done(p);
    return OCT_OK;
}
