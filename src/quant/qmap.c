/* SPDX-License-Identifier: Apache-2.0 */
/* The table of points and what hangs on them. */
#include "quant/qmap.h"

#include <math.h>
#include <string.h>

#include "op/op.h"

const char *oct_qstate_name(oct_qstate s)
{
    static const char *const names[OCT_QSTATE_COUNT] = {
        [OCT_QSTATE_ACTIVE] = "active",
        [OCT_QSTATE_PASSIVE] = "passive",
        [OCT_QSTATE_DOMINATED] = "dominated",
        [OCT_QSTATE_BAKED] = "baked",
        [OCT_QSTATE_OFF] = "off",
    };

    return (int)s >= 0 && s < OCT_QSTATE_COUNT ? names[s] : "?";
}

/* n indices, all -1. */
static int32_t *no_index(oct_arena *a, int32_t n)
{
    int32_t *index = oct_arena_array(a, (size_t)n + 1, sizeof(*index));

    if (index) memset(index, 0xff, ((size_t)n + 1) * sizeof(*index));
    return index;
}

/* Settings may have changed the caller's row, which need not live as long as the qmap. */
static oct_status copy_target(oct_qmap *m, const oct_target *t)
{
    oct_target *row = oct_arena_array(m->arena, 1, sizeof(*row));

    if (!row) return OCT_ERR_MEMORY;
    if (t) *row = *t;
    m->target = t ? row : NULL;
    return OCT_OK;
}

oct_status oct_qmap_new(const oct_graph *g, const oct_target *t, oct_qmap **out)
{
    const int32_t n_nodes = g->root->n_node_ids;
    oct_qmap *m = oct_calloc(g->ctx, 1, sizeof(*m));

    if (!m) return OCT_ERR_MEMORY;
    m->ctx = g->ctx;
    m->g = g;
    m->arena = oct_arena_new(g->ctx);
    if (!m->arena || copy_target(m, t)) goto fail;
    m->of_value = no_index(m->arena, g->root->n_value_ids);
    m->of_reader = no_index(m->arena, n_nodes);
    m->shift_index = no_index(m->arena, n_nodes);
    m->float_reason = oct_arena_array(m->arena, (size_t)n_nodes + 1, sizeof(*m->float_reason));
    m->float_why = oct_arena_array(m->arena, (size_t)n_nodes + 1, sizeof(*m->float_why));
    m->may_write = ~0u;
    if (!m->of_value || !m->of_reader || !m->shift_index || !m->float_reason || !m->float_why)
        goto fail;
    *out = m;
    return OCT_OK;
fail:
    oct_qmap_free(m);
    return OCT_ERR_MEMORY;
}

void oct_qmap_free(oct_qmap *m)
{
    if (!m) return;
    oct_free(m->ctx, m->points);
    oct_free(m->ctx, m->shifts);
    oct_arena_free(m->arena);
    oct_free(m->ctx, m);
}

static oct_status copy_text(oct_arena *a, const char *s, const char **out)
{
    if (!s) {
        *out = NULL;
        return OCT_OK;
    }
    return (*out = oct_arena_strdup(a, s)) ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status copy_floats(oct_arena *a, const float *v, int64_t n, float **out)
{
    float *copy = oct_arena_array(a, (size_t)n, sizeof(*copy));

    if (!copy) return OCT_ERR_MEMORY;
    memcpy(copy, v, (size_t)n * sizeof(*copy));
    *out = copy;
    return OCT_OK;
}

/* The point for this reader alone, or -1. */
static int32_t at_reader(const oct_qmap *m, const oct_node *node, int32_t operand)
{
    int32_t i = m->of_reader[node->id];

    while (i >= 0 && m->points[i].operand != operand)
        i = m->points[i].next;
    return i;
}

/* A stage that writes what its row in quantize.c does not say is a bug there. */
static oct_status check_may_write(const oct_qmap *m, unsigned what, const char *text)
{
    if (m->may_write & what) return OCT_OK;
    return oct_fail(m->ctx, OCT_ERR_STATE, "stage '%s' of quantizing may not write %s",
                    m->stage ? m->stage : "?", text);
}

oct_status oct_qmap_add(oct_qmap *m, const oct_qpoint *p, int32_t *index)
{
    const int32_t at = m->n_points;
    oct_qpoint q = *p;

    OCT_TRY(check_may_write(m, OCT_QWRITES_POINTS, "points"));
    if (p->node ? at_reader(m, p->node, p->operand) >= 0 : m->of_value[p->value->id] >= 0)
        return oct_fail(m->ctx, OCT_ERR_STATE, "value '%s': has a point already", p->value->name);
    if (at == INT32_MAX) return oct_fail(m->ctx, OCT_ERR_UNSUPPORTED, "too many points");
    OCT_TRY(copy_text(m->arena, p->reason, &q.reason));
    OCT_TRY(copy_text(m->arena, p->observer, &q.observer));
    OCT_TRY(oct_grow(m->ctx, &m->points, &m->cap_points, (size_t)at + 1, sizeof(q)));
    q.n = 0;
    q.scale = NULL;
    q.zero = NULL;
    q.scale_by = NULL;
    q.fold = NULL;
    q.moved = NULL;
    q.n_moved = 0;
    q.next = -1;
    if (p->state != OCT_QSTATE_DOMINATED) q.dominator = -1;
    if (p->node) {
        q.next = m->of_reader[p->node->id];
        m->of_reader[p->node->id] = at;
    } else {
        m->of_value[p->value->id] = at;
    }
    m->points[at] = q;
    m->n_points++;
    if (index) *index = at;
    return OCT_OK;
}

/* "mse_wide", then "SiLU grid": "mse_wide, SiLU grid". What is repeated is said once. */
static oct_status add_author(oct_qmap *m, oct_qpoint *p, const char *by)
{
    const size_t had = p->scale_by ? strlen(p->scale_by) : 0, more = by ? strlen(by) : 0;

    if (!more || (had >= more && strcmp(p->scale_by + had - more, by) == 0)) return OCT_OK;
    p->scale_by = oct_arena_printf(m->arena, "%s%s%s", had ? p->scale_by : "", had ? ", " : "", by);
    return p->scale_by ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_qpoint_set(oct_qmap *m, int32_t point, const float *scale, const int32_t *zero,
                          int64_t n, const char *by)
{
    oct_qpoint *p = &m->points[point];
    float *new_scale = p->scale;
    int32_t *new_zero = p->zero;

    OCT_TRY(check_may_write(m, OCT_QWRITES_SCALES, "scales"));
    if (n < 1)
        return oct_fail(m->ctx, OCT_ERR_ARG, "value '%s': a point without scales", p->value->name);
    for (int64_t i = 0; i < n; i++)
        if (!(scale[i] > 0) || !isfinite(scale[i]))
            return oct_fail(m->ctx, OCT_ERR_ARG, "value '%s': scale %lld is %g", p->value->name,
                            (long long)i, (double)scale[i]);
    if (n != p->n) { /* else what is there is used again: the arena gives nothing back */
        new_scale = oct_arena_array(m->arena, (size_t)n, sizeof(*new_scale));
        new_zero = oct_arena_array(m->arena, (size_t)n, sizeof(*new_zero));
        if (!new_scale || !new_zero) return OCT_ERR_MEMORY;
    }
    memmove(new_scale, scale, (size_t)n * sizeof(*scale));
    memmove(new_zero, zero, (size_t)n * sizeof(*zero));
    p->scale = new_scale;
    p->zero = new_zero;
    p->n = n;
    return add_author(m, p, by);
}

oct_status oct_qpoint_move(oct_qmap *m, int32_t point, const int64_t *moved, int64_t n)
{
    oct_qpoint *p = &m->points[point];
    const int64_t len = p->value->data ? oct_tensor_len(p->value->data) : 0;
    int64_t *copy;

    OCT_TRY(check_may_write(m, OCT_QWRITES_CODES, "codes of weights"));
    for (int64_t i = 0; i < n; i++)
        if (moved[i] == 0 || moved[i] < -len || moved[i] > len)
            return oct_fail(m->ctx, OCT_ERR_ARG, "value '%s': it has no element %lld",
                            p->value->name, (long long)moved[i]);
    if (!(copy = oct_arena_array(m->arena, (size_t)n + 1, sizeof(*copy)))) return OCT_ERR_MEMORY;
    if (n) memcpy(copy, moved, (size_t)n * sizeof(*copy));
    p->moved = copy;
    p->n_moved = n;
    return OCT_OK;
}

/* The first point that has its parameters from this one takes them over, and the others have theirs
 * from it then. */
static void pass_on_parameters(oct_qmap *m, int32_t point)
{
    const oct_qpoint *old = &m->points[point];
    int32_t heir = -1;

    for (int32_t i = 0; i < m->n_points; i++) {
        oct_qpoint *p = &m->points[i];

        if (p->state != OCT_QSTATE_DOMINATED || p->dominator != point) continue;
        p->dominator = heir;
        if (heir >= 0) continue;
        heir = i;
        p->state = OCT_QSTATE_ACTIVE;
        p->spec = old->spec;
        p->observer = old->observer;
        p->n = old->n;
        p->scale = old->scale;
        p->zero = old->zero;
        p->scale_by = old->scale_by;
        p->has_seen = old->has_seen;
        p->seen_low = old->seen_low;
        p->seen_high = old->seen_high;
    }
}

oct_status oct_qpoint_switch_off(oct_qmap *m, int32_t point, const char *why)
{
    oct_qpoint *p = &m->points[point];

    OCT_TRY(check_may_write(m, OCT_QWRITES_STATES, "states of points"));
    if (p->state == OCT_QSTATE_ACTIVE) pass_on_parameters(m, point);
    p->state = OCT_QSTATE_OFF;
    p->dominator = -1;
    p->reason = why;
    return OCT_OK;
}

oct_status oct_qmap_set_float(oct_qmap *m, const oct_node *node, oct_float_reason why,
                              const char *text)
{
    OCT_TRY(check_may_write(m, OCT_QWRITES_REASONS, "why nodes are float"));
    m->float_why[node->id] = why;
    return copy_text(m->arena, text, &m->float_reason[node->id]);
}

oct_status oct_qmap_shift(oct_qmap *m, const oct_node *node, const float *shift, int64_t n)
{
    const int32_t at = m->shift_index[node->id];
    oct_qshift s = {.node = node, .n = n};

    OCT_TRY(check_may_write(m, OCT_QWRITES_SHIFTS, "shifts of biases"));
    if (at >= 0) {
        const oct_qshift *old = &m->shifts[at];

        if (old->n != n)
            return oct_node_fail(node, OCT_ERR_ARG, "a shift of %lld channels on one of %lld",
                                 (long long)n, (long long)old->n);
        for (int64_t i = 0; i < n; i++)
            old->shift[i] += shift[i];
        return OCT_OK;
    }
    if (n < 1) return oct_node_fail(node, OCT_ERR_ARG, "a shift of no channels");
    OCT_TRY(copy_floats(m->arena, shift, n, &s.shift));
    OCT_TRY(oct_grow(m->ctx, &m->shifts, &m->cap_shifts, (size_t)m->n_shifts + 1, sizeof(s)));
    m->shift_index[node->id] = m->n_shifts;
    m->shifts[m->n_shifts++] = s;
    return OCT_OK;
}

const oct_qshift *oct_qmap_shift_of(const oct_qmap *m, const oct_node *node)
{
    const int32_t at = m->shift_index[node->id];

    return at < 0 ? NULL : &m->shifts[at];
}

const oct_qpoint *oct_qmap_root(const oct_qmap *m, int32_t point)
{
    const oct_qpoint *p = &m->points[point];

    /* Chains are short; the bound is for a circle, which would be a bug. */
    for (int32_t i = 0; i < m->n_points && p->state == OCT_QSTATE_DOMINATED && p->dominator >= 0;
         i++)
        p = &m->points[p->dominator];
    return p;
}

int32_t oct_qmap_root_index(const oct_qmap *m, int32_t point)
{
    return (int32_t)(oct_qmap_root(m, point) - m->points);
}

int32_t oct_qmap_at(const oct_qmap *m, const oct_node *node, int32_t operand)
{
    const oct_value *v = oct_node_in(node, operand);
    const int32_t at = at_reader(m, node, operand);

    if (at >= 0 || !v) return at;
    return m->of_value[v->id];
}

bool oct_qmap_conv_is_integer(const oct_qmap *m, const oct_node *n)
{
    return oct_node_is(n, &oct_op_conv) && oct_qmap_at(m, n, 1) >= 0 && !m->float_reason[n->id];
}

static oct_status clone_points(const oct_qmap *m, oct_qmap *copy)
{
    for (int32_t i = 0; i < m->n_points; i++) {
        const oct_qpoint *p = &m->points[i];
        oct_qpoint *q;

        OCT_TRY(oct_qmap_add(copy, p, NULL));
        if (p->n) OCT_TRY(oct_qpoint_set(copy, i, p->scale, p->zero, p->n, p->scale_by));
        q = &copy->points[i];
        if (p->fold)
            OCT_TRY(copy_floats(copy->arena, p->fold, p->fold_rows * p->fold_columns, &q->fold));
        if (p->n_moved) OCT_TRY(oct_qpoint_move(copy, i, p->moved, p->n_moved));
    }
    return OCT_OK;
}

static oct_status clone_into(const oct_qmap *m, oct_qmap *copy)
{
    OCT_TRY(clone_points(m, copy));
    for (int32_t i = 0; i < m->n_shifts; i++)
        OCT_TRY(oct_qmap_shift(copy, m->shifts[i].node, m->shifts[i].shift, m->shifts[i].n));
    for (int32_t i = 0; i < m->g->root->n_node_ids; i++) {
        copy->float_why[i] = m->float_why[i];
        OCT_TRY(copy_text(copy->arena, m->float_reason[i], &copy->float_reason[i]));
    }
    return copy_text(copy->arena, m->tail_text, &copy->tail_text);
}

oct_status oct_qmap_clone(const oct_qmap *m, oct_qmap **out)
{
    oct_qmap *copy = NULL;
    oct_status st;

    OCT_TRY(oct_qmap_new(m->g, m->target, &copy));
    st = clone_into(m, copy);
    if (st) {
        oct_qmap_free(copy);
        return st;
    }
    *out = copy;
    return OCT_OK;
}
