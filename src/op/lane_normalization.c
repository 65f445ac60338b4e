/* SPDX-License-Identifier: Apache-2.0 */
/* LpNormalization, MeanVarianceNormalization and LRN: plain formulas over some of the axes. */
#include <math.h>

#include "base/parallel.h"
#include "op/axes.h"
#include "op/grad/rules.h"
#include "op/moments.h"

typedef struct lane_job {
    oct_work w;
    oct_split s;
    const void *x;
    void *y;
    int64_t p; /* LpNormalization; 0: MeanVarianceNormalization */
} lane_job;

/* Sums over all reduced positions from `at` on: of x, or of |x - around| to the power p. */
static double sum_lane(const lane_job *j, int64_t at, double around, int64_t p)
{
    const int64_t runs = oct_split_runs(&j->s), step = oct_split_run_step(&j->s);
    double sum = 0;

    for (int64_t r = 0; r < runs; r++) {
        int64_t i = at + oct_split_run_at(&j->s, r);

        for (int64_t k = 0; k < oct_split_run_len(&j->s); k++, i += step) {
            const double v = oct_work_get(j->w, j->x, i) - around;

            sum += p == 2 ? v * v : p == 1 ? fabs(v) : v;
        }
    }
    return sum;
}

static void map_lane(const lane_job *j, int64_t at, double sub, double div)
{
    const int64_t runs = oct_split_runs(&j->s), step = oct_split_run_step(&j->s);

    for (int64_t r = 0; r < runs; r++) {
        int64_t i = at + oct_split_run_at(&j->s, r);

        for (int64_t k = 0; k < oct_split_run_len(&j->s); k++, i += step)
            oct_work_put(j->w, j->y, i, (oct_work_get(j->w, j->x, i) - sub) / div);
    }
}

static void lane_range(void *arg, int64_t begin, int64_t end)
{
    const lane_job *j = arg;

    for (int64_t i = begin; i < end; i++) {
        const int64_t at = oct_split_at(&j->s, i);
        double mean = 0, div;

        if (j->p) {
            div = sum_lane(j, at, 0, j->p);
            if (j->p == 2) div = sqrt(div);
            if (div == 0) div = 1; /* ONNX: what has no length stays zero */
        } else {
            mean = sum_lane(j, at, 0, 0) / (double)j->s.cut_len;
            div = sqrt(sum_lane(j, at, mean, 2) / (double)j->s.cut_len) + 1e-9;
        }
        map_lane(j, at, mean, div);
    }
}

static oct_status run(const oct_args *a, unsigned cut, int64_t p)
{
    const oct_type *x = &a->in[0]->type;
    lane_job j = {.w = oct_work_of(x->dtype), .p = p};

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_work_in(a, 0, j.w, &j.x));
    OCT_TRY(oct_work_out(a, 0, j.w, &j.y));
    j.s = oct_split_axes(x, cut);
    oct_parallel_for(a->n_threads, j.s.kept_len, OCT_MAX(4096 / OCT_MAX(j.s.cut_len, 1), 1),
                     lane_range, &j);
    oct_work_done(a, 0, j.w, j.y);
    return OCT_OK;
}

/* --- LpNormalization --- */

enum { LP_AXIS, LP_P };

static oct_status lp_shape(const oct_infer *q)
{
    const int64_t p = oct_int(q->node, LP_P);
    int32_t axis;

    OCT_TRY(oct_shape_same(q));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    if (p != 1 && p != 2)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "p is %lld, 1 or 2 is needed", (long long)p);
    if (q->in[0]->rank < 0) return OCT_OK;
    return oct_axis(q->node, oct_int(q->node, LP_AXIS), q->in[0]->rank, &axis);
}

static oct_status lp_ref(const oct_args *a)
{
    int32_t axis;

    OCT_TRY(oct_axis(a->node, oct_int(a->node, LP_AXIS), a->in[0]->type.rank, &axis));
    return run(a, 1u << axis, oct_int(a->node, LP_P));
}

/* y = x / n: dx = (dy - dn/dx * sum of dy y) / n, where dn/dx is y or the sign of x */
static oct_status lp_grad(const oct_grad_args *a)
{
    const bool is_l1 = oct_int(a->node, LP_P) == 1;
    const int64_t axis[] = {oct_int(a->node, LP_AXIS)};
    oct_value *x = a->node->in[0], *y = a->node->out[0], *zero = oct_grad_number(a, 0, 0);
    oct_value *n =
        oct_grad_reduce(a->b, is_l1 ? &oct_op_reduce_l1 : &oct_op_reduce_l2, x, axis, 1, true);
    oct_value *along =
        oct_grad_reduce(a->b, &oct_op_reduce_sum, OCT_EMIT2(mul, a->dy[0], y), axis, 1, true);

    n = OCT_EMIT3(where, OCT_EMIT2(equal, n, zero), oct_grad_number(a, 0, 1), n);
    along = OCT_EMIT2(mul, is_l1 ? OCT_EMIT1(sign, x) : y, along);
    a->dx[0] = OCT_EMIT2(div, OCT_EMIT2(sub, a->dy[0], along), n);
    return OCT_OK;
}

static const oct_attr_def lp_attrs[] = {
    [LP_AXIS] = {.name = "axis", .kind = OCT_ATTR_INT, .def = {.i = -1}},
    [LP_P] = {.name = "p", .kind = OCT_ATTR_INT, .def = {.i = 2}},
    {0},
};

const oct_op oct_op_lp_normalization = {
    .name = "LpNormalization",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .attrs = lp_attrs,
    .shape = lp_shape,
    .ref = lp_ref,
    .grad = lp_grad,
    .flow = OCT_FLOW_STOP,
};

/* --- MeanVarianceNormalization --- */

enum { MVN_AXES };

static oct_status mvn_axes(const oct_node *n, int32_t rank, unsigned *cut)
{
    *cut = 0;
    for (int64_t i = 0; i < n->attr[MVN_AXES].n; i++) {
        int32_t axis;

        OCT_TRY(oct_axis(n, n->attr[MVN_AXES].is[i], rank, &axis));
        *cut |= 1u << axis;
    }
    return OCT_OK;
}

static oct_status mvn_shape(const oct_infer *q)
{
    unsigned cut;

    OCT_TRY(oct_shape_same(q));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    return q->in[0]->rank < 0 ? OCT_OK : mvn_axes(q->node, q->in[0]->rank, &cut);
}

static oct_status mvn_ref(const oct_args *a)
{
    unsigned cut;

    OCT_TRY(mvn_axes(a->node, a->in[0]->type.rank, &cut));
    return run(a, cut, 0);
}

/* y = (x - mean) / (std + 1e-9): dx = (dy - mean of dy - y * mean of dy y) / (std + 1e-9) */
static oct_status mvn_grad(const oct_grad_args *a)
{
    const int64_t *axes = a->node->attr[MVN_AXES].is, n = a->node->attr[MVN_AXES].n;
    const oct_op *mean = &oct_op_reduce_mean;
    oct_value *x = a->node->in[0], *y = a->node->out[0], *dy = a->dy[0], *std, *along;

    std = OCT_EMIT2(sub, x, oct_grad_reduce(a->b, mean, x, axes, n, true));
    std = oct_grad_reduce(a->b, mean, OCT_EMIT2(mul, std, std), axes, n, true);
    std = OCT_EMIT2(add, OCT_EMIT1(sqrt, std), oct_grad_number(a, 0, 1e-9));
    along = oct_grad_reduce(a->b, mean, OCT_EMIT2(mul, dy, y), axes, n, true);
    dy = OCT_EMIT2(sub, dy, oct_grad_reduce(a->b, mean, dy, axes, n, true));
    a->dx[0] = OCT_EMIT2(div, OCT_EMIT2(sub, dy, OCT_EMIT2(mul, y, along)), std);
    return OCT_OK;
}

static const int64_t mvn_default[] = {0, 2, 3};
static const oct_attr_def mvn_attrs[] = {
    [MVN_AXES] = {.name = "axes", .kind = OCT_ATTR_INTS, .def = {.is = mvn_default}, .n_def = 3},
    {0},
};

const oct_op oct_op_mean_variance_normalization = {
    .name = "MeanVarianceNormalization",
    .since = 9,
    .min_in = 1,
    .max_in = 1,
    .attrs = mvn_attrs,
    .shape = mvn_shape,
    .ref = mvn_ref,
    .grad = mvn_grad,
    .flow = OCT_FLOW_STOP,
};

/* --- LRN --- */

enum { LRN_ALPHA, LRN_BETA, LRN_BIAS, LRN_SIZE };

typedef struct lrn_job {
    oct_work w;
    const void *x;
    void *y;
    int64_t channels, inner, size;
    double alpha, beta, bias;
} lrn_job;

static oct_status lrn_shape(const oct_infer *q)
{
    OCT_TRY(oct_shape_same(q));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    if (oct_int(q->node, LRN_SIZE) < 1)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "size is %lld",
                              (long long)oct_int(q->node, LRN_SIZE));
    if (q->in[0]->rank >= 0 && q->in[0]->rank < 2)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "input has no channels");
    return OCT_OK;
}

/* Work items are (image, channel): a window of channels around it is read. */
static void lrn_range(void *arg, int64_t begin, int64_t end)
{
    const lrn_job *j = arg;

    for (int64_t i = begin; i < end; i++) {
        const int64_t c = i % j->channels, image = (i - c) * j->inner;
        const int64_t lo = OCT_MAX(c - (j->size - 1) / 2, 0);
        const int64_t hi = OCT_MIN(c + j->size / 2, j->channels - 1);

        for (int64_t k = 0; k < j->inner; k++) {
            double sum = 0;

            for (int64_t n = lo; n <= hi; n++) {
                const double v = oct_work_get(j->w, j->x, image + n * j->inner + k);

                sum += v * v;
            }
            oct_work_put(j->w, j->y, i * j->inner + k,
                         oct_work_get(j->w, j->x, i * j->inner + k) *
                             pow(j->bias + j->alpha / (double)j->size * sum, -j->beta));
        }
    }
}

static oct_status lrn_ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type;
    lrn_job j = {
        .w = oct_work_of(x->dtype),
        .size = OCT_MIN(oct_int(a->node, LRN_SIZE), INT32_MAX),
        .alpha = (double)oct_f32(a->node, LRN_ALPHA),
        .beta = (double)oct_f32(a->node, LRN_BETA),
        .bias = (double)oct_f32(a->node, LRN_BIAS),
    };

    OCT_TRY(oct_args_check(a));
    j.channels = x->dim[1];
    j.inner = oct_type_span(x, 2, x->rank);
    OCT_TRY(oct_work_in(a, 0, j.w, &j.x));
    OCT_TRY(oct_work_out(a, 0, j.w, &j.y));
    oct_parallel_for(a->n_threads, x->dim[0] * x->dim[1], 1, lrn_range, &j);
    oct_work_done(a, 0, j.w, j.y);
    return OCT_OK;
}

static oct_status lrn_grad(const oct_grad_args *a)
{
    oct_node *n =
        oct_emit_node(a->b, &oct_op_lrn_grad, (oct_value *[]){a->node->in[0], a->dy[0]}, 2, 1);

    oct_emit_attrs_of(a->b, n, a->node);
    a->dx[0] = oct_emitted(a->b, n);
    return OCT_OK;
}

static const oct_attr_def lrn_attrs[] = {
    [LRN_ALPHA] = {.name = "alpha", .kind = OCT_ATTR_F32, .def = {.f = 1e-4f}},
    [LRN_BETA] = {.name = "beta", .kind = OCT_ATTR_F32, .def = {.f = 0.75f}},
    [LRN_BIAS] = {.name = "bias", .kind = OCT_ATTR_F32, .def = {.f = 1.0f}},
    [LRN_SIZE] = {.name = "size", .kind = OCT_ATTR_INT, .required = true},
    {0},
};

const oct_op oct_op_lrn = {
    .name = "LRN",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .attrs = lrn_attrs,
    .shape = lrn_shape,
    .ref = lrn_ref,
    .grad = lrn_grad,
    .flow = OCT_FLOW_STOP,
};
