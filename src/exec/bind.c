/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the caller's for inputs and outputs of a run. */
#include <string.h>

#include "base/sized.h"
#include "exec/run.h"

enum { ALIGNMENT = 64 }; /* of a run's own memory, which kernels may rely on */

/* --- what there is to bind --- */

static void describe(const oct_plan *p, const oct_value *v, oct_io_info *info)
{
    const int32_t slot = oct_run_plain_slot(p, v);
    const oct_tensor *fixed = v->data ? v->data : v->id < p->n_ids ? p->computed[v->id] : NULL;
    const oct_type *t = fixed ? &fixed->type : slot >= 0 ? &p->slots[slot].type : NULL;
    oct_io_info all = {
        .struct_size = sizeof(all), .name = v->name, .dtype = (int32_t)v->type.dtype, .rank = -1};

    if (t) {
        all.dtype = (int32_t)t->dtype;
        all.rank = t->rank;
        all.dims = t->dim;
        if (!oct_type_bytes(t, &all.size)) all.size = 0;
    }
    oct_sized_give(info, &all, sizeof(all));
}

int32_t oct_plan_input_info(const oct_plan *p, int32_t i, oct_io_info *info)
{
    if (i < 0 || i >= p->g->n_inputs) return 0;
    describe(p, p->g->inputs[i], info);
    return 1;
}

int32_t oct_plan_output_info(const oct_plan *p, int32_t i, oct_io_info *info)
{
    if (i < 0 || i >= p->n_outputs) return 0;
    describe(p, p->g->outputs[i], info);
    return 1;
}

/* --- inputs --- */

static bool is_of(const oct_plan *p, int32_t slot, int32_t root)
{
    return slot >= 0 && !p->slots[slot].data && oct_slot_root(p, slot, NULL) == root;
}

/* Gives a step the addresses that its slots have now; kernels may have kept the old ones. */
static oct_status move_step(oct_run *r, oct_bound *b, int32_t root)
{
    const oct_step *s = b->step;
    bool has_moved = false;

    for (int32_t k = 0; k < s->n_in + s->n_out; k++) {
        const int32_t slot = k < s->n_in ? s->in[k] : s->out[k - s->n_in];

        if (!is_of(r->plan, slot, root)) continue;
        b->in[k] = oct_run_address(r, slot); /* out follows in */
        has_moved = true;
    }
    if (!has_moved || !s->kernel->bind) return OCT_OK;
    if (s->kernel->unbind) s->kernel->unbind(b);
    return s->kernel->bind(r->plan, b);
}

/* Tensors that show the input, or a view of it: outputs, and what run-time shapes read. */
static void move_tensors(oct_run *r, int32_t root)
{
    const oct_plan *p = r->plan;

    for (int32_t i = 0; i < p->n_outputs; i++) {
        const int32_t slot = oct_run_plain_slot(p, p->g->outputs[i]);

        if (is_of(p, slot, root) && r->outputs[i]) r->outputs[i]->data = oct_run_address(r, slot);
    }
    for (int32_t i = 0; r->env.by_id && i < p->n_ids; i++) {
        const int32_t slot = p->slot_of[OCT_LAYOUT_PLAIN][i];

        if (is_of(p, slot, root) && p->slots[slot].pinned && r->env.by_id[i])
            r->env.by_id[i]->data = oct_run_address(r, slot);
    }
}

/* Steps read the input where the binding says from now on. */
static oct_status move_input(oct_run *r, int32_t i, const oct_binding *to)
{
    const int32_t slot = oct_run_plain_slot(r->plan, r->plan->g->inputs[i]);
    const oct_binding was = r->bindings[i];

    r->bindings[i] = *to;
    if (was.is_in_place == to->is_in_place && (!to->is_in_place || was.from == to->from))
        return OCT_OK;
    for (int32_t k = 0; k < r->plan->n_steps && !r->unusable; k++)
        r->unusable = move_step(r, &r->bound[k], slot);
    move_tensors(r, slot);
    return r->unusable;
}

oct_status oct_run_unbind_input(oct_run *r, int32_t i)
{
    return r->bindings[i].from ? move_input(r, i, &(oct_binding){0}) : OCT_OK;
}

oct_status oct_run_bind_input(oct_run *r, const char *name, const void *data, size_t size)
{
    OCT_ENTER(r->ctx);
    oct_io_info info = {.struct_size = sizeof(info)};
    oct_binding b = {.from = data, .size = size};
    int32_t i = 0;

    OCT_TRY(oct_run_find_input(r, name, &i));
    if (!data) return oct_run_unbind_input(r, i);
    (void)oct_plan_input_info(r->plan, i, &info);
    if (info.rank < 0)
        return oct_fail(r->ctx, OCT_ERR_UNSUPPORTED, "input '%s' is not read: nothing to bind",
                        name);
    if (info.dtype == OCT_DTYPE_STRING)
        return oct_fail(r->ctx, OCT_ERR_TYPE, "input '%s' has strings, which cannot be bound",
                        name);
    if (size != info.size)
        return oct_fail(r->ctx, OCT_ERR_SHAPE,
                        "input '%s' takes %zu bytes, the memory to bind has %zu", name, info.size,
                        size);
    b.is_in_place = (uintptr_t)data % ALIGNMENT == 0;
    return move_input(r, i, &b);
}

void oct_run_copy_inputs(const oct_run *r)
{
    const oct_graph *g = r->plan->g;

    for (int32_t i = 0; i < g->n_inputs; i++) {
        const oct_binding *b = &r->bindings[i];

        if (b->from && !b->is_in_place)
            memcpy(oct_run_address(r, oct_run_plain_slot(r->plan, g->inputs[i])), b->from, b->size);
    }
}

/* --- outputs --- */

oct_status oct_run_bind_output(oct_run *r, int32_t i, void *data, size_t size)
{
    OCT_ENTER(r->ctx);
    oct_io_info info = {.struct_size = sizeof(info)};

    if (!oct_plan_output_info(r->plan, i, &info))
        return oct_fail(r->ctx, OCT_ERR_ARG, "there is no output %d; there are %d", (int)i,
                        (int)r->plan->n_outputs);
    if (info.dtype == OCT_DTYPE_STRING)
        return oct_fail(r->ctx, OCT_ERR_TYPE, "output '%s' has strings, which cannot be bound",
                        info.name);
    if (data && info.rank >= 0 && size != info.size)
        return oct_fail(r->ctx, OCT_ERR_SHAPE,
                        "output '%s' has %zu bytes, the memory to bind has %zu", info.name,
                        info.size, size);
    r->bindings[r->plan->g->n_inputs + i] = (oct_binding){.to = data, .size = size};
    return OCT_OK;
}

oct_status oct_run_copy_outputs(const oct_run *r)
{
    const oct_plan *p = r->plan;

    for (int32_t i = 0; i < p->n_outputs; i++) {
        const oct_binding *b = &r->bindings[p->g->n_inputs + i];
        const oct_tensor *t = r->outputs[i];

        if (!b->to || !t) continue;
        if (t->type.dtype == OCT_DTYPE_STRING || t->size > b->size)
            return oct_fail(
                r->ctx, OCT_ERR_SHAPE,
                "output '%s' has %zu bytes, more than the %zu of the memory bound to it",
                p->g->outputs[i]->name, t->size, b->size);
        memcpy(b->to, t->data, t->size);
    }
    return OCT_OK;
}
