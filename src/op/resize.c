/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample: any axes to another length, by interpolation. */
#include "op/resample.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "op/channels.h"
#include "op/grad/layers.h"
#include "op/move.h"

enum {
    ANTIALIAS,
    AXES,
    COORD,
    CUBIC_A,
    EXCLUDE_OUTSIDE,
    EXTRAPOLATION,
    KEEP_ASPECT,
    MODE,
    NEAREST_MODE,
};
enum { UPSAMPLE_MODE };
enum { GRAIN = 16 * 1024 }; /* elements */

#define MAX_DIM ((int64_t)1 << 40)

/* Everything a Resize does, per axis of the operand. */
typedef struct spec {
    oct_resample how;
    bool axis_used[OCT_MAX_RANK];
    oct_resample_axis axis[OCT_MAX_RANK]; /* out = -1: not known */
} spec;

/* The operands that decide: any may be NULL. */
typedef struct sources {
    const oct_tensor *roi, *scales, *sizes;
    bool unknown; /* scales or sizes are given, but only at run time */
} sources;

static oct_status word(const oct_node *n, const char *attr, const char *const *words, int *out)
{
    const char *s = oct_node_attr(n, attr)->s;

    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], s) == 0) {
            *out = i;
            return OCT_OK;
        }
    return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "%s '%.40s' is not known", attr, s);
}

oct_status oct_resample_read(const oct_node *n, oct_resample *r)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const coords[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
    static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil",
                                         NULL};
    int mode = 0, coord = 0, round = 0;

    OCT_TRY(word(n, "mode", modes, &mode));
    OCT_TRY(word(n, "coordinate_transformation_mode", coords, &coord));
    OCT_TRY(word(n, "nearest_mode", rounds, &round));
    *r = (oct_resample){.mode = (oct_resample_mode)mode,
                        .coord = (oct_resample_coord)coord,
                        .round = (oct_resample_round)round,
                        .cubic_a = (double)oct_node_attr(n, "cubic_coeff_a")->f,
                        .antialias = oct_node_attr(n, "antialias")->i != 0,
                        .exclude_outside = oct_node_attr(n, "exclude_outside")->i != 0};
    return OCT_OK;
}

/* The axes that scales, sizes and roi speak of, in their order. */
static oct_status read_axes(const oct_node *n, int32_t rank, int32_t axes[OCT_MAX_RANK],
                            int32_t *count)
{
    bool seen[OCT_MAX_RANK] = {false};

    *count = rank;
    for (int32_t i = 0; i < rank; i++)
        axes[i] = i;
    if (!oct_has(n, AXES)) return OCT_OK;
    if (n->attr[AXES].n > rank) return oct_node_fail(n, OCT_ERR_SHAPE, "more axes than dims");
    *count = (int32_t)n->attr[AXES].n;
    for (int32_t i = 0; i < *count; i++) {
        OCT_TRY(oct_axis(n, n->attr[AXES].is[i], rank, &axes[i]));
        if (seen[axes[i]])
            return oct_node_fail(n, OCT_ERR_SHAPE, "axis %d is given twice", (int)axes[i]);
        seen[axes[i]] = true;
    }
    return OCT_OK;
}

static oct_status by_scale(const oct_node *n, const oct_tensor *scales, int32_t i,
                           oct_resample_axis *a)
{
    a->scale = oct_tensor_get_f64(scales, i);
    if (!(a->scale > 0) || !isfinite(a->scale))
        return oct_node_fail(n, OCT_ERR_SHAPE, "scale %g", a->scale);
    if (a->in < 0) return OCT_OK;
    /* In float, as ONNX's own shape inference does: 0.7 * 10 is 7. */
    const float out = floorf((float)a->in * (float)a->scale);
    if (out > (float)MAX_DIM) return oct_node_fail(n, OCT_ERR_SHAPE, "scale %g", a->scale);
    a->out = (int64_t)out;
    return OCT_OK;
}

static oct_status by_size(const oct_node *n, const oct_tensor *sizes, int32_t i,
                          oct_resample_axis *a)
{
    a->out = oct_tensor_get_i64(sizes, i);
    if (a->out < 0 || a->out > MAX_DIM)
        return oct_node_fail(n, OCT_ERR_SHAPE, "size %lld", (long long)a->out);
    if (a->in > 0) a->scale = (double)a->out / (double)a->in;
    return OCT_OK;
}

/* One scale for all axes, the smallest (not_larger) or the largest (not_smaller). */
static oct_status keep_aspect(const oct_node *n, spec *s, const int32_t *axes, int32_t count)
{
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
    double scale = 0;
    bool known = true;
    int policy = 0;

    OCT_TRY(word(n, "keep_aspect_ratio_policy", policies, &policy));
    if (policy == 0) return OCT_OK;
    for (int32_t i = 0; i < count; i++) {
        const oct_resample_axis *a = &s->axis[axes[i]];

        known = known && a->in >= 0;
        if (i == 0 || (policy == 1 ? a->scale < scale : a->scale > scale)) scale = a->scale;
    }
    for (int32_t i = 0; i < count; i++) {
        oct_resample_axis *a = &s->axis[axes[i]];
        const double out = floor(scale * (double)a->in + 0.5);

        if (known && out > (double)MAX_DIM)
            return oct_node_fail(n, OCT_ERR_SHAPE, "scale %g", scale);
        a->out = known ? (int64_t)out : -1;
        a->scale = scale;
    }
    return OCT_OK;
}

/* Fills s->axis from what is known of the operands. */
static oct_status resolve(const oct_node *n, const oct_type *x, const sources *src,
                          const int32_t *axes, int32_t count, spec *s)
{
    for (int32_t d = 0; d < x->rank; d++) {
        s->axis[d] = (oct_resample_axis){x->dim[d], x->dim[d], 1, 0, 1};
        s->axis_used[d] = false;
    }
    const oct_tensor *list = src->sizes ? src->sizes : src->scales;
    if (list && oct_tensor_len(list) != count)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%lld scales or sizes for %d axes",
                             (long long)oct_tensor_len(list), (int)count);
    if (!list && !src->unknown)
        return oct_node_fail(n, OCT_ERR_FORMAT, "neither scales nor sizes are given");
    for (int32_t i = 0; i < count; i++) {
        oct_resample_axis *a = &s->axis[axes[i]];

        s->axis_used[axes[i]] = true;
        a->out = -1;
        if (src->unknown) continue;
        if (src->sizes)
            OCT_TRY(by_size(n, src->sizes, i, a));
        else
            OCT_TRY(by_scale(n, src->scales, i, a));
        if (src->roi && oct_tensor_len(src->roi) == 2 * count) {
            a->roi_start = oct_tensor_get_f64(src->roi, i);
            a->roi_end = oct_tensor_get_f64(src->roi, count + i);
        }
    }
    return OCT_OK;
}

static oct_status check(const oct_node *n, const spec *s, int32_t rank)
{
    for (int32_t d = 0; d < rank; d++)
        if (s->axis[d].in == 0 && s->axis[d].out > 0)
            return oct_node_fail(n, OCT_ERR_SHAPE, "axis %d is empty", (int)d);
    return OCT_OK;
}

static bool has_data(const oct_tensor *t)
{
    return t && oct_tensor_len(t) > 0;
}

static oct_status resize_spec(const oct_node *n, const oct_type *x, const sources *src, spec *s)
{
    int32_t axes[OCT_MAX_RANK], count;

    OCT_TRY(oct_resample_read(n, &s->how));
    OCT_TRY(read_axes(n, x->rank, axes, &count));
    OCT_TRY(resolve(n, x, src, axes, count, s));
    if (src->sizes) OCT_TRY(keep_aspect(n, s, axes, count));
    return check(n, s, x->rank);
}

static oct_status upsample_spec(const oct_node *n, const oct_type *x, const sources *src, spec *s)
{
    const int32_t axes[OCT_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    const char *mode = n->attr[UPSAMPLE_MODE].s;

    if (strcmp(mode, "nearest") != 0 && strcmp(mode, "linear") != 0)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "mode '%.40s' is not known", mode);
    s->how = (oct_resample){.mode = strcmp(mode, "linear") == 0 ? OCT_RESAMPLE_LINEAR
                                                                : OCT_RESAMPLE_NEAREST,
                            .coord = OCT_COORD_ASYMMETRIC,
                            .round = OCT_ROUND_FLOOR};
    OCT_TRY(resolve(n, x, src, axes, x->rank, s));
    return check(n, s, x->rank);
}

typedef oct_status (*spec_fn)(const oct_node *n, const oct_type *x, const sources *src, spec *s);

static oct_status shape_of(const oct_infer *q, int i_roi, int i_scales, int i_sizes, spec_fn make)
{
    sources src = {oct_infer_data(q, i_roi), oct_infer_data(q, i_scales), NULL, false};
    const oct_type *x;
    spec s;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_movable(q, 0));
    q->out[0] = oct_type_unknown(x->dtype);
    if (x->rank < 0) return OCT_OK;
    if (i_sizes) src.sizes = oct_infer_data(q, i_sizes);
    src.unknown = !has_data(src.scales) && !has_data(src.sizes) &&
                  ((oct_infer_in(q, i_scales) && !src.scales) ||
                   (i_sizes && oct_infer_in(q, i_sizes) && !src.sizes));
    if (!has_data(src.sizes)) src.sizes = NULL;
    if (!has_data(src.scales)) src.scales = NULL;
    OCT_TRY(make(q->node, x, &src, &s));
    q->out[0] = *x;
    for (int32_t d = 0; d < x->rank; d++)
        q->out[0].dim[d] = s.axis[d].out;
    return OCT_OK;
}

static oct_status resize_shape(const oct_infer *q)
{
    if (oct_int(q->node, ANTIALIAS) && strcmp(q->node->attr[MODE].s, "nearest") == 0)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "antialias has no meaning for nearest");
    return shape_of(q, 1, 2, 3, resize_spec);
}

static oct_status upsample_shape(const oct_infer *q)
{
    return shape_of(q, q->node->n_in, 1, 0, upsample_spec); /* it has no roi and no sizes */
}

/* An axis that stays as it is. */
static bool is_same(const spec *s, int32_t d)
{
    const oct_resample_axis *a = &s->axis[d];

    return !s->axis_used[d] || (a->in == a->out && a->scale == 1.0 &&
                                (s->how.coord != OCT_COORD_TF_CROP_AND_RESIZE ||
                                 (a->roi_start == 0 && a->roi_end == 1)));
}

static oct_status run_nearest(const oct_args *a, const spec *s, double outside)
{
    const oct_type *x = &a->in[0]->type, *y = &a->out[0]->type;
    const int64_t *map[OCT_MAX_RANK] = {NULL};
    uint64_t value[2];

    for (int32_t d = 0; d < x->rank; d++) {
        oct_resample_table t;

        if (is_same(s, d)) continue;
        OCT_TRY(oct_resample_table_make(a->scratch, &s->how, &s->axis[d], &t));
        map[d] = t.index;
    }
    if (s->how.coord == OCT_COORD_TF_CROP_AND_RESIZE) {
        oct_store_f64(y->dtype, value, 0, 1, &outside);
        oct_move_fill(y->dtype, value, 0, a->out[0]->data, oct_type_len(y), a->n_threads);
    }
    oct_move_mapped(x, a->in[0]->data, y, a->out[0]->data, map, a->n_threads);
    return OCT_OK;
}

/* One axis of a tensor seen as [outer][n][inner]. */
typedef struct axis_job {
    const double *src;
    double *dst;
    const oct_resample_table *table;
    int64_t in, out, inner;
    double outside;
} axis_job;

static void run_axis(void *arg, int64_t begin, int64_t end)
{
    const axis_job *j = arg;
    const int64_t taps = j->table->taps;

    for (int64_t row = begin; row < end; row++) {
        const int64_t *index = j->table->index + row % j->out * taps;
        const double *weight = j->table->weight + row % j->out * taps;
        const double *src = j->src + row / j->out * j->in * j->inner;
        double *dst = j->dst + row * j->inner;

        for (int64_t i = 0; i < j->inner; i++)
            dst[i] = index[0] < 0 ? j->outside : 0;
        for (int64_t t = 0; t < taps && index[0] >= 0; t++)
            for (int64_t i = 0; i < j->inner; i++)
                dst[i] += weight[t] * src[index[t] * j->inner + i];
    }
}

static oct_status resize_axis(const oct_args *a, const spec *s, oct_type *t, int32_t d,
                              double **data, double outside)
{
    oct_resample_table table;
    axis_job j = {.src = *data, .table = &table, .outside = outside};
    int64_t rows, len;

    OCT_TRY(oct_resample_table_make(a->scratch, &s->how, &s->axis[d], &table));
    j.in = t->dim[d];
    j.out = s->axis[d].out;
    j.inner = oct_type_span(t, d + 1, t->rank);
    rows = oct_type_span(t, 0, d) * j.out;
    t->dim[d] = j.out;
    if ((len = oct_type_len(t)) < 0)
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "the result is too large");
    if (!(j.dst = oct_args_scratch(a, (size_t)len, sizeof(*j.dst)))) return OCT_ERR_MEMORY;
    oct_parallel_for(a->n_threads, rows, OCT_MAX(1, GRAIN / OCT_MAX(j.inner, 1)), run_axis, &j);
    *data = j.dst;
    return OCT_OK;
}

/*
 * Floats are just stored. Integers are saturated and cut off towards zero, as ONNX's reference and
 * ONNX Runtime do; results of antialiasing are rounded, as ONNX Runtime does. What weights of a
 * third leave below a whole number is not cut off.
 */
static void store(const oct_args *a, double *v, int64_t n, bool rounded)
{
    const double slack = 1e-6;
    const oct_dtype t = a->out[0]->type.dtype;
    const oct_dtype_info *info = oct_dtype_get(t);
    const int value_bits = info->bits - (info->kind == OCT_DKIND_INT);
    const double high = ldexp(1.0, value_bits) - 1,
                 low = info->kind == OCT_DKIND_INT ? -high - 1 : 0;

    for (int64_t i = 0; oct_dtype_is_int(t) && i < n; i++) {
        const double whole = rounded ? rint(v[i]) : trunc(v[i] + copysign(slack, v[i]));

        v[i] = fmax(low, fmin(whole, high));
    }
    oct_store_f64(t, a->out[0]->data, 0, n, v);
}

static oct_status run(const oct_args *a, const sources *given, spec_fn make, double outside)
{
    sources src = *given;
    oct_type t = a->in[0]->type;
    int64_t want[OCT_MAX_RANK], len = oct_type_len(&t);
    double *data;
    spec s;

    if (!has_data(src.sizes)) src.sizes = NULL;
    if (!has_data(src.scales)) src.scales = NULL;
    OCT_TRY(make(a->node, &t, &src, &s));
    for (int32_t d = 0; d < t.rank; d++)
        want[d] = s.axis[d].out;
    OCT_TRY(oct_args_expect(a, 0, t.rank, want));
    if (oct_type_len(&a->out[0]->type) == 0) return OCT_OK;
    if (s.how.mode == OCT_RESAMPLE_NEAREST) return run_nearest(a, &s, outside);

    if (!(data = oct_args_scratch(a, (size_t)len, sizeof(*data)))) return OCT_ERR_MEMORY;
    oct_load_f64(t.dtype, a->in[0]->data, 0, len, data);
    /* Axes that shrink come first, so that nothing in between is larger than both ends. */
    for (int grow = 0; grow < 2; grow++)
        for (int32_t d = 0; d < t.rank; d++)
            if (!is_same(&s, d) && (s.axis[d].out > s.axis[d].in) == (grow == 1))
                OCT_TRY(resize_axis(a, &s, &t, d, &data, outside));
    store(a, data, oct_type_len(&t), s.how.antialias);
    return OCT_OK;
}

static oct_status resize_ref(const oct_args *a)
{
    const sources src = {oct_args_in(a, 1), oct_args_in(a, 2), oct_args_in(a, 3), false};

    return run(a, &src, resize_spec, (double)oct_f32(a->node, EXTRAPOLATION));
}

static oct_status upsample_ref(const oct_args *a)
{
    const sources src = {NULL, a->in[1], NULL, false};

    return run(a, &src, upsample_spec, 0);
}

bool oct_resize_tables(const oct_node *n, const oct_type *x, oct_arena *arena,
                       oct_resample_table out[OCT_MAX_RANK])
{
    sources src = {oct_node_const(n, 1), oct_node_const(n, 2), oct_node_const(n, 3), false};
    spec s;

    for (int32_t i = 1; i < n->n_in; i++)
        if (n->in[i] && !n->in[i]->data) return false;
    if (!has_data(src.sizes)) src.sizes = NULL;
    if (!has_data(src.scales)) src.scales = NULL;
    if (!has_data(src.roi)) src.roi = NULL;
    if (resize_spec(n, x, &src, &s) || s.how.coord == OCT_COORD_TF_CROP_AND_RESIZE) return false;
    for (int32_t d = 0; d < x->rank; d++) {
        out[d] = (oct_resample_table){0};
        if (is_same(&s, d)) continue;
        if (d < 2 || oct_resample_table_make(arena, &s.how, &s.axis[d], &out[d])) return false;
    }
    return true;
}

oct_status oct_resize_axes_of(const oct_node *n, const oct_type *x,
                              oct_resample_axis axis[OCT_MAX_RANK])
{
    const bool is_upsample = oct_node_is(n, &oct_op_upsample);
    sources src = {oct_node_const(n, 1), oct_node_const(n, 2), oct_node_const(n, 3), false};
    spec s;

    if (is_upsample) src = (sources){NULL, oct_node_const(n, 1), NULL, false};
    for (int32_t i = 1; i < n->n_in; i++)
        if (n->in[i] && !n->in[i]->data)
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "operand %d is not constant", (int)i);
    if (!has_data(src.sizes)) src.sizes = NULL;
    if (!has_data(src.scales)) src.scales = NULL;
    if (!has_data(src.roi)) src.roi = NULL;
    OCT_TRY(is_upsample ? upsample_spec(n, x, &src, &s) : resize_spec(n, x, &src, &s));
    memcpy(axis, s.axis, (size_t)x->rank * sizeof(*axis));
    return OCT_OK;
}

static const oct_attr_def resize_attrs[] = {
    [ANTIALIAS] = {"antialias", OCT_ATTR_INT, .def = {.i = 0}},
    [AXES] = {"axes", OCT_ATTR_INTS, .def = {.is = NULL}, .no_default = true},
    [COORD] = {"coordinate_transformation_mode", OCT_ATTR_STRING, .def = {.s = "half_pixel"},
               .n_def = 10},
    [CUBIC_A] = {"cubic_coeff_a", OCT_ATTR_F32, .def = {.f = -0.75f}},
    [EXCLUDE_OUTSIDE] = {"exclude_outside", OCT_ATTR_INT, .def = {.i = 0}},
    [EXTRAPOLATION] = {"extrapolation_value", OCT_ATTR_F32, .def = {.f = 0}},
    [KEEP_ASPECT] = {"keep_aspect_ratio_policy", OCT_ATTR_STRING, .def = {.s = "stretch"},
                     .n_def = 7},
    [MODE] = {"mode", OCT_ATTR_STRING, .def = {.s = "nearest"}, .n_def = 7},
    [NEAREST_MODE] = {"nearest_mode", OCT_ATTR_STRING, .def = {.s = "round_prefer_floor"},
                      .n_def = 18},
    {0},
};
static const oct_attr_def upsample_attrs[] = {
    [UPSAMPLE_MODE] = {"mode", OCT_ATTR_STRING, .def = {.s = "nearest"}, .n_def = 7},
    {0},
};

const oct_op oct_op_resize = {
    .name = "Resize",
    .since = 11,
    .min_in = 1,
    .max_in = 4,
    .attrs = resize_attrs,
    .shape = resize_shape,
    .ref = resize_ref,
    .grad = oct_grad_resize,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .flow = OCT_FLOW_PASS,
    .moves = &oct_moves_resize,
};

const oct_op oct_op_upsample = {
    .name = "Upsample",
    .since = 9,
    .min_in = 2,
    .max_in = 2,
    .attrs = upsample_attrs,
    .shape = upsample_shape,
    .ref = upsample_ref,
    .grad = oct_grad_resize,
    .quant = {.in = {OCT_QROLE_AS_INPUT}},
    .flow = OCT_FLOW_PASS,
    .moves = &oct_moves_resize,
};
