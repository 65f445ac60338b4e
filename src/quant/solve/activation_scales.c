/* SPDX-License-Identifier: Apache-2.0 */
/* Scales and zero points of activations from what calibration saw. */
#include "quant/solve/solve.h"

#include <math.h>

#include "op/channels.h"
#include "op/op.h"
#include "pass/find/dfl.h"
#include "quant/activation_after.h"

/* SiLU's lowest value is -0.27846. Many values lie there: a scale that does not divide it shifts
 * the whole negative lobe by up to half a step. */
#define SILU_DEPTH 0.27846f

/* Moves the grid so that SiLU's lowest value is on it, if the step is coarse against it. Powers of
 * two cannot be moved: those above that value are halved. The next one has a code beside it then,
 * and larger ones, which round the whole lobe and what is small above it to 0, keep twice as much.
 */
static bool snap_to_silu(const oct_qspec *s, float *scale, int32_t *zero)
{
    float snapped;

    if (s->is_pow2 && s->is_symmetric && *scale > SILU_DEPTH) {
        *scale /= 2;
        return true;
    }
    if (s->is_symmetric || s->is_pow2 || s->is_signed || *scale <= SILU_DEPTH / 4) return false;
    snapped = SILU_DEPTH / ceilf(SILU_DEPTH / *scale);
    if (*scale > SILU_DEPTH) snapped = SILU_DEPTH;
    if (snapped < *scale / 2) return false;
    *scale = snapped;
    *zero = (int32_t)lrintf(SILU_DEPTH / snapped);
    return true;
}

static oct_status nothing_seen(const oct_qmap *m, const oct_value *v)
{
    return oct_fail(m->ctx, OCT_ERR_STATE, "nothing was seen of value '%s'", v->name);
}

/* All that was seen of values that share one scale: the point's own (w), and those it dominates. */
static oct_status gather(const oct_qmap *m, int32_t root, const oct_calibration *c,
                         const oct_watch *w, oct_observer **out)
{
    oct_observer *all = NULL;
    oct_status st = oct_observer_new(m->ctx, &w->range->options, w->channels, &all);

    if (!st) st = oct_observer_merge(all, w->range);
    for (int32_t i = 0; i < m->n_points && !st; i++) {
        const oct_qpoint *p = &m->points[i];
        const oct_watch *other;

        if (i == root || !oct_qpoint_is_observed(p) || oct_qmap_root(m, i) != &m->points[root])
            continue;
        other = oct_calibration_of(c, p->value);
        if (other && other != w && other->range) st = oct_observer_merge(all, other->range);
    }
    if (st) {
        oct_observer_free(all);
        return st;
    }
    *out = all;
    return OCT_OK;
}

/* Symmetric and unsigned: values that are never negative use all codes; others become signed. */
static void choose_sign(oct_qspec *s, const float *low, int64_t n)
{
    bool negative = false;

    if (!s->is_symmetric || s->is_signed) return;
    for (int64_t i = 0; i < n; i++)
        negative |= low[i] < 0;
    s->is_signed = s->is_symmetric = negative; /* never negative: asymmetric from zero up */
}

/* The distributions of a DFL head. Few places of few pictures are objects: that a probability can
 * be 1 is known, not seen. */
static bool is_distribution(const oct_value *v)
{
    for (int32_t i = 0; i < v->n_users; i++)
        if (oct_dfl_is_sum(v->users[i])) return true;
    return false;
}

static oct_status solve_point(oct_qmap *m, int32_t i, const oct_observer *seen,
                              const double *importance, bool is_silu, oct_arena *a)
{
    const int64_t n = oct_observer_n_ranges(seen);
    oct_qpoint *p = &m->points[i];
    float *low = oct_arena_array(a, (size_t)n + 1, sizeof(float));
    float *high = oct_arena_array(a, (size_t)n + 1, sizeof(float));
    float *scale = oct_arena_array(a, (size_t)n + 1, sizeof(float));
    int32_t *zero = oct_arena_array(a, (size_t)n + 1, sizeof(int32_t));
    const bool is_known = is_distribution(p->value);
    bool is_snapped = false;
    const char *by, *after;

    if (!low || !high || !scale || !zero) return OCT_ERR_MEMORY;
    OCT_TRY(oct_observer_solve(seen, &p->spec, low, high));
    for (int64_t k = 0; k < n && is_known; k++) {
        low[k] = 0;
        high[k] = 1;
    }
    choose_sign(&p->spec, low, n);
    for (int64_t k = 0; k < n; k++)
        oct_qspec_solve(&p->spec, low[k], high[k], &scale[k], &zero[k]);
    oct_solve_channel_scales(p, importance, scale, zero, n);
    for (int64_t k = 0; k < n && is_silu; k++)
        is_snapped |= snap_to_silu(&p->spec, &scale[k], &zero[k]);
    p->observer = seen->row->name;
    p->has_seen = seen->seen_low <= seen->seen_high;
    p->seen_low = seen->seen_low;
    p->seen_high = seen->seen_high;
    after = seen->options.follow ? oct_activation_after(p->value).name : "";
    if (seen->options.follow && !*after) after = "Sigmoid"; /* score_points.c */
    by = oct_arena_printf(a, "%s%s%s%s%s", is_known ? "probabilities" : seen->row->name,
                          *after ? " after " : "", after,
                          n > 1 && p->channel_share < 1.0f ? ", balanced channels" : "",
                          is_snapped ? ", SiLU grid" : "");
    if (!by) return OCT_ERR_MEMORY;
    return oct_qpoint_set(m, i, scale, zero, n, by);
}

/* The activation after a value, clamped to the range of the quantizer after it. */
typedef struct clamped_act {
    float (*follow)(const void *user, float x);
    const void *user;
    float low, high;
} clamped_act;

static float apply_clamped(const void *user, float x)
{
    const clamped_act *e = user;
    const float y = e->follow(e->user, x);

    return OCT_MIN(OCT_MAX(y, e->low), e->high);
}

/* The quantizer after the activation clips to [low, high]. Clamp to that here too, so that the
 * range search does not pay for values that are clipped later. */
static void clamp_to_result(const oct_qmap *m, const oct_value *v, oct_observer *seen,
                            clamped_act *e)
{
    const oct_value *result = oct_activation_after(v).result;
    const int32_t k = m->of_value[result->id];
    const oct_qpoint *p = k >= 0 ? oct_qmap_root(m, k) : NULL;

    if (!p || p->state != OCT_QSTATE_ACTIVE || p->n != 1) return;
    *e = (clamped_act){.follow = seen->options.follow, .user = seen->options.follow_user};
    oct_qspec_range(&p->spec, p->scale[0], p->zero[0], &e->low, &e->high);
    seen->options.follow = apply_clamped;
    seen->options.follow_user = e;
}

static oct_status solve_seen(oct_qmap *m, int32_t i, const oct_calibration *c,
                             const double *importance, bool follows, oct_arena *a)
{
    const oct_qpoint *p = &m->points[i];
    const oct_watch *w = oct_calibration_of(c, p->value);
    oct_observer *seen = NULL;
    oct_status st;
    clamped_act e;

    if (p->role != OCT_QROLE_ACT || p->state != OCT_QSTATE_ACTIVE || p->value->data) return OCT_OK;
    if (!w || !w->range) return nothing_seen(m, p->value);
    if ((w->range->options.follow != NULL) != follows) return OCT_OK;
    st = gather(m, i, c, w, &seen);
    if (!st && follows) clamp_to_result(m, p->value, seen, &e);
    if (!st) st = solve_point(m, i, seen, importance, oct_is_silu(p->value), a);
    oct_observer_free(seen);
    oct_arena_reset(a);
    return st;
}

oct_status oct_solve_activations(oct_qmap *m, const oct_calibration *c)
{
    oct_arena *a = oct_arena_new(m->ctx), *kept = oct_arena_new(m->ctx);
    oct_status st = a && kept ? OCT_OK : OCT_ERR_MEMORY;
    double **importance = NULL;

    if (!st) st = oct_channel_importance(m, kept, &importance);
    /* results of activations first: the range of a pre-activation depends on them */
    for (int follows = 0; follows < 2; follows++)
        for (int32_t i = 0; i < m->n_points && !st; i++)
            st = solve_seen(m, i, c, importance[i], follows, a);
    oct_arena_free(kept);
    oct_arena_free(a);
    return st;
}

/* --- one point, by another kind of range --- */

static oct_status solve_by_kind(oct_qmap *m, int32_t i, oct_observer *seen, const char *kind,
                                double percentile, oct_arena *a)
{
    const bool is_silu = oct_is_silu(m->points[i].value);
    double **importance;

    if (kind) {
        seen->row = oct_observer_find(kind);
        seen->options.percentile = percentile;
    }
    OCT_TRY(oct_channel_importance(m, a, &importance));
    return solve_point(m, i, seen, importance[i], is_silu, a);
}

oct_status oct_solve_point_again(oct_qmap *m, int32_t point, const oct_calibration *c,
                                 const char *kind, double percentile, bool *done)
{
    const oct_qpoint *p = &m->points[point];
    const oct_watch *w = oct_calibration_of(c, p->value);
    oct_observer *seen = NULL;
    oct_arena *a;
    oct_status st;

    *done = false;
    if (p->role != OCT_QROLE_ACT || p->state != OCT_QSTATE_ACTIVE || p->node || p->value->data)
        return OCT_OK;
    if (!w || !w->range || w->range->options.follow) return OCT_OK;
    if (kind && (!w->range->row->solve_density || w->range->row == oct_observer_find(kind)))
        return OCT_OK;
    if (!(a = oct_arena_new(m->ctx))) return OCT_ERR_MEMORY;
    st = gather(m, point, c, w, &seen);
    if (!st) st = solve_by_kind(m, point, seen, kind, percentile, a);
    oct_observer_free(seen);
    oct_arena_free(a);
    *done = !st;
    return st;
}

/* --- one consumer's point, without the values that share its scale elsewhere --- */

typedef struct walk {
    const oct_calibration *c;
    const oct_value **todo;
    int32_t n;
    uint8_t *is_known; /* by value id */
    oct_observer *all; /* NULL: nothing yet */
    bool is_silu;      /* so far */
} walk;

static void visit(walk *w, const oct_value *v)
{
    if (v->data || w->is_known[v->id]) return;
    w->is_known[v->id] = 1;
    w->todo[w->n++] = v;
}

/* Adds what was seen of a value, or visits the values it is moved from. */
static oct_status gather_upstream(const oct_qmap *m, walk *w, const oct_value *v)
{
    const oct_watch *seen = oct_calibration_of(w->c, v);

    if (seen && seen->range) {
        if (!w->all)
            OCT_TRY(oct_observer_new(m->ctx, &seen->range->options, seen->channels, &w->all));
        w->is_silu = w->is_silu && oct_is_silu(v);
        return oct_observer_merge(w->all, seen->range);
    }
    if (!v->producer || !oct_node_moves_data(v->producer)) return nothing_seen(m, v);
    for (int32_t i = 0; i < oct_node_n_data(v->producer); i++)
        visit(w, v->producer->in[i]);
    return OCT_OK;
}

static oct_status solve_moved(oct_qmap *m, int32_t point, walk *w, oct_arena *a)
{
    const size_t n_ids = (size_t)m->g->root->n_value_ids + 1;

    w->todo = oct_arena_array(a, n_ids, sizeof(*w->todo));
    w->is_known = oct_arena_alloc(a, n_ids);
    if (!w->todo || !w->is_known) return OCT_ERR_MEMORY;
    visit(w, m->points[point].value);
    while (w->n > 0)
        OCT_TRY(gather_upstream(m, w, w->todo[--w->n]));
    if (!w->all) return nothing_seen(m, m->points[point].value);
    return solve_point(m, point, w->all, NULL, w->is_silu, a);
}

oct_status oct_solve_consumer_point(oct_qmap *m, int32_t point, const oct_calibration *c)
{
    oct_arena *a = oct_arena_new(m->ctx);
    walk w = {.c = c, .is_silu = true};
    const oct_status st = a ? solve_moved(m, point, &w, a) : OCT_ERR_MEMORY;

    oct_observer_free(w.all);
    oct_arena_free(a);
    return st;
}
