/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPoolGrad: the gradient of a window goes to its first maximum. AveragePoolGrad: it is shared
 * out evenly among the window's elements. */
#include <string.h>

#include "base/parallel.h"
#include "op/grad/rules.h"
#include "op/moments.h"
#include "op/pool.h"

typedef struct pool_job {
    oct_conv_geometry g;
    oct_work w;
    const void *x, *dy; /* x: MaxPoolGrad only */
    void *dx;
    int64_t in_size, out_size; /* of one channel */
    bool include_pad;
} pool_job;

/* The first maximum of the window in scan order, a NaN before all: as MaxPool takes it. */
static int64_t first_maximum(const pool_job *j, int64_t x0, const int64_t *o, const int64_t *from,
                             const int64_t *to)
{
    int64_t k[OCT_MAX_SPATIAL], best = -1;
    double best_x = 0;

    memcpy(k, from, sizeof(k));
    do {
        const int64_t at = oct_pool_at(&j->g, o, k);
        const double x = oct_work_get(j->w, j->x, x0 + at);

        if (best >= 0 && !(x > best_x) && !(x != x && best_x == best_x)) continue;
        best = at;
        best_x = x;
    } while (oct_next_index(j->g.n, k, from, to));
    return best;
}

static void add(const pool_job *j, int64_t at, double v)
{
    oct_work_put(j->w, j->dx, at, oct_work_get(j->w, j->dx, at) + v);
}

static void share_out(const pool_job *j, int64_t x0, const int64_t *o, const int64_t *from,
                      const int64_t *to, double dy)
{
    int64_t k[OCT_MAX_SPATIAL];

    memcpy(k, from, sizeof(k));
    dy /= oct_pool_divisor(&j->g, j->include_pad, o, from, to);
    do
        add(j, x0 + oct_pool_at(&j->g, o, k), dy);
    while (oct_next_index(j->g.n, k, from, to));
}

static void planes(void *arg, int64_t begin, int64_t end)
{
    const pool_job *j = arg;
    const oct_conv_geometry *g = &j->g;
    const int64_t zero[OCT_MAX_SPATIAL] = {0};

    for (int64_t p = begin; p < end; p++) {
        const int64_t x0 = p * j->in_size;
        int64_t o[OCT_MAX_SPATIAL] = {0};

        for (int64_t i = 0; i < j->in_size; i++)
            oct_work_put(j->w, j->dx, x0 + i, 0);
        for (int64_t i = 0; i < j->out_size; i++, oct_next_index(g->n, o, zero, g->out)) {
            const double dy = oct_work_get(j->w, j->dy, p * j->out_size + i);
            int64_t from[OCT_MAX_SPATIAL] = {0}, to[OCT_MAX_SPATIAL] = {0};
            bool empty = false;

            for (int d = 0; d < g->n; d++) {
                oct_conv_window(g, d, o[d], &from[d], &to[d]);
                empty = empty || from[d] >= to[d];
            }
            if (empty) continue;
            if (j->x)
                add(j, x0 + first_maximum(j, x0, o, from, to), dy);
            else
                share_out(j, x0, o, from, to, dy);
        }
    }
}

/* dy must be what pooling gives. */
static oct_status check_dy(const oct_node *n, const oct_conv_geometry *g, const oct_type *dy)
{
    const oct_type want = oct_conv_geometry_type(g, dy->dtype);

    if (g->n < 0 || !oct_type_is_static(&want) || !oct_type_is_static(dy)) return OCT_OK;
    if (oct_type_equal(&want, dy)) return OCT_OK;
    return oct_node_fail(n, OCT_ERR_SHAPE, "dy has not the shape that the pooling gives");
}

/* The type of x: AveragePoolGrad is told by the attribute `shape`. */
static oct_status type_of_x(const oct_node *n, oct_dtype dtype, oct_type *x)
{
    const oct_attr *s = oct_node_attr(n, "shape");

    if (!s) return oct_node_fail(n, OCT_ERR_FORMAT, "shape is missing");
    return oct_type_of_dims(n, dtype, s->is, s->n, x);
}

static oct_status max_shape(const oct_infer *q)
{
    const oct_type *x, *dy;
    oct_conv_geometry g;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &dy));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_FLOAT));
    OCT_TRY(oct_conv_geometry_pool(q->node, x, &g));
    OCT_TRY(check_dy(q->node, &g, dy));
    q->out[0] = *x;
    return OCT_OK;
}

static oct_status average_shape(const oct_infer *q)
{
    const oct_type *dy;
    oct_conv_geometry g;

    OCT_TRY(oct_infer_need(q, 0, &dy));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    OCT_TRY(type_of_x(q->node, dy->dtype, &q->out[0]));
    OCT_TRY(oct_conv_geometry_pool(q->node, &q->out[0], &g));
    return check_dy(q->node, &g, dy);
}

static oct_status run(const oct_args *a, int i_dy, pool_job *j)
{
    OCT_TRY(oct_args_check(a));
    j->w = oct_work_of(a->in[i_dy]->type.dtype);
    OCT_TRY(oct_conv_geometry_pool(a->node, &a->out[0]->type, &j->g));
    OCT_TRY(oct_args_spend(a, oct_conv_geometry_taps(&j->g, false)));
    if (i_dy) OCT_TRY(oct_work_in(a, 0, j->w, &j->x));
    OCT_TRY(oct_work_in(a, i_dy, j->w, &j->dy));
    OCT_TRY(oct_work_out(a, 0, j->w, &j->dx));
    j->in_size = oct_conv_geometry_in_size(&j->g);
    j->out_size = oct_conv_geometry_out_size(&j->g);
    oct_parallel_for(a->n_threads, j->g.batch * j->g.c_in, 1, planes, j);
    oct_work_done(a, 0, j->w, j->dx);
    return OCT_OK;
}

static oct_status max_ref(const oct_args *a)
{
    pool_job j = {.x = NULL};

    return run(a, 1, &j);
}

static oct_status average_ref(const oct_args *a)
{
    pool_job j = {.include_pad = oct_node_attr(a->node, "count_include_pad")->i != 0};

    return run(a, 0, &j);
}

static const oct_attr_def max_attrs[] = {
    {.name = "auto_pad", .kind = OCT_ATTR_STRING, .def = {.s = "NOTSET"}, .n_def = 6},
    {.name = "ceil_mode", .kind = OCT_ATTR_INT},
    {.name = "dilations", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "kernel_shape", .kind = OCT_ATTR_INTS, .required = true},
    {.name = "pads", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "strides", .kind = OCT_ATTR_INTS, .no_default = true},
    {0},
};

static const oct_attr_def average_attrs[] = {
    {.name = "auto_pad", .kind = OCT_ATTR_STRING, .def = {.s = "NOTSET"}, .n_def = 6},
    {.name = "ceil_mode", .kind = OCT_ATTR_INT},
    {.name = "count_include_pad", .kind = OCT_ATTR_INT},
    {.name = "dilations", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "kernel_shape", .kind = OCT_ATTR_INTS, .required = true},
    {.name = "pads", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "shape", .kind = OCT_ATTR_INTS, .required = true},
    {.name = "strides", .kind = OCT_ATTR_INTS, .no_default = true},
    {0},
};

const oct_op oct_op_max_pool_grad = {
    .name = "MaxPoolGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 2,
    .max_in = 2,
    .attrs = max_attrs,
    .shape = max_shape,
    .ref = max_ref,
};

const oct_op oct_op_average_pool_grad = {
    .name = "AveragePoolGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 1,
    .max_in = 1,
    .attrs = average_attrs,
    .shape = average_shape,
    .ref = average_ref,
};
