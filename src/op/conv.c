/* SPDX-License-Identifier: Apache-2.0 */
/* Conv and ConvTranspose: any number of spatial dims, groups, dilation. */
#include "base/parallel.h"
#include "op/conv_geometry.h"
#include "op/grad/layers.h"
#include "op/work.h"

typedef struct conv_job {
    oct_conv_geometry g;
    const void *x, *w, *bias; /* bias may be NULL */
    void *y;
    int64_t in_size, out_size, kernel_size; /* of one channel */
    int64_t filter_size;                    /* of one filter of Conv */
} conv_job;

/* The output row that input row r reaches through kernel row k (all axes but the last); or -1. */
static int64_t reached_row(const oct_conv_geometry *g, int64_t r, int64_t k)
{
    int64_t row = 0, scale = 1;

    for (int d = g->n - 2; d >= 0; d--) {
        const int64_t o =
            r % g->in[d] * g->stride[d] + k % g->kernel[d] * g->dilation[d] - g->pad_begin[d];

        if (o < 0 || o >= g->out[d]) return -1;
        row += o * scale;
        scale *= g->out[d];
        r /= g->in[d];
        k /= g->kernel[d];
    }
    return row;
}

#define T     float
#define FN(f) f##_f32
#include "op/conv_kernel.inc"
#undef T
#undef FN
#define T     double
#define FN(f) f##_f64
#include "op/conv_kernel.inc"
#undef T
#undef FN

/* A 1x1 convolution sees no rows: one long one is faster. */
static void flatten_pointwise(oct_conv_geometry *g)
{
    if (!oct_conv_is_pointwise(g)) return;
    g->in[0] = oct_conv_geometry_in_size(g);
    g->out[0] = g->in[0];
    g->n = 1;
}

static oct_status start(const oct_args *a, oct_work w, conv_job *j)
{
    oct_conv_geometry *g = &j->g;

    OCT_TRY(oct_work_in(a, 0, w, &j->x));
    OCT_TRY(oct_work_in(a, 1, w, &j->w));
    OCT_TRY(oct_work_in(a, 2, w, &j->bias));
    OCT_TRY(oct_work_out(a, 0, w, &j->y));
    j->in_size = oct_conv_geometry_in_size(g);
    j->out_size = oct_conv_geometry_out_size(g);
    j->kernel_size = oct_conv_geometry_kernel_size(g);
    j->filter_size = j->kernel_size * (g->c_in / g->group);
    return OCT_OK;
}

static oct_status conv_ref(const oct_args *a)
{
    const oct_work w = oct_work_of(a->in[0]->type.dtype);
    conv_job j = {.x = NULL};
    int64_t blocks;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_conv_geometry_conv(a->node, &a->in[0]->type, &a->in[1]->type, &j.g));
    OCT_TRY(oct_args_spend(a, oct_conv_geometry_macs(&j.g, false)));
    flatten_pointwise(&j.g);
    OCT_TRY(start(a, w, &j));
    if (oct_tensor_len(a->out[0]) == 0) return OCT_OK;
    blocks = (j.g.c_out / j.g.group + 3) / 4;
    oct_parallel_for(a->n_threads, j.g.batch * j.g.group * blocks, 1,
                     w == OCT_WORK_F64 ? conv_range_f64 : conv_range_f32, &j);
    oct_work_done(a, 0, w, j.y);
    return OCT_OK;
}

static oct_status transpose_ref(const oct_args *a)
{
    const oct_work w = oct_work_of(a->in[0]->type.dtype);
    conv_job j = {.x = NULL};

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_conv_geometry_transpose(a->node, &a->in[0]->type, &a->in[1]->type, &j.g));
    OCT_TRY(oct_args_spend(a, oct_conv_geometry_macs(&j.g, true)));
    OCT_TRY(start(a, w, &j));
    oct_parallel_for(a->n_threads, j.g.batch * j.g.c_out, 1,
                     w == OCT_WORK_F64 ? spread_range_f64 : spread_range_f32, &j);
    oct_work_done(a, 0, w, j.y);
    return OCT_OK;
}

/* The bias must be one number for each filter. */
static oct_status check_bias(const oct_infer *q, int64_t c_out)
{
    const oct_type *b = oct_infer_in(q, 2);

    if (!b || b->rank < 0) return OCT_OK;
    if (b->rank != 1)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "bias has %d dims, 1 is needed", b->rank);
    if (b->dim[0] >= 0 && c_out >= 0 && b->dim[0] != c_out)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "bias has %lld numbers for %lld filters",
                              (long long)b->dim[0], (long long)c_out);
    return OCT_OK;
}

typedef oct_status (*geometry_fn)(const oct_node *n, const oct_type *x, const oct_type *w,
                                  oct_conv_geometry *g);

static oct_status shape(const oct_infer *q, geometry_fn geometry)
{
    const oct_type *x, *w;
    oct_conv_geometry g;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &w));
    for (int i = 0; i < 3; i++)
        OCT_TRY(oct_infer_check(q, i, OCT_SET_FLOAT));
    OCT_TRY(geometry(q->node, x, w, &g));
    OCT_TRY(check_bias(q, g.c_out));
    q->out[0] = oct_conv_geometry_type(&g, x->dtype);
    return OCT_OK;
}

static oct_status conv_shape(const oct_infer *q)
{
    return shape(q, oct_conv_geometry_conv);
}

static oct_status transpose_shape(const oct_infer *q)
{
    return shape(q, oct_conv_geometry_transpose);
}

static int64_t conv_macs(const oct_node *n)
{
    oct_conv_geometry g;

    if (oct_conv_geometry_conv(n, &n->in[0]->type, &n->in[1]->type, &g)) return 0;
    return oct_conv_geometry_macs(&g, false);
}

static int64_t transpose_macs(const oct_node *n)
{
    oct_conv_geometry g;

    if (oct_conv_geometry_transpose(n, &n->in[0]->type, &n->in[1]->type, &g)) return 0;
    return oct_conv_geometry_macs(&g, true);
}

/* Fast kernels compute some dozen filters at once, if there are as many. */
static int64_t work_of(const oct_node *n, geometry_fn geometry, bool is_transpose)
{
    oct_conv_geometry g;

    if (geometry(n, &n->in[0]->type, &n->in[1]->type, &g) || g.c_out < 1) return 0;
    return oct_conv_geometry_macs(&g, is_transpose) / OCT_MIN(OCT_MAX(g.c_out / g.group, 1), 32);
}

static int64_t conv_work(const oct_node *n)
{
    return work_of(n, oct_conv_geometry_conv, false);
}

static int64_t transpose_work(const oct_node *n)
{
    return work_of(n, oct_conv_geometry_transpose, true);
}

static bool conv_axes(const oct_node *n, const oct_type *w, oct_weight_axes *out)
{
    out->groups = oct_node_attr(n, "group")->i;
    out->out = 0;
    out->in = 1;
    return w->rank >= 3;
}

static bool transpose_axes(const oct_node *n, const oct_type *w, oct_weight_axes *out)
{
    out->groups = oct_node_attr(n, "group")->i;
    out->out = 1;
    out->in = 0;
    return w->rank >= 3;
}

const oct_op oct_op_conv = {
    .name = "Conv",
    .since = 11,
    .min_in = 2,
    .max_in = 3,
    .attrs = oct_conv_attrs,
    .shape = conv_shape,
    .ref = conv_ref,
    .grad = oct_grad_conv,
    .macs = conv_macs,
    .work = conv_work,
    .quant = {.in = {OCT_QROLE_ACT, OCT_QROLE_WEIGHT, OCT_QROLE_BIAS}},
    .flow = OCT_FLOW_SOURCE,
    .weights = {.axes = conv_axes, .takes_factor = true},
    .fuses = OCT_FUSES_BIAS | OCT_FUSES_ACT | OCT_FUSES_RESIDUAL,
};

static const oct_attr_def transpose_attrs[] = {
    {.name = "auto_pad", .kind = OCT_ATTR_STRING, .def = {.s = "NOTSET"}, .n_def = 6},
    {.name = "dilations", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "group", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    {.name = "kernel_shape", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "output_padding", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "output_shape", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "pads", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "strides", .kind = OCT_ATTR_INTS, .no_default = true},
    {0},
};

const oct_op oct_op_conv_transpose = {
    .name = "ConvTranspose",
    .since = 11,
    .min_in = 2,
    .max_in = 3,
    .attrs = transpose_attrs,
    .shape = transpose_shape,
    .ref = transpose_ref,
    .grad = oct_grad_conv_transpose,
    .macs = transpose_macs,
    .work = transpose_work,
    .quant = {.in = {OCT_QROLE_ACT, OCT_QROLE_WEIGHT, OCT_QROLE_BIAS}, .weight_axis = 1},
    .flow = OCT_FLOW_SOURCE,
    .weights = {.axes = transpose_axes},
    .fuses = OCT_FUSES_BIAS | OCT_FUSES_ACT,
};
