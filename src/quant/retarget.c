/* SPDX-License-Identifier: Apache-2.0 */
/* The scales of a network that is quantized already, for another target. */
#include "quant/retarget.h"

#include <math.h>

#include "op/channels.h"
#include "op/op.h"
#include "quant/lower/lower.h"
#include "quant/provenance.h"
#include "quant/solve/solve.h"

#define BY       "the file"
#define BY_RANGE "the file's range"
#define DEPTH    16 /* nodes in a row that only move data and are looked through */

enum { CODE_BITS = 8, SIGN_STEP = 128 };

static bool has_weights(const oct_qmap *m)
{
    for (int32_t i = 0; i < m->n_points; i++)
        if (m->points[i].role == OCT_QROLE_WEIGHT) return true;
    return false;
}

oct_status oct_retarget_open(oct_graph **g, oct_qmap **file)
{
    oct_quant_info info = {.struct_size = sizeof(info)};
    oct_graph *plain = NULL;
    oct_status st;

    oct_graph_quant_info(*g, &info);
    if (info.layers_quantized == 0) return OCT_OK;
    OCT_TRY(oct_raise(*g, &plain, file));
    st = oct_graph_infer(plain);
    if (st || !has_weights(*file)) { /* layers may be integer operators that have no scales */
        oct_qmap_free(*file);
        *file = NULL;
        oct_graph_free(plain);
        return st;
    }
    oct_graph_free(*g);
    *g = plain;
    return OCT_OK;
}

/* --- what the file says of a value --- */

/* All points of the file that a scale is to cover. */
typedef struct found {
    const oct_qmap *file;
    const oct_qpoint *point; /* the first; NULL: none */
    bool differ;             /* others have other scales */
    float low, high;         /* of all of them */
} found;

static bool are_equal(const oct_qpoint *a, const oct_qpoint *b)
{
    bool same = a->n == b->n && a->spec.is_signed == b->spec.is_signed &&
                a->spec.bits == b->spec.bits && a->spec.axis == b->spec.axis;

    for (int64_t i = 0; same && i < a->n; i++)
        same = a->scale[i] == b->scale[i] && a->zero[i] == b->zero[i];
    return same;
}

/* True if the file has such a point. */
static bool add_point(found *f, int32_t index)
{
    const oct_qpoint *p = index >= 0 ? oct_qmap_root(f->file, index) : NULL;

    if (!p || p->n == 0 || p->state == OCT_QSTATE_OFF) return false;
    for (int64_t i = 0; i < p->n; i++) {
        float low, high;

        oct_qspec_range(&p->spec, p->scale[i], p->zero[i], &low, &high);
        f->low = f->point ? OCT_MIN(f->low, low) : low;
        f->high = f->point ? OCT_MAX(f->high, high) : high;
        if (f->point && f->point != p) f->differ |= !are_equal(f->point, p);
        if (!f->point) f->point = p;
    }
    return true;
}

/* A pair that could not be left out when the file was raised is an Identity with a point. */
static bool add_identity(found *f, const oct_node *n)
{
    return oct_node_is(n, &oct_op_identity) && add_point(f, oct_qmap_at(f->file, n, 0));
}

static bool add_value(found *f, const oct_value *v)
{
    bool any =
        add_point(f, f->file->of_value[v->id]) || (v->producer && add_identity(f, v->producer));

    for (int32_t i = 0; i < v->n_users && !any; i++)
        any = add_identity(f, v->users[i]);
    return any;
}

/* The value's own scale, or those of what it is moved from. */
static bool look_back(found *f, const oct_value *v, int depth)
{
    const oct_node *by = v->producer;
    bool any = add_value(f, v);

    if (any || depth == 0 || !by || !oct_node_moves_data(by)) return any;
    for (int32_t i = 0; i < oct_node_n_data(by); i++)
        any |= look_back(f, by->in[i], depth - 1);
    return any;
}

/* The scale that the value has further on, when it has only been moved. */
static bool look_ahead(found *f, const oct_value *v, int depth)
{
    for (int32_t i = 0; i < v->n_users && depth > 0; i++) {
        const oct_node *n = v->users[i];

        if (!oct_node_moves_data(n) || n->n_out < 1) continue;
        if (add_value(f, n->out[0]) || look_ahead(f, n->out[0], depth - 1)) return true;
    }
    return false;
}

/* Values that are between 0 and 1, whatever comes in. */
static bool is_share(const oct_value *v)
{
    const oct_node *by = v->producer;

    return by && (oct_node_is(by, &oct_op_sigmoid) || oct_node_is(by, &oct_op_hard_sigmoid) ||
                  oct_node_is(by, &oct_op_softmax));
}

/* All values that share the scale of this point. */
static void look_up(const oct_qmap *m, int32_t root, found *f)
{
    const oct_value *v = m->points[root].value;

    for (int32_t i = 0; i < m->n_points; i++) {
        const oct_qpoint *p = &m->points[i];

        if (p->role != OCT_QROLE_ACT || p->value->data || oct_qmap_root_index(m, i) != root)
            continue;
        if (p->node && add_point(f, oct_qmap_at(f->file, p->node, p->operand))) continue;
        (void)add_value(f, p->value);
    }
    if (!f->point && !look_back(f, v, DEPTH)) (void)look_ahead(f, v, DEPTH);
}

/* --- activations --- */

static bool is_pow2(float x)
{
    int e;

    return frexpf(x, &e) == 0.5f;
}

/* Can the target's point have the very scales of the file's? Codes of the other sign are the same
 * values. */
static bool can_hold(const oct_qpoint *p, const oct_qpoint *from)
{
    const oct_qspec *s = &p->spec, *t = &from->spec;

    if (s->bits != t->bits || s->is_narrow || s->rounding != t->rounding) return false;
    if (s->is_signed != t->is_signed && s->bits != CODE_BITS) return false;
    if (from->n > 1 && (s->axis != t->axis || p->node)) return false;
    for (int64_t i = 0; i < from->n; i++) {
        const int32_t zero = from->zero[i] - (t->is_signed ? 0 : SIGN_STEP);

        if (s->is_symmetric && zero != 0) return false;
        if (s->is_pow2 && !is_pow2(from->scale[i])) return false;
    }
    return true;
}

static oct_status take(oct_qmap *m, int32_t i, const oct_qpoint *from, oct_arena *a)
{
    oct_qpoint *p = &m->points[i];
    const int32_t step = p->spec.is_signed == from->spec.is_signed ? 0
                         : p->spec.is_signed                       ? -SIGN_STEP
                                                                   : SIGN_STEP;
    int32_t *zero = oct_arena_array(a, (size_t)from->n, sizeof(*zero));

    if (!zero) return OCT_ERR_MEMORY;
    for (int64_t k = 0; k < from->n; k++)
        zero[k] = from->zero[k] + step;
    if (from->n == 1) p->spec.axis = OCT_QSPEC_PER_TENSOR;
    p->scale_by = NULL; /* what calibration said counts no more */
    return oct_qpoint_set(m, i, from->scale, zero, from->n, BY);
}

/* One scale that covers the range. */
static oct_status cover(oct_qmap *m, int32_t i, float low, float high)
{
    oct_qpoint *p = &m->points[i];
    float scale;
    int32_t zero;

    p->spec.axis = OCT_QSPEC_PER_TENSOR;
    if (p->spec.is_symmetric && !p->spec.is_signed) p->spec.is_signed = low < 0;
    oct_qspec_solve(&p->spec, low, high, &scale, &zero);
    p->scale_by = NULL;
    return oct_qpoint_set(m, i, &scale, &zero, 1, BY_RANGE);
}

static oct_status set_activation(oct_qmap *m, int32_t i, const oct_qmap *file, oct_arena *a,
                                 oct_retargeted *r)
{
    const oct_qpoint *p = &m->points[i];
    found f = {.file = file};

    look_up(m, i, &f);
    if (!f.point && p->n == 0 && is_share(p->value)) return cover(m, i, 0, 1);
    if (!f.point) {
        r->missing++;
        return OCT_OK;
    }
    if (!f.differ && can_hold(p, f.point)) {
        r->kept++;
        return take(m, i, f.point, a);
    }
    r->fitted++;
    return cover(m, i, f.low, f.high);
}

/* --- what has no scale --- */

static oct_status drop_unsolved(oct_qmap *m)
{
    for (int32_t i = 0; i < m->n_points; i++) {
        const oct_qpoint *p = &m->points[i];

        if (p->role != OCT_QROLE_ACT || p->state == OCT_QSTATE_OFF || p->value->data) continue;
        if (oct_qmap_root(m, i)->n == 0)
            OCT_TRY(oct_qpoint_switch_off(m, i, "the file has no scale for it"));
    }
    return OCT_OK;
}

static oct_status keep_float(oct_qmap *m, const oct_node *n)
{
    static const char why[] =
        "the file has no scale for its input; calibration pictures would give one";

    for (int32_t i = 0; i < m->n_points; i++)
        if (m->points[i].node == n && m->points[i].state != OCT_QSTATE_OFF)
            OCT_TRY(oct_qpoint_switch_off(m, i, why));
    return oct_qmap_set_float(m, n, OCT_FLOAT_INPUT, why);
}

/* Layers whose input is float now. */
static oct_status drop_layers(oct_qmap *m, oct_arena *a)
{
    for (int32_t i = 0; i < m->n_points; i++) {
        const oct_qpoint *p = &m->points[i];
        const float *scale;
        const int32_t *zero;
        bool is_integer = false;
        int64_t n;

        if (p->role != OCT_QROLE_WEIGHT || p->state != OCT_QSTATE_ACTIVE || !p->node) continue;
        oct_arena_reset(a);
        OCT_TRY(oct_place_input_scales(m, p->node, 0, a, &n, &scale, &zero, &is_integer));
        if (!is_integer) OCT_TRY(keep_float(m, p->node));
    }
    return OCT_OK;
}

oct_status oct_retarget_activations(oct_qmap *m, const oct_qmap *file, oct_retargeted *r)
{
    oct_arena *a = oct_arena_new(m->ctx);
    oct_status st = a ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t i = 0; i < m->n_points && !st; i++) {
        const oct_qpoint *p = &m->points[i];

        if (p->role != OCT_QROLE_ACT || p->state != OCT_QSTATE_ACTIVE || p->value->data) continue;
        st = set_activation(m, i, file, a, r);
        oct_arena_reset(a);
    }
    if (!st) st = drop_unsolved(m);
    if (!st) st = drop_layers(m, a);
    oct_arena_free(a);
    return st;
}

/* --- weights --- */

oct_status oct_retarget_weights(oct_qmap *m, const oct_qmap *file, oct_retargeted *r)
{
    oct_arena *a = oct_arena_new(m->ctx);
    oct_status st = a ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t i = 0; i < m->n_points && !st; i++) {
        const oct_qpoint *p = &m->points[i], *from;
        bool fits = false;
        int32_t k;

        if (p->role != OCT_QROLE_WEIGHT || p->state != OCT_QSTATE_ACTIVE || !p->node) continue;
        if ((k = oct_qmap_at(file, p->node, p->operand)) < 0) continue;
        from = oct_qmap_root(file, k);
        if (from->n == 0 || from->role != OCT_QROLE_WEIGHT) continue;
        st = oct_weight_take_scales(m, i, from, a, &fits);
        r->kept += fits;
        r->fitted += !fits;
        oct_arena_reset(a);
    }
    oct_arena_free(a);
    return st;
}
