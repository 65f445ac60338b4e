/* SPDX-License-Identifier: Apache-2.0 */
/* A graph with Q and DQ nodes, or with integer operators, as a float graph and its qmap. */
#include <string.h>

#include "op/op.h"
#include "pass/integer/qlinear.h"
#include "pass/pass.h"
#include "pass/rewrite.h"
#include "quant/place/place.h"
#include "quant/raise/raise_parts.h"

#define TARGET "ort" /* the target whose rules such files mostly follow */

const char *oct_raise_name(oct_raising *r, const char *codes)
{
    static const char *const ends[] = {"_QuantizeLinear_Output", "_QuantizeLinear", "_quantized",
                                       "_q", "_int"};
    const char *name = NULL;

    for (size_t i = 0; i < OCT_COUNT(ends) && !name; i++) {
        const size_t len = strlen(codes), end = strlen(ends[i]);

        if (len > end && strcmp(codes + len - end, ends[i]) == 0)
            name = oct_arena_strndup(r->g->arena, codes, len - end);
    }
    if (!name || oct_map_get(&r->names, name))
        name = oct_arena_printf(r->g->arena, "%s_float", codes);
    if (name && oct_map_get(&r->names, name)) name = oct_graph_fresh_name(r->g, name);
    if (name && oct_map_put(&r->names, name, r)) name = NULL;
    return name;
}

oct_status oct_raise_point(oct_raising *r, const oct_codes *c, const oct_raised_point *p)
{
    oct_raised_point q = *p;

    q.axis = c->axis;
    q.dtype = c->dtype;
    q.n = c->n;
    q.scale = oct_arena_array(r->arena, (size_t)c->n, sizeof(float));
    q.zero = oct_arena_array(r->arena, (size_t)c->n, sizeof(int32_t));
    if (!q.scale || !q.zero) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < c->n; i++) {
        q.scale[i] = oct_codes_scale(c, i);
        q.zero[i] = oct_codes_zero(c, i);
    }
    OCT_TRY(oct_grow(r->ctx, &r->points, &r->cap_points, (size_t)r->n_points + 1, sizeof(q)));
    if (q.unfold) oct_tensor_ref(q.unfold);
    r->points[r->n_points++] = q;
    return OCT_OK;
}

/* --- pairs --- */

/* Are all other consumers of v indifferent to its quantization? */
static bool only_codes(const oct_value *v, const oct_codes *c)
{
    for (int32_t i = 0; i < v->n_users; i++) {
        oct_codes other;

        if (!oct_node_is_quantize(v->users[i]) || !oct_codes_of(v->users[i], &other) ||
            !oct_codes_equal(c, &other))
            return false;
    }
    return true;
}

/* Does a consumer quantize v with other parameters? */
static bool is_requantized(const oct_value *v, const oct_codes *c)
{
    for (int32_t i = 0; i < v->n_users; i++) {
        oct_codes other;

        if (!oct_node_is_quantize(v->users[i])) continue;
        if (!oct_codes_of(v->users[i], &other) || !oct_codes_equal(c, &other)) return true;
    }
    return false;
}

/* The pair becomes a node that does nothing but has a point on its input. */
static oct_status keep_place(oct_raising *r, oct_node *dq, oct_value *src, const oct_codes *c)
{
    const oct_raised_point p = {.value = src, .role = OCT_QROLE_ACT};
    oct_node *made = NULL;

    OCT_TRY(oct_raise_point(r, c, &p)); /* first: the scales go with the pair */
    OCT_TRY(oct_node_become(dq, &oct_op_identity, &src, 1, &made));
    r->points[r->n_points - 1].node = made;
    return oct_node_infer(made);
}

/* Consumers of the pair read its operand. */
static oct_status bypass(oct_node *dq, oct_value *src)
{
    oct_value *q = dq->in[0];

    OCT_TRY(oct_value_replace_uses(dq->out[0], src));
    oct_node_remove(dq);
    return oct_prune(q);
}

static oct_status raise_pair(oct_raising *r, oct_node *dq, const oct_codes *c)
{
    oct_value *src = dq->in[0]->producer->in[0];
    const oct_raised_point p = {.value = src,
                                .role = src->data ? oct_raise_role(dq->out[0]) : OCT_QROLE_ACT};
    const int32_t k = r->of_value[src->id] - 1;

    if (dq->out[0]->is_output || is_requantized(dq->out[0], c)) return keep_place(r, dq, src, c);
    if (k >= 0) {
        const oct_raised_point *old = &r->points[k];
        bool is_same = old->dtype == c->dtype && old->axis == c->axis && old->n == c->n;

        for (int64_t i = 0; is_same && i < c->n; i++)
            is_same =
                old->scale[i] == oct_codes_scale(c, i) && old->zero[i] == oct_codes_zero(c, i);
        return is_same ? bypass(dq, src) : keep_place(r, dq, src, c);
    }
    if (!only_codes(src, c)) return keep_place(r, dq, src, c);
    OCT_TRY(oct_raise_point(r, c, &p));
    r->of_value[src->id] = r->n_points;
    return bypass(dq, src);
}

/* Codes that come from outside: DequantizeLinear stays, and consumers read a value with a point. */
static oct_status raise_fed(oct_raising *r, oct_node *dq, const oct_codes *c)
{
    oct_value *v = dq->out[0];
    const oct_raised_point p = {.value = v, .role = OCT_QROLE_ACT};

    if (!dq->in[0]->is_input || v->is_output || v->n_users == 0 || is_requantized(v, c))
        return OCT_OK;
    return oct_raise_point(r, c, &p);
}

static oct_status raise_activations(oct_raising *r)
{
    r->of_value = oct_arena_array(r->arena, (size_t)r->g->n_value_ids + 1, sizeof(int32_t));
    if (!r->of_value) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < r->n_points; i++)
        r->of_value[r->points[i].value->id] = i + 1;
    for (oct_node *n = r->g->first, *next; n; n = next) {
        oct_codes c, q;

        next = n->next;
        if (!oct_node_is_dequantize(n) || !oct_codes_of(n, &c) || c.dtype == OCT_DTYPE_I32 ||
            oct_dtype_get(c.dtype)->bits == 2 || n->in[0]->data)
            continue;
        if (!oct_node_is_quantize(n->in[0]->producer))
            OCT_TRY(raise_fed(r, n, &c));
        else if (oct_codes_of(n->in[0]->producer, &q) && oct_codes_equal(&c, &q) &&
                 n->in[0]->producer->in[0]->graph == n->graph)
            OCT_TRY(raise_pair(r, n, &c));
    }
    return OCT_OK;
}

/* --- the map --- */

static oct_qspec spec_of(const oct_raised_point *p)
{
    const oct_dtype_info *info = oct_dtype_get(p->dtype);
    const bool is_signed = info->kind == OCT_DKIND_INT;
    const int32_t middle = is_signed ? 0 : 1 << (info->bits - 1);
    oct_qspec s = {.bits = info->bits,
                   .is_signed = is_signed,
                   .is_symmetric = true,
                   .axis = p->n > 1 ? p->axis : OCT_QSPEC_PER_TENSOR};

    for (int64_t i = 0; i < p->n; i++)
        s.is_symmetric = s.is_symmetric && p->zero[i] == middle;
    return s;
}

static oct_status set_fold(oct_qmap *m, oct_qpoint *q, const oct_raised_point *p)
{
    const oct_type *t = &p->unfold->type;

    q->fold_rows = t->dim[0];
    q->fold_columns = t->dim[1];
    q->fold = oct_arena_array(m->arena, (size_t)oct_type_len(t), sizeof(float));
    if (!q->fold) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < oct_type_len(t); i++)
        q->fold[i] = 1 / ((const float *)p->unfold->data)[i];
    return OCT_OK;
}

/* The input's scalar scale follows from any channel's. */
static oct_status set_fold_scales(oct_qmap *m, oct_arena *arena)
{
    for (int32_t i = 0; i < m->n_points; i++) {
        oct_qpoint *q = &m->points[i];
        const float *scale = NULL;
        const int32_t *zero = NULL;
        bool is_integer = false;
        int64_t n = 0;

        if (!q->fold || q->value->n_users == 0) continue;
        OCT_TRY(oct_place_input_scales(m, q->value->users[0], 0, arena, &n, &scale, &zero,
                                       &is_integer));
        q->fold_scale = is_integer ? scale[0] / q->fold[0] : 0;
    }
    return OCT_OK;
}

/* The reason for each integer node that is left in the graph. */
static oct_status set_reasons(oct_qmap *m)
{
    for (const oct_node *n = m->g->first; n; n = n->next) {
        if (oct_node_is(n, &oct_op_conv_integer) || oct_node_is(n, &oct_op_mat_mul_integer) ||
            oct_node_is(n, &oct_op_mat_mul_integer_to_float) ||
            oct_node_is(n, &oct_op_dynamic_quantize_mat_mul))
            OCT_TRY(oct_qmap_set_float(m, n, OCT_FLOAT_DYNAMIC,
                                       "its input is quantized while running: kept as it is"));
        else if (oct_node_is_qlinear(n))
            OCT_TRY(oct_qmap_set_float(m, n, OCT_FLOAT_OTHER,
                                       "an operator on integers whose scales are not constants"));
    }
    return OCT_OK;
}

static oct_status make_map(oct_raising *r, oct_qmap **out)
{
    oct_qmap *m = NULL;
    oct_status st = OCT_OK;

    OCT_TRY(oct_qmap_new(r->g, oct_target_named(TARGET), &m));
    for (int32_t i = 0; !st && i < r->n_points; i++) {
        const oct_raised_point *p = &r->points[i];
        const oct_qpoint q = {.value = p->value,
                              .node = p->node,
                              .operand = p->operand,
                              .role = p->role,
                              .spec = spec_of(p),
                              .state = p->state,
                              .dominator = -1};
        int32_t at;

        if ((st = oct_qmap_add(m, &q, &at))) break;
        if ((st = oct_qpoint_set(m, at, p->scale, p->zero, p->n, "the file"))) break;
        if (p->unfold) st = set_fold(m, &m->points[at], p);
    }
    if (!st) st = set_fold_scales(m, r->arena);
    if (!st) st = set_reasons(m);
    if (st) {
        oct_qmap_free(m);
        return st;
    }
    *out = m;
    return OCT_OK;
}

/* --- the whole --- */

/* Scales that are computed from constants become constants; copies between are removed. */
static oct_status tidy(oct_graph *g)
{
    static const oct_pass *const passes[] = {&oct_pass_fold_constants, &oct_pass_drop_copies,
                                             &oct_pass_drop_dead};
    int n_changed = 1;

    for (int round = 0; n_changed && round < 16; round++) {
        n_changed = 0;
        for (size_t i = 0; i < OCT_COUNT(passes); i++)
            OCT_TRY(oct_pass_run(passes[i], g, &n_changed));
    }
    return OCT_OK;
}

/* Two domains with the same meaning and attributes: the standard one is kept, and is never
 * folded. */
static void use_standard(oct_graph *g)
{
    for (oct_node *n = g->first; n; n = n->next) {
        if (oct_node_is(n, &oct_op_ms_quantize_linear)) n->op = &oct_op_quantize_linear;
        if (oct_node_is(n, &oct_op_ms_dequantize_linear)) n->op = &oct_op_dequantize_linear;
    }
}

static oct_status raise(oct_raising *r, oct_qmap **m)
{
    use_standard(r->g);
    OCT_TRY(tidy(r->g));
    for (int32_t i = 0; i < r->g->n_value_ids; i++)
        if (r->g->values[i]) OCT_TRY(oct_map_put(&r->names, r->g->values[i]->name, r));
    OCT_TRY(oct_raise_operators(r));
    OCT_TRY(oct_raise_weights(r));
    OCT_TRY(raise_activations(r));
    OCT_TRY(oct_graph_verify(r->g));
    return make_map(r, m);
}

oct_status oct_raise(const oct_graph *qdq, oct_graph **g, oct_qmap **m)
{
    oct_raising r = {.ctx = qdq->ctx};
    oct_status st;

    OCT_TRY(oct_graph_clone(qdq, &r.g));
    oct_map_init(&r.names, r.ctx);
    r.arena = oct_arena_new(r.ctx);
    st = r.arena ? raise(&r, m) : OCT_ERR_MEMORY;
    for (int32_t i = 0; i < r.n_points; i++)
        oct_tensor_unref(r.points[i].unfold);
    oct_free(r.ctx, r.points);
    oct_arena_free(r.arena);
    oct_map_fini(&r.names);
    if (st)
        oct_graph_free(r.g);
    else
        *g = r.g;
    return st;
}
