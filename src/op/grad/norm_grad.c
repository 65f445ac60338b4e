/* SPDX-License-Identifier: Apache-2.0 */
/* NormalizationGrad: the gradient of u = (x - mean) / sqrt(variance + epsilon), row by row. */
#include "op/grad/norm_grad.h"

#include <math.h>

#include "base/parallel.h"
#include "op/moments.h"

enum { AXIS, EPSILON, RMS };

typedef struct job {
    oct_work w;
    bool is_rms;
    const void *x, *dy;
    void *dx, *unit; /* unit may be NULL */
    int64_t n;       /* elements in a row */
    double epsilon;
} job;

/* dx = (dy - mean of dy - u * mean of u dy) / std; without a mean, the second term is not there. */
#define DEFINE_ROW(T, name)                                                                        \
    static void row_##name(const job *j, int64_t at, double mean, double inv, double dy_mean)      \
    {                                                                                              \
        const T *x = (const T *)j->x + at, *dy = (const T *)j->dy + at;                            \
        T *dx = (T *)j->dx + at, *unit = j->unit ? (T *)j->unit + at : NULL;                       \
        double along = 0;                                                                          \
                                                                                                   \
        for (int64_t i = 0; i < j->n; i++)                                                         \
            along += ((double)x[i] - mean) * inv * (double)dy[i];                                  \
        along /= (double)j->n;                                                                     \
        for (int64_t i = 0; i < j->n; i++) {                                                       \
            const double u = ((double)x[i] - mean) * inv;                                          \
                                                                                                   \
            dx[i] = (T)(((double)dy[i] - dy_mean - u * along) * inv);                              \
            if (unit) unit[i] = (T)u;                                                              \
        }                                                                                          \
    }

DEFINE_ROW(float, f32)
DEFINE_ROW(double, f64)

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t r = begin; r < end; r++) {
        const int64_t at = r * j->n;
        const double mean = j->is_rms ? 0 : oct_mean(j->w, j->x, at, j->n);
        const double inv = 1 / sqrt(oct_square_mean(j->w, j->x, at, j->n, mean) + j->epsilon);
        const double dy_mean = j->is_rms ? 0 : oct_mean(j->w, j->dy, at, j->n);

        if (j->w == OCT_WORK_F64)
            row_f64(j, at, mean, inv, dy_mean);
        else
            row_f32(j, at, mean, inv, dy_mean);
    }
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *dy;
    int32_t axis;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &dy));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    if (x->rank >= 0) OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), x->rank, &axis));
    if (oct_type_is_static(x) && oct_type_is_static(dy) && !oct_type_equal(x, dy))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "x and dy differ in type or shape");
    for (int i = 0; i < q->node->n_out; i++)
        q->out[i] = *x;
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type;
    job j = {.w = oct_work_of(x->dtype),
             .is_rms = oct_int(a->node, RMS) != 0,
             .epsilon = (double)oct_f32(a->node, EPSILON)};
    int32_t axis;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), x->rank, &axis));
    j.n = oct_type_span(x, axis, x->rank);
    OCT_TRY(oct_work_in(a, 0, j.w, &j.x));
    OCT_TRY(oct_work_in(a, 1, j.w, &j.dy));
    OCT_TRY(oct_work_out(a, 0, j.w, &j.dx));
    OCT_TRY(oct_work_out(a, 1, j.w, &j.unit));
    if (oct_type_len(x) == 0 || !j.dx) return OCT_OK;
    oct_parallel_for(a->n_threads, oct_type_span(x, 0, axis), OCT_MAX(4096 / j.n, 1), range, &j);
    oct_work_done(a, 0, j.w, j.dx);
    oct_work_done(a, 1, j.w, j.unit);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [AXIS] = {.name = "axis", .kind = OCT_ATTR_INT, .def = {.i = -1}},
    [EPSILON] = {.name = "epsilon", .kind = OCT_ATTR_F32, .def = {.f = 1e-5f}},
    [RMS] = {.name = "rms", .kind = OCT_ATTR_INT},
    {0},
};

const oct_op oct_op_norm_grad = {
    .name = "NormalizationGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 2,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .flow = OCT_FLOW_STOP,
};

oct_norm_grad oct_grad_norm(oct_builder *b, oct_value *x, oct_value *dy, int64_t axis,
                            float epsilon, bool is_rms, bool with_unit)
{
    oct_norm_grad g = {NULL, NULL};
    oct_node *n = oct_emit_node(b, &oct_op_norm_grad, (oct_value *[]){x, dy}, 2, with_unit ? 2 : 1);

    oct_emit_int(b, n, "axis", axis);
    oct_emit_f32(b, n, "epsilon", epsilon);
    oct_emit_int(b, n, "rms", is_rms);
    g.dx = oct_emitted(b, n);
    if (g.dx && with_unit) g.unit = n->out[1];
    return g;
}
