/* SPDX-License-Identifier: Apache-2.0 */
/* DeformConvGrad: gradients of a deformable convolution with respect to its image, weights, offsets
 * and mask. Loops are those of the forward pass; nothing here is meant to be fast. */
#include <math.h>

#include "base/parallel.h"
#include "op/deform_conv.h"
#include "op/grad/layers.h"
#include "op/grad/rules.h"
#include "op/work.h"

enum { X = OCT_DEFORM_X, W = OCT_DEFORM_W, OFFSET = OCT_DEFORM_OFFSET, DY, MASK };
enum { DX, DW, DOFFSET, DMASK, N_OUT };
enum { FORWARD_BIAS = 3, FORWARD_MASK };

typedef struct grad_job {
    oct_deform d;
    const double *dy;
    double *out[N_OUT]; /* NULL: not wanted */
    double *weight;     /* gradients of the weights, for each image */
    int64_t n_weights;
} grad_job;

/* Adds v times the weights of bilinear reading to dx; slopes of what is read by position. */
static void spread(const oct_conv_geometry *g, const oct_deform_tap *t, const double *x, double *dx,
                   double v, double *by_h, double *by_w)
{
    const int64_t rows = g->in[0], cols = g->in[1];
    double h0, w0;

    *by_h = *by_w = 0;
    if (!(t->h > -1 && t->h < (double)rows && t->w > -1 && t->w < (double)cols)) return;
    h0 = floor(t->h);
    w0 = floor(t->w);
    for (int k = 0; k < 4; k++) {
        const int64_t i = (int64_t)h0 + k / 2, j = (int64_t)w0 + k % 2;
        const double in_h = k / 2 ? t->h - h0 : 1 - (t->h - h0);
        const double in_w = k % 2 ? t->w - w0 : 1 - (t->w - w0);

        if (i < 0 || i >= rows || j < 0 || j >= cols) continue;
        dx[i * cols + j] += v * in_h * in_w;
        *by_h += (k / 2 ? in_w : -in_w) * x[i * cols + j];
        *by_w += (k % 2 ? in_h : -in_h) * x[i * cols + j];
    }
}

/* One element that output pixel (row, col) reads: tap k of channel c. */
static void run_tap(const grad_job *j, int64_t b, int64_t c, int64_t k, int64_t row, int64_t col)
{
    const oct_conv_geometry *g = &j->d.g;
    const oct_deform_tap t = oct_deform_tap_at(&j->d, b, c, k, row, col);
    const int64_t c_group = g->c_in / g->group, m_group = g->c_out / g->group, grp = c / c_group;
    const int64_t plane = (b * g->c_in + c) * g->in[0] * g->in[1];
    const double value = oct_deform_sample(g, j->d.x + plane, t.h, t.w);
    double dvalue = 0, by_h, by_w; /* of value * gain */

    for (int64_t m = grp * m_group; m < (grp + 1) * m_group; m++) {
        const int64_t w = (m * c_group + c % c_group) * j->d.taps + k;
        const double dy = j->dy[((b * g->c_out + m) * g->out[0] + row) * g->out[1] + col];

        dvalue += dy * j->d.w[w];
        j->weight[b * j->n_weights + w] += dy * value * t.gain;
    }
    spread(g, &t, j->d.x + plane, j->out[DX] + plane, dvalue * t.gain, &by_h, &by_w);
    j->out[DOFFSET][t.at_h] += dvalue * t.gain * by_h;
    j->out[DOFFSET][t.at_w] += dvalue * t.gain * by_w;
    if (j->out[DMASK]) j->out[DMASK][t.at_mask] += dvalue * value;
}

/* Items are images, which share nothing but the weights: those are summed afterwards. */
static void run_images(void *arg, int64_t begin, int64_t end)
{
    const grad_job *j = arg;
    const oct_conv_geometry *g = &j->d.g;

    for (int64_t b = begin; b < end; b++)
        for (int64_t row = 0; row < g->out[0]; row++)
            for (int64_t col = 0; col < g->out[1]; col++)
                for (int64_t c = 0; c < g->c_in; c++)
                    for (int64_t k = 0; k < j->d.taps; k++)
                        run_tap(j, b, c, k, row, col);
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *t, *dy;
    oct_deform d;

    for (int i = X; i <= DY; i++)
        OCT_TRY(oct_infer_need(q, i, &t));
    for (int i = X; i <= MASK; i++)
        OCT_TRY(oct_infer_check(q, i, OCT_SET_FLOAT));
    dy = q->in[DY];
    OCT_TRY(oct_deform_read(q, &d));
    if (d.g.n == 2) {
        const int64_t planes = d.taps < 0 ? -1 : d.taps * d.offset_groups;

        OCT_TRY(oct_deform_check_field(q, OFFSET, &d.g, planes < 0 ? -1 : 2 * planes));
        OCT_TRY(oct_deform_check_field(q, MASK, &d.g, planes));
        OCT_TRY(oct_deform_check_field(q, DY, &d.g, dy->rank == 4 ? d.g.c_out : -1));
    }
    for (int i = DX; i <= DOFFSET && i < q->node->n_out; i++)
        q->out[i] = *q->in[i];
    if (q->node->n_out > DMASK) {
        OCT_TRY(oct_infer_need(q, MASK, &t));
        q->out[DMASK] = *t;
    }
    return OCT_OK;
}

static oct_status take_memory(const oct_args *a, grad_job *j)
{
    size_t room;

    for (int i = DX; i < a->node->n_out; i++) {
        j->out[i] = oct_args_scratch(a, (size_t)oct_tensor_len(a->out[i]) + 1, sizeof(double));
        if (!j->out[i]) return OCT_ERR_MEMORY;
    }
    j->n_weights = oct_tensor_len(a->in[W]);
    if (!oct_mul_size((size_t)j->n_weights, (size_t)j->d.g.batch, &room)) return OCT_ERR_MEMORY;
    j->weight = oct_args_scratch(a, room + 1, sizeof(double));
    return j->weight ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status ref(const oct_args *a)
{
    grad_job j = {.dy = NULL};
    oct_infer q;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_args_infer(a, &q));
    OCT_TRY(oct_deform_read(&q, &j.d));
    OCT_TRY(oct_args_spend(a, oct_conv_geometry_macs(&j.d.g, false)));
    OCT_TRY(oct_work_in_f64(a, X, &j.d.x));
    OCT_TRY(oct_work_in_f64(a, W, &j.d.w));
    OCT_TRY(oct_work_in_f64(a, OFFSET, &j.d.offset));
    OCT_TRY(oct_work_in_f64(a, DY, &j.dy));
    OCT_TRY(oct_work_in_f64(a, MASK, &j.d.mask));
    OCT_TRY(take_memory(a, &j));
    oct_parallel_for(a->n_threads, j.d.g.batch, 1, run_images, &j);
    for (int64_t b = 0; b < j.d.g.batch; b++)
        for (int64_t i = 0; i < j.n_weights; i++)
            j.out[DW][i] += j.weight[b * j.n_weights + i];
    for (int i = DX; i < a->node->n_out; i++)
        oct_store_f64(a->out[i]->type.dtype, a->out[i]->data, 0, oct_tensor_len(a->out[i]),
                      j.out[i]);
    return OCT_OK;
}

oct_status oct_grad_deform_conv(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    oct_value *mask = oct_node_in(n, FORWARD_MASK);
    oct_node *g = oct_emit_node(a->b, &oct_op_deform_conv_grad,
                                (oct_value *[]){n->in[X], n->in[W], n->in[OFFSET], a->dy[0], mask},
                                mask ? 5 : 4, mask ? N_OUT : DMASK);

    oct_emit_attrs_of(a->b, g, n);
    if (!oct_emitted(a->b, g)) return a->b->status;
    for (int i = DX; i <= DOFFSET; i++)
        a->dx[i] = g->out[i];
    if (mask) a->dx[FORWARD_MASK] = g->out[DMASK];
    if (oct_node_in(n, FORWARD_BIAS) && a->wanted[FORWARD_BIAS])
        a->dx[FORWARD_BIAS] =
            oct_grad_reduce(a->b, &oct_op_reduce_sum, a->dy[0], (int64_t[]){0, 2, 3}, 3, false);
    return a->b->status;
}

static const oct_attr_def attrs[] = {
    {.name = "dilations", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "group", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    {.name = "kernel_shape", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "offset_group", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    {.name = "pads", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "strides", .kind = OCT_ATTR_INTS, .no_default = true},
    {0},
};

const oct_op oct_op_deform_conv_grad = {
    .name = "DeformConvGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 4,
    .max_in = 5,
    .min_out = 3,
    .max_out = N_OUT,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
};
