/* SPDX-License-Identifier: Apache-2.0 */
/* What calibration observes for the solver: which values, with which observer. */
#include <string.h>

#include "op/channels.h"
#include "quant/activation_after.h"
#include "quant/solve/solve.h"

bool oct_qpoint_is_observed(const oct_qpoint *p)
{
    if (p->role != OCT_QROLE_ACT || p->value->data) return false;
    if (p->state == OCT_QSTATE_ACTIVE) return true;
    return p->state == OCT_QSTATE_DOMINATED &&
           !(p->value->producer && oct_node_moves_data(p->value->producer));
}

static oct_status choose_observer(const oct_qmap *m, const oct_qpoint *p, const oct_target *t,
                                  const oct_quantize_options *o, oct_observer_options *out)
{
    const oct_qpoint *root = oct_qmap_root(m, (int32_t)(p - m->points));
    const bool per_channel = root->spec.axis != OCT_QSPEC_PER_TENSOR;
    const bool own_scales = per_channel && root->channel_share >= 1.0f;

    oct_observer_options_init(out);
    out->per_channel = per_channel;
    out->kind = own_scales ? o->channel_ranges : o->activation_ranges;
    if (!out->kind && (o->range_low || o->range_high)) out->kind = "estimator";
    if (!out->kind) out->kind = own_scales ? t->channel_ranges : t->act_ranges;
    if (root->observer) out->kind = root->observer;
    if (o->percentile > 0) out->percentile = o->percentile;
    if (o->range_low) OCT_TRY(oct_estimator_end_parse(m->ctx, o->range_low, &out->low));
    return o->range_high ? oct_estimator_end_parse(m->ctx, o->range_high, &out->high) : OCT_OK;
}

static float apply_activation(const void *user, float x)
{
    return (float)oct_following_act_apply(user, (double)x);
}

oct_status oct_preact_observer(const oct_qmap *m, int32_t point, oct_observer_options *o)
{
    const oct_qpoint *p = &m->points[point];
    const oct_node *n = oct_place_preact(m, point);
    oct_following_act f, *kept;

    if (!n || p->value->producer != n || p->state != OCT_QSTATE_ACTIVE) return OCT_OK;
    f = oct_activation_after(p->value);
    if (f.act.kind == OCT_ACT_NONE) return OCT_OK;
    kept = oct_arena_array(m->arena, 1, sizeof(*kept));
    if (!kept) return OCT_ERR_MEMORY;
    *kept = f;
    o->follow = apply_activation;
    o->follow_user = kept;
    return OCT_OK;
}

/*
 * Scores below a thousandth are nothing to anybody, but nearly all anchors have such: the errors
 * of these many, tiny as they are, would cost the few others a bit of their codes.
 */
static float apply_score(const void *user, float x)
{
    const float least = -6.9f; /* log(0.001) */

    return apply_activation(user, x > least ? x : least);
}

static void follow_sigmoid(oct_observer_options *o)
{
    static const oct_following_act sigmoid = {.act = {.kind = OCT_ACT_SIGMOID}, .name = "Sigmoid"};

    o->follow = apply_score;
    o->follow_user = &sigmoid;
}

/* Correcting the bias of a weighted node needs the mean of its input. */
static bool needs_means(const oct_qpoint *p, const oct_quantize_options *o)
{
    return p->role == OCT_QROLE_WEIGHT && p->state == OCT_QSTATE_ACTIVE && p->node &&
           !(o->bias_correction && strcmp(o->bias_correction, "none") == 0);
}

static oct_status watch_all(const oct_qmap *m, const oct_target *t, const oct_quantize_options *o,
                            const uint8_t *is_score, oct_calibration *c)
{
    for (int32_t i = 0; i < m->n_points; i++) {
        const oct_qpoint *p = &m->points[i];
        oct_observer_options range;

        if (oct_qpoint_is_observed(p)) {
            OCT_TRY(choose_observer(m, p, t, o, &range));
            OCT_TRY(oct_preact_observer(m, i, &range));
            if (is_score[i] && !range.follow) follow_sigmoid(&range);
            OCT_TRY(oct_calibration_watch(c, p->value, &range, false));
        }
        if (!needs_means(p, o) || !p->node->in[0] || p->node->in[0]->data) continue;
        if (oct_cancels_residues(m))
            OCT_TRY(oct_calibration_watch_spread(c, p->node->in[0]));
        else
            OCT_TRY(oct_calibration_watch(c, p->node->in[0], NULL, true));
    }
    return OCT_OK;
}

oct_status oct_solve_watch(const oct_qmap *m, const oct_target *t, const oct_quantize_options *o,
                           oct_calibration *c)
{
    oct_arena *a = oct_arena_new(m->ctx);
    uint8_t *is_score = NULL;
    oct_status st = a ? oct_score_points(m, a, &is_score) : OCT_ERR_MEMORY;

    if (!st) st = watch_all(m, t, o, is_score, c);
    oct_arena_free(a);
    return st;
}
