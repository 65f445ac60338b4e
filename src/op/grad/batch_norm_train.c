/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BatchNormTrain: normalizes with the batch's own statistics, applies an activation, and moves the
 * running statistics. BatchNormTrainGrad: its gradient, which computes the pre-activation anew from
 * x, so that nothing but x and two numbers for each channel must be kept. With frozen statistics
 * these do not depend on x, and the gradient of x is that of the pre-activation times a number.
 */
#include <math.h>

#include "base/parallel.h"
#include "op/grad/act_grad.h"
#include "op/grad/rules.h"
#include "op/moments.h"

enum { EPSILON, MOMENTUM, ACT, ACT_A, ACT_B };
enum { GRAD_ACT, GRAD_ACT_A, GRAD_ACT_B, GRAD_FROZEN };
enum { X, SCALE, BIAS, MEAN, VAR, N_IN };
enum { Y, MEAN_NEXT, VAR_NEXT, BATCH_MEAN, INV_STD, N_OUT };
enum { G_X, G_DY, G_SCALE, G_BIAS, G_MEAN, G_INV_STD, G_N_IN };
enum { G_DX, G_DSCALE, G_DBIAS, G_N_OUT };

typedef struct norm_job {
    oct_work w;
    oct_act act;
    const void *in[G_N_IN];
    void *out[N_OUT];
    int64_t batch, channels, size; /* size: of one channel of one image */
    double epsilon, momentum;
    bool is_frozen;
} norm_job;

/* x is [N x C ..]; operands `first` on have one number for each channel. */
static oct_status check_operands(const oct_infer *q, int first, int last)
{
    const oct_type *x, *p;

    OCT_TRY(oct_infer_need(q, X, &x));
    for (int i = 0; i <= last; i++) {
        OCT_TRY(oct_infer_need(q, i, &p));
        OCT_TRY(oct_infer_check(q, i, OCT_SET_FLOAT));
        if (i < first || p->rank < 0 || x->rank < 2) continue;
        if (p->rank != 1 || (p->dim[0] >= 0 && x->dim[1] >= 0 && p->dim[0] != x->dim[1]))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d is not one number for each channel",
                                  i);
    }
    if (x->rank >= 0 && x->rank < 2)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "input has %d dims, at least 2 are needed",
                              x->rank);
    return OCT_OK;
}

static oct_status check_act(const oct_node *n, int attr)
{
    const int64_t act = oct_int(n, attr);

    if (act >= 0 && act < OCT_ACT_COUNT) return OCT_OK;
    return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "activation %lld is not known", (long long)act);
}

static oct_status shape(const oct_infer *q)
{
    const oct_type *x = q->in[X];
    int64_t channels = -1, len;

    OCT_TRY(check_operands(q, SCALE, VAR));
    OCT_TRY(check_act(q->node, ACT));
    if (x->rank > 1) channels = x->dim[1];
    len = oct_type_is_static(x) ? oct_type_len(x) : -1;
    if (len > 0 && len == channels)
        return oct_infer_fail(q, OCT_ERR_SHAPE,
                              "each channel has one element in a batch, so its variance is not "
                              "defined: use larger batches or images, or freeze the statistics");
    q->out[Y] = *x;
    for (int i = MEAN_NEXT; i < q->node->n_out; i++)
        q->out[i] = oct_type_make(x->dtype, 1, &channels);
    return OCT_OK;
}

static oct_status grad_shape(const oct_infer *q)
{
    const oct_type *x = q->in[X], *dy = q->in[G_DY];
    int64_t channels = -1;

    OCT_TRY(check_operands(q, G_SCALE, G_INV_STD));
    OCT_TRY(check_act(q->node, GRAD_ACT));
    if (x->rank > 1) channels = x->dim[1];
    if (oct_type_is_static(x) && oct_type_is_static(dy) && !oct_type_equal(x, dy))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "x and dy have different shapes");
    q->out[G_DX] = *x;
    for (int i = G_DSCALE; i < q->node->n_out; i++)
        q->out[i] = oct_type_make(x->dtype, 1, &channels);
    return OCT_OK;
}

static double of(const norm_job *j, int i, int64_t c)
{
    return oct_work_get(j->w, j->in[i], c);
}

static void put(const norm_job *j, int i, int64_t at, double v)
{
    if (j->out[i]) oct_work_put(j->w, j->out[i], at, v);
}

/* The batch's own mean and (biased) variance of one channel. */
static void batch_moments(const norm_job *j, int64_t c, double *mean, double *var)
{
    *mean = *var = 0;
    for (int64_t b = 0; b < j->batch; b++)
        *mean += oct_mean(j->w, j->in[X], (b * j->channels + c) * j->size, j->size);
    *mean /= (double)j->batch;
    for (int64_t b = 0; b < j->batch; b++)
        *var += oct_square_mean(j->w, j->in[X], (b * j->channels + c) * j->size, j->size, *mean);
    *var /= (double)j->batch;
}

static void channels_of(void *arg, int64_t begin, int64_t end)
{
    const norm_job *j = arg;
    const double m = (double)(j->batch * j->size), keep = j->momentum;

    for (int64_t c = begin; c < end; c++) {
        double mean, var, inv_std, mul;

        batch_moments(j, c, &mean, &var);
        inv_std = 1 / sqrt(var + j->epsilon);
        mul = inv_std * of(j, SCALE, c);
        put(j, BATCH_MEAN, c, mean);
        put(j, INV_STD, c, inv_std);
        put(j, MEAN_NEXT, c, keep * of(j, MEAN, c) + (1 - keep) * mean);
        put(j, VAR_NEXT, c, keep * of(j, VAR, c) + (1 - keep) * var * m / (m - 1));
        for (int64_t b = 0; b < j->batch; b++)
            for (int64_t i = 0, at = (b * j->channels + c) * j->size; i < j->size; i++, at++) {
                const double v = (of(j, X, at) - mean) * mul + of(j, BIAS, c);

                put(j, Y, at, oct_act_value(&j->act, v));
            }
    }
}

/* The gradient of the pre-activation at element `at`; *hat is the normalized x. */
static double before_act(const norm_job *j, int64_t c, int64_t at, double *hat)
{
    *hat = (of(j, G_X, at) - of(j, G_MEAN, c)) * of(j, G_INV_STD, c);
    return of(j, G_DY, at) *
           oct_act_slope_f64(&j->act, *hat * of(j, G_SCALE, c) + of(j, G_BIAS, c));
}

static void grad_channels_of(void *arg, int64_t begin, int64_t end)
{
    const norm_job *j = arg;
    const double m = (double)(j->batch * j->size);

    for (int64_t c = begin; c < end; c++) {
        const double mul = of(j, G_SCALE, c) * of(j, G_INV_STD, c);
        double dscale = 0, dbias = 0, hat;

        for (int64_t b = 0; b < j->batch; b++)
            for (int64_t i = 0, at = (b * j->channels + c) * j->size; i < j->size; i++, at++) {
                const double dz = before_act(j, c, at, &hat);

                dbias += dz;
                dscale += dz * hat;
            }
        put(j, G_DSCALE, c, dscale);
        put(j, G_DBIAS, c, dbias);
        if (j->is_frozen) dscale = dbias = 0;
        for (int64_t b = 0; b < j->batch && j->out[G_DX]; b++)
            for (int64_t i = 0, at = (b * j->channels + c) * j->size; i < j->size; i++, at++) {
                const double dz = before_act(j, c, at, &hat);

                put(j, G_DX, at, mul * (dz - dbias / m - hat * dscale / m));
            }
    }
}

static oct_status run(const oct_args *a, norm_job *j, int n_in, oct_range_fn fn)
{
    const oct_type *x = &a->in[X]->type;

    OCT_TRY(oct_args_check(a));
    j->w = oct_work_of(x->dtype);
    j->batch = x->dim[0];
    j->channels = x->dim[1];
    j->size = oct_type_span(x, 2, x->rank);
    for (int i = 0; i < n_in; i++)
        OCT_TRY(oct_work_in(a, i, j->w, &j->in[i]));
    for (int i = 0; i < a->node->n_out; i++)
        OCT_TRY(oct_work_out(a, i, j->w, &j->out[i]));
    if (oct_type_len(x) > 0) oct_parallel_for(a->n_threads, j->channels, 1, fn, j);
    for (int i = 0; i < a->node->n_out; i++)
        oct_work_done(a, i, j->w, j->out[i]);
    return OCT_OK;
}

static oct_status ref(const oct_args *a)
{
    const oct_node *n = a->node;
    norm_job j = {.epsilon = (double)oct_f32(n, EPSILON),
                  .momentum = (double)oct_f32(n, MOMENTUM),
                  .act = {(oct_act_kind)oct_int(n, ACT), oct_f32(n, ACT_A), oct_f32(n, ACT_B)}};

    return run(a, &j, N_IN, channels_of);
}

static oct_status grad_ref(const oct_args *a)
{
    const oct_node *n = a->node;
    norm_job j = {
        .act = {(oct_act_kind)oct_int(n, GRAD_ACT), oct_f32(n, GRAD_ACT_A), oct_f32(n, GRAD_ACT_B)},
        .is_frozen = oct_int(n, GRAD_FROZEN) != 0};

    return run(a, &j, G_N_IN, grad_channels_of);
}

static oct_status grad(const oct_grad_args *a)
{
    const oct_node *n = a->node;
    oct_node *g;

    for (int i = MEAN_NEXT; i < N_OUT; i++)
        if (a->dy[i])
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED,
                                 "its statistics have no gradient, only its first result has");
    g = oct_emit_node(a->b, &oct_op_batch_norm_train_grad,
                      (oct_value *[]){n->in[X], a->dy[Y], n->in[SCALE], n->in[BIAS],
                                      n->out[BATCH_MEAN], n->out[INV_STD]},
                      G_N_IN, G_N_OUT);
    oct_emit_attrs_of(a->b, g, n);
    if (!oct_emitted(a->b, g)) return a->b->status;
    a->dx[X] = g->out[G_DX];
    a->dx[SCALE] = g->out[G_DSCALE];
    a->dx[BIAS] = g->out[G_DBIAS];
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [EPSILON] = {.name = "epsilon", .kind = OCT_ATTR_F32, .def = {.f = 1e-5f}},
    [MOMENTUM] = {.name = "momentum", .kind = OCT_ATTR_F32, .def = {.f = 0.9f}},
    [ACT] = {.name = "act", .kind = OCT_ATTR_INT},
    [ACT_A] = {.name = "act_a", .kind = OCT_ATTR_F32},
    [ACT_B] = {.name = "act_b", .kind = OCT_ATTR_F32},
    {0},
};

static const oct_attr_def grad_attrs[] = {
    [GRAD_ACT] = {.name = "act", .kind = OCT_ATTR_INT},
    [GRAD_ACT_A] = {.name = "act_a", .kind = OCT_ATTR_F32},
    [GRAD_ACT_B] = {.name = "act_b", .kind = OCT_ATTR_F32},
    [GRAD_FROZEN] = {.name = "frozen", .kind = OCT_ATTR_INT},
    {0},
};

const oct_op oct_op_batch_norm_train = {
    .name = "BatchNormTrain",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = N_IN,
    .max_in = N_IN,
    .min_out = N_OUT,
    .max_out = N_OUT,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = grad,
};

const oct_op oct_op_batch_norm_train_grad = {
    .name = "BatchNormTrainGrad",
    .domain = OCT_TRAIN_DOMAIN,
    .since = 1,
    .min_in = G_N_IN,
    .max_in = G_N_IN,
    .min_out = 1,
    .max_out = G_N_OUT,
    .attrs = grad_attrs,
    .shape = grad_shape,
    .ref = grad_ref,
};
