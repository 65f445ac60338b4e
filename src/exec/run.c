/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: addresses are fixed beforehand, then a loop over steps. */
#include "exec/run.h"

#include <string.h>

#include "base/machine.h"
#include "base/parallel.h"
#include "exec/layout.h"

int32_t oct_run_plain_slot(const oct_plan *p, const oct_value *v)
{
    return v->id < p->n_ids ? p->slot_of[OCT_LAYOUT_PLAIN][v->id] : -1;
}

/* An input, or a view of one: in the run's own memory, or where the caller bound it. */
static void *input_address(const oct_run *r, int32_t slot)
{
    const oct_plan *p = r->plan;
    const size_t offset = oct_slot_offset_bytes(p, slot);
    const int32_t root = oct_slot_root(p, slot, NULL);

    for (int32_t i = 0; i < p->g->n_inputs; i++)
        if (r->bindings[i].is_in_place && oct_run_plain_slot(p, p->g->inputs[i]) == root)
            return (char *)(uintptr_t)r->bindings[i].from + (offset - p->slots[root].at);
    return r->inputs + offset;
}

void *oct_run_address(const oct_run *r, int32_t slot)
{
    const oct_plan *p = r->plan;

    if (slot < 0) return NULL;
    if (p->slots[slot].data) return p->slots[slot].data->data;
    if (oct_slot_in_input(p, slot)) return input_address(r, slot);
    return r->block + oct_slot_offset_bytes(p, slot);
}

static oct_status bind_steps(oct_run *r)
{
    const oct_plan *p = r->plan;

    r->bound = oct_calloc(r->ctx, (size_t)p->n_steps + 1, sizeof(*r->bound));
    if (!r->bound) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->n_steps; i++) {
        const oct_step *s = &p->steps[i];
        oct_bound *b = &r->bound[i];

        b->step = s;
        b->run = r;
        b->n_threads = p->n_threads;
        b->scratch = r->scratch;
        b->in = oct_calloc(r->ctx, (size_t)(s->n_in + s->n_out) + 1, sizeof(void *));
        if (!b->in) return OCT_ERR_MEMORY;
        b->out = b->in + s->n_in;
        for (int32_t k = 0; k < s->n_in; k++)
            b->in[k] = oct_run_address(r, s->in[k]);
        for (int32_t k = 0; k < s->n_out; k++)
            b->out[k] = oct_run_address(r, s->out[k]);
        if (s->kernel->bind) OCT_TRY(s->kernel->bind(p, b));
    }
    return OCT_OK;
}

static oct_status wrap_outputs(oct_run *r)
{
    const oct_plan *p = r->plan;

    r->outputs = oct_calloc(r->ctx, (size_t)p->n_outputs + 1, sizeof(*r->outputs));
    if (!r->outputs) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->n_outputs; i++) {
        const oct_value *v = p->g->outputs[i];
        const int32_t slot = oct_run_plain_slot(p, v);

        if (v->data || p->computed[v->id])
            r->outputs[i] = oct_tensor_ref(v->data ? v->data : p->computed[v->id]);
        else if (slot >= 0)
            OCT_TRY(oct_tensor_borrow(r->ctx, &p->slots[slot].type, oct_run_address(r, slot),
                                      &r->outputs[i]));
    }
    return OCT_OK;
}

/* All values that the part with run-time shapes may read, as tensors. */
static oct_status wrap_for_dynamic(oct_run *r)
{
    const oct_plan *p = r->plan;

    if (p->n_dynamic == 0) return OCT_OK;
    r->env.by_id = oct_calloc(r->ctx, (size_t)p->n_ids + 1, sizeof(*r->env.by_id));
    if (!r->env.by_id) return OCT_ERR_MEMORY;
    r->env.ctx = r->ctx;
    for (int32_t i = 0; i < p->n_ids; i++) {
        const int32_t slot = p->slot_of[OCT_LAYOUT_PLAIN][i];

        if (p->computed[i]) r->env.by_id[i] = oct_tensor_ref(p->computed[i]);
        if (slot < 0 || !p->slots[slot].pinned || p->slots[slot].data) continue;
        OCT_TRY(oct_tensor_borrow(r->ctx, &p->slots[slot].type, oct_run_address(r, slot),
                                  &r->env.by_id[i]));
    }
    return OCT_OK;
}

oct_status oct_run_new(oct_ctx *ctx, const oct_plan *p, oct_run **out)
{
    OCT_ENTER(ctx);
    oct_run *r = oct_calloc(ctx, 1, sizeof(*r));
    oct_status st = OCT_ERR_MEMORY;

    if (!r) return OCT_ERR_MEMORY;
    r->ctx = ctx;
    r->plan = p;
    oct_parallel_set_threads(p->n_threads);
    if (!(r->block = oct_alloc(ctx, OCT_MAX(p->block_size, 1)))) goto fail;
    if (!(r->scratch = oct_alloc(ctx, OCT_MAX(p->scratch_size, 1)))) goto fail;
    /* An input that was not set reads as zeros. */
    if (!(r->inputs = oct_calloc(ctx, OCT_MAX(p->input_size, 1), 1))) goto fail;
    r->bindings =
        oct_calloc(ctx, (size_t)(p->g->n_inputs + p->n_outputs) + 1, sizeof(*r->bindings));
    if (!r->bindings) goto fail;
    if ((st = bind_steps(r))) goto fail;
    if ((st = wrap_outputs(r))) goto fail;
    if ((st = wrap_for_dynamic(r))) goto fail;
    *out = r;
    return OCT_OK;
fail:
    oct_run_free(r);
    return st;
}

void oct_run_free(oct_run *r)
{
    if (!r) return;
    for (int32_t i = 0; r->bound && i < r->plan->n_steps; i++) {
        oct_bound *b = &r->bound[i];

        if (b->step && b->step->kernel->unbind) b->step->kernel->unbind(b);
        oct_free(r->ctx, b->in);
    }
    for (int32_t i = 0; r->outputs && i < r->plan->n_outputs; i++)
        oct_tensor_unref(r->outputs[i]);
    for (int32_t i = 0; r->env.by_id && i < r->plan->n_ids; i++)
        oct_tensor_unref(r->env.by_id[i]);
    oct_free(r->ctx, r->env.by_id);
    oct_free(r->ctx, r->outputs);
    oct_free(r->ctx, r->bindings);
    oct_free(r->ctx, r->bound);
    oct_free(r->ctx, r->scratch);
    oct_free(r->ctx, r->inputs);
    oct_free(r->ctx, r->block);
    oct_free(r->ctx, r);
}

/* --- inputs --- */

oct_status oct_run_find_input(const oct_run *r, const char *name, int32_t *out)
{
    const oct_graph *g = r->plan->g;

    for (int32_t i = 0; i < g->n_inputs; i++) {
        if (strcmp(g->inputs[i]->name, name) != 0) continue;
        *out = i;
        return OCT_OK;
    }
    return oct_fail(r->ctx, OCT_ERR_ARG, "there is no input '%s'; the first is '%s'", name,
                    g->n_inputs ? g->inputs[0]->name : "");
}

oct_status oct_run_input(oct_run *r, const char *name, void **data, size_t *size)
{
    OCT_ENTER(r->ctx);
    int32_t i = 0, slot;

    OCT_TRY(oct_run_find_input(r, name, &i));
    OCT_TRY(oct_run_unbind_input(r, i));
    slot = oct_run_plain_slot(r->plan, r->plan->g->inputs[i]);
    *data = oct_run_address(r, slot);
    if (size) oct_type_bytes(&r->plan->slots[slot].type, size);
    return OCT_OK;
}

oct_status oct_run_set_input(oct_run *r, const char *name, const oct_tensor *t)
{
    OCT_ENTER(r->ctx);
    char have[OCT_TYPE_TEXT_SIZE], want[OCT_TYPE_TEXT_SIZE];
    const oct_value *v;
    int32_t i = 0;

    OCT_TRY(oct_run_find_input(r, name, &i));
    OCT_TRY(oct_run_unbind_input(r, i));
    v = r->plan->g->inputs[i];
    if (!oct_type_equal(&t->type, &v->type))
        return oct_fail(r->ctx, OCT_ERR_SHAPE, "input '%s' is %s, the plan was made for %s", name,
                        oct_type_text(&t->type, have), oct_type_text(&v->type, want));
    memcpy(oct_run_address(r, oct_run_plain_slot(r->plan, v)), t->data, t->size);
    return OCT_OK;
}

oct_status oct_run_show_inputs(const oct_run *r)
{
    const oct_plan *p = r->plan;

    for (int32_t i = 0; i < p->g->n_inputs; i++) {
        const oct_value *v = p->g->inputs[i];
        const oct_seen seen = {.value = v,
                               .type = &v->type,
                               .layout = OCT_LAYOUT_PLAIN,
                               .data = oct_run_address(r, oct_run_plain_slot(p, v))};

        if (seen.data) OCT_TRY(r->seen_hook(r->seen_user, &seen));
    }
    return OCT_OK;
}

/* --- running --- */

/* The NCHW form of a value, for hooks of the public API. */
static oct_status show_plain(oct_run *r, const oct_seen *seen)
{
    oct_tensor *t = NULL;
    oct_status st = OCT_OK;

    if (seen->layout == OCT_LAYOUT_PLAIN) {
        st = oct_tensor_borrow(r->ctx, seen->type, (void *)(uintptr_t)seen->data, &t);
    } else if (!(st = oct_tensor_make(r->ctx, seen->type, &t))) {
        oct_relayout(seen->type, (oct_seen_layout){seen->layout, seen->pitch}, seen->data,
                     (oct_seen_layout){OCT_LAYOUT_PLAIN, 0}, t->data);
    }
    if (!st) st = r->value_hook(r->value_user, seen->value->name, t);
    oct_tensor_unref(t);
    return st;
}

static oct_status show(oct_run *r, const oct_seen *seen)
{
    if (r->seen_hook) OCT_TRY(r->seen_hook(r->seen_user, seen));
    return r->value_hook ? show_plain(r, seen) : OCT_OK;
}

static oct_status show_step(oct_run *r, const oct_bound *b)
{
    const oct_plan *p = r->plan;

    for (int32_t i = 0; i < b->step->n_out; i++) {
        const int32_t slot = b->step->out[i];
        const oct_slot *s = slot >= 0 ? &p->slots[slot] : NULL;

        if (!s || !p->is_kept[s->value->id] || !b->step->node) continue; /* not reordered copies */
        OCT_TRY(show(r, &(oct_seen){.value = s->value,
                                    .type = &s->type,
                                    .layout = s->layout,
                                    .pitch = oct_slot_pitch(p, slot),
                                    .data = b->out[i]}));
    }
    return OCT_OK;
}

static bool is_cancelled(const oct_run *r)
{
    return atomic_load_explicit(&r->is_cancelled, memory_order_relaxed);
}

static oct_status cancelled(const oct_run *r)
{
    return oct_fail(r->ctx, OCT_ERR_CANCELLED, "the run was cancelled");
}

static oct_status run_dynamic_node(oct_run *r, const oct_node *n)
{
    oct_tensor **slots = oct_calloc(r->ctx, (size_t)(n->n_in + n->n_out) + 1, sizeof(*slots));
    oct_tensor **out = slots ? slots + n->n_in : NULL;
    oct_status st;

    if (!slots) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i]) slots[i] = oct_env_get(&r->env, n->in[i]);
    st = oct_node_eval(n, slots, out, &r->env);
    for (int32_t i = 0; i < n->n_out && !st; i++) {
        if (!n->out[i]) {
            oct_tensor_unref(out[i]);
            continue;
        }
        oct_tensor_unref(r->env.by_id[n->out[i]->id]);
        r->env.by_id[n->out[i]->id] = out[i];
        if (out[i] && r->plan->is_kept[n->out[i]->id])
            st = show(r, &(oct_seen){.value = n->out[i],
                                     .type = &out[i]->type,
                                     .layout = OCT_LAYOUT_PLAIN,
                                     .data = out[i]->data});
    }
    oct_free(r->ctx, slots);
    return st;
}

static oct_status run_dynamic(oct_run *r)
{
    const oct_plan *p = r->plan;

    for (int32_t i = 0; i < p->n_dynamic; i++) {
        const int64_t start = r->step_hook ? oct_time_ns() : 0;

        if (is_cancelled(r)) return cancelled(r);
        OCT_TRY(run_dynamic_node(r, p->dynamic[i]));
        if (r->step_hook) r->step_hook(r->step_user, p->n_steps + i, start, oct_time_ns());
    }
    for (int32_t i = 0; i < p->n_outputs; i++) {
        const oct_value *v = p->g->outputs[i];

        if (v->data || p->computed[v->id] || oct_run_plain_slot(p, v) >= 0) continue;
        oct_tensor_unref(r->outputs[i]);
        r->outputs[i] = oct_tensor_ref(r->env.by_id[v->id]);
    }
    return OCT_OK;
}

static oct_status run_step(oct_run *r, int32_t i)
{
    const oct_bound *b = &r->bound[i];

    if (is_cancelled(r)) return cancelled(r);
    if (r->step_hook) {
        const int64_t start = oct_time_ns();

        OCT_TRY(b->step->kernel->run(b));
        r->step_hook(r->step_user, i, start, oct_time_ns());
    } else {
        OCT_TRY(b->step->kernel->run(b));
    }
    return r->value_hook || r->seen_hook ? show_step(r, b) : OCT_OK;
}

/* A reorder that oneDNN does not compute has nothing of its own in a run. */
static bool has_own_threads(const oct_run *r, int32_t i)
{
    return (r->bound[i].step->kernel->flags & OCT_KERNEL_OPENMP) && r->bound[i].own;
}

/* Runs of steps that share one team of threads. */
typedef struct stretch {
    oct_run *r;
    int32_t at;
    oct_status status;
} stretch;

static void run_stretch(void *arg)
{
    stretch *s = arg;

    while (!s->status && s->at < s->r->plan->n_steps && !has_own_threads(s->r, s->at))
        s->status = run_step(s->r, s->at++);
}

oct_status oct_run_execute(oct_run *r)
{
    OCT_ENTER(r->ctx);
    const oct_plan *p = r->plan;
    stretch s = {r, 0, OCT_OK};

    if (r->unusable) return r->unusable;
    oct_run_copy_inputs(r);
    oct_parallel_set_threads(p->n_threads);
    while (s.at < p->n_steps) {
        if (has_own_threads(r, s.at))
            s.status = run_step(r, s.at++);
        else
            oct_parallel_team(p->n_threads, run_stretch, &s);
        if (s.status) return s.status;
    }
    if (p->n_dynamic) OCT_TRY(run_dynamic(r));
    return oct_run_copy_outputs(r);
}

void oct_run_cancel(oct_run *r, int32_t on)
{
    atomic_store_explicit(&r->is_cancelled, on != 0, memory_order_relaxed);
}

oct_status oct_run_output(oct_run *r, int32_t i, const oct_tensor **out)
{
    OCT_ENTER(r->ctx);

    if (i < 0 || i >= r->plan->n_outputs)
        return oct_fail(r->ctx, OCT_ERR_ARG, "there is no output %d; there are %d", (int)i,
                        (int)r->plan->n_outputs);
    if (!r->outputs[i]) return oct_fail(r->ctx, OCT_ERR_STATE, "nothing was run yet");
    *out = r->outputs[i];
    return OCT_OK;
}

void oct_run_set_value_hook(oct_run *r, oct_value_hook hook, void *user)
{
    r->value_hook = hook;
    r->value_user = user;
}

void oct_run_set_seen_hook(oct_run *r, oct_seen_hook hook, void *user)
{
    r->seen_hook = hook;
    r->seen_user = user;
}

void oct_run_set_step_hook(oct_run *r, oct_step_hook hook, void *user)
{
    r->step_hook = hook;
    r->step_user = user;
}
