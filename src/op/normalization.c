/* SPDX-License-Identifier: Apache-2.0 */
/* InstanceNormalization and GroupNormalization: statistics over part of the channels. */
#include <math.h>

#include "base/parallel.h"
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

enum { INSTANCE_EPSILON };

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
    .flow = OCT_FLOW_STOP,
};
