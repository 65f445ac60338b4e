/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hard activations for NPUs that have no others: HardSwish in place of SiLU, HardSigmoid with a
 * slope of 1/6 in place of Sigmoid. The tail is float and keeps its own. The network computes
 * something else then: it has to be trained for it.
 */
#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/correct/correct.h"

static bool is_silu(const oct_node *n)
{
    const oct_attr *alpha = oct_node_is(n, &oct_op_swish) ? oct_node_attr(n, "alpha") : NULL;

    return alpha && alpha->f == 1.0f;
}

static oct_status harden(oct_node *n)
{
    const bool is_swish = is_silu(n);
    oct_value *x = n->in[0];
    oct_node *made = NULL;

    OCT_TRY(oct_node_become(n, is_swish ? &oct_op_hard_swish : &oct_op_hard_sigmoid, &x, 1, &made));
    return is_swish ? OCT_OK : oct_node_set_f32(made, "alpha", 1.0f / 6);
}

static oct_status harden_all(oct_graph *g, const uint8_t *is_tail, int32_t *n_changed)
{
    for (oct_node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (is_tail[n->id] || n->n_in < 1 || n->in[0]->type.dtype != OCT_DTYPE_F32) continue;
        if (!is_silu(n) && !oct_node_is(n, &oct_op_sigmoid)) continue;
        OCT_TRY(harden(n));
        ++*n_changed;
    }
    return oct_graph_infer(g);
}

oct_status oct_harden(oct_graph *g, const char *tail, int32_t *n_changed)
{
    oct_arena *a = oct_arena_new(g->ctx);
    uint8_t *is_tail = a ? oct_arena_alloc(a, (size_t)g->n_node_ids + 1) : NULL;
    const char *text;
    oct_status st = is_tail ? oct_tail_find(g, tail, a, is_tail, &text) : OCT_ERR_MEMORY;

    *n_changed = 0;
    if (!st) st = harden_all(g, is_tail, n_changed);
    oct_arena_free(a);
    return st;
}
