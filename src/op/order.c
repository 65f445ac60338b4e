/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, ArgMin and TopK along one axis. */
#include <math.h>

#include "base/parallel.h"
#include "op/axes.h"
#include "op/grad/gather_grad.h"
#include "op/work.h"

typedef struct arg_job {
    oct_lanes lanes;
    const void *x;
    int64_t *y;
    bool largest, last;
} arg_job;

typedef struct top_job {
    oct_lanes lanes;
    const void *x;
    void *values;     /* NULL: unused */
    int64_t *indices; /* NULL: unused */
    int64_t *heap;    /* room for k */
    int64_t k;
    bool largest;
} top_job;

#define T         float
#define FN(f)     f##_f32
#define IS_NAN(x) (isnan(x) != 0)
#include "op/order_kernel.inc"
#undef T
#undef FN
#define T     double
#define FN(f) f##_f64
#include "op/order_kernel.inc"
#undef T
#undef FN
#undef IS_NAN
#define T         int64_t
#define FN(f)     f##_i64
#define IS_NAN(x) false
#include "op/order_kernel.inc"
#undef T
#undef FN
#define T     uint64_t
#define FN(f) f##_u64
#include "op/order_kernel.inc"
#undef T
#undef FN

/* --- ArgMax, ArgMin --- */

enum { ARG_AXIS, ARG_KEEPDIMS, ARG_LAST };

static oct_status arg_shape(const oct_infer *q)
{
    const bool keep = oct_int(q->node, ARG_KEEPDIMS) != 0;
    const oct_type *x;
    oct_type y = oct_type_unknown(OCT_DTYPE_I64);
    int32_t axis;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_NUMERIC));
    if (x->rank >= 0) {
        OCT_TRY(oct_axis(q->node, oct_int(q->node, ARG_AXIS), x->rank, &axis));
        if (x->dim[axis] == 0) return oct_infer_fail(q, OCT_ERR_SHAPE, "axis %d is empty", axis);
        y.rank = 0;
        for (int d = 0; d < x->rank; d++)
            if (d != axis || keep) y.dim[y.rank++] = d == axis ? 1 : x->dim[d];
    }
    q->out[0] = y;
    return OCT_OK;
}

static oct_status arg_run(const oct_args *a, bool largest)
{
    const oct_type *x = &a->in[0]->type;
    const oct_work w = oct_work_of(x->dtype);
    const oct_range_fn fns[] = {arg_range_f32, arg_range_f64,
                                x->dtype == OCT_DTYPE_U64 ? arg_range_u64 : arg_range_i64};
    arg_job j = {.largest = largest, .last = oct_int(a->node, ARG_LAST) != 0};
    int32_t axis;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_axis(a->node, oct_int(a->node, ARG_AXIS), x->rank, &axis));
    OCT_TRY(oct_work_in(a, 0, w, &j.x));
    j.y = a->out[0]->data;
    j.lanes = oct_lanes_of(x, axis);
    oct_parallel_for(a->n_threads, j.lanes.outer * j.lanes.inner, OCT_MAX(4096 / j.lanes.n, 1),
                     fns[w], &j);
    return OCT_OK;
}

static oct_status arg_max_ref(const oct_args *a)
{
    return arg_run(a, true);
}

static oct_status arg_min_ref(const oct_args *a)
{
    return arg_run(a, false);
}

static const oct_attr_def arg_attrs[] = {
    [ARG_AXIS] = {.name = "axis", .kind = OCT_ATTR_INT},
    [ARG_KEEPDIMS] = {.name = "keepdims", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    [ARG_LAST] = {.name = "select_last_index", .kind = OCT_ATTR_INT},
    {0},
};

const oct_op oct_op_arg_max = {
    .name = "ArgMax",
    .since = 12,
    .min_in = 1,
    .max_in = 1,
    .attrs = arg_attrs,
    .shape = arg_shape,
    .ref = arg_max_ref,
    .flow = OCT_FLOW_STOP,
};

const oct_op oct_op_arg_min = {
    .name = "ArgMin",
    .since = 12,
    .min_in = 1,
    .max_in = 1,
    .attrs = arg_attrs,
    .shape = arg_shape,
    .ref = arg_min_ref,
    .flow = OCT_FLOW_STOP,
};

/* --- TopK --- */

enum { TOP_AXIS, TOP_LARGEST, TOP_SORTED };

static oct_status top_shape(const oct_infer *q)
{
    const oct_type *x, *t;
    int64_t k = -1;
    int32_t axis;
    int n;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &t));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_NUMERIC));
    OCT_TRY(oct_infer_ints(q, 1, &k, 1, &n));
    if (n == 0 || (n == 1 && k < 0))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "k is %s", n ? "negative" : "empty");
    q->out[0] = *x;
    if (x->rank >= 0) {
        OCT_TRY(oct_axis(q->node, oct_int(q->node, TOP_AXIS), x->rank, &axis));
        if (k >= 0 && x->dim[axis] >= 0 && k > x->dim[axis])
            return oct_infer_fail(q, OCT_ERR_SHAPE, "k is %lld, the axis has %lld elements",
                                  (long long)k, (long long)x->dim[axis]);
        q->out[0].dim[axis] = k;
    }
    if (q->node->n_out > 1) {
        q->out[1] = q->out[0];
        q->out[1].dtype = OCT_DTYPE_I64;
    }
    return OCT_OK;
}

static oct_status top_ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type;
    const oct_work w = oct_work_of(x->dtype);
    top_job j = {.largest = oct_int(a->node, TOP_LARGEST) != 0};
    int32_t axis;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_axis(a->node, oct_int(a->node, TOP_AXIS), x->rank, &axis));
    OCT_TRY(oct_work_in(a, 0, w, &j.x));
    OCT_TRY(oct_work_out(a, 0, w, &j.values));
    if (oct_args_out(a, 1)) j.indices = a->out[1]->data;
    j.lanes = oct_lanes_of(x, axis);
    j.k = oct_tensor_get_i64(a->in[1], 0);
    if (!(j.heap = oct_args_scratch(a, (size_t)j.k + 1, sizeof(*j.heap)))) return OCT_ERR_MEMORY;
    if (w == OCT_WORK_F32) top_all_f32(&j);
    if (w == OCT_WORK_F64) top_all_f64(&j);
    if (w == OCT_WORK_I64 && x->dtype != OCT_DTYPE_U64) top_all_i64(&j);
    if (x->dtype == OCT_DTYPE_U64) top_all_u64(&j);
    oct_work_done(a, 0, w, j.values);
    return OCT_OK;
}

/* Each value's gradient goes where it was found; asked again if the node does not say. */
static oct_status top_grad(const oct_grad_args *a)
{
    oct_value *where = oct_node_out(a->node, 1);

    if (!a->dy[0]) return OCT_OK;
    if (!where) {
        oct_node *n = oct_emit_node(a->b, &oct_op_top_k, a->node->in, 2, 2);

        oct_emit_attrs_of(a->b, n, a->node);
        if (oct_emitted(a->b, n)) where = n->out[1];
    }
    a->dx[0] = oct_grad_scatter_elements(a->b, oct_grad_filled(a->b, &a->node->in[0]->type, 0),
                                         where, a->dy[0], oct_int(a->node, TOP_AXIS), "none");
    return OCT_OK;
}

static const oct_attr_def top_attrs[] = {
    [TOP_AXIS] = {.name = "axis", .kind = OCT_ATTR_INT, .def = {.i = -1}},
    [TOP_LARGEST] = {.name = "largest", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    [TOP_SORTED] = {.name = "sorted", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    {0},
};

const oct_op oct_op_top_k = {
    .name = "TopK",
    .since = 11,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 2,
    .attrs = top_attrs,
    .shape = top_shape,
    .ref = top_ref,
    .grad = top_grad,
    .flow = OCT_FLOW_STOP,
};
