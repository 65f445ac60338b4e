/* SPDX-License-Identifier: Apache-2.0 */
/* DeformConv: a 2-D convolution whose taps are moved by learned offsets and read bilinearly. */
#include "op/deform_conv.h"

#include <math.h>

#include "base/parallel.h"
#include "op/grad/layers.h"
#include "op/work.h"

enum { DILATIONS, GROUP, KERNEL, OFFSET_GROUP, PADS, STRIDES };
enum { X = OCT_DEFORM_X, W = OCT_DEFORM_W, OFFSET = OCT_DEFORM_OFFSET, BIAS, MASK };

typedef struct deform_job {
    oct_deform d;
    const double *bias;  /* may be NULL */
    double *y, *columns; /* columns: for each work item, the c_in * taps values it reads */
} deform_job;

/* The image at (h, w), zero outside. Written so that NaN is outside as well. */
double oct_deform_sample(const oct_conv_geometry *g, const double *x, double h, double w)
{
    const int64_t rows = g->in[0], cols = g->in[1];
    double sum = 0;
    int64_t h0, w0;

    if (!(h > -1 && h < (double)rows && w > -1 && w < (double)cols)) return 0;
    h0 = (int64_t)floor(h);
    w0 = (int64_t)floor(w);
    for (int64_t i = h0; i <= h0 + 1; i++)
        for (int64_t j = w0; j <= w0 + 1; j++)
            if (i >= 0 && i < rows && j >= 0 && j < cols)
                sum += x[i * cols + j] * (1 - fabs(h - (double)i)) * (1 - fabs(w - (double)j));
    return sum;
}

oct_deform_tap oct_deform_tap_at(const oct_deform *d, int64_t b, int64_t c, int64_t k, int64_t row,
                                 int64_t col)
{
    const oct_conv_geometry *g = &d->g;
    const int64_t c_group = g->c_in / d->offset_groups;
    const int64_t pixels = g->out[0] * g->out[1], at = row * g->out[1] + col;
    const int64_t tap = (b * d->offset_groups + c / c_group) * d->taps + k;
    const int64_t kh = k / g->kernel[1], kw = k % g->kernel[1];
    oct_deform_tap t = {.at_h = 2 * tap * pixels + at,
                        .at_w = (2 * tap + 1) * pixels + at,
                        .at_mask = tap * pixels + at};

    t.h = (double)(row * g->stride[0] - g->pad_begin[0] + kh * g->dilation[0]) + d->offset[t.at_h];
    t.w = (double)(col * g->stride[1] - g->pad_begin[1] + kw * g->dilation[1]) + d->offset[t.at_w];
    t.gain = d->mask ? d->mask[t.at_mask] : 1;
    return t;
}

/* All values that output pixel (row, col) of image b reads. */
static void read_columns(const oct_deform *d, int64_t b, int64_t row, int64_t col, double *to)
{
    const oct_conv_geometry *g = &d->g;
    const int64_t size = g->in[0] * g->in[1];

    for (int64_t c = 0; c < g->c_in; c++)
        for (int64_t k = 0; k < d->taps; k++) {
            const oct_deform_tap t = oct_deform_tap_at(d, b, c, k, row, col);

            to[c * d->taps + k] =
                t.gain * oct_deform_sample(g, d->x + (b * g->c_in + c) * size, t.h, t.w);
        }
}

/* Work items are (image, output row). */
static void row_range(void *arg, int64_t begin, int64_t end)
{
    const deform_job *j = arg;
    const oct_conv_geometry *g = &j->d.g;
    const int64_t m_group = g->c_out / g->group, n = g->c_in / g->group * j->d.taps;

    for (int64_t i = begin; i < end; i++) {
        const int64_t b = i / g->out[0], row = i % g->out[0];
        double *columns = j->columns + i * g->c_in * j->d.taps;

        for (int64_t col = 0; col < g->out[1]; col++) {
            read_columns(&j->d, b, row, col, columns);
            for (int64_t m = 0; m < g->c_out; m++) {
                const double *x = columns + m / m_group * n, *w = j->d.w + m * n;
                double sum = j->bias ? j->bias[m] : 0;

                for (int64_t k = 0; k < n; k++)
                    sum += x[k] * w[k];
                j->y[((b * g->c_out + m) * g->out[0] + row) * g->out[1] + col] = sum;
            }
        }
    }
}

/* offset and mask: [N x offset_group * taps * (2 or 1) x out] */
oct_status oct_deform_check_field(const oct_infer *q, int i, const oct_conv_geometry *g,
                                  int64_t planes)
{
    const oct_type *t = oct_infer_in(q, i);
    const int64_t want[] = {g->batch, planes, g->out[0], g->out[1]};

    OCT_TRY(oct_infer_check(q, i, OCT_SET_FLOAT));
    if (!t || t->rank < 0) return OCT_OK;
    for (int d = 0; d < 4; d++)
        if (t->rank != 4 || (t->dim[d] >= 0 && want[d] >= 0 && t->dim[d] != want[d]))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d does not fit the output", i);
    return OCT_OK;
}

oct_status oct_deform_read(const oct_infer *q, oct_deform *d)
{
    const int64_t groups = oct_node_attr(q->node, "offset_group")->i;
    oct_conv_geometry *g = &d->g;

    OCT_TRY(oct_conv_geometry_conv(q->node, q->in[X], q->in[W], g));
    d->taps = -1;
    d->offset_groups = groups;
    if (g->n >= 0 && g->n != 2)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "%d spatial dims, only 2 work", g->n);
    if (groups < 1 || (g->c_in >= 0 && g->c_in % groups != 0))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "offset_group is %lld", (long long)groups);
    if (g->n == 2 && g->kernel[0] > 0 && g->kernel[1] > 0) d->taps = g->kernel[0] * g->kernel[1];
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *t;
    int64_t planes = -1;
    oct_deform d;

    for (int i = X; i <= OFFSET; i++)
        OCT_TRY(oct_infer_need(q, i, &t));
    for (int i = X; i <= MASK; i++)
        OCT_TRY(oct_infer_check(q, i, OCT_SET_FLOAT));
    OCT_TRY(oct_deform_read(q, &d));
    if (d.taps > 0 && (!oct_mul_i64(d.taps, d.offset_groups, &planes) || planes > INT64_MAX / 2))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "offset_group is too large");
    if (d.g.n == 2) {
        OCT_TRY(oct_deform_check_field(q, OFFSET, &d.g, planes < 0 ? -1 : 2 * planes));
        OCT_TRY(oct_deform_check_field(q, MASK, &d.g, planes));
    }
    t = oct_infer_in(q, BIAS);
    if (t && t->rank >= 0 &&
        (t->rank != 1 || (t->dim[0] >= 0 && d.g.c_out >= 0 && t->dim[0] != d.g.c_out)))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "bias is not one number for each filter");
    q->out[0] = oct_conv_geometry_type(&d.g, q->in[X]->dtype);
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    deform_job j = {.y = NULL};
    oct_deform *d = &j.d;
    oct_infer q;
    size_t room;
    void *y;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_args_infer(a, &q));
    OCT_TRY(oct_deform_read(&q, d));
    OCT_TRY(oct_work_in_f64(a, X, &d->x));
    OCT_TRY(oct_work_in_f64(a, W, &d->w));
    OCT_TRY(oct_work_in_f64(a, OFFSET, &d->offset));
    OCT_TRY(oct_work_in_f64(a, BIAS, &j.bias));
    OCT_TRY(oct_work_in_f64(a, MASK, &d->mask));
    OCT_TRY(oct_work_out(a, 0, OCT_WORK_F64, &y));
    j.y = y;
    if (oct_tensor_len(a->out[0]) == 0) return OCT_OK;
    if (!oct_mul_size((size_t)(d->g.batch * d->g.out[0]), (size_t)(d->g.c_in * d->taps), &room) ||
        !(j.columns = oct_args_scratch(a, room + 1, sizeof(double))))
        return OCT_ERR_MEMORY;
    oct_parallel_for(a->n_threads, d->g.batch * d->g.out[0], 1, row_range, &j);
    oct_work_done(a, 0, OCT_WORK_F64, y);
    return OCT_OK;
}

static int64_t macs(const oct_node *n)
{
    oct_conv_geometry g;

    if (oct_conv_geometry_conv(n, &n->in[X]->type, &n->in[W]->type, &g)) return 0;
    return oct_conv_geometry_macs(&g, false);
}

static const oct_attr_def attrs[] = {
    [DILATIONS] = {.name = "dilations", .kind = OCT_ATTR_INTS, .no_default = true},
    [GROUP] = {.name = "group", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    [KERNEL] = {.name = "kernel_shape", .kind = OCT_ATTR_INTS, .no_default = true},
    [OFFSET_GROUP] = {.name = "offset_group", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    [PADS] = {.name = "pads", .kind = OCT_ATTR_INTS, .no_default = true},
    [STRIDES] = {.name = "strides", .kind = OCT_ATTR_INTS, .no_default = true},
    {0},
};

const oct_op oct_op_deform_conv = {
    .name = "DeformConv",
    .since = 19,
    .min_in = 3,
    .max_in = 5,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = oct_grad_deform_conv,
    .macs = macs,
    .quant = {.in = {OCT_QROLE_ACT, OCT_QROLE_WEIGHT, OCT_QROLE_NONE, OCT_QROLE_BIAS}},
    .flow = OCT_FLOW_SOURCE,
};
