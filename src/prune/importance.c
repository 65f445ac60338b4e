/* SPDX-License-Identifier: Apache-2.0 */
/* How important units are: a number for each slice of the weights that make them. */
#include <math.h>
#include <string.h>

#include "op/axes.h"
#include "prune/groups.h"

/* Weights along one axis, and their gradient where one was asked for. */
typedef struct slices {
    const float *w, *d;
    oct_lanes lanes;
} slices;

typedef struct importance {
    const char *name, *help;
    oct_cut_role role;
    double (*score)(const slices *s, int64_t i); /* of slice i; NULL: see readers.h */
} importance;

static double score_l1(const slices *s, int64_t i)
{
    double sum = 0;

    for (int64_t o = 0; o < s->lanes.outer; o++)
        for (int64_t k = 0; k < s->lanes.inner; k++)
            sum += fabs((double)s->w[(o * s->lanes.n + i) * s->lanes.inner + k]);
    return sum;
}

static double distance(const slices *s, int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t o = 0; o < s->lanes.outer; o++) {
        const float *a = s->w + (o * s->lanes.n + i) * s->lanes.inner,
                    *b = s->w + (o * s->lanes.n + j) * s->lanes.inner;

        for (int64_t k = 0; k < s->lanes.inner; k++) {
            const double x = (double)a[k] - (double)b[k];

            sum += x * x;
        }
    }
    return sqrt(sum);
}

static double score_l2(const slices *s, int64_t i)
{
    double sum = 0;

    for (int64_t o = 0; o < s->lanes.outer; o++)
        for (int64_t k = 0; k < s->lanes.inner; k++) {
            const double x = (double)s->w[(o * s->lanes.n + i) * s->lanes.inner + k];

            sum += x * x;
        }
    return sqrt(sum);
}

static double score_geometric_median(const slices *s, int64_t i)
{
    double sum = 0;

    for (int64_t j = 0; j < s->lanes.n; j++)
        sum += distance(s, i, j);
    return sum;
}

static double score_bn_scale(const slices *s, int64_t i)
{
    return score_l1(s, i);
}

static double score_taylor(const slices *s, int64_t i)
{
    double sum = 0;

    for (int64_t o = 0; o < s->lanes.outer; o++)
        for (int64_t k = 0; k < s->lanes.inner; k++) {
            const int64_t at = (o * s->lanes.n + i) * s->lanes.inner + k;

            sum += fabs((double)s->w[at] * (double)s->d[at]);
        }
    return sum;
}

static const importance table[] = {
#define OCT_IMPORTANCE(name, role, help)  {#name, help, OCT_CUT_##role, score_##name},
#define OCT_IMPORTANCE_FITTED(name, help) {#name, help, OCT_CUT_IN, NULL},
#include "prune/importance.def"
#undef OCT_IMPORTANCE
#undef OCT_IMPORTANCE_FITTED
};

const char *oct_prune_importance_name(int32_t i)
{
    return i >= 0 && i < (int32_t)OCT_COUNT(table) ? table[i].name : NULL;
}

const char *oct_prune_importance_help(int32_t i)
{
    return i >= 0 && i < (int32_t)OCT_COUNT(table) ? table[i].help : NULL;
}

static const importance *find(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(table); i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

/* --- of all units --- */

typedef struct scoring {
    oct_prune_groups *g;
    const oct_prune_gradients *d;
    double *sum;     /* by unit: of its scores, each as a part of its layer's mean */
    int32_t *n_seen; /* by unit: how many constants gave one */
    double *one;     /* by unit: of the constant at hand */
} scoring;

static oct_status gradient_of(const scoring *s, const oct_cut *k, slices *x)
{
    int64_t n = 0;

    if (!s->d || !s->d->of)
        return oct_fail(s->g->c->ctx, OCT_ERR_ARG, "importance 'taylor' needs gradients");
    OCT_TRY(s->d->of(s->d->user, k->value->name, &x->d, &n));
    if (x->d && n != oct_tensor_len(k->value->data))
        return oct_fail(s->g->c->ctx, OCT_ERR_ARG,
                        "the gradient of '%s' has %lld elements, not %lld", k->value->name,
                        (long long)n, (long long)oct_tensor_len(k->value->data));
    return OCT_OK;
}

/*
 * Layers count the same, whatever the size of their weights: scores are divided by their mean.
 * Changes of the loss are not: they are of one kind, and add up.
 */
static double mean_of(const scoring *s, const importance *row, const oct_cut *k)
{
    double mean = 0;
    int64_t n = 0;

    if (row->score == score_taylor) return 1;
    for (int64_t i = 0; i < k->n; i++)
        if (k->unit[i] >= 0) {
            mean += s->one[k->unit[i]];
            n++;
        }
    return mean > 0 ? mean / (double)n : 1;
}

static oct_status add_cut(scoring *s, const importance *row, const oct_cut *k)
{
    slices x = {.w = k->value->data->data, .lanes = oct_lanes_of(&k->value->type, k->axis)};
    double mean;

    if (row->score == score_taylor) {
        OCT_TRY(gradient_of(s, k, &x));
        if (!x.d) return OCT_OK;
    }
    for (int64_t i = 0; i < k->n; i++)
        if (k->unit[i] >= 0) s->one[k->unit[i]] = 0;
    for (int64_t i = 0; i < k->n; i++) {
        if (k->unit[i] < 0) continue;
        s->one[k->unit[i]] += row->score(&x, i);
    }
    mean = mean_of(s, row, k);
    for (int64_t i = 0; i < k->n; i++) {
        if (k->unit[i] < 0 || s->one[k->unit[i]] < 0) continue;
        s->sum[k->unit[i]] += s->one[k->unit[i]] / mean;
        s->n_seen[k->unit[i]]++;
        s->one[k->unit[i]] = -1;
    }
    return OCT_OK;
}

static oct_status add_all(scoring *s, const importance *row, oct_cut_role role)
{
    const oct_channels *c = s->g->c;

    memset(s->sum, 0, (size_t)c->n_units * sizeof(*s->sum));
    memset(s->n_seen, 0, (size_t)c->n_units * sizeof(*s->n_seen));
    for (int32_t i = 0; i < c->n_cuts; i++) {
        const oct_cut *k = &c->cuts[i];

        if (k->axis < 0 || k->is_again || k->role != role) continue;
        if (k->value->type.dtype != OCT_DTYPE_F32) continue;
        OCT_TRY(add_cut(s, row, k));
        OCT_TRY(oct_progress(c->ctx, "ranking channels", i, c->n_cuts));
    }
    return OCT_OK;
}

/* Of the units that have no score yet. */
static oct_status score_rest(scoring *s, const importance *row, oct_cut_role role)
{
    OCT_TRY(add_all(s, row, role));
    for (int32_t i = 0; i < s->g->c->n_units; i++)
        if (s->g->score[i] < 0 && s->n_seen[i])
            s->g->score[i] = (float)(s->sum[i] / (row->score == score_taylor ? 1 : s->n_seen[i]));
    return OCT_OK;
}

/* Units that a rule says nothing of are ranked by their weights. */
static oct_status score(scoring *s, const importance *row)
{
    const importance *l2 = find("l2");

    for (int32_t i = 0; i < s->g->c->n_units; i++)
        s->g->score[i] = -1;
    OCT_TRY(score_rest(s, row, row->role));
    if (row->score == score_taylor) OCT_TRY(score_rest(s, row, OCT_CUT_OUT));
    return row == l2 ? OCT_OK : score_rest(s, l2, l2->role);
}

oct_status oct_prune_score(oct_prune_groups *g, const char *kind, const oct_prune_gradients *d)
{
    const size_t n = (size_t)g->c->n_units + 1;
    const importance *row = find(kind);
    scoring s = {.g = g, .d = d};

    if (!row)
        return oct_fail(g->c->ctx, OCT_ERR_ARG,
                        "importance '%s' is not known: l1, l2, geometric_median, bn_scale, taylor, "
                        "reconstruction",
                        kind);
    if (!row->score)
        return oct_fail(g->c->ctx, OCT_ERR_ARG,
                        "importance '%s' needs pictures that layers are fitted to (--refit), and "
                        "is not for channels that go while the network is trained",
                        kind);
    s.sum = oct_arena_array(g->c->arena, n, sizeof(*s.sum));
    s.one = oct_arena_array(g->c->arena, n, sizeof(*s.one));
    s.n_seen = oct_arena_array(g->c->arena, n, sizeof(*s.n_seen));
    return s.sum && s.one && s.n_seen ? score(&s, row) : OCT_ERR_MEMORY;
}
