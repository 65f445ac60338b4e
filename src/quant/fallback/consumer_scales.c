/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that share a scale through Concat or data movement are rounded where they are produced. If
 * such a scale is too coarse for one consumer, it is dropped: the values stay float, and each
 * consumer quantizes its input with a scale of its own.
 */
#include "op/channels.h"
#include "op/op.h"
#include "quant/fallback/fallback_parts.h"
#include "quant/place/place_parts.h"
#include "quant/solve/solve.h"

static const char why[] = "one scale is too coarse for all values that share it";

typedef struct splitter {
    oct_qmap *m;
    const oct_target *t;
    const oct_calibration *c;
    oct_arena *a;
    int32_t n;         /* points there were */
    int32_t *root;     /* by point: the one that dominates it */
    uint8_t *is_split; /* by dominating point */
} splitter;

/* The dominating point of the values that share a scale with operand i; -1: none do. */
static int32_t group_of(const splitter *s, const oct_node *n, int32_t i)
{
    const int32_t k = n->in[i] ? oct_qmap_at(s->m, n, i) : -1;

    if (k < 0 || k >= s->n || s->m->points[k].node) return -1;
    return s->m->points[k].role == OCT_QROLE_ACT ? s->root[k] : -1;
}

/* --- which groups --- */

/* A scale of one value alone is kept: a consumer for which it is too coarse reads the float value.
 * So is the scale of an integer output of the network. */
static void find_groups(const splitter *s, uint8_t *may_split)
{
    const oct_qmap *m = s->m;

    for (int32_t i = 0; i < s->n; i++)
        if (s->root[i] != i) may_split[s->root[i]] = 1;
    for (int32_t i = 0; i < s->n; i++)
        if (m->points[i].value->is_output) may_split[s->root[i]] = 0;
}

static oct_status find_coarse(splitter *s, bool *found)
{
    uint8_t *may_split = oct_arena_alloc(s->a, (size_t)s->n + 1);

    *found = false;
    if (!may_split) return OCT_ERR_MEMORY;
    find_groups(s, may_split);
    for (const oct_node *n = s->m->g->first; n; n = n->next) {
        const int32_t root = oct_qmap_conv_is_integer(s->m, n) ? group_of(s, n, 0) : -1;
        double noise = 0;

        if (root < 0 || !may_split[root] || s->is_split[root]) continue;
        OCT_TRY(oct_input_rounding_noise(s->m, n, 0, s->c, s->a, &noise));
        s->is_split[root] = noise > oct_rounding_noise_limit(n);
        *found |= s->is_split[root];
    }
    return OCT_OK;
}

/* --- what becomes of the consumers --- */

static oct_status add_consumer_point(const splitter *s, const oct_node *n, int32_t i, int32_t root)
{
    const oct_qpoint own = {.value = n->in[i],
                            .node = n,
                            .operand = i,
                            .role = OCT_QROLE_ACT,
                            .spec = s->m->points[root].spec,
                            .state = OCT_QSTATE_ACTIVE,
                            .dominator = -1};
    int32_t at;

    OCT_TRY(oct_qmap_add(s->m, &own, &at));
    return oct_solve_consumer_point(s->m, at, s->c);
}

/* Layers with weights get scales of their own. Add and Mul become float: quantizing inputs for them
 * alone gains nothing. */
static oct_status split_consumer(const splitter *s, const oct_node *n)
{
    const bool computes = oct_target_computes(s->t, n->op) && !s->m->float_reason[n->id];

    for (int32_t i = 0; i < n->n_in && computes; i++) {
        const int32_t root = group_of(s, n, i);

        if (root < 0 || !s->is_split[root]) continue;
        if (n->op->flow != OCT_FLOW_SOURCE)
            OCT_TRY(oct_qmap_set_float(s->m, n, OCT_FLOAT_ERROR, why));
        else if (oct_operand_role(n, i) == OCT_QROLE_ACT)
            OCT_TRY(add_consumer_point(s, n, i, root));
    }
    return OCT_OK;
}

static oct_status split(splitter *s)
{
    bool found;

    for (int32_t i = 0; i < s->n; i++)
        s->root[i] = oct_qmap_root_index(s->m, i);
    OCT_TRY(find_coarse(s, &found));
    if (!found) return OCT_OK;
    for (const oct_node *n = s->m->g->first; n; n = n->next)
        OCT_TRY(split_consumer(s, n));
    for (int32_t i = s->n - 1; i >= 0;
         i--) /* backwards: a dominating point goes after the points that depend on it */
        if (s->is_split[s->root[i]]) OCT_TRY(oct_qpoint_switch_off(s->m, i, why));
    return OCT_OK;
}

oct_status oct_fallback_consumer_scales(oct_qmap *m, const oct_target *t, const oct_calibration *c,
                                        oct_arena *a)
{
    splitter s = {.m = m, .t = t, .c = c, .a = a, .n = m->n_points};

    s.root = oct_arena_array(a, (size_t)s.n + 1, sizeof(*s.root));
    s.is_split = oct_arena_alloc(a, (size_t)s.n + 1);
    return s.root && s.is_split ? split(&s) : OCT_ERR_MEMORY;
}
