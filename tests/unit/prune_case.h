/* SPDX-License-Identifier: Apache-2.0 */
/* Pruned and masked networks side by side: they must compute the same. */
#ifndef OCT_TESTS_PRUNE_CASE_H
#define OCT_TESTS_PRUNE_CASE_H

#include "exec_net.h"

#define PRUNE_TOL 1e-5

/* Outputs of any graph, run by a plan; the caller owns them. */
static inline void prune_run(fixture *f, oct_graph *g, oct_tensor **outs)
{
    fixture of = {f->ctx, g, {0}};

    run_graph(&of, NULL, outs);
}

/* Prunes by cutting and by zeros, and compares all outputs. Returns the share of MACs removed. */
static inline double prune_both(fixture *f, const oct_graph *g, oct_prune_options *o,
                                const char *what)
{
    oct_tensor *cut_outs[64] = {NULL}, *mask_outs[64] = {NULL};
    oct_prune_totals totals = {.struct_size = sizeof(totals)};
    oct_prune_result *r = NULL;
    oct_graph *cut = NULL, *mask = NULL;

    o->mask = 0;
    assert_ok(f->ctx, oct_prune_run(g, o, &cut, &r));
    oct_prune_get_totals(r, &totals);
    oct_prune_result_free(r);
    o->mask = 1;
    assert_ok(f->ctx, oct_prune_run(g, o, &mask, NULL));
    assert_ok(f->ctx, oct_graph_verify(cut));
    prune_run(f, cut, cut_outs);
    prune_run(f, mask, mask_outs);
    for (int32_t i = 0; i < g->n_outputs; i++) {
        assert_same(what, cut_outs[i], mask_outs[i], PRUNE_TOL);
        oct_tensor_unref(cut_outs[i]);
        oct_tensor_unref(mask_outs[i]);
    }
    oct_graph_free(cut);
    oct_graph_free(mask);
    return 1 - (double)totals.macs_left / (double)totals.macs;
}

#endif
