/* SPDX-License-Identifier: Apache-2.0 */
/* ResizeGrad: the transpose of the linear map that Resize is, axis by axis, from the same tables of
 * weights. Any mode; no gradient comes from places outside of the input. */
#include "base/parallel.h"
#include "op/grad/layers.h"
#include "op/grad/rules.h"
#include "op/resample.h"
#include "op/work.h"

/* One axis of a tensor seen as [outer][n][inner]. */
typedef struct axis_job {
    const double *dy;
    double *dx;
    const oct_resample_table *table;
    int64_t in, out, inner;
} axis_job;

static void transposed_axis(void *arg, int64_t begin, int64_t end)
{
    const axis_job *j = arg;
    const int64_t taps = j->table->taps;

    for (int64_t row = begin * j->out; row < end * j->out; row++) {
        const int64_t *index = j->table->index + row % j->out * taps;
        const double *weight = j->table->weight + row % j->out * taps;
        double *dx = j->dx + row / j->out * j->in * j->inner;
        const double *dy = j->dy + row * j->inner;

        for (int64_t t = 0; t < taps && index[0] >= 0; t++)
            for (int64_t i = 0; i < j->inner; i++)
                dx[index[t] * j->inner + i] += weight[t] * dy[i];
    }
}

/* Floats of an attribute, `count` of them if it is given. */
static oct_status floats(const oct_node *n, const char *name, int64_t count, const float **out)
{
    const oct_attr *a = oct_node_attr(n, name);

    *out = a ? a->fs : NULL;
    if (!a || a->n == count) return OCT_OK;
    return oct_node_fail(n, OCT_ERR_SHAPE, "%s has %lld numbers, %lld are needed", name,
                         (long long)a->n, (long long)count);
}

static oct_status read_axes(const oct_node *n, const oct_type *dy, oct_type *x,
                            oct_resample_axis axis[OCT_MAX_RANK])
{
    const oct_attr *s = oct_node_attr(n, "shape");
    const float *scales, *roi;

    if (!s) return oct_node_fail(n, OCT_ERR_FORMAT, "shape is missing");
    OCT_TRY(oct_type_of_dims(n, dy->dtype, s->is, s->n, x));
    if (dy->rank >= 0 && x->rank != dy->rank)
        return oct_node_fail(n, OCT_ERR_SHAPE, "shape has %d dims, dy has %d", x->rank, dy->rank);
    OCT_TRY(floats(n, "scales", x->rank, &scales));
    OCT_TRY(floats(n, "roi", 2 * (int64_t)x->rank, &roi));
    for (int32_t d = 0; d < x->rank && dy->rank >= 0; d++) {
        const int64_t in = x->dim[d], out = dy->dim[d];
        const double by_size = in > 0 ? (double)out / (double)in : 1;

        if (in < 1 && out > 0) return oct_node_fail(n, OCT_ERR_SHAPE, "axis %d is empty", (int)d);
        axis[d] = (oct_resample_axis){in, out, by_size, 0, 1};
        if (scales && scales[d] != 0) axis[d].scale = (double)scales[d];
        if (!(axis[d].scale > 0) && out > 0)
            return oct_node_fail(n, OCT_ERR_SHAPE, "scale %g", axis[d].scale);
        if (!roi) continue;
        axis[d].roi_start = (double)roi[d];
        axis[d].roi_end = (double)roi[x->rank + d];
    }
    return OCT_OK;
}

oct_status oct_resize_grad_tables(const oct_node *n, const oct_type *dy, oct_arena *arena,
                                  oct_type *x, oct_resample_table out[OCT_MAX_RANK])
{
    oct_resample_axis axis[OCT_MAX_RANK];
    oct_resample how;

    OCT_TRY(oct_resample_read(n, &how));
    OCT_TRY(read_axes(n, dy, x, axis));
    for (int32_t d = 0; d < x->rank; d++) {
        const bool crops = how.coord == OCT_COORD_TF_CROP_AND_RESIZE &&
                           (axis[d].roi_start != 0 || axis[d].roi_end != 1);

        out[d] = (oct_resample_table){0};
        if (axis[d].in == axis[d].out && axis[d].scale == 1 && !crops) continue;
        OCT_TRY(oct_resample_table_make(arena, &how, &axis[d], &out[d]));
    }
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    oct_resample_axis axis[OCT_MAX_RANK];
    const oct_type *dy;
    oct_resample how;

    OCT_TRY(oct_infer_need(q, 0, &dy));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    OCT_TRY(oct_resample_read(q->node, &how));
    return read_axes(q->node, dy, &q->out[0], axis);
}

static oct_status ref(const oct_args *a)
{
    oct_type t = a->in[0]->type, x;
    oct_resample_table table[OCT_MAX_RANK];
    int64_t len = oct_type_len(&t);
    double *data;

    OCT_TRY(oct_args_check(a));
    if (oct_type_len(&a->out[0]->type) == 0) return OCT_OK;
    OCT_TRY(oct_resize_grad_tables(a->node, &t, a->scratch, &x, table));
    if (!(data = oct_args_scratch(a, (size_t)len, sizeof(*data)))) return OCT_ERR_MEMORY;
    oct_load_f64(t.dtype, a->in[0]->data, 0, len, data);
    for (int32_t d = 0; d < t.rank && len > 0; d++) {
        axis_job j = {.dy = data, .table = &table[d], .in = x.dim[d], .out = t.dim[d]};

        if (!table[d].taps) continue;
        j.inner = oct_type_span(&t, d + 1, t.rank);
        t.dim[d] = j.in;
        if ((len = oct_type_len(&t)) < 0)
            return oct_node_fail(a->node, OCT_ERR_SHAPE, "the result is too large");
        if (!(j.dx = oct_args_scratch(a, (size_t)len, sizeof(*j.dx)))) return OCT_ERR_MEMORY;
        oct_parallel_for(a->n_threads, oct_type_span(&t, 0, d), 1, transposed_axis, &j);
        data = j.dx;
    }
    if (len > 0 && oct_type_len(&t) == oct_type_len(&x))
        oct_store_f64(x.dtype, a->out[0]->data, 0, len, data);
    return OCT_OK;
}

oct_status oct_grad_resize(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    const oct_type *x = &n->in[0]->type;
    oct_resample_axis axis[OCT_MAX_RANK];
    float scales[OCT_MAX_RANK], roi[2 * OCT_MAX_RANK];
    oct_node *g;

    OCT_TRY(oct_resize_axes_of(n, x, axis));
    for (int32_t d = 0; d < x->rank; d++) {
        const double by_size = (double)axis[d].out / (double)axis[d].in;

        /* A float holds the scales of a file exactly, but not a quotient of sizes. */
        scales[d] = axis[d].scale == by_size ? 0 : (float)axis[d].scale;
        roi[d] = (float)axis[d].roi_start;
        roi[x->rank + d] = (float)axis[d].roi_end;
    }
    g = oct_emit_node(a->b, &oct_op_resize_grad, a->dy, 1, 1);
    oct_emit_attrs_of(a->b, g, n);
    if (oct_node_is(n, &oct_op_upsample)) {
        oct_emit_str(a->b, g, "coordinate_transformation_mode", "asymmetric");
        oct_emit_str(a->b, g, "nearest_mode", "floor");
    }
    oct_emit_ints(a->b, g, "shape", x->dim, x->rank);
    OCT_TRY(a->b->status);
    OCT_TRY(oct_node_set_attr(
        g, "scales",
        &(oct_attr){.kind = OCT_ATTR_F32S, .given = true, .n = x->rank, .fs = scales}));
    OCT_TRY(oct_node_set_attr(
        g, "roi", &(oct_attr){.kind = OCT_ATTR_F32S, .given = true, .n = 2 * x->rank, .fs = roi}));
    a->dx[0] = oct_emitted(a->b, g);
    return a->b->status;
}

static const oct_attr_def attrs[] = {
    {.name = "antialias", .kind = OCT_ATTR_INT},
    {.name = "coordinate_transformation_mode",
     .kind = OCT_ATTR_STRING,
     .def = {.s = "half_pixel"},
     .n_def = 10},
    {.name = "cubic_coeff_a", .kind = OCT_ATTR_F32, .def = {.f = -0.75f}},
    {.name = "exclude_outside", .kind = OCT_ATTR_INT},
    {.name = "mode", .kind = OCT_ATTR_STRING, .def = {.s = "nearest"}, .n_def = 7},
    {.name = "nearest_mode",
     .kind = OCT_ATTR_STRING,
     .def = {.s = "round_prefer_floor"},
     .n_def = 18},
    {.name = "roi", .kind = OCT_ATTR_F32S, .no_default = true}, /* starts, then ends */
    /* Of each axis; 0 or absent: the quotient of its sizes. */
    {.name = "scales", .kind = OCT_ATTR_F32S, .no_default = true},
    {.name = "shape", .kind = OCT_ATTR_INTS, .required = true}, /* of x */
    {0},
};

const oct_op oct_op_resize_grad = {
    .name = "ResizeGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 1,
    .max_in = 1,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
};
