/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization: with the given statistics, or with the batch's own in training mode. */
#include <math.h>

#include "base/parallel.h"
#include "op/grad/layers.h"
#include "op/moments.h"

enum { EPSILON, MOMENTUM, TRAINING };
enum { X, SCALE, BIAS, MEAN, VAR, N_IN };

typedef struct bn_job {
    oct_work w;
    const void *in[N_IN];
    void *y;
    void *running_mean, *running_var; /* NULL: unused */
    int64_t batch, channels, size;
    double epsilon, momentum;
    bool training;
} bn_job;

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *p;
    int64_t channels = -1;

    OCT_TRY(oct_infer_need(q, X, &x));
    if (x->rank == 0) return oct_infer_fail(q, OCT_ERR_SHAPE, "input is a scalar");
    if (x->rank >= 1) channels = x->rank > 1 ? x->dim[1] : 1;
    for (int i = 0; i < N_IN; i++)
        OCT_TRY(oct_infer_check(q, i, OCT_SET_FLOAT));
    for (int i = SCALE; i < N_IN; i++) {
        OCT_TRY(oct_infer_need(q, i, &p));
        if (p->rank < 0) continue;
        if (p->rank != 1 || (p->dim[0] >= 0 && channels >= 0 && p->dim[0] != channels))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "operand %d is not one number for each channel",
                                  i);
        if (channels < 0) channels = p->dim[0];
    }
    q->out[0] = *x;
    if (x->rank > 1) q->out[0].dim[1] = channels;
    for (int i = 1; i < q->node->n_out; i++)
        q->out[i] = oct_type_make(q->in[i == 1 ? MEAN : VAR]->dtype, 1, &channels);
    return OCT_OK;
}

/* The batch's own mean and variance of one channel. */
static void batch_moments(const bn_job *j, int64_t c, double *mean, double *var)
{
    *mean = *var = 0;
    for (int64_t b = 0; b < j->batch; b++)
        *mean += oct_mean(j->w, j->in[X], (b * j->channels + c) * j->size, j->size);
    *mean /= (double)j->batch;
    for (int64_t b = 0; b < j->batch; b++)
        *var += oct_square_mean(j->w, j->in[X], (b * j->channels + c) * j->size, j->size, *mean);
    *var /= (double)j->batch;
}

static void blend(const bn_job *j, void *running, int input, int64_t c, double batch_value)
{
    if (!running) return;
    oct_work_put(j->w, running, c,
                 oct_work_get(j->w, j->in[input], c) * j->momentum +
                     batch_value * (1 - j->momentum));
}

static void channel_range(void *arg, int64_t begin, int64_t end)
{
    const bn_job *j = arg;

    for (int64_t c = begin; c < end; c++) {
        double mean = oct_work_get(j->w, j->in[MEAN], c), var = oct_work_get(j->w, j->in[VAR], c);
        double scale;

        if (j->training) {
            batch_moments(j, c, &mean, &var);
            blend(j, j->running_mean, MEAN, c, mean);
            blend(j, j->running_var, VAR, c, var);
        }
        scale = oct_work_get(j->w, j->in[SCALE], c) / sqrt(var + j->epsilon);
        for (int64_t b = 0; b < j->batch; b++)
            oct_affine(j->w, j->in[X], j->y, (b * j->channels + c) * j->size, j->size, mean, scale,
                       oct_work_get(j->w, j->in[BIAS], c));
    }
}

static oct_status ref(const oct_args *a)
{
    const oct_type *x = &a->in[X]->type;
    bn_job j = {
        .w = oct_work_of(x->dtype),
        .batch = x->dim[0],
        .channels = x->rank > 1 ? x->dim[1] : 1,
        .size = x->rank > 2 ? oct_type_span(x, 2, x->rank) : 1,
        .epsilon = (double)oct_f32(a->node, EPSILON),
        .momentum = (double)oct_f32(a->node, MOMENTUM),
        .training = oct_int(a->node, TRAINING) != 0,
    };

    OCT_TRY(oct_args_check(a));
    for (int i = 0; i < N_IN; i++)
        OCT_TRY(oct_work_in(a, i, j.w, &j.in[i]));
    OCT_TRY(oct_work_out(a, 0, j.w, &j.y));
    OCT_TRY(oct_work_out(a, 1, j.w, &j.running_mean));
    OCT_TRY(oct_work_out(a, 2, j.w, &j.running_var));
    oct_parallel_for(a->n_threads, j.channels, 1, channel_range, &j);
    oct_work_done(a, 0, j.w, j.y);
    oct_work_done(a, 1, j.w, j.running_mean);
    oct_work_done(a, 2, j.w, j.running_var);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [EPSILON] = {.name = "epsilon", .kind = OCT_ATTR_F32, .def = {.f = 1e-5f}},
    [MOMENTUM] = {.name = "momentum", .kind = OCT_ATTR_F32, .def = {.f = 0.9f}},
    [TRAINING] = {.name = "training_mode", .kind = OCT_ATTR_INT},
    {0},
};

const oct_op oct_op_batch_normalization = {
    .name = "BatchNormalization",
    .since = 15,
    .min_in = 5,
    .max_in = 5,
    .min_out = 1,
    .max_out = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = oct_grad_batch_normalization,
    .quant = {.in = {OCT_QROLE_ACT}},
    .flow = OCT_FLOW_PASS,
    .fuses = OCT_FUSES_ACT | OCT_FUSES_ELSEWHERE, /* one that could not be folded */
};
