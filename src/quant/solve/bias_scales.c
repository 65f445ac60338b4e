/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of biases. A bias of 32 bits has the scale of the accumulator it is added to. One of 8 or
 * 16 bits has a power of two of its own: it is shifted left onto the accumulator, so that power is
 * at least the accumulator's, and at most as much more as the shifter can do.
 */
#include <float.h>
#include <math.h>

#include "op/op.h"
#include "quant/npu/limits.h"
#include "quant/solve/solve.h"

enum { FINER = 4 }; /* exponents below the one that covers all values: large ones are clipped */

int32_t oct_operand_of_role(const oct_node *n, oct_qrole role)
{
    for (int32_t i = 0; i < OCT_MAX_IN; i++)
        if (n->op->quant.in[i] == role) return i;
    return -1;
}

oct_value *oct_own_bias(const oct_node *n)
{
    const int32_t b = oct_operand_of_role(n, OCT_QROLE_BIAS);
    oct_value *v = b >= 0 ? oct_node_in(n, b) : NULL;

    return v && v->data && v->type.dtype == OCT_DTYPE_F32 && v->n_users == 1 ? v : NULL;
}

static int64_t group_of(const oct_node *n)
{
    const oct_attr *a = oct_node_attr(n, "group");

    return a && a->kind == OCT_ATTR_INT ? a->i : 1;
}

oct_status oct_accumulator_scales(const oct_qmap *m, const oct_node *n, int64_t n_out, oct_arena *a,
                                  oct_scales *out)
{
    const int32_t w = oct_operand_of_role(n, OCT_QROLE_WEIGHT);
    const int32_t k = w >= 0 ? oct_qmap_at(m, n, w) : -1;
    const oct_qpoint *p = k >= 0 ? &m->points[k] : NULL;
    const oct_qpoint *root = p ? oct_qmap_root(m, k) : NULL;
    const float *x = p ? &p->fold_scale : NULL;
    const int32_t *zero;
    bool is_integer = true;
    int64_t n_x = 1;

    out->n = 0;
    if (!p || p->state == OCT_QSTATE_OFF || root->n < 1) return OCT_OK;
    if (!p->fold) OCT_TRY(oct_place_input_scales(m, n, 0, a, &n_x, &x, &zero, &is_integer));
    /* With scales by input channel, an accumulator has one scale only if a filter reads one
     * channel. */
    if (!is_integer || (n_x > 1 && (group_of(n) != n_x || n_out % n_x != 0))) return OCT_OK;
    if (root->n > 1 && n_out % root->n != 0) return OCT_OK;
    out->n = n_x > 1 || root->n > 1 ? n_out : 1;
    if (!(out->s = oct_arena_array(a, (size_t)out->n, sizeof(float)))) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < out->n; i++)
        out->s[i] = x[n_x > 1 ? i / (n_out / n_x) : 0] * root->scale[root->n > 1 ? i % root->n : 0];
    return OCT_OK;
}

static double squared_error(const oct_qspec *spec, float scale, const float *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        const double e =
            (double)b[i] - (double)oct_qspec_value(scale, 0, oct_qspec_code(spec, scale, 0, b[i]));

        sum += e * e;
    }
    return sum;
}

/* The power of two times `unit` under which n values lose least. */
static float best_scale(const oct_qspec *spec, float unit, const float *b, int64_t n)
{
    int32_t low, high;
    double top = 0, least = DBL_MAX;
    float best = unit;
    int covers = 0;

    oct_qspec_limits(spec, &low, &high);
    for (int64_t i = 0; i < n; i++)
        top = fmax(top, fabs((double)b[i]));
    while (covers < OCT_NPU_BIAS_SHIFT && rint(top / (double)ldexpf(unit, covers)) > high)
        covers++;
    for (int k = OCT_MAX(covers - FINER, 0); k <= covers; k++) {
        const double e = squared_error(spec, ldexpf(unit, k), b, n);

        if (e > least) continue;
        least = e;
        best = ldexpf(unit, k);
    }
    return best;
}

void oct_bias_scales(const oct_qspec *spec, const float *bias, int64_t len, oct_scales *s)
{
    if (spec->bits >= 32 || (s->n != 1 && s->n != len)) return;
    for (int64_t i = 0; i < s->n; i++)
        s->s[i] = s->n > 1 ? best_scale(spec, s->s[i], bias + i, 1)
                           : best_scale(spec, s->s[i], bias, len);
}

/* The bias as it will be: with what correction adds. */
static oct_status corrected(const oct_qmap *m, const oct_qpoint *p, oct_arena *a, float **out)
{
    const oct_tensor *t = p->value->data;
    const int64_t len = oct_tensor_len(t);
    const oct_qshift *s = oct_qmap_shift_of(m, p->node);

    if (!(*out = oct_arena_array(a, (size_t)len + 1, sizeof(float)))) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < len; i++)
        (*out)[i] = ((const float *)t->data)[i] + (s && s->n == len ? s->shift[i] : 0);
    return OCT_OK;
}

static oct_status solve_bias(oct_qmap *m, int32_t i, oct_arena *a)
{
    oct_qpoint *p = &m->points[i];
    const int64_t len = oct_tensor_len(p->value->data);
    oct_scales s = {0};
    int32_t *zero;
    float *bias;

    OCT_TRY(oct_accumulator_scales(m, p->node, len, a, &s));
    if (s.n < 1 || (s.n > 1 && s.n != len)) return OCT_OK;
    OCT_TRY(corrected(m, p, a, &bias));
    oct_bias_scales(&p->spec, bias, len, &s);
    if (!(zero = oct_arena_array(a, (size_t)s.n, sizeof(*zero)))) return OCT_ERR_MEMORY;
    p->state = OCT_QSTATE_ACTIVE; /* its scales are its own */
    p->spec.axis = s.n > 1 ? p->value->type.rank - 1 : OCT_QSPEC_PER_TENSOR;
    return oct_qpoint_set(m, i, s.s, zero, s.n, "least error");
}

oct_status oct_solve_biases(oct_qmap *m)
{
    oct_arena *a;
    oct_status st = OCT_OK;

    if (m->target->bias != OCT_BIAS_POW2 || m->target->bias_spec.bits >= 32) return OCT_OK;
    if (!(a = oct_arena_new(m->ctx))) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < m->n_points && !st; i++) {
        const oct_qpoint *p = &m->points[i];

        if (p->role != OCT_QROLE_BIAS || p->state != OCT_QSTATE_PASSIVE || !p->node) continue;
        if (p->value->data && p->value->type.dtype == OCT_DTYPE_F32) st = solve_bias(m, i, a);
        oct_arena_reset(a);
    }
    oct_arena_free(a);
    return st;
}
