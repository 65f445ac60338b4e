/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, LogSoftmax and Hardmax along one axis. */
#include <math.h>

#include "base/parallel.h"
#include "op/axes.h"
#include "op/grad/rules.h"
#include "op/work.h"

enum { AXIS };

typedef enum softmax_kind { SOFTMAX, LOG_SOFTMAX, HARDMAX } softmax_kind;

typedef struct softmax_job {
    softmax_kind kind;
    oct_lanes lanes;
    const void *x;
    void *y;
} softmax_job;

#define T      float
#define EXP(x) expf(x)
#define LOG(x) logf(x)
#define FN(f)  f##_f32
#include "op/softmax_kernel.inc"
#undef T
#undef EXP
#undef LOG
#undef FN
#define T      double
#define EXP(x) exp(x)
#define LOG(x) log(x)
#define FN(f)  f##_f64
#include "op/softmax_kernel.inc"
#undef T
#undef EXP
#undef LOG
#undef FN

static oct_status shape(const oct_infer *q)
{
    const oct_type *x;
    int32_t axis;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    if (x->rank >= 0) OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), x->rank, &axis));
    q->out[0] = *x;
    return OCT_OK;
}

static oct_status run(const oct_args *a, softmax_kind kind)
{
    const oct_type *x = &a->in[0]->type;
    const oct_work w = oct_work_of(x->dtype);
    softmax_job j = {.kind = kind};
    int32_t axis;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), x->rank, &axis));
    OCT_TRY(oct_work_in(a, 0, w, &j.x));
    OCT_TRY(oct_work_out(a, 0, w, &j.y));
    if (oct_tensor_len(a->in[0]) == 0) return OCT_OK;
    j.lanes = oct_lanes_of(x, axis);
    oct_parallel_for(a->n_threads, j.lanes.outer * j.lanes.inner, OCT_MAX(4096 / j.lanes.n, 1),
                     w == OCT_WORK_F64 ? softmax_range_f64 : softmax_range_f32, &j);
    oct_work_done(a, 0, w, j.y);
    return OCT_OK;
}

static oct_status softmax_ref(const oct_args *a)
{
    return run(a, SOFTMAX);
}

static oct_status log_softmax_ref(const oct_args *a)
{
    return run(a, LOG_SOFTMAX);
}

static oct_status hardmax_ref(const oct_args *a)
{
    return run(a, HARDMAX);
}

static oct_status softmax_grad(const oct_grad_args *a)
{
    oct_node *n =
        oct_emit_node(a->b, &oct_op_softmax_grad, (oct_value *[]){a->node->out[0], a->dy[0]}, 2, 1);

    oct_emit_int(a->b, n, "axis", oct_int(a->node, AXIS));
    a->dx[0] = oct_emitted(a->b, n);
    return OCT_OK;
}

/* dx = dy - softmax(x) * sum of dy */
static oct_status log_softmax_grad(const oct_grad_args *a)
{
    oct_value *sum = oct_grad_reduce(a->b, &oct_op_reduce_sum, a->dy[0],
                                     (int64_t[]){oct_int(a->node, AXIS)}, 1, true);
    oct_value *share = OCT_EMIT2(mul, OCT_EMIT1(exp, a->node->out[0]), sum);

    a->dx[0] = OCT_EMIT2(sub, a->dy[0], share);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [AXIS] = {.name = "axis", .kind = OCT_ATTR_INT, .def = {.i = -1}},
    {0},
};

const oct_op oct_op_softmax = {
    .name = "Softmax",
    .since = 13,
    .min_in = 1,
    .max_in = 1,
    .attrs = attrs,
    .shape = shape,
    .ref = softmax_ref,
    .grad = softmax_grad,
    .flow = OCT_FLOW_STOP,
};

const oct_op oct_op_log_softmax = {
    .name = "LogSoftmax",
    .since = 13,
    .min_in = 1,
    .max_in = 1,
    .attrs = attrs,
    .shape = shape,
    .ref = log_softmax_ref,
    .grad = log_softmax_grad,
    .flow = OCT_FLOW_STOP,
};

const oct_op oct_op_hardmax = {
    .name = "Hardmax",
    .since = 13,
    .min_in = 1,
    .max_in = 1,
    .attrs = attrs,
    .shape = shape,
    .ref = hardmax_ref,
    .grad = oct_grad_zero,
    .flow = OCT_FLOW_STOP,
};
