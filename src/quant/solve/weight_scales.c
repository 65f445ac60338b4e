/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of weights. Where an input has a scale for each channel, the weights take those scales in
 * first (w * fold), so that the accumulator needs only one: no cost at run time, and none in
 * accuracy as long as weights have a scale for each output.
 */
#include <math.h>
#include <string.h>

#include "op/conv_geometry.h"
#include "op/op.h"
#include "quant/npu/limits.h"
#include "quant/observe/observer.h"
#include "quant/solve/round_weights.h"
#include "quant/solve/solve.h"

/* Factors for each input channel, if those have different scales. */
static oct_status find_fold(oct_qmap *m, oct_qpoint *p, const oct_weight_axes *ax, oct_arena *a)
{
    const float *scale;
    const int32_t *zero;
    int64_t n;
    bool is_integer, same = true;
    float most = 0;

    OCT_TRY(oct_place_input_scales(m, p->node, 0, a, &n, &scale, &zero, &is_integer));
    if (!is_integer || n <= 1 || ax->n_in == 1 || !oct_node_is(p->node, &oct_op_conv))
        return OCT_OK;
    for (int64_t c = 0; c < n; c++) {
        most = OCT_MAX(most, scale[c]);
        same = same && scale[c] == scale[0];
    }
    if (same || n != ax->n_in * ax->groups) return OCT_OK;
    p->fold_rows = ax->groups == 1 ? 1 : ax->n_out;
    p->fold_columns = ax->n_in;
    p->fold_scale = most;
    p->fold = oct_arena_array(m->arena, (size_t)(p->fold_rows * ax->n_in), sizeof(float));
    if (!p->fold) return OCT_ERR_MEMORY;
    for (int64_t r = 0; r < p->fold_rows; r++)
        for (int64_t c = 0; c < ax->n_in; c++) {
            const int64_t group = ax->groups == 1 ? 0 : r / (ax->n_out / ax->groups);

            p->fold[r * ax->n_in + c] = scale[group * ax->n_in + c] / most;
        }
    return OCT_OK;
}

/* The weight as it is quantized: with the factors. */
static oct_status folded(const oct_qpoint *p, oct_arena *a, float **out)
{
    const oct_tensor *w = p->value->data;
    const int64_t len = oct_tensor_len(w), inner = oct_type_span(&w->type, 2, w->type.rank);
    float *x = oct_arena_array(a, (size_t)len + 1, sizeof(float));

    if (!(*out = x)) return OCT_ERR_MEMORY;
    memcpy(x, w->data, (size_t)len * sizeof(float));
    for (int64_t i = 0; p->fold && i < len; i++) {
        const int64_t c = i / inner % w->type.dim[1], o = i / inner / w->type.dim[1];

        x[i] *= p->fold[(p->fold_rows == 1 ? 0 : o) * p->fold_columns + c];
    }
    return OCT_OK;
}

/* A tensor seen along one axis: [outer, n, inner]. */
typedef struct lanes {
    int64_t outer, n, inner;
} lanes;

static lanes lanes_of(const oct_tensor *w, int axis)
{
    if (axis == OCT_QSPEC_PER_TENSOR) return (lanes){1, 1, oct_tensor_len(w)};
    return (lanes){oct_type_span(&w->type, 0, axis), w->type.dim[axis],
                   oct_type_span(&w->type, axis + 1, w->type.rank)};
}

/* A bias is stored in 32 bits at input scale * weight scale. A channel whose weights are next to
 * nothing beside its bias (dead ones: scales of 1e-11) gets a scale that leaves the bias room, and
 * as much again for its correction. Below this, weights move the accumulator by less than a
 * rounding of the result, so live channels never come near. */
#define BIAS_ROOM 0x1p29

/* A product of code and scale, divided by the scale again. */
#define CODE_ERROR 0x1p-9f

/* Fewer bits reach as far as they can be shifted. */
static double bias_room(const oct_target *t)
{
    if (t->bias != OCT_BIAS_POW2 || t->bias_spec.bits >= 32) return BIAS_ROOM;
    return ldexp(1, t->bias_spec.bits - 2 + OCT_NPU_BIAS_SHIFT);
}

static oct_status leave_room_for_bias(const oct_qmap *m, const oct_qpoint *p, float *scale,
                                      int64_t n, oct_arena *a, bool *is_changed)
{
    const oct_tensor *bias = p->node && p->node->n_in > 2 ? oct_node_const(p->node, 2) : NULL;
    const float *x = &p->fold_scale;
    const int32_t *zero;
    bool is_integer = true;
    int64_t n_x = 1, n_bias;

    if (p->role != OCT_QROLE_WEIGHT || !bias || bias->type.dtype != OCT_DTYPE_F32) return OCT_OK;
    if (!p->fold) OCT_TRY(oct_place_input_scales(m, p->node, 0, a, &n_x, &x, &zero, &is_integer));
    n_bias = oct_tensor_len(bias);
    if (!is_integer || n_bias < 1 || n_bias % n || n_bias % n_x) return OCT_OK;
    for (int64_t i = 0; i < n_bias; i++) {
        float *s = &scale[n > 1 ? i % n : 0];
        const double b = fabs((double)((const float *)bias->data)[i]);
        double least = b / bias_room(m->target) / (double)x[i / (n_bias / n_x)];

        if (!(least > (double)*s) || !(least < 0x1p120)) continue;
        if (p->spec.is_pow2) least = exp2(ceil(log2(least)));
        *s = (float)least;
        *is_changed = true;
    }
    return OCT_OK;
}

/* What is quantized, and how its range was found. */
static oct_status note_weight(oct_qmap *m, oct_qpoint *p, const float *x, const char *kind)
{
    const int64_t n = oct_tensor_len(p->value->data);

    p->has_seen = n > 0;
    p->seen_low = p->seen_high = n > 0 ? x[0] : 0;
    for (int64_t i = 1; i < n; i++) {
        p->seen_low = OCT_MIN(p->seen_low, x[i]);
        p->seen_high = OCT_MAX(p->seen_high, x[i]);
    }
    return (p->observer = oct_arena_strdup(m->arena, kind)) ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status solve_weight(oct_qmap *m, int32_t i, const char *kind, oct_arena *a)
{
    oct_qpoint *p = &m->points[i];
    const oct_tensor *w = p->value->data;
    const lanes l = lanes_of(w, p->spec.axis);
    float *x, *lane = oct_arena_array(a, (size_t)(l.outer * l.inner) + 1, sizeof(float));
    float *scale = oct_arena_array(a, (size_t)l.n + 1, sizeof(float));
    int32_t *zero = oct_arena_array(a, (size_t)l.n + 1, sizeof(int32_t));
    bool has_room = false;
    const char *by;

    if (!lane || !scale || !zero) return OCT_ERR_MEMORY;
    OCT_TRY(folded(p, a, &x));
    for (int64_t c = 0; c < l.n; c++) {
        float low, high;

        for (int64_t o = 0; o < l.outer; o++)
            memcpy(lane + o * l.inner, x + (o * l.n + c) * l.inner,
                   (size_t)l.inner * sizeof(float));
        for (int64_t k = 0; k < l.outer * l.inner; k++)
            if (!isfinite(lane[k]))
                return oct_node_fail(p->node, OCT_ERR_FORMAT, "its weight '%s' is not finite",
                                     p->value->name);
        OCT_TRY(oct_weight_range(m->ctx, kind, &p->spec, lane, l.outer * l.inner, 1, &low, &high));
        oct_qspec_solve(&p->spec, low, high, &scale[c], &zero[c]);
    }
    OCT_TRY(leave_room_for_bias(m, p, scale, l.n, a, &has_room));
    OCT_TRY(note_weight(m, p, x, kind));
    by = oct_arena_printf(a, "%s%s%s", kind, p->fold ? ", input scales folded in" : "",
                          has_room ? ", room for bias" : "");
    return by ? oct_qpoint_set(m, i, scale, zero, l.n, by) : OCT_ERR_MEMORY;
}

static const char *kind_of(const oct_qpoint *p, const oct_target *t, const oct_quantize_options *o)
{
    if (p->role != OCT_QROLE_WEIGHT) return "max";
    return p->observer ? p->observer : o->weight_ranges ? o->weight_ranges : t->weight_ranges;
}

oct_status oct_solve_weight_again(oct_qmap *m, int32_t i, const oct_target *t,
                                  const oct_quantize_options *o)
{
    oct_arena *a = oct_arena_new(m->ctx);
    oct_status st;

    m->points[i].scale_by = NULL;
    st = a ? solve_weight(m, i, kind_of(&m->points[i], t, o), a) : OCT_ERR_MEMORY;
    oct_arena_free(a);
    return st;
}

oct_status oct_solve_weights(oct_qmap *m, const oct_target *t, const oct_quantize_options *o)
{
    oct_arena *a = oct_arena_new(m->ctx);
    oct_status st = a ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t i = 0; i < m->n_points && !st; i++) {
        oct_qpoint *p = &m->points[i];
        oct_weight_axes ax;

        if (p->state != OCT_QSTATE_ACTIVE || !p->value->data) continue;
        if (p->role == OCT_QROLE_WEIGHT && p->node && oct_weight_axes_of(p->node, &ax))
            st = find_fold(m, p, &ax, a);
        if (!st) st = solve_weight(m, i, kind_of(p, t, o), a);
        oct_arena_reset(a);
    }
    oct_arena_free(a);
    return st;
}

/* --- scales that others found --- */

/* Is x a code of this scale, but for the rounding of their product? */
static bool has_code(const oct_qspec *s, float scale, float x)
{
    const float code = x / scale, whole = rintf(code);
    int32_t low, high;

    oct_qspec_limits(s, &low, &high);
    return fabsf(code - whole) <= CODE_ERROR && whole >= (float)low && whole <= (float)high;
}

/* All targets take the lowest code of files that have it. */
static bool have_codes(const oct_qpoint *p, const oct_qpoint *from, const float *x)
{
    const lanes l = lanes_of(p->value->data, p->spec.axis);
    oct_qspec s = p->spec;
    int e;

    s.is_narrow = s.is_narrow && s.bits < 8;
    for (int64_t k = 0; k < l.outer * l.n * l.inner; k++)
        if (!has_code(&s, from->scale[from->n > 1 ? k / l.inner % l.n : 0], x[k])) return false;
    for (int64_t k = 0; k < from->n && s.is_pow2; k++)
        if (frexpf(from->scale[k], &e) != 0.5f) return false;
    return true;
}

oct_status oct_weight_take_scales(oct_qmap *m, int32_t i, const oct_qpoint *from, oct_arena *a,
                                  bool *fits)
{
    oct_qpoint *p = &m->points[i];
    const lanes l = lanes_of(p->value->data, p->spec.axis);
    float *x, *scale = oct_arena_array(a, (size_t)l.n + 1, sizeof(*scale));
    int32_t *zero = oct_arena_array(a, (size_t)l.n + 1, sizeof(*zero));

    *fits = false;
    if (!scale || !zero) return OCT_ERR_MEMORY;
    if (!p->spec.is_symmetric || !p->spec.is_signed) return OCT_OK;
    if (from->n > 1 && (from->n != l.n || from->spec.axis != p->spec.axis)) return OCT_OK;
    OCT_TRY(folded(p, a, &x));
    if (!have_codes(p, from, x)) return OCT_OK;
    for (int64_t k = 0; k < l.n; k++)
        scale[k] = from->scale[from->n > 1 ? k : 0];
    *fits = true;
    if (p->spec.bits == 8) p->spec.is_narrow = false;
    p->scale_by = NULL;
    return oct_qpoint_set(m, i, scale, zero, l.n, "the file");
}

oct_status oct_weight_values(const oct_qpoint *p, bool error, oct_arena *a, float **out)
{
    const oct_tensor *w = p->value->data;
    const lanes l = lanes_of(w, p->spec.axis);
    const int64_t inner = oct_type_span(&w->type, 2, w->type.rank);
    const int64_t taps = oct_weight_taps(p);
    const float *original = w->data;
    float *x;

    OCT_TRY(folded(p, a, &x));
    for (int64_t at = 0; at < oct_tensor_len(w); at += taps) {
        const int64_t k = p->n > 1 ? at / l.inner % l.n : 0;
        int32_t code[OCT_MAX_TAPS];

        oct_round_weights(&p->spec, p->scale[k], p->zero[k], x + at, code, taps);
        for (int64_t i = 0; i < taps; i++)
            x[at + i] = oct_qspec_value(p->scale[k], p->zero[k], code[i]);
    }
    for (int64_t i = 0; i < p->n_moved; i++) {
        const int64_t at = (p->moved[i] < 0 ? -p->moved[i] : p->moved[i]) - 1;
        const float step = p->scale[p->n > 1 ? at / l.inner % l.n : 0];

        x[at] += p->moved[i] < 0 ? -step : step;
    }
    for (int64_t i = 0; i < oct_tensor_len(w); i++) {
        const int64_t c = p->fold ? i / inner % w->type.dim[1] : 0;
        const int64_t o = p->fold ? i / inner / w->type.dim[1] : 0;

        if (p->fold) x[i] /= p->fold[(p->fold_rows == 1 ? 0 : o) * p->fold_columns + c];
        if (error) x[i] -= original[i];
    }
    *out = x;
    return OCT_OK;
}
