/* SPDX-License-Identifier: Apache-2.0 */
/* Making a pair: both networks in a form that can be compared, with the images to run them on. */
#include "analyze/side_by_side.h"

#include <string.h>

#include "op/op.h"
#include "pass/integer/qlinear.h"
#include "pass/pass.h"
#include "quant/lower/lower.h"
#include "quant/provenance.h"
#include "quant/quantize.h"

/* --- the quantized network --- */

static bool has_integer_operators(const oct_graph *g)
{
    for (const oct_node *n = g->first; n; n = n->next)
        if (oct_node_is_qlinear(n)) return true;
    return false;
}

/* QLinearConv and similar operators become DQ, the float operator and Q; names are kept. */
static oct_status expand_operators(const oct_graph *g, oct_graph **out)
{
    oct_graph *raised = NULL;
    oct_qmap *m = NULL;
    oct_status st;

    OCT_TRY(oct_raise(g, &raised, &m));
    st = oct_lower(m, NULL, out);
    oct_qmap_free(m);
    oct_graph_free(raised);
    return st;
}

/* Computations of scales and shapes, and copies in between, are removed. */
static oct_status tidy(oct_graph *g)
{
    static const oct_pass *const passes[] = {&oct_pass_fold_shapes, &oct_pass_fold_constants,
                                             &oct_pass_drop_copies, &oct_pass_drop_dead};

    for (int round = 0, n_changed = 1; n_changed && round < 8; round++) {
        n_changed = 0;
        for (size_t i = 0; i < OCT_COUNT(passes); i++)
            OCT_TRY(oct_pass_run(passes[i], g, &n_changed));
    }
    return oct_graph_infer(g);
}

static const oct_value *find_input(const oct_graph *g, const char *name)
{
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (strcmp(g->inputs[i]->name, name) == 0) return g->inputs[i];
    return NULL;
}

/* Binds the quantized network to the float network's shapes. */
static oct_status bind_inputs(oct_pair *p)
{
    for (int32_t i = 0; i < p->quantized->n_inputs; i++) {
        const oct_value *v = p->quantized->inputs[i], *x = find_input(p->exact, v->name);
        char have[OCT_TYPE_TEXT_SIZE], want[OCT_TYPE_TEXT_SIZE];
        oct_status st;

        if (!x)
            return oct_fail(p->ctx, OCT_ERR_ARG,
                            "the quantized network has an input '%s', the float one has not (its "
                            "first is '%s'): it was not made from this file",
                            v->name, p->exact->n_inputs ? p->exact->inputs[0]->name : "");
        if (oct_type_equal(&v->type, &x->type)) continue;
        (void)oct_type_text(&v->type, have); /* as it is now */
        st = oct_graph_set_input_shape(p->quantized, v->name, x->type.rank, x->type.dim);
        if (st == OCT_ERR_MEMORY) return st;
        if (st)
            return oct_fail(p->ctx, OCT_ERR_SHAPE,
                            "input '%s' of the quantized network is %s, that of the float one %s",
                            v->name, have, oct_type_text(&x->type, want));
    }
    return OCT_OK;
}

static oct_status take_quantized(oct_pair *p, const oct_graph *g)
{
    if (has_integer_operators(g))
        OCT_TRY(expand_operators(g, &p->quantized));
    else
        OCT_TRY(oct_graph_clone(g, &p->quantized));
    for (const oct_node *n = p->quantized->first; n; n = n->next)
        OCT_TRY(oct_codes_check(n));
    OCT_TRY(oct_pair_float_io(p->quantized, p->exact));
    OCT_TRY(bind_inputs(p));
    return tidy(p->quantized);
}

/* --- the float network --- */

static oct_status take_exact(oct_pair *p, const oct_graph *g, const oct_graph *quantized,
                             const oct_dataset *images, const oct_analyze_options *o)
{
    const oct_feed_options feeding = {
        .preprocess = o->preprocess, .family = o->family, .limit = o->images};
    oct_graph *simple = NULL;
    oct_status st;

    if (o->images < 1) return oct_fail(p->ctx, OCT_ERR_ARG, "at least one picture is needed");
    OCT_TRY(oct_quantize_normalise(g, &simple));
    st = oct_origin_replay(quantized, simple);
    if (!st) st = oct_feed_new(simple, images, &feeding, &p->exact, &p->feed);
    oct_graph_free(simple);
    /* Shapes that were open until now: what computes them is gone from the quantized one, too. */
    if (!st) st = tidy(p->exact);
    if (!st) p->images = oct_feed_size(p->feed);
    return st;
}

static int count_quantizing(const oct_graph *g)
{
    int k = 0;

    for (const oct_node *n = g->first; n; n = n->next)
        k += oct_node_is_quantizing(n);
    return k;
}

/* The first must be the float network, the second the one made from it. */
static oct_status check_order(const oct_graph *exact, const oct_graph *quantized)
{
    const int first = count_quantizing(exact), second = count_quantizing(quantized);

    if (second > 0 && first < second) return OCT_OK;
    if (second > 0 || first == 0)
        return oct_fail(exact->ctx, OCT_ERR_ARG,
                        first ? "both networks are quantized; the first must be the float one"
                              : "nothing in the second network is quantized: give the float "
                                "network first, then the INT8 one");
    return oct_fail(exact->ctx, OCT_ERR_ARG,
                    "the first network is quantized and the second is not: did you swap them? The "
                    "float network comes first");
}

oct_status oct_pair_new(const oct_graph *exact, const oct_graph *quantized,
                        const oct_dataset *images, const oct_analyze_options *o, oct_pair **out)
{
    oct_pair *p = oct_calloc(exact->ctx, 1, sizeof(*p));
    oct_status st;

    if (!p) return OCT_ERR_MEMORY;
    p->ctx = exact->ctx;
    st = (p->arena = oct_arena_new(p->ctx)) ? OCT_OK : OCT_ERR_MEMORY;
    if (!st) st = check_order(exact, quantized);
    if (!st) st = take_exact(p, exact, quantized, images, o);
    if (!st) st = take_quantized(p, quantized);
    if (!st) st = oct_pair_find_layers(p);
    if (!st) st = oct_pair_split_outputs(p);
    if (st) {
        oct_pair_free(p);
        return st;
    }
    *out = p;
    return OCT_OK;
}

void oct_pair_free(oct_pair *p)
{
    if (!p) return;
    oct_feed_free(p->feed);
    oct_graph_free(p->quantized);
    oct_graph_free(p->exact);
    oct_arena_free(p->arena);
    oct_free(p->ctx, p);
}
