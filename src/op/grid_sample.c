/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample: images (or volumes) sampled at positions that another tensor holds. */
#include "op/move.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"

enum { ALIGN_CORNERS, MODE, PADDING_MODE };
enum { MAX_SPACE = 3, MAX_TAPS = 4, GRAIN = 256 };

#define FAR 1e9 /* outside every image, and exact as an integer */

typedef enum sampling { NEAREST, LINEAR, CUBIC } sampling;
typedef enum outside { ZEROS, BORDER, REFLECTION } outside;

typedef struct params {
    sampling mode;
    outside pad;
    bool align;
} params;

static oct_status read_params(const oct_node *n, params *p)
{
    static const struct {
        const char *word;
        sampling mode;
    } modes[] = {{"nearest", NEAREST},
                 {"linear", LINEAR},
                 {"bilinear", LINEAR}, /* before 20 */
                 {"cubic", CUBIC},
                 {"bicubic", CUBIC}};
    static const char *const pads[] = {"zeros", "border", "reflection"};
    size_t m = 0, k = 0;

    while (m < OCT_COUNT(modes) && strcmp(modes[m].word, n->attr[MODE].s) != 0)
        m++;
    while (k < OCT_COUNT(pads) && strcmp(pads[k], n->attr[PADDING_MODE].s) != 0)
        k++;
    if (m == OCT_COUNT(modes) || k == OCT_COUNT(pads))
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "mode '%.20s' with padding_mode '%.20s'",
                             n->attr[MODE].s, n->attr[PADDING_MODE].s);
    *p = (params){modes[m].mode, (outside)k, oct_int(n, ALIGN_CORNERS) != 0};
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *grid;
    params p;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &grid));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_NUMERIC));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_FLOAT));
    OCT_TRY(read_params(q->node, &p));
    q->out[0] = oct_type_unknown(x->dtype);
    if (x->rank < 0 || grid->rank < 0) return OCT_OK;
    if (x->rank < 3 || x->rank > 2 + MAX_SPACE || grid->rank != x->rank ||
        (grid->dim[grid->rank - 1] >= 0 && grid->dim[grid->rank - 1] != x->rank - 2) ||
        (x->dim[0] >= 0 && grid->dim[0] >= 0 && x->dim[0] != grid->dim[0])) {
        char a[OCT_TYPE_TEXT_SIZE], b[OCT_TYPE_TEXT_SIZE];
        return oct_infer_fail(q, OCT_ERR_SHAPE, "grid %s does not fit %s", oct_type_text(grid, a),
                              oct_type_text(x, b));
    }
    q->out[0] = *x;
    for (int32_t d = 2; d < x->rank; d++)
        q->out[0].dim[d] = grid->dim[d - 1];
    if (x->dim[0] < 0) q->out[0].dim[0] = grid->dim[0];
    return OCT_OK;
}

static double reflect(double x, double low, double high)
{
    const double range = high - low;
    double way;

    if (range <= 0) return low;
    way = fmod(fabs(x - low), 2 * range);
    return way > range ? high - (way - range) : low + way;
}

/* The taps of one coordinate: which elements of an axis of n, with what weights. */
typedef struct taps {
    int64_t index[MAX_TAPS]; /* -1: zero */
    double weight[MAX_TAPS];
    int count;
} taps;

static int64_t element(const params *p, double i, int64_t n)
{
    const double last = (double)(n - 1);

    if (p->pad == ZEROS) return i >= 0 && i <= last ? (int64_t)i : -1;
    if (p->pad == REFLECTION) i = reflect(i, p->align ? 0 : -0.5, p->align ? last : last + 0.5);
    return (int64_t)fmax(0, fmin(i, last));
}

static void find_taps(const params *p, double at, int64_t n, taps *t)
{
    const double last = (double)(n - 1);
    const double low = p->align ? 0 : -0.5, high = p->align ? last : last + 0.5;
    /* Rounded to float where others keep it: it decides ties. */
    double x = (double)(float)(p->align ? (at + 1) / 2 * last : ((at + 1) * (double)n - 1) / 2);

    if (!(fabs(x) < FAR)) x = x > 0 ? FAR : -FAR; /* not a number: outside as well */
    if (p->mode == NEAREST) x = rint(x);
    if (x < low || x > high) {
        if (p->pad == BORDER) x = fmax(0, fmin(x, last));
        if (p->pad == REFLECTION) x = reflect(x, low, high);
    }
    const double base = p->mode == NEAREST ? rint(x) : floor(x), r = x - base;
    const double a = -0.75;
    switch (p->mode) {
    case NEAREST:
        t->count = 1;
        t->weight[0] = 1;
        t->index[0] = element(p, base, n);
        return;
    case LINEAR:
        t->count = 2;
        t->weight[0] = 1 - r;
        t->weight[1] = r;
        break;
    case CUBIC:
        t->count = 4;
        t->weight[0] = ((a * (r + 1) - 5 * a) * (r + 1) + 8 * a) * (r + 1) - 4 * a;
        t->weight[1] = ((a + 2) * r - (a + 3)) * r * r + 1;
        t->weight[2] = ((a + 2) * (1 - r) - (a + 3)) * (1 - r) * (1 - r) + 1;
        t->weight[3] = ((a * (2 - r) - 5 * a) * (2 - r) + 8 * a) * (2 - r) - 4 * a;
        break;
    }
    for (int i = 0; i < t->count; i++)
        t->index[i] = element(p, base + i - (p->mode == CUBIC), n);
}

typedef struct job {
    params p;
    const double *x, *grid;
    double *y;
    int32_t space;            /* 1, 2 or 3 dims */
    int64_t dim[MAX_SPACE];   /* of x */
    int64_t channels, points; /* points: of one image in the grid */
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
        taps t[MAX_SPACE];
        int total = 1;

        for (int32_t d = 0; d < j->space; d++) { /* the grid's order is x, y, z */
            find_taps(&j->p, j->grid[i * j->space + j->space - 1 - d], j->dim[d], &t[d]);
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

    OCT_TRY(read_params(a->node, &j.p));
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
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
};
