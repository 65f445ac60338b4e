/* SPDX-License-Identifier: Apache-2.0 */
/* What rounding costs in front of activations and depthwise convolutions, channel by channel. */
#include "quant/decide.h"

#include <math.h>

#include "graph/channels.h"
#include "op/op.h"
#include "pass/rewrite.h"
#include "quant/behind.h"

/*
 * Noise over variance that is let through. Depthwise convolutions cost little in float, and have no
 * other channels among which noise averages out. Twice as much ruined one network in five, half as
 * much gained nothing.
 */
#define DENSE_LIMIT     4e-3
#define DEPTHWISE_LIMIT 2e-3

#define FEW_CHANNELS 4

#define SMALL 1e-4 /* channels with less than this part of the mean variance hardly count */
#define DEAD  1e-6 /* channels with less than this part of it are constants */

/* --- ranges --- */

static float follow_user(const void *user, float x)
{
    return (float)oct_behind_apply(user, (double)x);
}

oct_status oct_decide_observer(const oct_qmap *m, int32_t point, oct_observer_options *o)
{
    const oct_qpoint *p = &m->points[point];
    const oct_node *n = oct_place_preact(m, point);
    oct_behind f, *kept;

    if (!n || p->value->producer != n || p->state != OCT_QSTATE_ACTIVE) return OCT_OK;
    f = oct_behind_of(p->value);
    if (f.act.kind == OCT_ACT_NONE) return OCT_OK;
    kept = oct_arena_array(m->arena, 1, sizeof(*kept));
    if (!kept) return OCT_ERR_MEMORY;
    *kept = f;
    o->follow = follow_user;
    o->follow_user = kept;
    return OCT_OK;
}

/* --- what to watch --- */

/* The node whose integers depend on this point, if it is the one behind the node itself. */
static const oct_node *anchor_of(const oct_qmap *m, int32_t point)
{
    const oct_qpoint *p = &m->points[point];
    const oct_node *n = p->state == OCT_QSTATE_OFF ? NULL : oct_place_preact(m, point);

    return n && p->value->producer == n ? n : NULL;
}

static bool is_integer_conv(const oct_qmap *m, const oct_node *n)
{
    return oct_node_is(n, &oct_op_conv) && oct_qmap_at(m, n, 1) >= 0 && !m->float_reason[n->id];
}

oct_status oct_decide_watch(const oct_qmap *m, const oct_target *t, oct_calibration *c)
{
    if (!(t->flags & OCT_TARGET_MAY_PREACT)) return OCT_OK;
    for (const oct_node *n = m->g->first; n; n = n->next)
        if (is_integer_conv(m, n)) OCT_TRY(oct_calibration_watch_spread(c, n->out[0]));
    return OCT_OK;
}

/* --- harm: noise against variance, mean of the channels --- */

typedef struct sums {
    double weight, y, yy, noise;
} sums;

/* One channel, as if its values were normally distributed. */
static sums channel_sums(const oct_behind *f, double mean, double deviation, const oct_qpoint *p,
                         double gate_step)
{
    enum { HALF = 16 };
    const double step = (double)p->scale[0];
    sums s = {0};
    float low, high;

    oct_qspec_range(&p->spec, p->scale[0], p->zero[0], &low, &high);
    for (int k = -HALF; k <= HALF; k++) {
        const double z = 4.0 * k / HALF, w = exp(-z * z / 2), x = mean + deviation * z;
        const double y = oct_behind_apply(f, x), seen = fmin(fmax(x, (double)low), (double)high);
        const double clipped = y - oct_behind_apply(f, seen),
                     d = seen == x ? oct_behind_slope(f, x) : 0;
        const double gate = x * gate_step;

        s.weight += w;
        s.y += w * y;
        s.yy += w * y * y;
        s.noise += w * (clipped * clipped + (step * step * d * d + gate * gate) / 12);
    }
    return (sums){1, s.y / s.weight, s.yy / s.weight, s.noise / s.weight};
}

static double mean_ratio(const double *noise, const double *variance, int64_t n)
{
    double mean = 0, sum = 0;

    for (int64_t i = 0; i < n; i++)
        mean += variance[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        if (variance[i] > DEAD * mean) sum += fmin(noise[i] / (variance[i] + SMALL * mean), 1);
    return sum / (double)n;
}

/* Rounding in front of an activation, as noise behind it. */
static oct_status preact_harm(const oct_qmap *m, int32_t point, const oct_behind *f,
                              const oct_calibration *c, oct_arena *a, double *harm)
{
    const oct_qpoint *p = oct_qmap_root(m, point);
    const oct_value *v = m->points[point].value;
    const oct_watch *w = oct_calibration_of(c, v);
    const int32_t g = f->gate ? m->of_value[f->gate->id] : -1;
    const double gate_step = g >= 0 && m->points[g].n == 1 ? (double)m->points[g].scale[0] : 0;
    double *noise, *variance;

    *harm = 0;
    if (!w || !w->square || p->n != 1) return OCT_OK;
    noise = oct_arena_array(a, (size_t)w->channels + 1, sizeof(double));
    variance = oct_arena_array(a, (size_t)w->channels + 1, sizeof(double));
    if (!noise || !variance) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < w->channels; i++) {
        const sums s = channel_sums(f, oct_watch_mean(c, w, i), sqrt(oct_watch_variance(c, w, i)),
                                    p, gate_step);

        noise[i] = s.noise;
        variance[i] = fmax(s.yy - s.y * s.y, 0);
    }
    *harm = mean_ratio(noise, variance, w->channels);
    return OCT_OK;
}

/* Rounding of what a convolution reads, as noise in what it computes. */
static oct_status input_harm(const oct_qmap *m, const oct_node *n, const oct_calibration *c,
                             oct_arena *a, double *harm)
{
    const oct_watch *w = oct_calibration_of(c, n->out[0]);
    const int32_t k = oct_qmap_at(m, n, 0);
    const oct_qpoint *p = k >= 0 ? oct_qmap_root(m, k) : NULL;
    const oct_tensor *weight = oct_node_const(n, 1);
    double *noise, *variance;
    int64_t span;

    *harm = 0;
    if (!p || p->n != 1 || p->state == OCT_QSTATE_OFF || !w || !w->square || !weight) return OCT_OK;
    if (weight->type.dim[0] != w->channels) return OCT_OK;
    noise = oct_arena_array(a, (size_t)w->channels + 1, sizeof(double));
    variance = oct_arena_array(a, (size_t)w->channels + 1, sizeof(double));
    if (!noise || !variance) return OCT_ERR_MEMORY;
    span = oct_type_span(&weight->type, 1, weight->type.rank);
    for (int64_t i = 0; i < w->channels; i++) {
        const float *row = (const float *)weight->data + i * span;

        for (int64_t e = 0; e < span; e++)
            noise[i] += (double)row[e] * (double)row[e];
        noise[i] *= (double)p->scale[0] * (double)p->scale[0] / 12;
        variance[i] = oct_watch_variance(c, w, i);
    }
    *harm = mean_ratio(noise, variance, w->channels);
    return OCT_OK;
}

/* --- switching off --- */

static void switch_off(oct_qpoint *p, const char *why)
{
    p->state = OCT_QSTATE_OFF;
    p->dominator = -1;
    p->reason = why;
}

/* The node reads what is in front of it unrounded, and has float weights and a float result. */
static oct_status keep_float(oct_qmap *m, const oct_node *n, const char *why)
{
    const int32_t input = oct_qmap_at(m, n, 0);
    oct_qpoint unrounded;

    if (!why) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < m->n_points; i++)
        if (m->points[i].node == n || oct_place_preact(m, i) == n) switch_off(&m->points[i], why);
    m->float_reason[n->id] = why;
    if (input < 0 || m->points[input].node) return OCT_OK;
    unrounded = m->points[input];
    unrounded.node = n;
    unrounded.operand = 0;
    unrounded.n = 0;
    unrounded.scale = NULL;
    unrounded.zero = NULL;
    switch_off(&unrounded, why);
    return oct_qmap_add(m, &unrounded, NULL);
}

/* ONNX Runtime takes twice as long in integers as in float where a picture of few channels comes
 * in: its products are over rows of 3 x 3 x 3 numbers. */
static bool is_slow(const oct_node *n)
{
    return n->in[1]->type.dim[1] <= FEW_CHANNELS && oct_node_attr(n, "group")->i == 1;
}

static oct_status judge(oct_qmap *m, const oct_node *n, const oct_calibration *c, oct_arena *a)
{
    const double limit = oct_node_is_depthwise(n) ? DEPTHWISE_LIMIT : DENSE_LIMIT;
    const oct_behind f = oct_behind_of(n->out[0]);
    const int32_t behind = m->of_value[n->out[0]->id];
    double before = 0, after = 0;

    if (is_slow(n))
        return keep_float(m, n, "kept in float: so few channels are slower in integers");
    if (behind >= 0 && anchor_of(m, behind) == n) {
        if (f.act.kind == OCT_ACT_NONE || m->of_value[f.result->id] < 0)
            return keep_float(m, n, "kept in float: what the last steps read is not rounded");
        OCT_TRY(preact_harm(m, behind, &f, c, a, &after));
    }
    if (after > limit)
        return keep_float(
            m, n,
            oct_arena_printf(m->arena,
                             "kept in float: one scale in front of %s is too coarse for "
                             "some channels",
                             f.name));
    OCT_TRY(input_harm(m, n, c, a, &before));
    if (before > limit)
        return keep_float(
            m, n, "kept in float: one scale in front of them is too coarse for some channels");
    return OCT_OK;
}

/* --- points that nobody reads any more --- */

/* The value that integers of a convolution leave it by. */
static const oct_value *result_of(const oct_qmap *m, const oct_node *n)
{
    const oct_node *user = oct_sole_user(n->out[0]);

    return m->of_value[n->out[0]->id] < 0 && user ? user->out[0] : n->out[0];
}

static void mark_read(const oct_qmap *m, const oct_target *t, const oct_node *n, uint8_t *is_read)
{
    const bool computes = oct_target_computes(t, n->op) && !m->float_reason[n->id];
    bool reads = computes && n->op->flow == OCT_FLOW_SOURCE;

    if (is_integer_conv(m, n)) is_read[result_of(m, n)->id] = 1;
    for (int32_t i = 0; i < n->n_out; i++)
        reads |= n->out[i] && is_read[n->out[i]->id] && (computes || oct_node_moves_data(n));
    for (int32_t i = 0; i < n->n_in && reads; i++) {
        const int32_t k = n->in[i] ? oct_qmap_at(m, n, i) : -1;

        if (k >= 0 && m->points[k].state != OCT_QSTATE_OFF) is_read[n->in[i]->id] = 1;
    }
}

/* From the end: what only float layers read need not be rounded. */
static oct_status drop_unread(oct_qmap *m, const oct_target *t, oct_arena *a)
{
    uint8_t *is_read = oct_arena_alloc(a, (size_t)m->g->root->n_value_ids + 1);

    if (!is_read) return OCT_ERR_MEMORY;
    for (const oct_node *n = m->g->last; n; n = n->prev)
        mark_read(m, t, n, is_read);
    for (int32_t i = 0; i < m->n_points; i++) {
        oct_qpoint *p = &m->points[i];

        if (p->role == OCT_QROLE_ACT && !p->node && !p->value->is_output && !is_read[p->value->id])
            switch_off(p, "nothing reads it as integers");
    }
    return OCT_OK;
}

oct_status oct_decide(oct_qmap *m, const oct_target *t, const oct_calibration *c)
{
    oct_arena *a;
    oct_status st = OCT_OK;

    if (!(t->flags & OCT_TARGET_MAY_PREACT)) return OCT_OK;
    if (!(a = oct_arena_new(m->ctx))) return OCT_ERR_MEMORY;
    for (const oct_node *n = m->g->first; n && !st; n = n->next) {
        if (!is_integer_conv(m, n)) continue;
        st = judge(m, n, c, a);
        oct_arena_reset(a);
    }
    if (!st) st = drop_unread(m, t, a);
    oct_arena_free(a);
    return st;
}
