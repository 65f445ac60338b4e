/* SPDX-License-Identifier: Apache-2.0 */
/* ConvGradWeight: the gradient of a convolution's weights (and bias) from its input and the
 * gradient of its result: a correlation of the two, summed over images and pixels. */
#include <string.h>

#include "base/parallel.h"
#include "op/conv_geometry.h"
#include "op/grad/rules.h"
#include "op/work.h"

typedef struct weight_job {
    oct_conv_geometry g; /* out: the windows that dy has */
    oct_work work;
    const void *x, *dy;
    void *dw, *db;
    int64_t in_size, out_size, kernel_size; /* of one channel */
} weight_job;

/* Sums of products in double, so that the result does not depend on how rows are cut. */
#define DOT(T)                                                                                     \
    do {                                                                                           \
        const T *a_ = (const T *)j->x + x_at, *b_ = (const T *)j->dy + dy_at;                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            sum += (double)a_[i * step] * (double)b_[i];                                           \
    } while (0)

static double dot(const weight_job *j, int64_t x_at, int64_t step, int64_t dy_at, int64_t n)
{
    double sum = 0;

    if (j->work == OCT_WORK_F64)
        DOT(double);
    else
        DOT(float);
    return sum;
}

/* The outputs [*lo, *hi) along axis d whose tap k lies inside the input. */
static void outputs_of_tap(const oct_conv_geometry *g, int d, int64_t k, int64_t *lo, int64_t *hi)
{
    const int64_t s = g->stride[d], first = k * g->dilation[d] - g->pad_begin[d];

    *lo = first < 0 ? (-first + s - 1) / s : 0;
    *hi = OCT_MIN(first < g->in[d] ? (g->in[d] - 1 - first) / s + 1 : 0, g->out[d]);
}

/* One weight: tap k between channel c of x and channel m of dy, in one image. */
static double tap(const weight_job *j, int64_t b, int64_t c, int64_t m, const int64_t *k)
{
    const oct_conv_geometry *g = &j->g;
    const int last = g->n - 1;
    const int64_t x0 = (b * g->c_in + c) * j->in_size, y0 = (b * g->c_out + m) * j->out_size;
    int64_t lo[OCT_MAX_SPATIAL], hi[OCT_MAX_SPATIAL], o[OCT_MAX_SPATIAL];
    double sum = 0;

    for (int d = 0; d < g->n; d++) {
        outputs_of_tap(g, d, k[d], &lo[d], &hi[d]);
        if (lo[d] >= hi[d]) return 0;
        o[d] = lo[d];
    }
    do {
        int64_t x_at = 0, y_at = 0;

        for (int d = 0; d <= last; d++) {
            x_at = x_at * g->in[d] + o[d] * g->stride[d] - g->pad_begin[d] + k[d] * g->dilation[d];
            y_at = y_at * g->out[d] + o[d];
        }
        sum += dot(j, x0 + x_at, g->stride[last], y0 + y_at, hi[last] - lo[last]);
    } while (oct_next_index(last, o, lo, hi));
    return sum;
}

/* Work items are pairs (filter, channel of its group). */
static void weights_of(void *arg, int64_t begin, int64_t end)
{
    const weight_job *j = arg;
    const oct_conv_geometry *g = &j->g;
    const int64_t c_group = g->c_in / g->group, m_group = g->c_out / g->group;
    const int64_t zero[OCT_MAX_SPATIAL] = {0};

    for (int64_t i = begin; i < end; i++) {
        const int64_t m = i / c_group, c = m / m_group * c_group + i % c_group;
        int64_t k[OCT_MAX_SPATIAL] = {0};

        for (int64_t t = 0; t < j->kernel_size; t++, oct_next_index(g->n, k, zero, g->kernel)) {
            double sum = 0;

            for (int64_t b = 0; b < g->batch; b++)
                sum += tap(j, b, c, m, k);
            oct_store_f64(oct_work_dtype(j->work), j->dw, i * j->kernel_size + t, 1, &sum);
        }
    }
}

static void biases_of(void *arg, int64_t begin, int64_t end)
{
    const weight_job *j = arg;
    const oct_dtype dtype = oct_work_dtype(j->work);

    for (int64_t m = begin; m < end; m++) {
        double sum = 0;

        for (int64_t b = 0; b < j->g.batch; b++)
            for (int64_t i = 0; i < j->out_size; i++) {
                double v;

                oct_load_f64(dtype, j->dy, (b * j->g.c_out + m) * j->out_size + i, 1, &v);
                sum += v;
            }
        oct_store_f64(dtype, j->db, m, 1, &sum);
    }
}

/* The type of the weight, with what is known; *g with the windows that dy has. */
static oct_status geometry(const oct_node *n, const oct_type *x, const oct_type *dy, oct_type *w,
                           oct_conv_geometry *g)
{
    const oct_attr *kernel = oct_node_attr(n, "kernel_shape");
    const oct_attr *group = oct_node_attr(n, "group");

    *w = oct_type_unknown(x->dtype);
    if (x->rank < 0 || dy->rank < 0) {
        g->n = -1;
        return OCT_OK;
    }
    if (x->rank != dy->rank || !kernel || kernel->n != x->rank - 2)
        return oct_node_fail(n, OCT_ERR_SHAPE,
                             "x has %d dims, dy %d, and kernel_shape %lld numbers", x->rank,
                             dy->rank, kernel ? (long long)kernel->n : 0);
    if (group->i < 1) return oct_node_fail(n, OCT_ERR_SHAPE, "group is %lld", (long long)group->i);
    w->rank = x->rank;
    w->dim[0] = dy->dim[1];
    w->dim[1] = x->dim[1] < 0 ? -1 : x->dim[1] / group->i;
    memcpy(w->dim + 2, kernel->is, (size_t)kernel->n * sizeof(*kernel->is));
    OCT_TRY(oct_conv_geometry_conv(n, x, w, g));
    if (dy->dim[0] >= 0 && g->batch >= 0 && dy->dim[0] != g->batch)
        return oct_node_fail(n, OCT_ERR_SHAPE, "x has %lld images, dy %lld", (long long)g->batch,
                             (long long)dy->dim[0]);
    for (int d = 0; d < g->n; d++) {
        /* Fewer windows than there is room for: what is at the end is read by none. */
        if (dy->dim[d + 2] > g->out[d] && g->out[d] >= 0)
            return oct_node_fail(n, OCT_ERR_SHAPE, "dy has size %lld, at most %lld windows fit",
                                 (long long)dy->dim[d + 2], (long long)g->out[d]);
        g->out[d] = dy->dim[d + 2];
    }
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *dy;
    oct_conv_geometry g;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &dy));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, 1, OCT_SET_FLOAT));
    OCT_TRY(geometry(q->node, x, dy, &q->out[0], &g));
    if (q->node->n_out > 1)
        q->out[1] = oct_type_make(x->dtype, 1, &(int64_t){dy->rank < 0 ? -1 : dy->dim[1]});
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    weight_job j = {.work = oct_work_of(a->in[0]->type.dtype)};
    oct_type w;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(geometry(a->node, &a->in[0]->type, &a->in[1]->type, &w, &j.g));
    OCT_TRY(oct_args_spend(a, oct_conv_geometry_macs(&j.g, false)));
    OCT_TRY(oct_work_in(a, 0, j.work, &j.x));
    OCT_TRY(oct_work_in(a, 1, j.work, &j.dy));
    OCT_TRY(oct_work_out(a, 0, j.work, &j.dw));
    OCT_TRY(oct_work_out(a, 1, j.work, &j.db));
    j.in_size = oct_conv_geometry_in_size(&j.g);
    j.out_size = oct_conv_geometry_out_size(&j.g);
    j.kernel_size = oct_conv_geometry_kernel_size(&j.g);
    oct_parallel_for(a->n_threads, j.g.c_out * (j.g.c_in / j.g.group), 1, weights_of, &j);
    if (j.db) oct_parallel_for(a->n_threads, j.g.c_out, 1, biases_of, &j);
    oct_work_done(a, 0, j.work, j.dw);
    oct_work_done(a, 1, j.work, j.db);
    return OCT_OK;
}

static int64_t macs(const oct_node *n)
{
    oct_conv_geometry g;
    oct_type w;

    if (geometry(n, &n->in[0]->type, &n->in[1]->type, &w, &g)) return 0;
    return oct_conv_geometry_macs(&g, false);
}

/* Fast kernels compute some dozen products at once. */
static int64_t work(const oct_node *n)
{
    return macs(n) / 16;
}

static const oct_attr_def attrs[] = {
    {.name = "dilations", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "group", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    {.name = "kernel_shape", .kind = OCT_ATTR_INTS, .required = true},
    {.name = "pads", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "strides", .kind = OCT_ATTR_INTS, .no_default = true},
    {0},
};

const oct_op oct_op_conv_grad_weight = {
    .name = "ConvGradWeight",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 2,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .macs = macs,
    .work = work,
};
