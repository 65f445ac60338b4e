/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool and LpPool, with dilation and ceil_mode. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "op/grad/layers.h"
#include "op/pool.h"
#include "op/work.h"

typedef enum pool_kind { POOL_MAX, POOL_AVERAGE, POOL_LP } pool_kind;

typedef struct pool_job {
    oct_conv_geometry g;
    pool_kind kind;
    const void *x;
    void *y;
    int64_t *index;            /* MaxPool's second output, or NULL: index within a channel,
                                * row-major */
    int64_t in_size, out_size; /* of one channel */
    bool include_pad;
    int p; /* 0: plain sum */
    double lowest;
} pool_job;

static float absolute_f32(float x)
{
    return fabsf(x);
}

static double absolute_f64(double x)
{
    return fabs(x);
}

static float power_f32(float x, int p)
{
    return p == 2 ? x * x : powf(fabsf(x), (float)p);
}

static double power_f64(double x, int p)
{
    return p == 2 ? x * x : pow(fabs(x), p);
}

static float root_f32(float x, int p)
{
    return p == 2 ? sqrtf(x) : powf(x, 1.0f / (float)p);
}

static double root_f64(double x, int p)
{
    return p == 2 ? sqrt(x) : pow(x, 1.0 / p);
}

#define T     float
#define FN(f) f##_f32
#include "op/pool_kernel.inc"
#undef T
#undef FN
#define T     double
#define FN(f) f##_f64
#include "op/channels.h"
#include "op/pool_kernel.inc"
#undef T
#undef FN

/* Indices count over the whole tensor; column-major ones swap the roles of the spatial axes. */
static void finish_indices(const oct_args *a, const pool_job *j, bool column_major)
{
    const oct_conv_geometry *g = &j->g;

    for (int64_t i = 0; i < oct_tensor_len(a->out[1]); i++) {
        const int64_t plane = i / j->out_size;
        int64_t at = j->index[i], rest = at, scale = j->in_size;

        if (at < 0) continue;
        for (int d = g->n - 1; d >= 0 && column_major; d--) {
            scale /= g->in[d];
            if (d == g->n - 1) at = 0;
            at += rest % g->in[d] * scale;
            rest /= g->in[d];
        }
        j->index[i] = at + plane * j->in_size;
    }
}

/* What a window of padding alone gives: as oneDNN and ONNX Runtime, the least number and not -inf.
 */
static double lowest_of(oct_dtype t)
{
    switch (t) {
    case OCT_DTYPE_F64:
        return -DBL_MAX;
    case OCT_DTYPE_F16:
        return -65504;
    case OCT_DTYPE_BF16:
        return -0x1.fep127;
    case OCT_DTYPE_U8:
        return 0;
    case OCT_DTYPE_I8:
        return -128;
    default:
        return -(double)FLT_MAX;
    }
}

static oct_status run(const oct_args *a, pool_job *j)
{
    const oct_dtype t = a->in[0]->type.dtype;
    const oct_work w = t == OCT_DTYPE_F64 ? OCT_WORK_F64 : OCT_WORK_F32; /* 8-bit fits in f32 */

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_conv_geometry_pool(a->node, &a->in[0]->type, &j->g));
    OCT_TRY(oct_args_spend(a, oct_conv_geometry_taps(&j->g, false)));
    OCT_TRY(oct_work_in(a, 0, w, &j->x));
    OCT_TRY(oct_work_out(a, 0, w, &j->y));
    j->in_size = oct_conv_geometry_in_size(&j->g);
    j->out_size = oct_conv_geometry_out_size(&j->g);
    j->lowest = lowest_of(t);
    if (oct_args_out(a, 1)) j->index = a->out[1]->data;
    oct_parallel_for(a->n_threads, j->g.batch * j->g.c_in, 1,
                     w == OCT_WORK_F64 ? pool_range_f64 : pool_range_f32, j);
    oct_work_done(a, 0, w, j->y);
    return OCT_OK;
}

static oct_status shape(const oct_infer *q, unsigned set)
{
    const oct_type *x;
    oct_conv_geometry g;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_check(q, 0, set));
    OCT_TRY(oct_conv_geometry_pool(q->node, x, &g));
    q->out[0] = oct_conv_geometry_type(&g, x->dtype);
    return OCT_OK;
}

static int64_t work(const oct_node *n)
{
    oct_conv_geometry g;

    return oct_conv_geometry_pool(n, &n->in[0]->type, &g) ? 0 : oct_conv_geometry_taps(&g, false);
}

/* --- MaxPool --- */

enum { MAX_AUTO_PAD, MAX_CEIL, MAX_DILATIONS, MAX_KERNEL, MAX_PADS, MAX_STORAGE, MAX_STRIDES };

static oct_status max_shape(const oct_infer *q)
{
    OCT_TRY(shape(q, OCT_SET_FLOAT | OCT_SET(OCT_DTYPE_I8) | OCT_SET(OCT_DTYPE_U8)));
    if (q->node->n_out > 1) {
        q->out[1] = q->out[0];
        q->out[1].dtype = OCT_DTYPE_I64;
    }
    return OCT_OK;
}

static oct_status max_ref(const oct_args *a)
{
    pool_job j = {.kind = POOL_MAX};

    OCT_TRY(run(a, &j));
    if (j.index) finish_indices(a, &j, oct_int(a->node, MAX_STORAGE) != 0);
    return OCT_OK;
}

static const oct_attr_def max_attrs[] = {
    [MAX_AUTO_PAD] = {"auto_pad", OCT_ATTR_STRING, {.s = "NOTSET"}, .n_def = 6},
    [MAX_CEIL] = {.name = "ceil_mode", .kind = OCT_ATTR_INT},
    [MAX_DILATIONS] = {.name = "dilations", .kind = OCT_ATTR_INTS, .no_default = true},
    [MAX_KERNEL] = {.name = "kernel_shape", .kind = OCT_ATTR_INTS, .required = true},
    [MAX_PADS] = {.name = "pads", .kind = OCT_ATTR_INTS, .no_default = true},
    [MAX_STORAGE] = {.name = "storage_order", .kind = OCT_ATTR_INT},
    [MAX_STRIDES] = {.name = "strides", .kind = OCT_ATTR_INTS, .no_default = true},
    {0},
};

const oct_op oct_op_max_pool = {
    .name = "MaxPool",
    .since = 12,
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 2,
    .attrs = max_attrs,
    .shape = max_shape,
    .ref = max_ref,
    .grad = oct_grad_max_pool,
    .work = work,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
    .moves = &oct_moves_pool,
};

/* --- AveragePool --- */

enum { AVG_AUTO_PAD, AVG_CEIL, AVG_COUNT, AVG_DILATIONS, AVG_KERNEL, AVG_PADS, AVG_STRIDES };

static oct_status float_shape(const oct_infer *q)
{
    return shape(q, OCT_SET_FLOAT);
}

static oct_status average_ref(const oct_args *a)
{
    pool_job j = {.kind = POOL_AVERAGE, .include_pad = oct_int(a->node, AVG_COUNT) != 0};

    return run(a, &j);
}

static const oct_attr_def average_attrs[] = {
    [AVG_AUTO_PAD] = {"auto_pad", OCT_ATTR_STRING, {.s = "NOTSET"}, .n_def = 6},
    [AVG_CEIL] = {.name = "ceil_mode", .kind = OCT_ATTR_INT},
    [AVG_COUNT] = {.name = "count_include_pad", .kind = OCT_ATTR_INT},
    [AVG_DILATIONS] = {.name = "dilations", .kind = OCT_ATTR_INTS, .no_default = true},
    [AVG_KERNEL] = {.name = "kernel_shape", .kind = OCT_ATTR_INTS, .required = true},
    [AVG_PADS] = {.name = "pads", .kind = OCT_ATTR_INTS, .no_default = true},
    [AVG_STRIDES] = {.name = "strides", .kind = OCT_ATTR_INTS, .no_default = true},
    {0},
};

const oct_op oct_op_average_pool = {
    .name = "AveragePool",
    .since = 11,
    .min_in = 1,
    .max_in = 1,
    .attrs = average_attrs,
    .shape = float_shape,
    .ref = average_ref,
    .grad = oct_grad_average_pool,
    .work = work,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
};

/* --- LpPool --- */

enum { LP_AUTO_PAD, LP_CEIL, LP_DILATIONS, LP_KERNEL, LP_P, LP_PADS, LP_STRIDES };

static oct_status lp_ref(const oct_args *a)
{
    const int64_t p = oct_int(a->node, LP_P);
    pool_job j = {.kind = POOL_LP, .p = (int)p};

    if (p < 1 || p > INT16_MAX)
        return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED, "p is %lld", (long long)p);
    return run(a, &j);
}

static const oct_attr_def lp_attrs[] = {
    [LP_AUTO_PAD] = {"auto_pad", OCT_ATTR_STRING, {.s = "NOTSET"}, .n_def = 6},
    [LP_CEIL] = {.name = "ceil_mode", .kind = OCT_ATTR_INT},
    [LP_DILATIONS] = {.name = "dilations", .kind = OCT_ATTR_INTS, .no_default = true},
    [LP_KERNEL] = {.name = "kernel_shape", .kind = OCT_ATTR_INTS, .required = true},
    [LP_P] = {.name = "p", .kind = OCT_ATTR_INT, .def = {.i = 2}},
    [LP_PADS] = {.name = "pads", .kind = OCT_ATTR_INTS, .no_default = true},
    [LP_STRIDES] = {.name = "strides", .kind = OCT_ATTR_INTS, .no_default = true},
    {0},
};

const oct_op oct_op_lp_pool = {
    .name = "LpPool",
    .since = 18,
    .min_in = 1,
    .max_in = 1,
    .attrs = lp_attrs,
    .shape = float_shape,
    .ref = lp_ref,
    .grad = oct_grad_lp_pool,
    .work = work,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
};
