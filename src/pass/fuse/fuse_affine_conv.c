/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-affine-conv: scales and shifts before a layer are absorbed into its weights. */
#include "op/op.h"
#include "pass/find/formula.h"
#include "pass/fuse/affine.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* Does n end a formula like x * Clip(x + 3, 0, 6) / 6? Its constant stays there: without it the
 * activation could no longer be recognised. */
static bool ends_formula(const oct_node *n)
{
    oct_product p;
    int n_variable = 0;

    if (!oct_product_of_node(n, &p)) return false;
    for (int i = 0; i < p.n; i++)
        n_variable += !p.factor[i]->data;
    return n_variable > 1;
}

/* Composes all scales and shifts upstream of the layer; *from gets the value before them. */
static oct_status collect(const oct_node *layer, oct_arena *scratch, oct_affine *all,
                          oct_value **from, int *n)
{
    const int64_t channels = oct_linear_layer_in_channels(layer);
    const bool takes_shifts = oct_linear_layer_takes_shifts(layer);
    oct_arena *step = oct_arena_new(layer->graph->ctx);
    oct_status st = step ? OCT_OK : OCT_ERR_MEMORY;
    oct_value *v = layer->in[0];

    while (!st) {
        oct_node *before = oct_inner_producer(v);
        oct_affine a;

        if (!before || before->graph != layer->graph || ends_formula(before)) break;
        if ((st = oct_affine_of(before, step, &a)) || !a.x || a.channels != channels) break;
        if (!takes_shifts && oct_affine_shifts(&a)) break;
        if (!*from) st = oct_affine_identity(scratch, channels, all);
        if (st) break;
        oct_affine_after(all, &a);
        oct_arena_reset(step);
        *from = v = a.x;
        ++*n;
    }
    oct_arena_free(step);
    return st;
}

static oct_status fuse(oct_node *layer, oct_arena *scratch, int *n_changed)
{
    oct_value *mid = layer->in[0], *from = NULL;
    oct_affine all;
    bool done = false;
    int n = 0;

    OCT_TRY(collect(layer, scratch, &all, &from, &n));
    if (!from) return OCT_OK;
    OCT_TRY(oct_linear_layer_apply_before(layer, &all, &done));
    if (!done) return OCT_OK;
    *n_changed += n;
    OCT_TRY(oct_node_set_input(layer, 0, from));
    return oct_prune(mid);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    oct_arena *scratch = oct_arena_new(g->ctx);
    oct_status st = scratch ? OCT_OK : OCT_ERR_MEMORY;

    for (oct_node *n = g->first; n && !st; n = n->next) {
        if (n->n_in < 2 || !n->in[0] || !oct_is_linear_layer(n)) continue;
        st = fuse(n, scratch, n_changed);
        oct_arena_reset(scratch);
    }
    oct_arena_free(scratch);
    return st;
}

const oct_pass oct_pass_fuse_affine_conv = {
    .name = "fuse-affine-conv",
    .help = "put BatchNormalization and constant Mul, Add... into the layer after them, if exact",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .in = OCT_IN_ALL,
};
