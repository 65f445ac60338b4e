/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that fuse-conv-bn and fuse-conv-affine share. */
#include "pass/fuse/fuse_affine.h"

#include "pass/fuse/affine.h"
#include "pass/rewrite.h"

/* Composes the nodes that follow a layer first: a long chain must not rewrite the weights once
 * each. */
static oct_status collect(oct_node *layer, bool (*wanted)(const oct_node *n), oct_arena *scratch,
                          oct_affine *all, oct_node **last, int *n)
{
    oct_arena *step = oct_arena_new(layer->graph->ctx);
    oct_status st = step ? OCT_OK : OCT_ERR_MEMORY;
    oct_value *v = layer->out[0];

    while (!st) {
        oct_node *next = oct_sole_user(v);
        oct_affine a;

        if (!next || !wanted(next)) break;
        if ((st = oct_affine_of(next, step, &a))) break;
        if (a.x != v || a.channels != oct_linear_layer_channels(layer)) break;
        if (!*last) st = oct_affine_identity(scratch, a.channels, all);
        if (st) break;
        oct_affine_then(all, &a);
        oct_arena_reset(step);
        *last = next;
        v = next->out[0];
        ++*n;
    }
    oct_arena_free(step);
    return st;
}

static oct_status fuse(oct_node *layer, bool (*wanted)(const oct_node *n), oct_arena *scratch,
                       int *n_changed)
{
    oct_affine all;
    oct_node *last = NULL;
    bool done = false;
    int n = 0;

    OCT_TRY(collect(layer, wanted, scratch, &all, &last, &n));
    if (!last) return OCT_OK;
    OCT_TRY(oct_linear_layer_apply_after(layer, &all, &done));
    if (!done) return OCT_OK;
    *n_changed += n;
    return oct_node_take_output(layer, last);
}

oct_status oct_fuse_after_layers(oct_graph *g, bool (*wanted)(const oct_node *n), int *n_changed)
{
    oct_arena *scratch = oct_arena_new(g->ctx);
    oct_status st = scratch ? OCT_OK : OCT_ERR_MEMORY;

    for (oct_node *n = g->first; n && !st; n = n->next) {
        const oct_node *user = n->n_out == 1 && n->out[0] ? oct_sole_user(n->out[0]) : NULL;

        if (!user || !wanted(user) || !oct_is_linear_layer(n)) continue;
        st = fuse(n, wanted, scratch, n_changed);
        oct_arena_reset(scratch);
    }
    oct_arena_free(scratch);
    return st;
}
