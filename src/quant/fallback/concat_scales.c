/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scale for a Concat and its operands, so that it is a copy. The scale of its result is as
 * coarse as its coarsest operand needs, so an operand without other consumers loses nothing by
 * having that scale itself; the other consumers of an operand must accept it too.
 */
#include "op/channels.h"
#include "op/op.h"
#include "quant/fallback/fallback_parts.h"

/* How they were chosen: docs/accuracy.md, "a Concat's operands get its scale". */
#define ROUNDS  3     /* scales settle: a value may be an operand of several Concats */
#define PART    0.5   /* of the noise limit: the input is rounded already, this comes on top */
#define COARSER 2.0f  /* Add and Mul accept a scale up to this many times coarser */
#define BEYOND  0.05f /* of the range may be clipped */

typedef struct sharer {
    oct_qmap *m;
    const oct_target *t;
    const oct_calibration *c;
    oct_arena *a;
} sharer;

static int32_t root_of(const oct_qmap *m, const oct_value *v)
{
    const int32_t k = v ? m->of_value[v->id] : -1;
    const int32_t r = k < 0 ? -1 : oct_qmap_root_index(m, k);

    return r >= 0 && m->points[r].state == OCT_QSTATE_ACTIVE && m->points[r].n == 1 ? r : -1;
}

static bool is_same(const oct_qpoint *a, const oct_qpoint *b)
{
    return a->scale[0] == b->scale[0] && a->zero[0] == b->zero[0];
}

/* Does the range of `wide` contain that of `p`, but for BEYOND? */
static bool covers(const oct_qpoint *wide, const oct_qpoint *p)
{
    float low, high, wide_low, wide_high;

    oct_qspec_range(&p->spec, p->scale[0], p->zero[0], &low, &high);
    oct_qspec_range(&wide->spec, wide->scale[0], wide->zero[0], &wide_low, &wide_high);
    return wide_low - low <= BEYOND * (high - low) && high - wide_high <= BEYOND * (high - low);
}

/* Does this node accept another scale for operand i? */
static oct_status accepts(const sharer *s, const oct_node *n, int32_t i, float old, float step,
                          bool *out)
{
    const int32_t k = oct_qmap_at(s->m, n, i);
    double noise;

    *out = true;
    if (k < 0 || s->m->points[k].node || oct_node_is(n, &oct_op_concat)) return OCT_OK;
    if (oct_qmap_conv_is_integer(s->m, n)) {
        OCT_TRY(oct_input_rounding_noise(s->m, n, step, s->c, s->a, &noise));
        *out = noise <= PART * oct_rounding_noise_limit(n);
    } else if (!oct_node_moves_data(n) && oct_target_computes(s->t, n->op)) {
        *out = step <= COARSER * old;
    }
    return OCT_OK;
}

/* Do all consumers of values with this root accept another scale? */
static oct_status all_accept(const sharer *s, int32_t root, float step, bool *out)
{
    const oct_qmap *m = s->m;
    const float old = m->points[root].scale[0];

    *out = true;
    for (int32_t i = 0; i < m->n_points && *out; i++) {
        const oct_value *v = m->points[i].value;

        if (m->points[i].role != OCT_QROLE_ACT || m->points[i].node || root_of(m, v) != root)
            continue;
        for (int32_t k = 0; k < v->n_users && *out; k++)
            for (int32_t j = 0; j < v->users[k]->n_in && *out; j++)
                if (v->users[k]->in[j] == v) OCT_TRY(accepts(s, v->users[k], j, old, step, out));
    }
    return OCT_OK;
}

static oct_status share(const sharer *s, const oct_value *operand, const oct_value *result)
{
    int32_t from = root_of(s->m, operand), to = root_of(s->m, result);
    const char *by;
    bool may;

    if (from < 0 || to < 0 || from == to || is_same(&s->m->points[from], &s->m->points[to]))
        return OCT_OK;
    if (s->m->points[from].scale[0] > s->m->points[to].scale[0]) {
        const int32_t k = from;

        from = to;
        to = k;
    }
    if (!covers(&s->m->points[to], &s->m->points[from])) return OCT_OK;
    OCT_TRY(all_accept(s, from, s->m->points[to].scale[0], &may));
    if (!may) return OCT_OK;
    by = oct_arena_printf(s->a, "Concat shares '%s'", s->m->points[to].value->name);
    if (!by) return OCT_ERR_MEMORY;
    return oct_qpoint_set(s->m, from, s->m->points[to].scale, s->m->points[to].zero, 1, by);
}

oct_status oct_fallback_concat_scales(oct_qmap *m, const oct_target *t, const oct_calibration *c,
                                      oct_arena *a)
{
    const sharer s = {m, t, c, a};

    if (t->concat != OCT_CONCAT_REQUANTIZE) return OCT_OK;
    /* A value may be an operand of several Concats: scales grow until all agree. */
    for (int round = 0; round < ROUNDS; round++)
        for (const oct_node *n = m->g->first; n; n = n->next)
            for (int32_t i = 0; i < n->n_in && oct_node_is(n, &oct_op_concat); i++) {
                OCT_TRY(share(&s, n->in[i], n->out[0]));
                oct_arena_reset(a);
            }
    return OCT_OK;
}
