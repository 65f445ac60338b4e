/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What layers lose with channels that they read, and weights that make up for it.
 *
 * A layer gives w x, with a = mean of x x'. If inputs q go, the best weights of the others are
 * w - w_q b^-1 i_q, where i is the inverse of a and b its block of q, and the mean square of what
 * is missed is the trace of w_q b^-1 w_q'. Units of a group go one after the other, the one that
 * costs least first, with i and w updated each time (optimal brain surgeon, for whole channels).
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "prune/readers.h"
#include "stat/least_squares.h"

enum { ROWS = 16 };

/* One layer while units of a group go. */
typedef struct system {
    const oct_reader *l;
    int64_t m;            /* outputs */
    double *w, *i;        /* [m][k], each output in units of its deviation; [k][k] */
    int64_t *q, n_q;      /* inputs of the unit at hand */
    double *b, *wq, *col; /* [n_q][n_q]; [n_q][m]; [k + m][n_q]: columns q of i and of w */
    double *pull;         /* [n_q][k]: b^-1 i_q */
    bool *is_gone;        /* [k] */
} system_of;

static double *new_doubles(oct_arena *arena, int64_t n)
{
    return oct_arena_array(arena, (size_t)n + 1, sizeof(double));
}

/* --- weights --- */

static void load_weights(const oct_reader *l, double *w)
{
    const float *from = l->node->in[1]->data->data, *bias = l->node->in[2]->data->data;

    for (int64_t o = 0; o < l->at.c_out; o++) {
        for (int64_t j = 0; j < l->k - 1; j++)
            w[o * l->k + j] = (double)from[o * l->w_out + j * l->w_in];
        w[o * l->k + l->k - 1] = (double)bias[o];
    }
}

/* Variance of w x. */
static double variance(const oct_reader *l, const double *w)
{
    const double *mean = l->a + (l->k - 1) * l->k;
    double sum = 0, at = 0;

    for (int64_t i = 0; i < l->k; i++) {
        double dot = 0;

        for (int64_t j = 0; j < l->k; j++)
            dot += l->a[i * l->k + j] * w[j];
        sum += dot * w[i];
        at += mean[i] * w[i];
    }
    return OCT_MAX(sum - at * at, 0.0);
}

/* Outputs that hardly vary count by a thousandth of the mean variance. */
static void scale_outputs(const oct_reader *l, double *w, double *var)
{
    double mean = 0;

    for (int64_t o = 0; o < l->at.c_out; o++) {
        var[o] = variance(l, w + o * l->k);
        mean += var[o] / (double)l->at.c_out;
    }
    for (int64_t o = 0; o < l->at.c_out; o++) {
        const double all = (var[o] + 1e-3 * mean) * (double)l->at.c_out;
        const double factor = all > 0 ? 1 / sqrt(all) : 0;

        for (int64_t j = 0; j < l->k; j++)
            w[o * l->k + j] *= factor;
    }
}

/* --- one layer --- */

static int64_t inputs_of(const oct_reader *l, int32_t unit)
{
    int64_t n = 0;

    for (int64_t j = 0; j < l->cut->n; j++)
        n += l->cut->unit[j] == unit ? l->width : 0;
    return n;
}

static bool invert(const oct_reader *l, double *factors, double *i)
{
    const int64_t k = l->k;

    memcpy(factors, l->a, (size_t)(k * k) * sizeof(*factors));
    for (int64_t j = 0; j < k * k; j++)
        i[j] = j % (k + 1) == 0;
    if (!oct_factorize(factors, k)) return false;
    oct_substitute(factors, k, i, k);
    return true;
}

/* Units have n_q inputs each. */
static oct_status start_system(oct_arena *arena, const oct_reader *l, int64_t n_q, system_of *s)
{
    const int64_t k = l->k, m = l->at.c_out;
    double *factors = new_doubles(arena, k * k), *var = new_doubles(arena, m);

    *s = (system_of){.l = l, .m = m};
    s->w = new_doubles(arena, m * k);
    s->i = new_doubles(arena, k * k);
    s->b = new_doubles(arena, n_q * n_q);
    s->wq = new_doubles(arena, n_q * m);
    s->col = new_doubles(arena, (k + m) * n_q);
    s->pull = new_doubles(arena, n_q * k);
    s->q = oct_arena_array(arena, (size_t)n_q, sizeof(*s->q));
    s->is_gone = oct_arena_array(arena, (size_t)k, sizeof(*s->is_gone));
    if (!factors || !var || !s->w || !s->i || !s->b || !s->wq || !s->col || !s->pull || !s->q ||
        !s->is_gone)
        return OCT_ERR_MEMORY;
    load_weights(l, s->w);
    scale_outputs(l, s->w, var);
    if (!invert(l, factors, s->i))
        return oct_fail(l->node->graph->ctx, OCT_ERR_STATE,
                        "what '%s' reads of these pictures is not finite", l->node->name);
    return OCT_OK;
}

/* The inputs of a unit, and the factors of their block of the inverse. */
static bool choose_unit(system_of *s, int32_t unit)
{
    const oct_cut *c = s->l->cut;

    s->n_q = 0;
    for (int64_t j = 0; j < c->n; j++)
        for (int64_t t = 0; c->unit[j] == unit && t < s->l->width; t++)
            s->q[s->n_q++] = j * s->l->width + t;
    for (int64_t x = 0; x < s->n_q; x++)
        for (int64_t y = 0; y < s->n_q; y++)
            s->b[x * s->n_q + y] = s->i[s->q[x] * s->l->k + s->q[y]];
    return s->n_q && oct_factorize(s->b, s->n_q);
}

/* Trace of w_q b^-1 w_q': the squares of f^-1 w_q', where b = f f'. */
static double cost_of(system_of *s, int32_t unit)
{
    double sum = 0;

    if (!choose_unit(s, unit)) return 0;
    for (int64_t x = 0; x < s->n_q; x++)
        for (int64_t o = 0; o < s->m; o++) {
            double v = s->w[o * s->l->k + s->q[x]];

            for (int64_t y = 0; y < x; y++)
                v -= s->b[x * s->n_q + y] * s->wq[y * s->m + o];
            v /= s->b[x * s->n_q + x];
            s->wq[x * s->m + o] = v;
            sum += v * v;
        }
    return sum;
}

static double *row_of(const system_of *s, int64_t r)
{
    return r < s->l->k ? s->i + r * s->l->k : s->w + (r - s->l->k) * s->l->k;
}

static void update_rows(void *arg, int64_t begin, int64_t end)
{
    const system_of *s = arg;
    const int64_t k = s->l->k;

    for (int64_t r = begin; r < end; r++) {
        double *row = row_of(s, r);

        if (r < k && s->is_gone[r]) continue;
        for (int64_t x = 0; x < s->n_q; x++) {
            const double *pull = s->pull + x * k, factor = s->col[r * s->n_q + x];

            for (int64_t j = 0; j < k; j++)
                row[j] -= factor * pull[j];
        }
    }
}

/* The unit goes, and the others make up for it. */
static void eliminate(oct_ctx *ctx, system_of *s, int32_t unit)
{
    const int64_t k = s->l->k;

    if (!choose_unit(s, unit)) return;
    for (int64_t x = 0; x < s->n_q; x++)
        memcpy(s->pull + x * k, s->i + s->q[x] * k, (size_t)k * sizeof(*s->pull));
    oct_substitute(s->b, s->n_q, s->pull, k);
    for (int64_t r = 0; r < k + s->m; r++)
        for (int64_t x = 0; x < s->n_q; x++)
            s->col[r * s->n_q + x] = row_of(s, r)[s->q[x]];
    for (int64_t x = 0; x < s->n_q; x++)
        s->is_gone[s->q[x]] = true;
    oct_parallel_for(oct_ctx_threads(ctx), k + s->m, ROWS, update_rows, s);
}

/* --- one group --- */

typedef struct losing {
    oct_ctx *ctx;
    const oct_prune_group *group;
    system_of *systems;
    int32_t n_systems;
    double *cost; /* of each unit; < 0: gone */
    float *score; /* by unit */
    double gain;  /* what each unit's cost is divided by */
} losing;

static int32_t cheapest(const losing *p)
{
    int32_t best = -1;

    for (int32_t u = 0; u < p->group->n; u++) {
        if (p->cost[u] < 0) continue;
        p->cost[u] = 0;
        for (int32_t i = 0; i < p->n_systems; i++)
            p->cost[u] += cost_of(&p->systems[i], p->group->units[u]);
        if (best < 0 || p->cost[u] < p->cost[best]) best = u;
    }
    return best;
}

/* Scores grow from one that goes to the next; those that are never asked for come last. */
static oct_status lose_units(const losing *p, int32_t n)
{
    double last = 0;

    for (int32_t i = 0; i < n; i++) {
        const int32_t u = cheapest(p);

        OCT_TRY(oct_progress(p->ctx, "ranking channels", i, n));
        last = OCT_MAX(p->cost[u], last * (1 + 1e-6));
        p->score[p->group->units[u]] = (float)(last / p->gain);
        p->cost[u] = -1;
        for (int32_t k = 0; k < p->n_systems; k++)
            eliminate(p->ctx, &p->systems[k], p->group->units[u]);
    }
    (void)cheapest(p);
    for (int32_t u = 0; u < p->group->n; u++)
        if (p->cost[u] >= 0)
            p->score[p->group->units[u]] = (float)((last * (1 + 1e-6) + p->cost[u]) / p->gain);
    return OCT_OK;
}

/* What goes of the network with one unit, as a share, if that is what is to be saved. */
static oct_status gain_of(oct_prune_groups *g, const oct_prune_group *group,
                          const oct_prune_options *o, double *gain)
{
    int64_t macs = 0, params = 0;

    g->keep[group->units[0]] = false;
    OCT_TRY(oct_prune_count(g, &macs, &params));
    g->keep[group->units[0]] = true;
    *gain = 1;
    if (o->flops_target > 0)
        *gain = (double)(g->macs - macs) / (double)OCT_MAX(g->macs, 1);
    else if (o->params_target > 0)
        *gain = (double)(g->params - params) / (double)OCT_MAX(g->params, 1);
    if (!(*gain > 0)) *gain = 1;
    return OCT_OK;
}

static oct_status start_systems(const oct_readers *r, oct_arena *arena, losing *p)
{
    const int32_t unit = p->group->units[0];

    p->systems = oct_arena_array(arena, (size_t)r->n + 1, sizeof(*p->systems));
    p->cost = new_doubles(arena, p->group->n);
    if (!p->systems || !p->cost) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < r->n; i++) {
        int64_t n_q = 0;

        for (int32_t u = 0; u < p->group->n; u++)
            n_q = OCT_MAX(n_q, inputs_of(&r->v[i], p->group->units[u]));
        if (inputs_of(&r->v[i], unit) == 0) continue;
        OCT_TRY(start_system(arena, &r->v[i], n_q, &p->systems[p->n_systems++]));
    }
    return OCT_OK;
}

static oct_status score_group(const oct_readers *r, const oct_prune_options *o,
                              const oct_prune_group *group)
{
    oct_prune_groups *g = r->g;
    losing p = {.ctx = g->c->ctx, .group = group, .score = g->score};
    const int32_t most = (int32_t)floor(o->most * group->n + 1e-9);
    oct_arena *arena = oct_arena_new(p.ctx);
    oct_status st = arena ? gain_of(g, group, o, &p.gain) : OCT_ERR_MEMORY;

    if (!st) st = start_systems(r, arena, &p);
    if (!st) st = lose_units(&p, OCT_MIN(most, group->n - 1));
    oct_arena_free(arena);
    return st;
}

/* --- all groups --- */

static bool is_reader(const oct_readers *r, const oct_cut *k)
{
    for (int32_t i = 0; i < r->n; i++)
        if (r->v[i].cut == k) return true;
    return false;
}

/* Nothing is known of what others than readers lose. */
static void protect(const oct_readers *r, oct_prune_group *group)
{
    const oct_channels *c = r->g->c;
    bool is_read = false;

    for (int32_t i = 0; i < c->n_cuts && !group->why; i++) {
        const oct_cut *k = &c->cuts[i];
        bool reads = false;

        for (int64_t j = 0; j < k->n && k->role == OCT_CUT_IN && k->axis >= 0; j++)
            reads = reads || k->unit[j] == group->units[0];
        is_read = is_read || reads;
        if (reads && !is_reader(r, k)) {
            group->why = "no layer whose weights can be fitted reads it";
            group->at = k->node;
        }
    }
    if (!is_read && !group->why) group->why = "no layer whose weights can be fitted reads it";
}

oct_status oct_readers_score(const oct_readers *r, const oct_prune_options *o)
{
    oct_prune_groups *g = r->g;
    bool is_any = false;

    for (int32_t i = 0; i < g->n; i++) {
        if (!g->groups[i].why) protect(r, &g->groups[i]);
        if (g->groups[i].why) continue;
        OCT_TRY(score_group(r, o, &g->groups[i]));
        is_any = true;
    }
    return is_any
               ? OCT_OK
               : oct_fail(g->c->ctx, OCT_ERR_UNSUPPORTED,
                          "no layer whose weights can be fitted reads channels that may go: choose "
                          "another importance than 'reconstruction'");
}

/* --- weights of what is left --- */

static bool is_kept(const oct_readers *r, const oct_reader *l, int64_t input)
{
    const int32_t u = input < l->k - 1 ? l->cut->unit[input / l->width] : -1;

    return u < 0 || r->g->keep[u];
}

static oct_status own(oct_ctx *ctx, oct_value *v)
{
    oct_tensor *t = NULL;

    OCT_TRY(oct_tensor_copy(ctx, v->data, &t));
    oct_tensor_unref(v->data);
    v->data = t;
    return OCT_OK;
}

/* Columns of b are outputs, rows the inputs that are kept; what goes is zero. */
static oct_status store(oct_ctx *ctx, const oct_reader *l, const int64_t *kept, int64_t n,
                        const double *b)
{
    const int64_t m = l->at.c_out;
    float *w, *bias;

    OCT_TRY(own(ctx, l->node->in[1]));
    OCT_TRY(own(ctx, l->node->in[2]));
    w = l->node->in[1]->data->data;
    bias = l->node->in[2]->data->data;
    memset(w, 0, (size_t)(m * (l->k - 1)) * sizeof(*w));
    for (int64_t o = 0; o < m; o++) {
        for (int64_t x = 0; x < n - 1; x++)
            w[o * l->w_out + kept[x] * l->w_in] = (float)b[x * m + o];
        bias[o] = (float)b[(n - 1) * m + o];
    }
    return OCT_OK;
}

/* a_kk w_k' = a_k w': the constant is always among what is kept, as the last. */
static oct_status solve(oct_ctx *ctx, oct_arena *arena, const oct_reader *l, const int64_t *kept,
                        int64_t n)
{
    const int64_t k = l->k, m = l->at.c_out;
    double *w = new_doubles(arena, m * k), *a = new_doubles(arena, n * n),
           *b = new_doubles(arena, n * m);

    if (!w || !a || !b) return OCT_ERR_MEMORY;
    load_weights(l, w);
    for (int64_t x = 0; x < n; x++) {
        const double *row = l->a + kept[x] * k;

        for (int64_t y = 0; y < n; y++)
            a[x * n + y] = row[kept[y]];
        for (int64_t o = 0; o < m; o++)
            for (int64_t j = 0; j < k; j++)
                b[x * m + o] += row[j] * w[o * k + j];
    }
    if (!oct_factorize(a, n))
        return oct_fail(ctx, OCT_ERR_STATE, "what '%s' reads of these pictures is not finite",
                        l->node->name);
    oct_substitute(a, n, b, m);
    for (int64_t x = 0; x < n * m; x++)
        if (!isfinite(b[x]))
            return oct_fail(ctx, OCT_ERR_STATE, "weights of '%s' are not finite when fitted",
                            l->node->name);
    return store(ctx, l, kept, n, b);
}

static oct_status refit(const oct_readers *r, const oct_reader *l)
{
    oct_ctx *ctx = r->g->c->ctx;
    oct_arena *arena = oct_arena_new(ctx);
    int64_t *kept = arena ? oct_arena_array(arena, (size_t)l->k, sizeof(*kept)) : NULL, n = 0;
    oct_status st = kept ? OCT_OK : OCT_ERR_MEMORY;

    for (int64_t j = 0; j < l->k && !st; j++)
        if (is_kept(r, l, j)) kept[n++] = j;
    if (!st && n < l->k) st = solve(ctx, arena, l, kept, n);
    oct_arena_free(arena);
    return st;
}

oct_status oct_readers_refit(const oct_readers *r)
{
    for (int32_t i = 0; i < r->n; i++) {
        OCT_TRY(oct_progress(r->g->c->ctx, "fitting layers", i, r->n));
        OCT_TRY(refit(r, &r->v[i]));
    }
    return OCT_OK;
}
