/* SPDX-License-Identifier: Apache-2.0 */
/* InstanceNormalization and GroupNormalization: statistics over part of the channels. */
#include <math.h>

#include "base/parallel.h"
#include "op/grad/norm_grad.h"
#include "op/moments.h"

typedef struct group_job {
    oct_work w;
    const void *x, *scale, *bias;
    void *y;
    int64_t channels, groups, size; /* size: elements in a channel */
    double epsilon;
} group_job;

/* Work items are (image, group). */
static void group_range(void *arg, int64_t begin, int64_t end)
{
    const group_job *j = arg;
    const int64_t in_group = j->channels / j->groups, n = in_group * j->size;

    for (int64_t i = begin; i < end; i++) {
        const double mean = oct_mean(j->w, j->x, i * n, n);
        const double inv = 1 / sqrt(oct_square_mean(j->w, j->x, i * n, n, mean) + j->epsilon);

        for (int64_t k = 0; k < in_group; k++) {
            const int64_t c = i % j->groups * in_group + k;

            oct_affine(j->w, j->x, j->y, i * n + k * j->size, j->size, mean,
                       inv * oct_work_get(j->w, j->scale, c), oct_work_get(j->w, j->bias, c));
        }
    }
}

static oct_status run(const oct_args *a, double epsilon, int64_t groups)
{
    const oct_type *x = &a->in[0]->type;
    group_job j = {.w = oct_work_of(x->dtype), .epsilon = epsilon};

    OCT_TRY(oct_args_check(a));
    j.channels = x->dim[1];
    j.groups = groups > 0 ? groups : x->dim[1];
    j.size = oct_type_span(x, 2, x->rank);
    if (oct_tensor_len(a->in[0]) == 0) return OCT_OK;
    OCT_TRY(oct_work_in(a, 0, j.w, &j.x));
    OCT_TRY(oct_work_in(a, 1, j.w, &j.scale));
    OCT_TRY(oct_work_in(a, 2, j.w, &j.bias));
    OCT_TRY(oct_work_out(a, 0, j.w, &j.y));
    oct_parallel_for(a->n_threads, x->dim[0] * j.groups, 1, group_range, &j);
    oct_work_done(a, 0, j.w, j.y);
    return OCT_OK;
}

/* Scale and bias are one number for each channel. */
static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *p;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    if (x->rank >= 0 && x->rank < 2)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "input has %d dims, at least 2 are needed",
                              x->rank);
    for (int i = 1; i < 3; i++) {
        OCT_TRY(oct_infer_need(q, i, &p));
        OCT_TRY(oct_infer_check(q, i, OCT_SET_FLOAT));
        if (p->rank >= 0 && (p->rank != 1 || (p->dim[0] >= 0 && x->rank > 1 && x->dim[1] >= 0 &&
                                              p->dim[0] != x->dim[1])))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d is not one number for each channel",
                                  i);
    }
    q->out[0] = *x;
    return OCT_OK;
}

/* A number for each channel as [channels x 1 x ..], which broadcasts to x. */
static oct_value *by_channel(const oct_grad_args *a, oct_value *v)
{
    oct_type t = v->type;

    t.rank = a->node->in[0]->type.rank - 1;
    for (int32_t d = 1; d < t.rank; d++)
        t.dim[d] = 1;
    return oct_grad_reshape(a->b, v, &t);
}

/* The sum of v over all but the channels. */
static oct_value *sum_channels(const oct_grad_args *a, oct_value *v, const oct_type *like)
{
    int64_t axes[OCT_MAX_RANK], n = 0;

    for (int32_t d = 0; d < a->node->in[0]->type.rank; d++)
        if (d != 1) axes[n++] = d;
    v = oct_grad_reduce(a->b, &oct_op_reduce_sum, v, axes, n, false);
    return a->b->status ? NULL : oct_grad_reshape(a->b, v, like);
}

/* Groups are rows: an image's channels lie side by side. */
static oct_status grad_groups(const oct_grad_args *a, float epsilon, int64_t groups)
{
    const oct_node *n = a->node;
    const oct_type *x = &n->in[0]->type;
    const int64_t n_rows = x->dim[0] * groups;
    const oct_type rows =
        oct_type_make(x->dtype, 2, (int64_t[]){n_rows, n_rows ? oct_type_len(x) / n_rows : 0});
    oct_value *dunit, *dy = a->dy[0];
    oct_norm_grad g;

    if (a->wanted[0] || a->wanted[1]) {
        dunit = OCT_EMIT2(mul, dy, by_channel(a, n->in[1]));
        if (a->b->status) return a->b->status;
        g = oct_grad_norm(a->b, oct_grad_reshape(a->b, n->in[0], &rows),
                          oct_grad_reshape(a->b, dunit, &rows), 1, epsilon, false, a->wanted[1]);
        if (a->b->status) return a->b->status;
        if (a->wanted[0]) a->dx[0] = oct_grad_reshape(a->b, g.dx, x);
        if (a->wanted[1])
            a->dx[1] = sum_channels(a, OCT_EMIT2(mul, dy, oct_grad_reshape(a->b, g.unit, x)),
                                    &n->in[1]->type);
    }
    if (a->wanted[2]) a->dx[2] = sum_channels(a, dy, &n->in[2]->type);
    return OCT_OK;
}

enum { INSTANCE_EPSILON };

static oct_status instance_grad(const oct_grad_args *a)
{
    return grad_groups(a, oct_f32(a->node, INSTANCE_EPSILON), a->node->in[0]->type.dim[1]);
}

static oct_status instance_ref(const oct_args *a)
{
    return run(a, (double)oct_f32(a->node, INSTANCE_EPSILON), 0);
}

static const oct_attr_def instance_attrs[] = {
    [INSTANCE_EPSILON] = {.name = "epsilon", .kind = OCT_ATTR_F32, .def = {.f = 1e-5f}},
    {0},
};

const oct_op oct_op_instance_normalization = {
    .name = "InstanceNormalization",
    .since = 7,
    .min_in = 3,
    .max_in = 3,
    .attrs = instance_attrs,
    .shape = shape,
    .ref = instance_ref,
    .grad = instance_grad,
    .flow = OCT_FLOW_PASS,
};

enum { GROUP_EPSILON, GROUP_GROUPS, GROUP_STASH_TYPE };

static oct_status group_shape(const oct_infer *q)
{
    const int64_t groups = oct_int(q->node, GROUP_GROUPS);

    OCT_TRY(shape(q));
    if (groups < 1)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "num_groups is %lld", (long long)groups);
    if (q->in[0]->rank > 1 && q->in[0]->dim[1] >= 0 && q->in[0]->dim[1] % groups != 0)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "%lld channels do not divide into %lld groups",
                              (long long)q->in[0]->dim[1], (long long)groups);
    return OCT_OK;
}

static oct_status group_ref(const oct_args *a)
{
    return run(a, (double)oct_f32(a->node, GROUP_EPSILON), oct_int(a->node, GROUP_GROUPS));
}

static oct_status group_grad(const oct_grad_args *a)
{
    return grad_groups(a, oct_f32(a->node, GROUP_EPSILON), oct_int(a->node, GROUP_GROUPS));
}

static const oct_attr_def group_attrs[] = {
    [GROUP_EPSILON] = {.name = "epsilon", .kind = OCT_ATTR_F32, .def = {.f = 1e-5f}},
    [GROUP_GROUPS] = {.name = "num_groups", .kind = OCT_ATTR_INT, .required = true},
    [GROUP_STASH_TYPE] = {.name = "stash_type", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    {0},
};

const oct_op oct_op_group_normalization = {
    .name = "GroupNormalization",
    .since = 21,
    .min_in = 3,
    .max_in = 3,
    .attrs = group_attrs,
    .shape = group_shape,
    .ref = group_ref,
    .grad = group_grad,
    .flow = OCT_FLOW_STOP,
};
