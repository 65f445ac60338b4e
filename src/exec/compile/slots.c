/* SPDX-License-Identifier: Apache-2.0 */
/* Slots and steps of a plan: the arrays, and where a slot lies. */
#include "exec/kernel.h"

oct_status oct_plan_add_slot(oct_plan *p, const oct_slot *s, int32_t *out)
{
    OCT_TRY(oct_grow(p->ctx, &p->slots, &p->cap_slots, (size_t)p->n_slots + 1, sizeof(*s)));
    p->slots[p->n_slots] = *s;
    *out = p->n_slots++;
    return OCT_OK;
}

oct_status oct_plan_add_step(oct_plan *p, const oct_step *s, int32_t *out)
{
    OCT_TRY(oct_grow(p->ctx, &p->steps, &p->cap_steps, (size_t)p->n_steps + 1, sizeof(*s)));
    p->steps[p->n_steps] = *s;
    if (out) *out = p->n_steps;
    p->n_steps++;
    return OCT_OK;
}

int32_t oct_slot_root(const oct_plan *p, int32_t i, int64_t *offset)
{
    int64_t total = 0;

    while (p->slots[i].parent >= 0) {
        total += p->slots[i].offset;
        i = p->slots[i].parent;
    }
    if (offset) *offset = total;
    return i;
}

int64_t oct_slot_pitch(const oct_plan *p, int32_t i)
{
    while (p->slots[i].parent >= 0 && p->slots[i].strided)
        i = p->slots[i].parent;
    return oct_slot_channels(&p->slots[i]);
}

int64_t oct_slot_plane_pitch(const oct_plan *p, int32_t i)
{
    while (p->slots[i].parent >= 0 && p->slots[i].strided)
        i = p->slots[i].parent;
    return oct_type_pixels(&p->slots[i].type);
}

bool oct_slot_is_dense(const oct_plan *p, int32_t i)
{
    if (p->slots[i].layout == OCT_LAYOUT_PLAIN && p->slots[i].strided) return false;
    return p->slots[i].layout == OCT_LAYOUT_PLAIN ||
           oct_slot_pitch(p, i) == oct_slot_channels(&p->slots[i]);
}

size_t oct_slot_offset_bytes(const oct_plan *p, int32_t i)
{
    int64_t offset = 0;
    const int32_t root = oct_slot_root(p, i, &offset);

    return p->slots[root].at + (size_t)offset * oct_dtype_size(p->slots[i].type.dtype);
}

bool oct_slot_in_input(const oct_plan *p, int32_t i)
{
    return p->slots[oct_slot_root(p, i, NULL)].is_input;
}

bool oct_type_has_channels(const oct_type *t)
{
    return t->rank >= 3 && t->rank <= 5 && oct_dtype_size(t->dtype) > 0;
}

bool oct_step_is_f32(const oct_plan *p, const oct_step *s)
{
    for (int32_t i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 && p->slots[s->in[i]].type.dtype != OCT_DTYPE_F32) return false;
    for (int32_t i = 0; i < s->n_out; i++)
        if (s->out[i] >= 0 && p->slots[s->out[i]].type.dtype != OCT_DTYPE_F32) return false;
    return true;
}
