/* SPDX-License-Identifier: Apache-2.0 */
/* Faults visible in the scales: operands of a Concat that vanish under the scale of others. */
#include "quant/diagnose.h"

#include <math.h>

#include <octet/quant.h>

#include "op/channels.h"
#include "op/op.h"
#include "quant/lower/lower.h"

/* Scales only bound a range from above, so less is taken for a fault than of measured ranges. */
#define FEW_STEPS  (OCT_FEW_STEPS / 2.0f)
#define MANY_STEPS (OCT_MANY_STEPS / 2.0f)
#define DEPTH      64 /* nodes looked through */

/* The largest magnitude that a value can have, as far as scales and operators tell; 0: unknown. */
static float top_of(const oct_qmap *m, const oct_value *v, int depth)
{
    const int32_t k = m->of_value[v->id];
    const oct_qpoint *p = k >= 0 ? oct_qmap_root(m, k) : NULL;
    const oct_node *by = v->producer;
    float top = 0, inner = INFINITY;

    if (p && p->n > 0 && p->state != OCT_QSTATE_OFF)
        for (int64_t i = 0; i < p->n; i++) {
            float low, high;

            oct_qspec_range(&p->spec, p->scale[i], p->zero[i], &low, &high);
            top = fmaxf(top, fmaxf(-low, high));
        }
    /* A shared scale says less than the value's producer. */
    if (oct_node_is(by, &oct_op_sigmoid) || oct_node_is(by, &oct_op_softmax) ||
        oct_node_is(by, &oct_op_hard_sigmoid))
        inner = 1;
    else if (by && depth > 0 && oct_node_moves_data(by) && oct_node_n_data(by) == 1)
        inner = top_of(m, by->in[0], depth - 1);
    if (inner > 0 && inner < INFINITY) return top > 0 ? fminf(top, inner) : inner;
    return top;
}

/* The largest scale under which a consumer reads all of a Concat's result, or 0. */
static float scale_of(const oct_qmap *m, const oct_value *v)
{
    float scale = 0;

    for (int32_t k = 0; k < v->n_users; k++)
        for (int32_t i = 0; i < v->users[k]->n_in; i++) {
            const int32_t at = v->users[k]->in[i] == v ? oct_qmap_at(m, v->users[k], i) : -1;
            const oct_qpoint *p = at >= 0 ? oct_qmap_root(m, at) : NULL;

            if (p && p->n == 1 && p->state != OCT_QSTATE_OFF) scale = fmaxf(scale, p->scale[0]);
        }
    return scale;
}

/* *out: what is wrong with it, or NULL. */
static oct_status check_concat(const oct_qmap *m, const oct_node *n, oct_arena *a, const char **out)
{
    const float scale = scale_of(m, n->out[0]);
    int32_t least = -1, most = -1;
    float low = 0, high = 0;

    *out = NULL;
    for (int32_t i = 0; scale > 0 && i < n->n_in; i++) {
        const float top = n->in[i]->data ? 0 : top_of(m, n->in[i], DEPTH);

        if (!(top > 0)) continue;
        if (least < 0 || top < low) low = top, least = i;
        if (most < 0 || top > high) high = top, most = i;
    }
    if (least < 0 || low / scale >= FEW_STEPS || high / scale < MANY_STEPS) return OCT_OK;
    *out = oct_arena_printf(
        a,
        "node '%s' (Concat) joins '%s' (up to %.3g) and '%s' (up to %.3g) under one scale of "
        "%.3g, which leaves %s of the latter: leave this node and what follows it in float",
        n->name, n->in[most]->name, (double)high, n->in[least]->name, (double)low, (double)scale,
        low < scale / 2 ? "nothing but zeros" : "only a few steps");
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_qmap_faults(const oct_qmap *m, oct_arena *a, oct_qfault **faults, int *n)
{
    oct_qfault *list = oct_arena_array(a, (size_t)OCT_MAX(m->g->n_nodes, 1), sizeof(*list));
    int found = 0;

    if (!list) return OCT_ERR_MEMORY;
    for (const oct_node *k = m->g->first; k; k = k->next) {
        if (!oct_node_is(k, &oct_op_concat)) continue;
        list[found].node = k;
        OCT_TRY(check_concat(m, k, a, &list[found].text));
        found += list[found].text != NULL;
    }
    *faults = list;
    *n = found;
    return OCT_OK;
}

/* --- the public list --- */

struct oct_fault_list {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_qfault *faults; /* their nodes are gone */
    int n;
};

oct_status oct_graph_diagnose(const oct_graph *g, oct_fault_list **out)
{
    OCT_ENTER(g->ctx);
    oct_fault_list *f = oct_calloc(g->ctx, 1, sizeof(*f));
    oct_graph *plain = NULL;
    oct_qmap *m = NULL;
    oct_status st;

    if (!f) return OCT_ERR_MEMORY;
    f->ctx = g->ctx;
    f->arena = oct_arena_new(g->ctx);
    st = f->arena ? oct_raise(g, &plain, &m) : OCT_ERR_MEMORY;
    if (!st) st = oct_qmap_faults(m, f->arena, &f->faults, &f->n);
    oct_qmap_free(m);
    oct_graph_free(plain);
    if (st) {
        oct_fault_list_free(f);
        return st;
    }
    *out = f;
    return OCT_OK;
}

void oct_fault_list_free(oct_fault_list *f)
{
    if (!f) return;
    oct_arena_free(f->arena);
    oct_free(f->ctx, f);
}

const char *oct_fault_list_at(const oct_fault_list *f, int32_t i)
{
    return i >= 0 && i < f->n ? f->faults[i].text : NULL;
}
