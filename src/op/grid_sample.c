/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample: images (or volumes) sampled at positions that another tensor holds. */
#include "op/grid_sample.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "op/grad/layers.h"
#include "op/move.h"

enum { ALIGN_CORNERS, MODE, PADDING_MODE };
enum { GRAIN = 256 };

#define FAR 1e9 /* outside every image, and exact as an integer */

oct_status oct_grid_read(const oct_node *n, oct_dtype grid, oct_grid_params *p)
{
    static const struct {
        const char *word;
        oct_grid_mode mode;
    } modes[] = {{"nearest", OCT_GRID_NEAREST},
                 {"linear", OCT_GRID_LINEAR},
                 {"bilinear", OCT_GRID_LINEAR}, /* before 20 */
                 {"cubic", OCT_GRID_CUBIC},
                 {"bicubic", OCT_GRID_CUBIC}};
    static const char *const pads[] = {"zeros", "border", "reflection"};
    const char *mode = oct_node_attr(n, "mode")->s, *pad = oct_node_attr(n, "padding_mode")->s;
    size_t m = 0, k = 0;

    while (m < OCT_COUNT(modes) && strcmp(modes[m].word, mode) != 0)
        m++;
    while (k < OCT_COUNT(pads) && strcmp(pads[k], pad) != 0)
        k++;
    if (m == OCT_COUNT(modes) || k == OCT_COUNT(pads))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "mode '%.20s' with padding_mode '%.20s'", mode,
                             pad);
    *p = (oct_grid_params){modes[m].mode, (oct_grid_pad)k,
                           oct_node_attr(n, "align_corners")->i != 0, grid == OCT_DTYPE_F64};
    return OCT_OK;
}

oct_status oct_grid_check(const oct_node *n, const oct_type *x, const oct_type *grid)
{
    char a[OCT_TYPE_TEXT_SIZE], b[OCT_TYPE_TEXT_SIZE];

    if (x->rank < 0 || grid->rank < 0) return OCT_OK;
    if (x->rank >= 3 && x->rank <= 2 + OCT_GRID_MAX_SPACE && grid->rank == x->rank &&
        (grid->dim[grid->rank - 1] < 0 || grid->dim[grid->rank - 1] == x->rank - 2) &&
        (x->dim[0] < 0 || grid->dim[0] < 0 || x->dim[0] == grid->dim[0]))
        return OCT_OK;
    return oct_node_fail(n, OCT_ERR_SHAPE, "grid %s does not fit %s", oct_type_text(grid, a),
                         oct_type_text(x, b));
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *grid;
    oct_grid_params p;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &grid));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_NUMERIC));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_FLOAT));
    OCT_TRY(oct_grid_read(q->node, grid->dtype, &p));
    q->out[0] = oct_type_unknown(x->dtype);
    if (x->rank < 0 || grid->rank < 0) return OCT_OK;
    OCT_TRY(oct_grid_check(q->node, x, grid));
    q->out[0] = *x;
    for (int32_t d = 2; d < x->rank; d++)
        q->out[0].dim[d] = grid->dim[d - 1];
    if (x->dim[0] < 0) q->out[0].dim[0] = grid->dim[0];
    return OCT_OK;
}

/* *sign changes with the direction. */
static double reflect(double x, double low, double high, double *sign)
{
    const double range = high - low;
    double way;

    if (range <= 0) {
        *sign = 0;
        return low;
    }
    way = fmod(fabs(x - low), 2 * range);
    if ((way > range) != (x < low)) *sign = -*sign;
    return way > range ? high - (way - range) : low + way;
}

static int64_t element(const oct_grid_params *p, double i, int64_t n)
{
    const double last = (double)(n - 1);
    double sign = 1;

    if (p->pad == OCT_GRID_ZEROS) return i >= 0 && i <= last ? (int64_t)i : -1;
    if (p->pad == OCT_GRID_REFLECTION)
        i = reflect(i, p->align ? 0 : -0.5, p->align ? last : last + 0.5, &sign);
    return (int64_t)fmax(0, fmin(i, last));
}

/* The cubic convolution kernel (a = -0.75) at distances below and above 1, and its slopes. */
static double near(double t, double *slope)
{
    const double a = -0.75;

    *slope = (3 * (a + 2) * t - 2 * (a + 3)) * t;
    return ((a + 2) * t - (a + 3)) * t * t + 1;
}

static double distant(double t, double *slope)
{
    const double a = -0.75;

    *slope = (3 * a * t - 10 * a) * t + 8 * a;
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
}

/* Weights of a position that is r beyond its base; slopes by r. */
static void weigh(oct_grid_mode mode, double r, oct_grid_taps *t)
{
    switch (mode) {
    case OCT_GRID_NEAREST:
        t->count = 1;
        t->weight[0] = 1;
        t->slope[0] = 0;
        return;
    case OCT_GRID_LINEAR:
        t->count = 2;
        t->weight[0] = 1 - r;
        t->weight[1] = r;
        t->slope[0] = -1;
        t->slope[1] = 1;
        return;
    case OCT_GRID_CUBIC:
        t->count = 4;
        t->weight[0] = distant(r + 1, &t->slope[0]);
        t->weight[1] = near(r, &t->slope[1]);
        t->weight[2] = near(1 - r, &t->slope[2]);
        t->weight[3] = distant(2 - r, &t->slope[3]);
        t->slope[2] = -t->slope[2];
        t->slope[3] = -t->slope[3];
        return;
    }
}

void oct_grid_find(const oct_grid_params *p, double at, int64_t n, oct_grid_taps *t)
{
    const double last = (double)(n - 1);
    const double low = p->align ? 0 : -0.5, high = p->align ? last : last + 0.5;
    double x = p->align ? (at + 1) / 2 * last : ((at + 1) * (double)n - 1) / 2, base;
    double slope = (p->align ? last : (double)n) / 2; /* of x */

    if (!p->is_f64) x = (double)(float)x; /* where others keep it so: it decides ties */
    if (!(fabs(x) < FAR)) {               /* not a number: outside as well */
        x = x > 0 ? FAR : -FAR;
        slope = 0;
    }
    if (p->mode == OCT_GRID_NEAREST) x = rint(x);
    if (x < low || x > high) {
        if (p->pad == OCT_GRID_BORDER) {
            x = fmax(0, fmin(x, last));
            slope = 0;
        }
        if (p->pad == OCT_GRID_REFLECTION) x = reflect(x, low, high, &slope);
    }
    base = p->mode == OCT_GRID_NEAREST ? rint(x) : floor(x);
    weigh(p->mode, x - base, t);
    for (int i = 0; i < t->count; i++) {
        t->index[i] = element(p, base + i - (p->mode == OCT_GRID_CUBIC), n);
        t->slope[i] *= slope;
    }
}

typedef struct job {
    oct_grid_params p;
    const double *x, *grid;
    double *y;
    int32_t space;                   /* 1, 2 or 3 dims */
    int64_t dim[OCT_GRID_MAX_SPACE]; /* of x */
    int64_t channels, points;        /* points: of one image in the grid */
} job;

/* Items are points of the grid; all channels of a point share its taps. */
static void run_points(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t plane = 1;

    for (int32_t d = 0; d < j->space; d++)
        plane *= j->dim[d];
    for (int64_t i = begin; i < end; i++) {
        const int64_t picture = i / j->points;
        double *y = j->y + picture * j->channels * j->points + i % j->points;
        oct_grid_taps t[OCT_GRID_MAX_SPACE];
        int total = 1;

        for (int32_t d = 0; d < j->space; d++) { /* the grid's order is x, y, z */
            oct_grid_find(&j->p, j->grid[i * j->space + j->space - 1 - d], j->dim[d], &t[d]);
            total *= t[d].count;
        }
        for (int k = 0; k < total; k++) {
            int64_t at = 0;
            double weight = 1;
            int rest = k;
            bool zero = false;

            for (int32_t d = 0; d < j->space; d++) {
                const int tap = rest % t[d].count;

                rest /= t[d].count;
                zero |= t[d].index[tap] < 0;
                at = at * j->dim[d] + t[d].index[tap];
                weight *= t[d].weight[tap];
            }
            for (int64_t c = 0; c < j->channels && !zero; c++)
                y[c * j->points] += weight * j->x[(picture * j->channels + c) * plane + at];
        }
    }
}

static oct_status ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type, *grid = &a->in[1]->type, *y = &a->out[0]->type;
    const int64_t n_x = oct_type_len(x), n_grid = oct_type_len(grid), n_y = oct_type_len(y);
    job j = {.space = x->rank - 2,
             .channels = x->dim[1],
             .points = oct_type_span(grid, 1, grid->rank - 1)};
    double *dx, *dg, *dy;

    OCT_TRY(oct_grid_read(a->node, grid->dtype, &j.p));
    if (n_y == 0) return OCT_OK;
    if (n_x == 0) return oct_node_fail(a->node, OCT_ERR_SHAPE, "the operand is empty");
    if (!(dx = oct_args_scratch(a, (size_t)n_x, sizeof(*dx)))) return OCT_ERR_MEMORY;
    if (!(dg = oct_args_scratch(a, (size_t)n_grid, sizeof(*dg)))) return OCT_ERR_MEMORY;
    if (!(dy = oct_args_scratch(a, (size_t)n_y, sizeof(*dy)))) return OCT_ERR_MEMORY;
    oct_load_f64(x->dtype, a->in[0]->data, 0, n_x, dx);
    oct_load_f64(grid->dtype, a->in[1]->data, 0, n_grid, dg);
    for (int32_t d = 0; d < j.space; d++)
        j.dim[d] = x->dim[2 + d];
    j.x = dx;
    j.grid = dg;
    j.y = dy;
    oct_parallel_for(a->n_threads, x->dim[0] * j.points, GRAIN, run_points, &j);
    oct_store_f64(y->dtype, a->out[0]->data, 0, n_y, dy);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [ALIGN_CORNERS] = {"align_corners", OCT_ATTR_INT, .def = {.i = 0}},
    [MODE] = {"mode", OCT_ATTR_STRING, .def = {.s = "linear"}, .n_def = 6},
    [PADDING_MODE] = {"padding_mode", OCT_ATTR_STRING, .def = {.s = "zeros"}, .n_def = 5},
    {0},
};

const oct_op oct_op_grid_sample = {
    .name = "GridSample",
    .since = 20,
    .min_in = 2,
    .max_in = 2,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = oct_grad_grid_sample,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
};
