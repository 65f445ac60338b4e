/* SPDX-License-Identifier: Apache-2.0 */
/* SoftmaxGrad: dx = y (dy - sum of y dy) along one axis, from the results of Softmax. */
#include "base/parallel.h"
#include "op/axes.h"
#include "op/grad/rules.h"
#include "op/work.h"

enum { AXIS };

typedef struct job {
    oct_lanes lanes;
    const void *y, *dy;
    void *dx;
} job;

#define DEFINE_RANGE(T, name)                                                                      \
    static void range_##name(void *arg, int64_t begin, int64_t end)                                \
    {                                                                                              \
        const job *j = arg;                                                                        \
        const int64_t n = j->lanes.n, inner = j->lanes.inner;                                      \
                                                                                                   \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const int64_t at = i / inner * n * inner + i % inner;                                  \
            const T *y = (const T *)j->y + at, *dy = (const T *)j->dy + at;                        \
            T *dx = (T *)j->dx + at, sum = 0;                                                      \
                                                                                                   \
            for (int64_t k = 0; k < n; k++)                                                        \
                sum += y[k * inner] * dy[k * inner];                                               \
            for (int64_t k = 0; k < n; k++)                                                        \
                dx[k * inner] = y[k * inner] * (dy[k * inner] - sum);                              \
        }                                                                                          \
    }

DEFINE_RANGE(float, f32)
DEFINE_RANGE(double, f64)

static oct_status shape(const oct_infer *q)
{
    const oct_type *y, *dy;
    int32_t axis;

    OCT_TRY(oct_infer_need(q, 0, &y));
    OCT_TRY(oct_infer_need(q, 1, &dy));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    if (y->rank >= 0) OCT_TRY(oct_axis(q->node, oct_int(q->node, AXIS), y->rank, &axis));
    if (oct_type_is_static(y) && oct_type_is_static(dy) && !oct_type_equal(y, dy))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "y and dy differ in type or shape");
    q->out[0] = *y;
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_type *y = &a->in[0]->type;
    const oct_work w = oct_work_of(y->dtype);
    int32_t axis;
    job j;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), y->rank, &axis));
    OCT_TRY(oct_work_in(a, 0, w, &j.y));
    OCT_TRY(oct_work_in(a, 1, w, &j.dy));
    OCT_TRY(oct_work_out(a, 0, w, &j.dx));
    if (oct_tensor_len(a->in[0]) == 0) return OCT_OK;
    j.lanes = oct_lanes_of(y, axis);
    oct_parallel_for(a->n_threads, j.lanes.outer * j.lanes.inner, OCT_MAX(4096 / j.lanes.n, 1),
                     w == OCT_WORK_F64 ? range_f64 : range_f32, &j);
    oct_work_done(a, 0, w, j.dx);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [AXIS] = {.name = "axis", .kind = OCT_ATTR_INT, .def = {.i = -1}},
    {0},
};

const oct_op oct_op_softmax_grad = {
    .name = "SoftmaxGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 2,
    .max_in = 2,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .flow = OCT_FLOW_STOP,
};
