/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a finished plan: every step has a kernel, and every slot is written before it is read. A
 * failure here is a bug of octet, not of the network; it is reported instead of reading memory that
 * no step has written.
 */
#include "exec/kernel.h"

#define REPORT "internal error: %s; please report it with the network"

typedef struct checker {
    const oct_plan *p;
    uint8_t *written; /* by slot: it, or the memory it is a view of */
} checker;

static bool is_there(const checker *c, int32_t slot)
{
    const oct_slot *slots = c->p->slots;
    const int32_t root = oct_slot_root(c->p, slot, NULL);

    return slots[slot].data || slots[root].data || slots[root].is_input || c->written[root];
}

static oct_status fail_step(const oct_plan *p, const oct_step *s, const char *what)
{
    if (s->node) return oct_node_fail(s->last ? s->last : s->node, OCT_ERR_STATE, REPORT, what);
    return oct_fail(p->ctx, OCT_ERR_STATE, "value '%s': " REPORT, p->slots[s->in[0]].value->name,
                    what);
}

static oct_status check_step(checker *c, const oct_step *s)
{
    const oct_plan *p = c->p;

    if (!s->kernel || !s->kernel->run) return fail_step(p, s, "there is no kernel for this step");
    for (int32_t i = 0; i < s->n_in; i++)
        if (s->in[i] >= 0 && !is_there(c, s->in[i]))
            return fail_step(p, s, "it reads a value that no step before it makes");
    for (int32_t i = 0; i < s->n_out; i++)
        if (s->out[i] >= 0) c->written[oct_slot_root(p, s->out[i], NULL)] = 1;
    return OCT_OK;
}

/* A value that leaves the plan is read in NCHW after the last step. */
static oct_status check_left(const checker *c, const oct_value *v)
{
    const oct_plan *p = c->p;
    int32_t slot;

    if (v->graph != p->g || v->data || p->computed[v->id]) return OCT_OK;
    if (v->producer && p->is_dynamic[v->producer->id]) return OCT_OK;
    slot = p->slot_of[OCT_LAYOUT_PLAIN][v->id];
    if (slot >= 0 && is_there(c, slot)) return OCT_OK;
    return oct_fail(p->ctx, OCT_ERR_STATE, "value '%s': " REPORT, v->name,
                    "it is read, but no step makes it");
}

static oct_status check_reads(const checker *c, const oct_node *n)
{
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i]) OCT_TRY(check_left(c, n->in[i]));
    for (int i = 0, k = oct_op_n_attrs(n->op); i < k; i++) {
        if (n->attr[i].kind != OCT_ATTR_GRAPH) continue;
        for (const oct_node *b = n->attr[i].g->first; b; b = b->next)
            OCT_TRY(check_reads(c, b));
        for (int32_t o = 0; o < n->attr[i].g->n_outputs; o++)
            OCT_TRY(check_left(c, n->attr[i].g->outputs[o]));
    }
    return OCT_OK;
}

static oct_status check_all(checker *c)
{
    const oct_plan *p = c->p;

    for (int32_t i = 0; i < p->n_steps; i++)
        OCT_TRY(check_step(c, &p->steps[i]));
    for (int32_t i = 0; i < p->n_dynamic; i++)
        OCT_TRY(check_reads(c, p->dynamic[i]));
    for (int32_t i = 0; i < p->n_outputs; i++)
        OCT_TRY(check_left(c, p->g->outputs[i]));
    return OCT_OK;
}

oct_status oct_plan_check(const oct_plan *p)
{
    checker c = {.p = p, .written = oct_calloc(p->ctx, (size_t)p->n_slots + 1, 1)};
    oct_status st = c.written ? check_all(&c) : OCT_ERR_MEMORY;

    oct_free(p->ctx, c.written);
    return st;
}
