/* SPDX-License-Identifier: Apache-2.0 */
/* Which convolutions stay float. */
#include "quant/fallback/fallback.h"

#include "op/channels.h"
#include "op/op.h"
#include "pass/find/dfl.h"
#include "pass/rewrite.h"
#include "quant/activation_after.h"
#include "quant/fallback/fallback_parts.h"

#define FEW_CHANNELS 4
#define MAX_MOVES    16 /* nodes between a layer and an output */

/* --- what to watch --- */

/* The convolution that this point is the pre-activation of. */
static const oct_node *anchor_of(const oct_qmap *m, int32_t point)
{
    const oct_qpoint *p = &m->points[point];
    const oct_node *n = p->state == OCT_QSTATE_OFF ? NULL : oct_place_preact(m, point);

    return n && p->value->producer == n ? n : NULL;
}

oct_status oct_fallback_watch(const oct_qmap *m, const oct_target *t, oct_calibration *c)
{
    if (!(t->flags & (OCT_TARGET_MAY_PREACT | OCT_TARGET_MAY_STAY_FLOAT))) return OCT_OK;
    for (const oct_node *n = m->g->first; n; n = n->next)
        if (oct_qmap_conv_is_integer(m, n)) OCT_TRY(oct_calibration_watch_spread(c, n->out[0]));
    return OCT_OK;
}

/* --- keeping a node float --- */

oct_status oct_fallback_keep_float(oct_qmap *m, const oct_node *n, oct_float_reason reason,
                                   const char *why)
{
    const int32_t input = oct_qmap_at(m, n, 0);
    oct_qpoint unrounded;

    if (!why) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < m->n_points; i++)
        if (m->points[i].node == n || oct_place_preact(m, i) == n)
            OCT_TRY(oct_qpoint_switch_off(m, i, why));
    OCT_TRY(oct_qmap_set_float(m, n, reason, why));
    if (input < 0 || m->points[input].node) return OCT_OK;
    unrounded = m->points[input];
    unrounded.node = n;
    unrounded.operand = 0;
    unrounded.state = OCT_QSTATE_OFF;
    unrounded.reason = why;
    return oct_qmap_add(m, &unrounded, NULL);
}

/* ONNX Runtime takes twice as long in integers as in float for an image of few channels: the inner
 * dimension of its matrix product is only 3 x 3 x 3. */
static bool is_slow(const oct_node *n)
{
    return n->in[1]->type.dim[1] <= FEW_CHANNELS && oct_node_attr(n, "group")->i == 1;
}

/* Is v an output, as it is or after an activation and nodes that only move data? */
static bool is_given(const oct_value *v)
{
    oct_act act;

    for (int i = 0; i < MAX_MOVES && !v->is_output; i++) {
        const oct_node *u = oct_sole_user(v);

        if (!u || !u->out[0] || !(oct_node_moves_data(u) || oct_act_of(u, &act))) return false;
        v = u->out[0];
    }
    return v->is_output;
}

/* Results that no integer layer reads, as those of the last layers, stay float. A 1x1 conv can
 * still be an integer MatMul with a float result. */
static oct_status leave_result(oct_qmap *m, const oct_node *n, const oct_value *result)
{
    if (!oct_node_is_pointwise(n))
        return is_given(result)
                   ? oct_fallback_keep_float(
                         m, n, OCT_FLOAT_OUTPUT,
                         "kept in float: outputs of the network are not rounded")
                   : oct_fallback_keep_float(m, n, OCT_FLOAT_CONSUMER,
                                             "kept in float: nothing reads its result as integers");
    for (int32_t i = 0; i < m->n_points; i++)
        if (oct_place_preact(m, i) == n)
            OCT_TRY(oct_qpoint_switch_off(m, i, "nothing reads it as integers"));
    return OCT_OK;
}

static oct_status check_input(oct_qmap *m, const oct_node *n, const oct_calibration *c,
                              oct_arena *a)
{
    double noise = 0;

    /* Few places are objects: what bins lose is not to be judged by how little the others vary. */
    if (oct_dfl_is_sum(n)) return OCT_OK;
    OCT_TRY(oct_input_rounding_noise(m, n, 0, c, a, &noise));
    if (noise > oct_rounding_noise_limit(n))
        return oct_fallback_keep_float(
            m, n, OCT_FLOAT_ERROR,
            "kept in float: one scale for their input is too coarse for some channels");
    return OCT_OK;
}

static oct_status check_conv(oct_qmap *m, const oct_node *n, const oct_calibration *c, oct_arena *a)
{
    const double limit = oct_rounding_noise_limit(n);
    const oct_following_act f = oct_activation_after(n->out[0]);
    const int32_t preact = m->of_value[n->out[0]->id];
    double after = 0;

    if (is_slow(n))
        return oct_fallback_keep_float(m, n, OCT_FLOAT_SLOWER,
                                       "kept in float: so few channels are slower in integers");
    if (preact >= 0 && anchor_of(m, preact) == n) {
        if (f.act.kind == OCT_ACT_NONE || m->of_value[f.result->id] < 0)
            return leave_result(m, n, f.result);
        OCT_TRY(oct_preact_rounding_noise(m, preact, &f, c, a, &after));
    }
    if (after > limit)
        return oct_fallback_keep_float(
            m, n, OCT_FLOAT_ERROR,
            oct_arena_printf(m->arena,
                             "kept in float: one scale before %s is too coarse for "
                             "some channels",
                             f.name));
    return check_input(m, n, c, a);
}

/* --- what is faster in float --- */

/* At least one layer stays integer, even if the network is too small to get faster. */
static bool leaves_some(const oct_qmap *m, const uint8_t *is_float)
{
    for (const oct_node *n = m->g->first; n; n = n->next)
        if (oct_qmap_conv_is_integer(m, n) && !is_float[n->id]) return true;
    return false;
}

static oct_status save_time(oct_qmap *m, const oct_target *t, oct_arena *a)
{
    static const char why[] = "kept in float: with its neighbours it is faster there";
    uint8_t *is_float = oct_arena_alloc(a, (size_t)m->g->root->n_node_ids + 1);

    if (!is_float) return OCT_ERR_MEMORY;
    OCT_TRY(oct_fallback_by_cost(m, t, a, is_float));
    if (!leaves_some(m, is_float)) return OCT_OK;
    for (const oct_node *n = m->g->first; n; n = n->next) {
        if (!is_float[n->id]) continue;
        if (oct_qmap_conv_is_integer(m, n))
            OCT_TRY(oct_fallback_keep_float(m, n, OCT_FLOAT_SLOWER, why));
        else if (oct_target_computes(t, n->op) || oct_node_is(n, &oct_op_concat))
            OCT_TRY(oct_qmap_set_float(m, n, OCT_FLOAT_SLOWER, why));
    }
    return OCT_OK;
}

/* --- points without an integer consumer --- */

/* The value that is quantized after a convolution: its result, or that of Relu fused with it. */
static const oct_value *result_of(const oct_qmap *m, const oct_node *n)
{
    const oct_node *user = oct_sole_user(n->out[0]);

    return m->of_value[n->out[0]->id] < 0 && user ? user->out[0] : n->out[0];
}

static void mark_read(const oct_qmap *m, const oct_target *t, const oct_node *n, uint8_t *is_read)
{
    const bool computes = oct_target_computes(t, n->op) && !m->float_reason[n->id];
    const bool moves = oct_node_moves_data(n) && !m->float_reason[n->id];
    bool reads = computes && n->op->flow == OCT_FLOW_SOURCE;

    if ((t->flags & OCT_TARGET_MAY_PREACT) && oct_qmap_conv_is_integer(m, n))
        is_read[result_of(m, n)->id] = 1;
    for (int32_t i = 0; i < n->n_out; i++)
        reads |= n->out[i] && is_read[n->out[i]->id] && (computes || moves);
    for (int32_t i = 0; i < n->n_in && reads; i++) {
        const int32_t k = n->in[i] ? oct_qmap_at(m, n, i) : -1;

        if (k >= 0 && m->points[k].state != OCT_QSTATE_OFF) is_read[n->in[i]->id] = 1;
    }
}

/* From the outputs to the inputs: values that only float layers read are not rounded. */
static oct_status drop_unread(oct_qmap *m, const oct_target *t, oct_arena *a)
{
    uint8_t *is_read = oct_arena_alloc(a, (size_t)m->g->root->n_value_ids + 1);

    if (!is_read) return OCT_ERR_MEMORY;
    for (const oct_node *n = m->g->last; n; n = n->prev)
        mark_read(m, t, n, is_read);
    for (int32_t i = 0; i < m->n_points; i++) {
        const oct_qpoint *p = &m->points[i];

        if (p->state == OCT_QSTATE_OFF || p->role != OCT_QROLE_ACT || p->node) continue;
        if (!p->value->is_output && !is_read[p->value->id])
            OCT_TRY(oct_qpoint_switch_off(m, i, "nothing reads it as integers"));
    }
    return OCT_OK;
}

oct_status oct_fallback_drop_unread(oct_qmap *m, const oct_target *t)
{
    oct_arena *a;
    oct_status st;

    if (!(t->flags & (OCT_TARGET_MAY_PREACT | OCT_TARGET_MAY_STAY_FLOAT))) return OCT_OK;
    if (!(a = oct_arena_new(m->ctx))) return OCT_ERR_MEMORY;
    st = drop_unread(m, t, a);
    oct_arena_free(a);
    return st;
}

oct_status oct_fallback(oct_qmap *m, const oct_target *t, const oct_calibration *c)
{
    const bool may_preact = (t->flags & OCT_TARGET_MAY_PREACT) != 0;
    oct_arena *a;
    oct_status st = OCT_OK;

    if (!(t->flags & (OCT_TARGET_MAY_PREACT | OCT_TARGET_MAY_STAY_FLOAT))) return OCT_OK;
    if (!(a = oct_arena_new(m->ctx))) return OCT_ERR_MEMORY;
    if (!may_preact) st = oct_fallback_consumer_scales(m, t, c, a);
    oct_arena_reset(a);
    for (const oct_node *n = m->g->first; n && !st; n = n->next) {
        if (!oct_qmap_conv_is_integer(m, n)) continue;
        st = may_preact ? check_conv(m, n, c, a) : check_input(m, n, c, a);
        oct_arena_reset(a);
    }
    if (!st && may_preact) st = save_time(m, t, a);
    oct_arena_reset(a);
    if (!st) st = drop_unread(m, t, a);
    if (!st && may_preact) st = oct_fallback_concat_scales(m, t, c, a);
    oct_arena_free(a);
    return st;
}
