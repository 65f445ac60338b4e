/* SPDX-License-Identifier: Apache-2.0 */
/* GlobalAveragePool, GlobalMaxPool and GlobalLpPool: one number for each channel. */
#include <math.h>

#include "base/parallel.h"
#include "op/channels.h"
#include "op/grad/layers.h"
#include "op/moments.h"

enum { P };

typedef enum global_kind { GLOBAL_AVERAGE, GLOBAL_MAX, GLOBAL_LP } global_kind;

typedef struct global_job {
    global_kind kind;
    oct_work w;
    const void *x;
    void *y;
    int64_t size;
    double p;
} global_job;

static oct_status shape(const oct_infer *q)
{
    const oct_type *x;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    if (x->rank >= 0 && x->rank < 2)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "input has %d dims, at least 2 are needed",
                              x->rank);
    q->out[0] = *x;
    for (int d = 2; d < x->rank; d++)
        q->out[0].dim[d] = 1;
    return OCT_OK;
}

static double pool_plane(const global_job *j, int64_t at)
{
    double acc = j->kind == GLOBAL_MAX ? -INFINITY : 0;

    if (j->kind == GLOBAL_AVERAGE) return oct_mean(j->w, j->x, at, j->size);
    for (int64_t i = at; i < at + j->size; i++) {
        const double v = oct_work_get(j->w, j->x, i);

        if (j->kind == GLOBAL_LP)
            acc += j->p == 2 ? v * v : pow(fabs(v), j->p);
        else if (v > acc || v != v)
            acc = v;
    }
    return j->kind == GLOBAL_LP ? pow(acc, 1 / j->p) : acc;
}

static void plane_range(void *arg, int64_t begin, int64_t end)
{
    const global_job *j = arg;

    for (int64_t i = begin; i < end; i++)
        oct_work_put(j->w, j->y, i, pool_plane(j, i * j->size));
}

static oct_status run(const oct_args *a, global_kind kind, double p)
{
    const oct_type *x = &a->in[0]->type;
    global_job j = {.kind = kind, .w = oct_work_of(x->dtype), .p = p};

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_work_in(a, 0, j.w, &j.x));
    OCT_TRY(oct_work_out(a, 0, j.w, &j.y));
    j.size = oct_type_span(x, 2, x->rank);
    oct_parallel_for(a->n_threads, x->dim[0] * x->dim[1], 8, plane_range, &j);
    oct_work_done(a, 0, j.w, j.y);
    return OCT_OK;
}

static oct_status average_ref(const oct_args *a)
{
    return run(a, GLOBAL_AVERAGE, 1);
}

static oct_status max_ref(const oct_args *a)
{
    return run(a, GLOBAL_MAX, 1);
}

static oct_status lp_ref(const oct_args *a)
{
    const int64_t p = oct_int(a->node, P);

    if (p < 1) return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED, "p is %lld", (long long)p);
    return run(a, GLOBAL_LP, (double)p);
}

static const oct_attr_def no_attrs[] = {{0}};
static const oct_attr_def lp_attrs[] = {
    [P] = {.name = "p", .kind = OCT_ATTR_INT, .def = {.i = 2}},
    {0},
};

const oct_op oct_op_global_average_pool = {
    .name = "GlobalAveragePool",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .attrs = no_attrs,
    .shape = shape,
    .ref = average_ref,
    .grad = oct_grad_global_average_pool,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
};

const oct_op oct_op_global_max_pool = {
    .name = "GlobalMaxPool",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .attrs = no_attrs,
    .shape = shape,
    .ref = max_ref,
    .grad = oct_grad_global_max_pool,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
    .moves = &oct_moves_global_pool,
};

const oct_op oct_op_global_lp_pool = {
    .name = "GlobalLpPool",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .attrs = lp_attrs,
    .shape = shape,
    .ref = lp_ref,
    .grad = oct_grad_global_lp_pool,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
};
