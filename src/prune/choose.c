/* SPDX-License-Identifier: Apache-2.0 */
/* Which units are kept: by a level for all layers, found by bisection for a target. */
#include <math.h>
#include <stdlib.h>

#include "op/channels.h"
#include "prune/groups.h"

/* --- what is left --- */

/* Of a constant's axis. */
static double share_of(const oct_cut *k, const bool *keep)
{
    int64_t n = 0;

    for (int64_t i = 0; i < k->n; i++)
        n += k->unit[i] < 0 || keep[k->unit[i]];
    return (double)n / (double)OCT_MAX(k->n, 1);
}

/* Of a value's elements. */
static double share_of_value(const oct_prune_groups *g, const oct_value *v)
{
    const oct_tensor *t = v ? g->c->labels[v->id] : NULL;
    const int64_t len = t ? oct_tensor_len(t) : 0;
    int64_t n = 0;

    for (int64_t i = 0; i < len; i++) {
        const int32_t u = oct_unit_root(g->c, ((const int32_t *)t->data)[i]);

        n += u < 0 || g->keep[u];
    }
    return len > 1 ? (double)n / (double)len : 1;
}

static oct_status count(const oct_prune_groups *g, double *by_node, double *by_value, int64_t *macs,
                        int64_t *params)
{
    const oct_channels *c = g->c;
    double sum_macs = 0, sum_params = 0;

    for (int32_t i = 0; i < c->n_cuts; i++) {
        const oct_cut *k = &c->cuts[i];
        const double share = k->axis < 0 ? 1 : share_of(k, g->keep);

        if (k->role <= OCT_CUT_IN) {
            double *d = &by_node[k->node->id];
            *d = (*d > 0 ? *d : 1) * share;
        }
        if (!k->is_again) {
            double *d = &by_value[k->value->id];
            *d = (*d > 0 ? *d : 1) * share;
        }
    }
    for (const oct_node *n = c->g->first; n; n = n->next) {
        const int64_t full = oct_node_macs(n);

        if (full <= 0) continue;
        sum_macs +=
            (double)full * (by_node[n->id] > 0 ? by_node[n->id] : share_of_value(g, n->in[0]));
    }
    for (int32_t id = 0; id < c->n_labels; id++) {
        const oct_value *v = c->g->values[id];

        if (!v || !v->data || !oct_dtype_is_float(v->data->type.dtype)) continue;
        sum_params += (double)oct_tensor_len(v->data) * (by_value[id] > 0 ? by_value[id] : 1);
    }
    *macs = llround(sum_macs);
    *params = llround(sum_params);
    return OCT_OK;
}

oct_status oct_prune_count(const oct_prune_groups *g, int64_t *macs, int64_t *params)
{
    oct_ctx *ctx = g->c->ctx;
    double *by_node = oct_calloc(ctx, (size_t)g->c->g->root->n_node_ids + 1, sizeof(double));
    double *by_value = oct_calloc(ctx, (size_t)g->c->n_labels + 1, sizeof(double));
    const oct_status st =
        by_node && by_value ? count(g, by_node, by_value, macs, params) : OCT_ERR_MEMORY;

    oct_free(ctx, by_node);
    oct_free(ctx, by_value);
    return st;
}

/* --- a level --- */

typedef struct ranked {
    float score;
    int32_t unit, group;
} ranked;

/* Less important first; of equals the later. */
static int by_score(const void *pa, const void *pb)
{
    const ranked *a = pa, *b = pb;

    if (a->score < b->score) return -1;
    if (a->score > b->score) return 1;
    return (a->unit < b->unit) - (a->unit > b->unit);
}

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* Units that a group keeps if it is asked for `want`: whole multiples of channels, at least so many
 * as `most` leaves. */
static int32_t allowed(const oct_prune_group *g, const oct_prune_options *o, double want)
{
    const int64_t multiple = OCT_MAX(o->multiple, 1), step = multiple / gcd(multiple, g->width);
    const double least = ceil((1 - o->most) * g->n - 1e-9);
    int64_t n = (int64_t)ceil(OCT_MAX(want, least) - 1e-9);

    n = oct_ceil_div(OCT_MAX(n, 1), step) * step;
    return (int32_t)OCT_MIN(n, g->n);
}

/* The most important n of each group, where r has all units from the least important one. */
static void keep_best(oct_prune_groups *g, const ranked *r, int32_t n)
{
    for (int32_t i = 0; i < g->n; i++)
        if (!g->groups[i].why)
            for (int32_t k = 0; k < g->groups[i].n; k++)
                g->keep[g->groups[i].units[k]] = false;
    for (int32_t i = n; i-- > 0;) {
        oct_prune_group *group = &g->groups[r[i].group];

        if (group->n_kept < 1) continue;
        g->keep[r[i].unit] = true;
        group->n_kept--;
    }
    for (int32_t i = 0; i < g->n; i++) {
        g->groups[i].n_kept = 0;
        for (int32_t k = 0; k < g->groups[i].n; k++)
            g->groups[i].n_kept += g->keep[g->groups[i].units[k]];
    }
}

/* A part of a group (one half of a Split) may have lost all of its channels. */
void oct_prune_keep_one_each(oct_prune_groups *g)
{
    for (int32_t id = 0; id < g->c->n_labels; id++) {
        const oct_tensor *t = g->c->labels[id];
        const int64_t len = t ? oct_tensor_len(t) : 0;
        int32_t best = -1;
        bool has_one = len == 0;

        for (int64_t i = 0; i < len && !has_one; i++) {
            const int32_t u = oct_unit_root(g->c, ((const int32_t *)t->data)[i]);

            has_one = u < 0 || g->keep[u];
            if (!has_one && (best < 0 || g->score[u] > g->score[best])) best = u;
        }
        if (!has_one && best >= 0) g->keep[best] = true;
    }
}

/* How many of each group a common threshold would keep. */
static void share_globally(oct_prune_groups *g, const oct_prune_options *o, const ranked *r,
                           int32_t n, double level)
{
    int64_t total = 0, gone = 0;

    for (int32_t i = 0; i < n; i++)
        total += g->groups[r[i].group].width;
    for (int32_t i = 0; i < n && (double)gone < level * (double)total; i++) {
        oct_prune_group *group = &g->groups[r[i].group];

        if (group->n_kept <= allowed(group, o, 0)) continue;
        group->n_kept--;
        gone += group->width;
    }
}

static int32_t rank(const oct_prune_groups *g, ranked *r)
{
    int32_t n = 0;

    for (int32_t i = 0; i < g->n; i++)
        for (int32_t k = 0; k < g->groups[i].n && !g->groups[i].why; k++) {
            const int32_t u = g->groups[i].units[k];

            r[n++] = (ranked){g->score[u], u, i};
        }
    qsort(r, (size_t)n, sizeof(*r), by_score);
    return n;
}

/* Keeps n_kept of each group. */
static void keep_counts(oct_prune_groups *g, const ranked *r, int32_t n)
{
    keep_best(g, r, n);
    oct_prune_keep_one_each(g);
}

static void choose_level(oct_prune_groups *g, const oct_prune_options *o, const ranked *r,
                         int32_t n, double level)
{
    for (int32_t i = 0; i < g->n; i++)
        g->groups[i].n_kept = g->groups[i].n;
    if (o->global) share_globally(g, o, r, n, level);
    for (int32_t i = 0; i < g->n; i++) {
        oct_prune_group *group = &g->groups[i];

        if (!group->why)
            group->n_kept = allowed(group, o, o->global ? group->n_kept : (1 - level) * group->n);
    }
    keep_counts(g, r, n);
}

oct_status oct_prune_choose_level(oct_prune_groups *g, const oct_prune_options *o, double level)
{
    ranked *r = oct_calloc(g->c->ctx, (size_t)g->c->n_units + 1, sizeof(*r));

    if (!r) return OCT_ERR_MEMORY;
    choose_level(g, o, r, rank(g, r), level);
    oct_free(g->c->ctx, r);
    return OCT_OK;
}

/* --- targets --- */

typedef struct targeting {
    oct_prune_groups *g;
    const oct_prune_options *o;
    ranked *r; /* all units, the least important first */
    int32_t n;
    double target;
} targeting;

/* The share that goes with g->keep. */
static oct_status removed(const targeting *t, double *share)
{
    const oct_prune_groups *g = t->g;
    int64_t macs, params;

    OCT_TRY(oct_prune_count(g, &macs, &params));
    *share = t->o->flops_target > 0 ? 1 - (double)macs / (double)OCT_MAX(g->macs, 1)
                                    : 1 - (double)params / (double)OCT_MAX(g->params, 1);
    return OCT_OK;
}

static oct_status removed_at(const targeting *t, double level, double *share)
{
    choose_level(t->g, t->o, t->r, t->n, level);
    return removed(t, share);
}

/* A group that may keep more, and how important is what it would. */
typedef struct more {
    int32_t group, n_kept;
    double score;
} more;

static int by_importance(const void *pa, const void *pb)
{
    const more *a = pa, *b = pb;

    if (a->score > b->score) return -1;
    if (a->score < b->score) return 1;
    return (a->group > b->group) - (a->group < b->group);
}

/* Where groups keep more now than `kept` says; the mean importance of the units between. */
static int32_t find_more(const targeting *t, const int32_t *kept, more *out)
{
    const oct_prune_groups *g = t->g;
    int32_t n = 0;

    for (int32_t i = 0; i < g->n; i++) {
        const oct_prune_group *group = &g->groups[i];
        int32_t place = group->n;
        double sum = 0;

        if (group->why || group->n_kept <= kept[i]) continue;
        for (int32_t k = 0; k < t->n; k++) {
            if (t->r[k].group != i) continue;
            place--; /* so many of the group are more important */
            if (place >= kept[i] && place < group->n_kept) sum += (double)t->r[k].score;
        }
        out[n++] = (more){i, group->n_kept, sum / (group->n_kept - kept[i])};
    }
    qsort(out, (size_t)n, sizeof(*out), by_importance);
    return n;
}

/*
 * Groups of the same size lose a multiple of channels at the same level, so that more goes than was
 * asked for. Between the last level that is too low and the first that suffices, group after group
 * keeps its channels as long as the target is met, the most important first.
 */
static oct_status refine(const targeting *t, double low, double high, int32_t *kept, more *m)
{
    oct_prune_groups *g = t->g;
    double share;
    int32_t n;

    choose_level(g, t->o, t->r, t->n, high);
    for (int32_t i = 0; i < g->n; i++)
        kept[i] = g->groups[i].n_kept;
    choose_level(g, t->o, t->r, t->n, low);
    n = find_more(t, kept, m);
    for (int32_t i = 0; i <= n; i++) {
        const int32_t before = i < n ? kept[m[i].group] : 0;

        if (i < n) kept[m[i].group] = m[i].n_kept;
        for (int32_t k = 0; k < g->n; k++)
            g->groups[k].n_kept = kept[k];
        keep_counts(g, t->r, t->n);
        if (i == n) break; /* with what is decided */
        OCT_TRY(removed(t, &share));
        if (share < t->target) kept[m[i].group] = before;
    }
    return OCT_OK;
}

static oct_status meet(const targeting *t, int32_t *kept, more *m)
{
    double low = 0, high = 1, share;

    OCT_TRY(removed_at(t, high, &share));
    if (share < t->target)
        return oct_fail(t->g->c->ctx, OCT_ERR_ARG,
                        "at most %.1f %% of the %s can be removed, not %.1f %%: the other channels "
                        "have to stay, or are what 'most' and 'multiple' leave",
                        100 * share, t->o->flops_target > 0 ? "multiply-adds" : "weights",
                        100 * t->target);
    for (int i = 0; i < 24; i++) {
        const double middle = (low + high) / 2;

        OCT_TRY(removed_at(t, middle, &share));
        *(share < t->target ? &low : &high) = middle;
    }
    return refine(t, low, high, kept, m);
}

oct_status oct_prune_choose(oct_prune_groups *g, const oct_prune_options *o)
{
    oct_ctx *ctx = g->c->ctx;
    targeting t = {g, o, NULL, 0, o->flops_target > 0 ? o->flops_target : o->params_target};
    int32_t *kept;
    more *m;
    oct_status st = OCT_ERR_MEMORY;

    if (o->channels > 0) return oct_prune_choose_level(g, o, o->channels);
    t.r = oct_calloc(ctx, (size_t)g->c->n_units + 1, sizeof(*t.r));
    kept = oct_calloc(ctx, (size_t)g->n + 1, sizeof(*kept));
    m = oct_calloc(ctx, (size_t)g->n + 1, sizeof(*m));
    if (t.r && kept && m) {
        t.n = rank(g, t.r);
        st = meet(&t, kept, m);
    }
    oct_free(ctx, t.r);
    oct_free(ctx, kept);
    oct_free(ctx, m);
    return st;
}
