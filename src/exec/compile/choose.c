/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel for every step, the layout it works in, and the reorders between layouts. */
#include <string.h>

#include "exec/kernel.h"

static const oct_kernel *const table[] = {
#define OCT_KERNEL(sym) &oct_kernel_##sym,
#include "exec/kernels.def"
#undef OCT_KERNEL
};

const oct_kernel *oct_kernel_at(int i)
{
    return i >= 0 && (size_t)i < OCT_COUNT(table) ? table[i] : NULL;
}

/* Same bytes in both layouts: one pixel or one channel. */
static bool same_bytes(const oct_type *t)
{
    return !oct_type_has_channels(t) || t->dim[1] == 1 || oct_type_pixels(t) == 1;
}

/* A second slot for the value of `slot` in the other layout, made by a reorder or as a view. */
static oct_status convert(oct_plan *p, int32_t slot, oct_layout layout, int32_t *out)
{
    const oct_slot *from = &p->slots[slot];
    int32_t *known = &p->slot_of[layout][from->value->id];
    oct_slot to = {.value = from->value, .type = from->type, .layout = layout, .parent = -1};
    oct_step s = {.fuse = {.residual = -1},
                  .kernel = &oct_kernel_reorder,
                  .layout = layout,
                  .label = "reorder",
                  .n_in = 1,
                  .n_out = 1};

    if (*known >= 0 && p->slots[*known].layout == layout) {
        *out = *known;
        return OCT_OK;
    }
    if (same_bytes(&from->type)) {
        to.parent = slot;
        OCT_TRY(oct_plan_add_slot(p, &to, known));
        *out = *known;
        return OCT_OK;
    }
    s.in = oct_plan_alloc(p, 2, sizeof(int32_t));
    if (!s.in) return OCT_ERR_MEMORY;
    s.out = s.in + 1;
    OCT_TRY(oct_plan_add_slot(p, &to, known));
    s.in[0] = slot;
    s.out[0] = *known;
    *out = *known;
    return oct_plan_add_step(p, &s, NULL);
}

static bool any_input_is_clast(const oct_plan *p, const oct_step *s)
{
    for (int32_t i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 && p->slots[s->in[i]].layout == OCT_LAYOUT_CLAST &&
            !same_bytes(&p->slots[s->in[i]].type))
            return true;
    return false;
}

static void choose_kernel(const oct_plan *p, oct_step *s)
{
    for (size_t i = 0; i < OCT_COUNT(table); i++) {
        oct_layout layout = OCT_LAYOUT_PLAIN;

        if (p->options.plain && !(table[i]->flags & OCT_KERNEL_PLAIN)) continue;
        if (!(table[i]->flags & OCT_KERNEL_INTEGER) != !s->integer) continue;
        if (!table[i]->accepts || !table[i]->accepts(p, s, &layout)) continue;
        if (layout == OCT_LAYOUT_ANY)
            layout = any_input_is_clast(p, s) ? OCT_LAYOUT_CLAST : OCT_LAYOUT_PLAIN;
        s->kernel = table[i];
        s->layout = layout;
        return;
    }
}

/* Kernels that change the layout say so by their out_layout. */
static void set_output_layouts(oct_plan *p, const oct_step *s)
{
    for (int32_t i = 0; i < s->n_out; i++) {
        oct_slot *out;

        if (s->out[i] < 0) continue;
        out = &p->slots[s->out[i]];
        out->layout = s->kernel->out_layout != OCT_LAYOUT_ANY ? s->kernel->out_layout : s->layout;
        if (!oct_type_has_channels(&out->type) || (i < 32 && s->kernel->plain_out >> i & 1))
            out->layout = OCT_LAYOUT_PLAIN;
        p->slot_of[OCT_LAYOUT_PLAIN][out->value->id] = -1;
        p->slot_of[out->layout][out->value->id] = s->out[i];
    }
}

/* The slot that holds a value at this point, in any layout. */
static int32_t current_slot(const oct_plan *p, int32_t id)
{
    const int32_t plain = p->slot_of[OCT_LAYOUT_PLAIN][id];

    return plain >= 0 ? plain : p->slot_of[OCT_LAYOUT_CLAST][id];
}

static oct_status choose_step(oct_plan *p, oct_step s)
{
    choose_kernel(p, &s);
    if (!s.kernel)
        return oct_node_fail(s.last, OCT_ERR_STATE,
                             "internal error: no kernel takes this step (%s); please report it "
                             "with the network",
                             s.label);
    for (int32_t i = 0; i < s.n_in; i++) {
        const oct_slot *in = s.in[i] >= 0 ? &p->slots[s.in[i]] : NULL;

        const oct_layout layout =
            i < 32 && s.kernel->plain_in >> i & 1 ? OCT_LAYOUT_PLAIN : s.layout;

        if (!in || in->data) continue; /* kernels read constants in the file's layout */
        if (layout == OCT_LAYOUT_CLAST && !oct_type_has_channels(&in->type)) continue;
        if (in->layout != layout) OCT_TRY(convert(p, s.in[i], layout, &s.in[i]));
    }
    set_output_layouts(p, &s);
    return oct_plan_add_step(p, &s, NULL);
}

/* Values that leave the plan must be NCHW, and are kept. */
static oct_status pin_plain(oct_plan *p, const oct_value *v)
{
    int32_t slot;

    if (v->data) return OCT_OK;
    slot = current_slot(p, v->id);
    if (slot < 0) return OCT_OK; /* made at run time */
    if (p->slots[slot].layout != OCT_LAYOUT_PLAIN)
        OCT_TRY(convert(p, slot, OCT_LAYOUT_PLAIN, &slot));
    p->slots[slot].pinned = true;
    return OCT_OK;
}

static oct_status pin_reads(oct_plan *p, const oct_node *n)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i]) OCT_TRY(pin_plain(p, n->in[i]));
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++) {
        if (n->attr[i].kind != OCT_ATTR_GRAPH) continue;
        for (const oct_node *b = n->attr[i].g->first; b; b = b->next)
            OCT_TRY(pin_reads(p, b));
        for (int32_t o = 0; o < n->attr[i].g->n_outputs; o++)
            OCT_TRY(pin_plain(p, n->attr[i].g->outputs[o]));
    }
    return OCT_OK;
}

oct_status oct_plan_choose(oct_plan *p)
{
    oct_step *steps = p->steps;
    const int32_t n = p->n_steps;
    oct_status st = OCT_OK;

    p->steps = NULL; /* rebuilt, with the reorders */
    p->n_steps = 0;
    p->cap_steps = 0;
    for (int32_t i = 0; i < n && !st; i++)
        st = choose_step(p, steps[i]);
    oct_free(p->ctx, steps);
    for (int32_t i = 0; i < p->n_dynamic && !st; i++)
        st = pin_reads(p, p->dynamic[i]);
    for (int32_t i = 0; i < p->n_outputs && !st; i++)
        st = pin_plain(p, p->g->outputs[i]);
    return st;
}
