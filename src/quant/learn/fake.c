/* SPDX-License-Identifier: Apache-2.0 */
/* Scales and zero points as constants that can be learned, and what was learned back to the qmap.
 */
#include "quant/learn/fake.h"

#include <math.h>
#include <string.h>

#include "op/op.h"
#include "quant/learn/fake_parts.h"
#include "quant/solve/solve.h"

/* --- constants --- */

static oct_status add_constant(oct_fake *f, const oct_qpoint *p, const char *suffix,
                               oct_value **out)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, &p->n);
    const char *base =
        p->node ? oct_arena_printf(f->g->arena, "%s_%s_%s", p->value->name, p->node->name, suffix)
                : oct_arena_printf(f->g->arena, "%s_%s", p->value->name, suffix);
    const char *name = base ? oct_graph_fresh_name(f->g, base) : NULL;
    oct_tensor *t = NULL;

    if (!name) return OCT_ERR_MEMORY;
    OCT_TRY(oct_tensor_make(f->ctx, &type, &t));
    return (*out = oct_value_const(f->g, name, t)) ? OCT_OK : OCT_ERR_MEMORY;
}

static bool has_zero(const oct_qpoint *p)
{
    for (int64_t i = 0; i < p->n; i++)
        if (p->zero[i]) return true;
    return !p->spec.is_symmetric;
}

/*
 * Scales of activations for each channel are fixed: factors folded into the weights of consumers
 * follow from them.
 */
static unsigned learns(const oct_fake_options *o, const oct_qpoint *p)
{
    unsigned of = 0;

    if (p->role == OCT_QROLE_ACT && p->n > 1) return 0;
    if (!o->fix_scales) of = OCT_FAKE_LEARNS_STEP;
    if (of && o->clips_only && p->role == OCT_QROLE_ACT) of |= OCT_FAKE_CLIPS_ONLY;
    return of | (o->learn_zeros && !p->spec.is_symmetric ? OCT_FAKE_LEARNS_ZERO : 0);
}

static oct_status add_point(oct_fake *f, int32_t index, const oct_fake_options *o)
{
    const oct_qpoint *p = &f->m->points[index];
    oct_fake_point *to = &f->of_point[index];

    to->kind = p->spec.is_pow2   ? OCT_STEP_LOG2_WHOLE
               : o->plain_scales ? OCT_STEP_SCALE
                                 : OCT_STEP_LOG2;
    to->learns = learns(o, p);
    OCT_TRY(add_constant(f, p, "step", &to->step));
    for (int64_t i = 0; i < p->n; i++)
        ((float *)to->step->data->data)[i] =
            (float)oct_step_of_scale(to->kind, (double)p->scale[i]);
    if (!has_zero(p)) return OCT_OK;
    OCT_TRY(add_constant(f, p, "zero", &to->zero));
    for (int64_t i = 0; i < p->n; i++)
        ((float *)to->zero->data->data)[i] = (float)p->zero[i];
    return OCT_OK;
}

/* Biases at the scale of their accumulators have 32 bits: rounding them changes nothing. */
static bool is_rounded(const oct_qpoint *p)
{
    return p->state == OCT_QSTATE_ACTIVE && p->n > 0 &&
           (p->role == OCT_QROLE_ACT || p->role == OCT_QROLE_WEIGHT || p->spec.bits <= 16);
}

/* --- biases --- */

/* What correction adds moves into the biases that learning goes on from. Where there is none, it
 * stays a constant that is added (fake_insert.c). */
static oct_status merge_shifts(oct_fake *f)
{
    for (int32_t i = 0; i < f->m->n_shifts; i++) {
        const oct_qshift *s = &f->m->shifts[i];
        oct_value *v = oct_own_bias(s->node);
        oct_tensor *t = NULL;

        if (!v || oct_tensor_len(v->data) != s->n) continue;
        OCT_TRY(oct_tensor_copy(f->ctx, v->data, &t));
        for (int64_t k = 0; k < s->n; k++)
            ((float *)t->data)[k] += s->shift[k];
        memset(s->shift, 0, (size_t)s->n * sizeof(*s->shift));
        oct_tensor_unref(v->data);
        v->data = t;
    }
    return OCT_OK;
}

/* --- making it --- */

static oct_status fill(oct_fake *f, const oct_fake_options *o)
{
    if (!(f->arena = oct_arena_new(f->ctx))) return OCT_ERR_MEMORY;
    f->of_point = oct_arena_array(f->arena, (size_t)f->m->n_points + 1, sizeof(*f->of_point));
    if (!f->of_point) return OCT_ERR_MEMORY;
    OCT_TRY(merge_shifts(f));
    for (int32_t i = 0; i < f->m->n_points; i++) /* biases learn what these made up for */
        if (f->m->points[i].n_moved) OCT_TRY(oct_qpoint_move(f->m, i, NULL, 0));
    for (int32_t i = 0; i < f->m->n_points; i++)
        if (is_rounded(&f->m->points[i])) OCT_TRY(add_point(f, i, o));
    return OCT_OK;
}

oct_status oct_fake_new(oct_graph *g, oct_qmap *m, const oct_fake_options *o, oct_fake **out)
{
    oct_fake *f = oct_calloc(g->ctx, 1, sizeof(*f));
    oct_status st;

    if (!f) return OCT_ERR_MEMORY;
    f->ctx = g->ctx;
    f->g = g;
    f->m = m;
    f->n_nodes = g->n_node_ids;
    st = fill(f, o);
    if (st) {
        oct_fake_free(f);
        return st;
    }
    *out = f;
    return OCT_OK;
}

void oct_fake_free(oct_fake *f)
{
    if (!f) return;
    oct_arena_free(f->arena);
    oct_free(f->ctx, f);
}

/* --- back --- */

static const float *learned_data(const oct_graph *learned, const oct_value *v)
{
    return learned->root->values[v->id]->data->data;
}

static oct_status take_scales(oct_fake *f, int32_t index, const oct_graph *learned)
{
    const oct_fake_point *from = &f->of_point[index];
    const oct_qpoint *p = &f->m->points[index];
    const float *step = learned_data(learned, from->step);
    const float *zero = from->zero ? learned_data(learned, from->zero) : NULL;
    float *scale = oct_calloc(f->ctx, (size_t)p->n, sizeof(*scale));
    int32_t *z = oct_calloc(f->ctx, (size_t)p->n, sizeof(*z)), low, high;
    oct_status st = scale && z ? OCT_OK : OCT_ERR_MEMORY;

    oct_qspec_limits(&p->spec, &low, &high);
    for (int64_t i = 0; i < p->n && !st; i++) {
        const double at = zero ? rint((double)zero[i]) : 0;

        scale[i] = (float)oct_step_scale(from->kind, (double)step[i]);
        z[i] = (int32_t)fmin(fmax(at, low), high);
    }
    if (!st && from->learns) st = oct_qpoint_set(f->m, index, scale, z, p->n, "learned");
    oct_free(f->ctx, scale);
    oct_free(f->ctx, z);
    return st;
}

/* Is this the only point of its value? Else one grid would spoil the other. */
static bool is_only_point(const oct_qmap *m, int32_t index)
{
    for (int32_t i = 0; i < m->n_points; i++)
        if (i != index && m->points[i].value == m->points[index].value &&
            m->points[i].state != OCT_QSTATE_OFF)
            return false;
    return true;
}

/* Elements around the axis of the scales share one of them. */
static void round_to_codes(const oct_qpoint *p, float *w, const oct_type *t)
{
    const int64_t inner = p->n > 1 ? oct_type_span(t, p->spec.axis + 1, t->rank) : 1;
    const int64_t below = t->rank > 1 ? oct_type_span(t, 2, t->rank) : 1;
    const int64_t len = oct_type_len(t);
    oct_qspec even = p->spec; /* as FakeQuant rounds */

    even.rounding = OCT_QROUND_HALF_EVEN;
    for (int64_t i = 0; i < len; i++) {
        const int64_t k = p->n > 1 ? i / inner % p->n : 0;
        float fold = 1;

        if (p->fold)
            fold = p->fold[i / (t->dim[1] * below) % p->fold_rows * p->fold_columns +
                           i / below % t->dim[1] % p->fold_columns];
        w[i] = oct_qspec_value(p->scale[k], p->zero[k],
                               oct_qspec_code(&even, p->scale[k], p->zero[k], w[i] * fold)) /
               fold;
    }
}

/* Constants of g become those that were learned. */
static oct_status take_constants(oct_fake *f, const oct_graph *learned)
{
    for (int32_t i = 0; i < f->g->n_value_ids; i++) {
        oct_value *v = f->g->values[i], *from = learned->values[i];

        if (!v || !v->data || !from || !from->data || v->data == from->data) continue;
        oct_tensor_unref(v->data);
        v->data = oct_tensor_ref(from->data);
    }
    return OCT_OK;
}

static oct_status take_codes(oct_fake *f, int32_t index)
{
    const oct_qpoint *p = &f->m->points[index];
    oct_value *v = f->g->values[p->value->id];
    oct_tensor *t = NULL;

    if (p->role == OCT_QROLE_ACT || !v->data || !is_only_point(f->m, index)) return OCT_OK;
    OCT_TRY(oct_tensor_copy(f->ctx, v->data, &t));
    round_to_codes(p, t->data, &t->type);
    oct_tensor_unref(v->data);
    v->data = t;
    return OCT_OK;
}

oct_status oct_fake_take(oct_fake *f, const oct_graph *learned)
{
    OCT_TRY(take_constants(f, learned));
    for (int32_t i = 0; i < f->m->n_points; i++) {
        if (!f->of_point[i].step) continue;
        OCT_TRY(take_scales(f, i, learned));
        OCT_TRY(take_codes(f, i));
    }
    return OCT_OK;
}

void oct_fake_step(const oct_fake *f, const char *name, float *out, int64_t n)
{
    for (int32_t i = 0; i < f->m->n_points; i++) {
        const oct_fake_point *at = &f->of_point[i];
        const oct_qpoint *p = &f->m->points[i];

        if (!at->step || p->n != n || strcmp(at->step->name, name) != 0) continue;
        for (int64_t k = 0; k < n; k++)
            out[k] = (float)oct_step_of_scale(at->kind, (double)p->scale[k]);
    }
}

/* Between weights that have codes; those of a channel that is all zeros hardly count. */
static double mean_step(const oct_qpoint *p)
{
    const int64_t n_folds = p->fold ? p->fold_rows * p->fold_columns : 0;
    double scale = 0, unfold = n_folds ? 0 : 1;

    for (int64_t i = 0; i < p->n; i++)
        scale += (double)p->scale[i] / (double)p->n;
    for (int64_t i = 0; i < n_folds; i++)
        unfold += 1 / (double)p->fold[i] / (double)n_folds;
    return scale * unfold;
}

oct_fake_grid oct_fake_grid_of(const oct_fake *f, const oct_value *v)
{
    oct_fake_grid out = {0};

    for (int32_t i = 0; i < f->m->n_points && v && !(out.step > 0); i++) {
        const oct_qpoint *p = &f->m->points[i];
        int32_t low, high;

        if (!f->of_point[i].step || p->value->id != v->id) continue;
        oct_qspec_limits(&p->spec, &low, &high);
        out.step = mean_step(p);
        out.step_of_8_bits = out.step * (high - low) / 255.0;
    }
    return out;
}
