/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LRNGrad: y = x s^-beta with s = bias + alpha / size * (sum of squares over a window of channels).
 * dx = dy s^-beta - 2 alpha beta / size * x * (sum of dy x s^(-beta - 1) over the channels in whose
 * windows x is).
 */
#include <math.h>

#include "base/parallel.h"
#include "op/grad/rules.h"
#include "op/moments.h"

enum { ALPHA, BETA, BIAS, SIZE };

typedef struct job {
    oct_work w;
    const void *x, *dy;
    void *dx;
    int64_t channels, inner, size;
    double alpha, beta, bias;
    double *scale; /* s of every element */
} job;

static void scale_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

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
            j->scale[i * j->inner + k] = j->bias + j->alpha / (double)j->size * sum;
        }
    }
}

/* The window is turned round: channel n sees c if c is in n's window. */
static void grad_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t i = begin; i < end; i++) {
        const int64_t c = i % j->channels, image = (i - c) * j->inner;
        const int64_t lo = OCT_MAX(c - j->size / 2, 0);
        const int64_t hi = OCT_MIN(c + (j->size - 1) / 2, j->channels - 1);

        for (int64_t k = 0; k < j->inner; k++) {
            const int64_t own = i * j->inner + k;
            double sum = 0;

            for (int64_t n = lo; n <= hi; n++) {
                const int64_t at = image + n * j->inner + k;

                sum += oct_work_get(j->w, j->dy, at) * oct_work_get(j->w, j->x, at) *
                       pow(j->scale[at], -j->beta - 1);
            }
            oct_work_put(j->w, j->dx, own,
                         oct_work_get(j->w, j->dy, own) * pow(j->scale[own], -j->beta) -
                             2 * j->alpha * j->beta / (double)j->size *
                                 oct_work_get(j->w, j->x, own) * sum);
        }
    }
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *dy;

    OCT_TRY(oct_infer_need(q, 0, &x));
    OCT_TRY(oct_infer_need(q, 1, &dy));
    OCT_TRY(oct_infer_check(q, 0, OCT_SET_FLOAT));
    if (oct_int(q->node, SIZE) < 1 || (x->rank >= 0 && x->rank < 2))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "size %lld, rank %d",
                              (long long)oct_int(q->node, SIZE), (int)x->rank);
    if (oct_type_is_static(x) && oct_type_is_static(dy) && !oct_type_equal(x, dy))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "x and dy differ in type or shape");
    q->out[0] = *x;
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_type *x = &a->in[0]->type;
    const oct_node *n = a->node;
    job j = {.w = oct_work_of(x->dtype),
             .size = OCT_MIN(oct_int(n, SIZE), INT32_MAX),
             .alpha = (double)oct_f32(n, ALPHA),
             .beta = (double)oct_f32(n, BETA),
             .bias = (double)oct_f32(n, BIAS)};

    OCT_TRY(oct_args_check(a));
    j.channels = x->dim[1];
    j.inner = oct_type_span(x, 2, x->rank);
    OCT_TRY(oct_work_in(a, 0, j.w, &j.x));
    OCT_TRY(oct_work_in(a, 1, j.w, &j.dy));
    OCT_TRY(oct_work_out(a, 0, j.w, &j.dx));
    j.scale = oct_args_scratch(a, (size_t)oct_type_len(x) + 1, sizeof(*j.scale));
    if (!j.scale) return OCT_ERR_MEMORY;
    oct_parallel_for(a->n_threads, x->dim[0] * x->dim[1], 1, scale_range, &j);
    oct_parallel_for(a->n_threads, x->dim[0] * x->dim[1], 1, grad_range, &j);
    oct_work_done(a, 0, j.w, j.dx);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [ALPHA] = {.name = "alpha", .kind = OCT_ATTR_F32, .def = {.f = 1e-4f}},
    [BETA] = {.name = "beta", .kind = OCT_ATTR_F32, .def = {.f = 0.75f}},
    [BIAS] = {.name = "bias", .kind = OCT_ATTR_F32, .def = {.f = 1.0f}},
    [SIZE] = {.name = "size", .kind = OCT_ATTR_INT, .required = true},
    {0},
};

const oct_op oct_op_lrn_grad = {
    .name = "LRNGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = 2,
    .max_in = 2,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .flow = OCT_FLOW_STOP,
};
