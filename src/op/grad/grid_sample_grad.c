/* SPDX-License-Identifier: Apache-2.0 */
/* GridSampleGrad: from x, grid and dy the gradients of x and of the grid. */
#include "base/parallel.h"
#include "op/grad/layers.h"
#include "op/grad/rules.h"
#include "op/grid_sample.h"
#include "op/work.h"

enum { X, GRID, DY, N_IN };
enum { DX, DGRID, N_OUT };

typedef struct grid_job {
    oct_grid_params p;
    const double *in[N_IN];
    double *out[N_OUT]; /* NULL: not wanted */
    int32_t space;
    int64_t dim[OCT_GRID_MAX_SPACE]; /* of x */
    int64_t channels, points;        /* points: of one image in the grid */
    int64_t plane;                   /* elements of a channel */
} grid_job;

/* One element that a point reads: where, its weight, and the slopes of the weight by coordinate. */
typedef struct corner {
    int64_t at; /* -1: outside */
    double weight, slope[OCT_GRID_MAX_SPACE];
} corner;

static corner corner_of(const grid_job *j, const oct_grid_taps *t, int k)
{
    corner c = {.weight = 1};

    for (int32_t d = 0; d < j->space; d++)
        c.slope[d] = 1;
    for (int32_t d = 0; d < j->space; d++, k /= t[d - 1].count) {
        const int tap = k % t[d].count;

        if (t[d].index[tap] < 0) return (corner){.at = -1};
        c.at = c.at * j->dim[d] + t[d].index[tap];
        c.weight *= t[d].weight[tap];
        for (int32_t e = 0; e < j->space; e++)
            c.slope[e] *= e == d ? t[d].slope[tap] : t[d].weight[tap];
    }
    return c;
}

static void run_point(const grid_job *j, int64_t image, int64_t point)
{
    const int64_t i = image * j->points + point;
    oct_grid_taps t[OCT_GRID_MAX_SPACE];
    double slope[OCT_GRID_MAX_SPACE] = {0};
    int total = 1;

    for (int32_t d = 0; d < j->space; d++) { /* the grid's order is x, y, z */
        oct_grid_find(&j->p, j->in[GRID][i * j->space + j->space - 1 - d], j->dim[d], &t[d]);
        total *= t[d].count;
    }
    for (int k = 0; k < total; k++) {
        const corner c = corner_of(j, t, k);

        for (int64_t ch = 0; ch < j->channels && c.at >= 0; ch++) {
            const int64_t at = (image * j->channels + ch) * j->plane + c.at;
            const double dy = j->in[DY][(image * j->channels + ch) * j->points + point];

            if (j->out[DX]) j->out[DX][at] += c.weight * dy;
            for (int32_t d = 0; d < j->space; d++)
                slope[d] += c.slope[d] * j->in[X][at] * dy;
        }
    }
    for (int32_t d = 0; d < j->space && j->out[DGRID]; d++)
        j->out[DGRID][i * j->space + j->space - 1 - d] = slope[d];
}

/* Items are images: points of one may add to the same elements. */
static void run_images(void *arg, int64_t begin, int64_t end)
{
    const grid_job *j = arg;

    for (int64_t image = begin; image < end; image++)
        for (int64_t point = 0; point < j->points; point++)
            run_point(j, image, point);
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *in[N_IN];
    oct_grid_params p;

    for (int i = 0; i < N_IN; i++) {
        OCT_TRY(oct_infer_need(q, i, &in[i]));
        OCT_TRY(oct_infer_check(q, i, OCT_SET_FLOAT));
    }
    OCT_TRY(oct_grid_read(q->node, in[GRID]->dtype, &p));
    OCT_TRY(oct_grid_check(q->node, in[X], in[GRID]));
    for (int32_t d = 0; d < in[X]->rank && oct_type_is_static(in[DY]); d++) {
        const int64_t want = d < 2 ? in[X]->dim[d] : in[GRID]->rank < 0 ? -1 : in[GRID]->dim[d - 1];

        if (in[DY]->rank != in[X]->rank || (want >= 0 && in[DY]->dim[d] != want))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "dy has not the shape that sampling gives");
    }
    q->out[DX] = *in[X];
    if (q->node->n_out > 1) q->out[DGRID] = *in[GRID];
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_type *x = &a->in[X]->type, *grid = &a->in[GRID]->type;
    grid_job j = {.space = x->rank - 2, .channels = x->dim[1]};

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_grid_read(a->node, grid->dtype, &j.p));
    for (int i = 0; i < N_IN; i++)
        OCT_TRY(oct_work_in_f64(a, i, &j.in[i]));
    for (int i = 0; i < a->node->n_out; i++) {
        if (!a->out[i]) continue;
        j.out[i] = oct_args_scratch(a, (size_t)oct_tensor_len(a->out[i]) + 1, sizeof(double));
        if (!j.out[i]) return OCT_ERR_MEMORY;
    }
    j.points = oct_type_span(grid, 1, grid->rank - 1);
    j.plane = oct_type_span(x, 2, x->rank);
    for (int32_t d = 0; d < j.space; d++)
        j.dim[d] = x->dim[2 + d];
    if (j.plane > 0) oct_parallel_for(a->n_threads, x->dim[0], 1, run_images, &j);
    for (int i = 0; i < a->node->n_out; i++)
        if (a->out[i])
            oct_store_f64(a->out[i]->type.dtype, a->out[i]->data, 0, oct_tensor_len(a->out[i]),
                          j.out[i]);
    return OCT_OK;
}

oct_status oct_grad_grid_sample(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    oct_node *g = oct_emit_node(a->b, &oct_op_grid_sample_grad,
                                (oct_value *[]){n->in[X], n->in[GRID], a->dy[0]}, N_IN,
                                a->wanted[GRID] ? 2 : 1);

    oct_emit_attrs_of(a->b, g, n);
    a->dx[X] = oct_emitted(a->b, g);
    if (a->dx[X] && a->wanted[GRID]) a->dx[GRID] = g->out[DGRID];
    return a->b->status;
}

static const oct_attr_def attrs[] = {
    {.name = "align_corners", .kind = OCT_ATTR_INT},
    {.name = "mode", .kind = OCT_ATTR_STRING, .def = {.s = "linear"}, .n_def = 6},
    {.name = "padding_mode", .kind = OCT_ATTR_STRING, .def = {.s = "zeros"}, .n_def = 5},
    {0},
};

const oct_op oct_op_grid_sample_grad = {
    .name = "GridSampleGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = N_IN,
    .max_in = N_IN,
    .min_out = 1,
    .max_out = N_OUT,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
};
