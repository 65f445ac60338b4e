/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions: from a network to a smaller one, and what became of its layers. */
#include <octet/prune.h>

#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "pass/pass.h"
#include "prune/cut.h"
#include "prune/groups.h"
#include "prune/readers.h"
#include "prune/result.h"
#include "prune/time.h"

void oct_prune_options_init_sized(oct_prune_options *o, size_t struct_size)
{
    const oct_prune_options defaults = {
        .struct_size = struct_size, .importance = "l2", .most = .9, .multiple = 8};

    memset(o, 0, struct_size);
    o->struct_size = struct_size;
    oct_sized_give(o, &defaults, sizeof(defaults));
}

/* --- options --- */

oct_status oct_prune_check(oct_ctx *ctx, const oct_prune_options *o)
{
    const double targets[] = {o->flops_target, o->params_target, o->channels, o->time_target};
    int n = o->zeros ? 1 : 0;

    for (size_t i = 0; i < OCT_COUNT(targets); i++) {
        if (targets[i] == 0.0) continue;
        if (!(targets[i] > 0 && targets[i] < 1))
            return oct_fail(ctx, OCT_ERR_ARG, "a target is a share between 0 and 1, not %g",
                            targets[i]);
        n++;
    }
    if (n != 1)
        return oct_fail(
            ctx, OCT_ERR_ARG,
            "%s target: one of flops, params, channels, time and zeros says how much to prune",
            n ? "more than one" : "no");
    if (o->zeros && o->pictures)
        return oct_fail(ctx, OCT_ERR_ARG,
                        "channels that are zero already leave nothing to fit: no pictures (refit) "
                        "with 'zeros'");
    if (!(o->most > 0 && o->most < 1))
        return oct_fail(ctx, OCT_ERR_ARG, "'most' is a share between 0 and 1, not %g", o->most);
    if (o->multiple < 1 || o->multiple > 1024)
        return oct_fail(ctx, OCT_ERR_ARG, "'multiple' is between 1 and 1024, not %d",
                        (int)o->multiple);
    return OCT_OK;
}

oct_status oct_prune_prepare(const oct_graph *g, oct_graph **out)
{
    OCT_TRY(oct_graph_clone(g, out));
    OCT_TRY(oct_pipeline_run(*out, "simplify",
                             "inline-if,fold-shapes,fold-constants,drop-copies,drop-dead", NULL));
    return oct_graph_infer(*out);
}

/* --- the job --- */

/* The first reason stands for all. */
static oct_status check_groups(const oct_prune_groups *g)
{
    for (int32_t i = 0; i < g->n; i++)
        if (!g->groups[i].why) return OCT_OK;
    if (!g->n)
        return oct_fail(g->c->ctx, OCT_ERR_UNSUPPORTED,
                        "no layer has channels to remove: octet prunes layers whose weights are "
                        "float32 constants, before they are quantized");
    return oct_fail(g->c->ctx, OCT_ERR_UNSUPPORTED, "no channel can be removed; of '%s': %s%s%s",
                    g->groups[0].node->name, g->groups[0].why, g->groups[0].at ? " at " : "",
                    g->groups[0].at ? g->groups[0].at->name : "");
}

/* `readers` are measured if there are pictures. */
static oct_status rank(oct_channels *c, const oct_prune_options *o, oct_prune_groups *groups,
                       oct_readers *readers)
{
    const oct_prune_gradients d = {o->gradient, o->gradient_user};

    OCT_TRY(oct_prune_groups_find(c, groups));
    OCT_TRY(oct_prune_groups_protect(groups, o));
    OCT_TRY(check_groups(groups));
    if (o->pictures) OCT_TRY(oct_readers_measure(groups, o, readers));
    if (o->pictures && strcmp(o->importance, "reconstruction") == 0)
        return oct_readers_score(readers, o);
    return oct_prune_score(groups, o->importance, &d);
}

static oct_status choose(const oct_graph *g, const oct_prune_options *o, oct_prune_groups *groups,
                         oct_prune_totals *totals)
{
    if (o->zeros) return oct_prune_choose_zeros(groups);
    if (o->time_target > 0) return oct_prune_choose_time(g, o, groups, totals);
    return oct_prune_choose(groups, o);
}

static oct_status work(oct_graph *g, const oct_prune_options *o, oct_prune_result *r)
{
    oct_channels *c = NULL;
    oct_prune_groups groups;
    oct_readers readers = {0};
    oct_status st = o->pictures ? oct_readers_prepare(g) : OCT_OK;

    if (!st) st = oct_channels_find(g, &c);
    if (!st) st = rank(c, o, &groups, &readers);
    if (!st) st = choose(g, o, &groups, oct_prune_result_totals(r));
    if (!st) st = oct_prune_result_before(r, &groups);
    if (!st) st = oct_readers_refit(&readers);
    oct_readers_free(&readers);
    if (!st) st = o->mask ? oct_channels_mask(c, groups.keep) : oct_channels_cut(c, groups.keep);
    if (!st) oct_prune_result_after(r, g);
    oct_channels_free(c);
    return st;
}

oct_status oct_prune_run(const oct_graph *g, const oct_prune_options *options, oct_graph **out,
                         oct_prune_result **result)
{
    OCT_ENTER(g->ctx);
    oct_prune_options o;
    oct_prune_result *r = NULL;
    oct_graph *copy = NULL;
    oct_status st;

    oct_prune_options_init(&o);
    if (options) memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    *out = NULL;
    if (result) *result = NULL;
    OCT_TRY(oct_prune_check(g->ctx, &o));
    st = oct_prune_prepare(g, &copy);
    if (!st) st = oct_prune_result_new(g->ctx, &r);
    if (!st) st = work(copy, &o, r);
    if (st) {
        oct_graph_free(copy);
    } else {
        *out = copy;
        if (result) *result = r;
    }
    if (st || !result) oct_prune_result_free(r);
    return st;
}

/* --- of two files --- */

static oct_status compare(oct_graph *before, const oct_graph *after, oct_prune_result *r)
{
    oct_channels *c = NULL;
    oct_prune_groups groups;
    oct_status st = oct_channels_find(before, &c);

    if (!st) st = oct_prune_groups_find(c, &groups);
    if (!st) st = oct_prune_result_before(r, &groups);
    if (!st) st = oct_prune_result_move(r, after);
    if (!st) oct_prune_result_after(r, after);
    oct_channels_free(c);
    return st;
}

oct_status oct_prune_compare(const oct_graph *before, const oct_graph *after,
                             oct_prune_result **result)
{
    OCT_ENTER(before->ctx);
    oct_graph *a = NULL, *b = NULL;
    oct_status st = oct_prune_prepare(before, &a);

    *result = NULL;
    if (!st) st = oct_prune_prepare(after, &b);
    if (!st) st = oct_prune_result_new(before->ctx, result);
    if (!st) st = compare(a, b, *result);
    if (st) {
        oct_prune_result_free(*result);
        *result = NULL;
    }
    oct_graph_free(b);
    oct_graph_free(a);
    return st;
}
