/* SPDX-License-Identifier: Apache-2.0 */
/* What a step of a plan is, for profiles and traces. */
#include <string.h>

#include "exec/kernel.h"
#include "exec/plan.h"

static int64_t slot_bytes(const oct_slot *s)
{
    size_t size;

    return oct_type_bytes(&s->type, &size) ? (int64_t)size : 0;
}

static int64_t step_bytes(const oct_plan *p, const oct_step *s)
{
    int64_t total = 0;

    for (int32_t i = 0; i < s->n_in + s->n_out; i++) {
        const int32_t slot = i < s->n_in ? s->in[i] : s->out[i - s->n_in];

        if (slot >= 0) total += slot_bytes(&p->slots[slot]);
    }
    return total;
}

/* Of values in the block that are written by then and still needed. */
static int64_t live_bytes(const oct_plan *p, int32_t step)
{
    int64_t total = 0;

    for (int32_t i = 0; i < p->n_slots; i++) {
        const oct_slot *s = &p->slots[i];

        if (s->parent >= 0 || s->data || s->is_input) continue;
        if (s->first <= step && (step <= s->last || s->pinned)) total += slot_bytes(s);
    }
    return total;
}

/* Steps that only move codes need no integer kernel. */
static bool is_on_codes(const oct_plan *p, const oct_step *s)
{
    const oct_slot *out = oct_step_out(p, s, 0);

    return out && (out->type.dtype == OCT_DTYPE_U8 || out->type.dtype == OCT_DTYPE_I8);
}

void oct_plan_step(const oct_plan *p, int32_t i, oct_step_info *info)
{
    oct_step_info all = {.struct_size = info->struct_size};

    if (i >= 0 && i < p->n_steps) {
        const oct_step *s = &p->steps[i];

        all.name = s->node ? s->node->name : p->slots[s->in[0]].value->name;
        all.op = s->label;
        all.kernel = s->impl ? s->impl : s->kernel->name;
        all.macs = s->macs;
        all.bytes = step_bytes(p, s);
        all.is_plain = (s->kernel->flags & OCT_KERNEL_PLAIN) != 0;
        all.is_reorder = (s->kernel->flags & OCT_KERNEL_REORDER) != 0;
        all.is_integer = s->integer || is_on_codes(p, s);
        all.is_conversion =
            s->node && (oct_node_is_quantize(s->node) || oct_node_is_dequantize(s->node));
        all.live_bytes = live_bytes(p, i);
    } else if (i >= p->n_steps && i < p->n_steps + p->n_dynamic) {
        const oct_node *n = p->dynamic[i - p->n_steps];

        all.name = n->name;
        all.op = n->op->name;
        all.kernel = "plain, shape at run time";
        all.is_plain = 1;
    }
    memcpy(info, &all, OCT_MIN(all.struct_size, sizeof(all)));
}

int32_t oct_plan_step_dims(const oct_plan *p, int32_t i, int32_t is_result, int32_t k,
                           oct_dtype *dtype, int64_t *dims)
{
    const oct_step *s;
    const oct_type *t;
    int32_t slot;

    if (i < 0 || i >= p->n_steps || k < 0) return -1;
    s = &p->steps[i];
    if (k >= (is_result ? s->n_out : s->n_in)) return -1;
    slot = is_result ? s->out[k] : s->in[k];
    if (slot < 0) return 0; /* not given */
    t = &p->slots[slot].type;
    *dtype = t->dtype;
    for (int32_t d = 0; d < t->rank; d++)
        dims[d] = t->dim[d];
    return OCT_MAX(t->rank, 0);
}
