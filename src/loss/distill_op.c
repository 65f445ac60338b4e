/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DistillLoss: how far one value of the network (student) is from the same value of another network
 * (teacher), with T the temperature:
 *
 *   mse  mean of (s - t)^2
 *   kl   T^2 * sum of p_t log(p_t / p_s), p = softmax(x / T) along `axis` in groups of `group`;
 *        the mean over all distributions
 *   bce  the same with two outcomes for each element, p = sigmoid(x / T); summed along `axis`
 *
 * With a third operand, which broadcasts to the student's shape, there is no mean: the terms are
 * summed, each times that weight.
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "loss/distill.h"
#include "loss/loss_op.h"
#include "loss/pieces.h"
#include "op/axes.h"
#include "op/grad/rules.h"
#include "op/work.h"

enum { KIND, TEMPERATURE, WEIGHT, AXIS, GROUP };
enum { STUDENT, TEACHER, WEIGHTS };

typedef struct distill_job {
    oct_distill_kind kind;
    const double *s, *t;
    const double *w; /* of each element; NULL: all 1 */
    double *ds;      /* NULL: not wanted */
    double *sum;     /* of each picture */
    double temperature, scale;
    int64_t n;               /* elements of a picture */
    int64_t group, n_groups; /* elements of a distribution; distributions along the axis */
    int64_t outer, inner;
} distill_job;

const char *const oct_distill_kinds[] = {"mse", "kl", "bce", NULL};

bool oct_distill_kind_of(const char *word, size_t n, oct_distill_kind *out)
{
    for (int i = 0; oct_distill_kinds[i]; i++)
        if (strlen(oct_distill_kinds[i]) == n && strncmp(oct_distill_kinds[i], word, n) == 0) {
            *out = (oct_distill_kind)i;
            return true;
        }
    return false;
}

/* --- one picture: elements from `first` on --- */

static double weight_of(const distill_job *j, int64_t element)
{
    return j->w ? j->w[element] : 1;
}

static double mse(const distill_job *j, int64_t first)
{
    double sum = 0;

    for (int64_t i = first; i < first + j->n; i++) {
        const double d = j->s[i] - j->t[i], w = weight_of(j, i);

        sum += w * d * d;
        if (j->ds) j->ds[i] = 2 * w * d * j->scale;
    }
    return sum;
}

/* The logarithm of the sum of e^(x / T) over one distribution. */
static double log_sum(const distill_job *j, const double *x)
{
    double most = -INFINITY, sum = 0;

    for (int64_t k = 0; k < j->group; k++)
        most = fmax(most, x[k * j->inner] / j->temperature);
    for (int64_t k = 0; k < j->group; k++)
        sum += exp(x[k * j->inner] / j->temperature - most);
    return most + log(sum);
}

static double kl(const distill_job *j, int64_t first)
{
    const double T = j->temperature;
    double sum = 0;

    for (int64_t i = 0; i < j->outer * j->n_groups * j->inner; i++) {
        const int64_t at = first + i / j->inner * j->group * j->inner + i % j->inner;
        const double all_s = log_sum(j, j->s + at), all_t = log_sum(j, j->t + at);
        const double w = weight_of(j, at);

        for (int64_t k = 0; k < j->group; k++) {
            const int64_t e = at + k * j->inner;
            const double log_s = j->s[e] / T - all_s, log_t = j->t[e] / T - all_t, p_t = exp(log_t);

            if (p_t > 0) sum += w * T * T * p_t * (log_t - log_s);
            if (j->ds) j->ds[e] = w * T * (exp(log_s) - p_t) * j->scale;
        }
    }
    return sum;
}

static double bce(const distill_job *j, int64_t first)
{
    const double T = j->temperature;
    double sum = 0;

    for (int64_t i = first; i < first + j->n; i++) {
        const double a = j->s[i] / T, b = j->t[i] / T, w = weight_of(j, i);
        const double p_s = oct_sigmoid_f64(a), p_t = oct_sigmoid_f64(b);

        /* p_t log(p_t / p_s) + (1 - p_t) log((1 - p_t) / (1 - p_s)), with log p = -softplus(-x) */
        sum += w * T * T *
               (p_t * (oct_softplus(-a) - oct_softplus(-b)) +
                oct_sigmoid_f64(-b) * (oct_softplus(a) - oct_softplus(b)));
        if (j->ds) j->ds[i] = w * T * (p_s - p_t) * j->scale;
    }
    return sum;
}

static void distill_pictures(void *arg, int64_t begin, int64_t end)
{
    static double (*const of_kind[])(const distill_job *, int64_t) = {mse, kl, bce};
    const distill_job *j = arg;

    for (int64_t i = begin; i < end; i++)
        j->sum[i] = of_kind[j->kind](j, i * j->n);
}

/* --- the operator --- */

static oct_status shape(const oct_infer *q)
{
    const oct_type *s, *t;

    OCT_TRY(oct_infer_need(q, STUDENT, &s));
    OCT_TRY(oct_infer_need(q, TEACHER, &t));
    OCT_TRY(oct_infer_check(q, STUDENT, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, TEACHER, OCT_SET_FLOAT));
    if (oct_type_is_static(s) && oct_type_is_static(t)) {
        oct_type like = *t;

        like.dtype = s->dtype;
        if (!oct_type_equal(s, &like))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "student and teacher have different shapes");
    }
    if (oct_infer_in(q, WEIGHTS)) OCT_TRY(oct_infer_check(q, WEIGHTS, OCT_SET_FLOAT));
    return oct_loss_shape(q, 1, 1);
}

/* The distributions along the axis; values of one dim are one picture. */
static oct_status read_axis(const oct_args *a, distill_job *j)
{
    const oct_type *t = &a->in[STUDENT]->type;
    const int64_t group = oct_int(a->node, GROUP);
    int32_t axis;

    if (!t->rank) return oct_node_fail(a->node, OCT_ERR_SHAPE, "one number is no distribution");
    OCT_TRY(oct_axis(a->node, oct_int(a->node, AXIS), t->rank, &axis));
    if (t->rank > 1 && !axis)
        return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED, "axis 0 holds the pictures");
    j->outer = axis ? oct_type_span(t, 1, axis) : 1;
    j->inner = oct_type_span(t, axis + 1, t->rank);
    j->group = group ? group : OCT_MAX(t->dim[axis], 1);
    if (j->group < 0 || t->dim[axis] % j->group)
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "groups of %lld do not divide %lld",
                             (long long)j->group, (long long)t->dim[axis]);
    j->n_groups = t->dim[axis] / j->group;
    return OCT_OK;
}

static oct_status read_form(const oct_args *a, distill_job *j, int64_t *n_pictures)
{
    const oct_type *t = &a->in[STUDENT]->type;
    const oct_attr *kind = &a->node->attr[KIND];
    int64_t n;

    if (!oct_distill_kind_of(kind->s, (size_t)kind->n, &j->kind))
        return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED, "kind '%.40s'", kind->s);
    j->temperature = (double)oct_f32(a->node, TEMPERATURE);
    if (!(j->temperature > 0))
        return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED, "the temperature must be above 0");
    *n_pictures = t->rank > 1 ? t->dim[0] : 1;
    n = oct_type_len(t);
    j->n = *n_pictures ? n / *n_pictures : 0;
    if (j->kind != OCT_DISTILL_MSE) {
        OCT_TRY(read_axis(a, j));
        n = *n_pictures * j->outer * j->inner * (j->kind == OCT_DISTILL_KL ? j->n_groups : 1);
    }
    j->scale = (double)oct_f32(a->node, WEIGHT) / (double)(j->w ? 1 : OCT_MAX(n, 1));
    return OCT_OK;
}

static oct_status read_weights(const oct_args *a, distill_job *j)
{
    const void *w;

    OCT_TRY(oct_work_expand(a, WEIGHTS, OCT_WORK_F64, &a->in[STUDENT]->type, &w));
    j->w = w;
    return OCT_OK;
}

static oct_status distill_ref(const oct_args *a)
{
    distill_job j = {0};
    int64_t n_pictures;
    double part = 0;
    void *ds;

    OCT_TRY(oct_args_check(a));
    if (oct_args_in(a, WEIGHTS)) OCT_TRY(read_weights(a, &j));
    OCT_TRY(read_form(a, &j, &n_pictures));
    OCT_TRY(oct_work_in_f64(a, STUDENT, &j.s));
    OCT_TRY(oct_work_in_f64(a, TEACHER, &j.t));
    OCT_TRY(oct_work_out(a, 2, OCT_WORK_F64, &ds));
    j.ds = ds;
    j.sum = oct_args_scratch(a, (size_t)n_pictures + 1, sizeof(*j.sum));
    if (!j.sum) return OCT_ERR_MEMORY;
    oct_parallel_for(a->n_threads, n_pictures, 1, distill_pictures, &j);
    for (int64_t i = 0; i < n_pictures; i++)
        part += j.sum[i] * j.scale;
    oct_loss_store(a, &part, 1);
    oct_work_done(a, 2, OCT_WORK_F64, j.ds);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [KIND] = {.name = "kind", .kind = OCT_ATTR_STRING, .def = {.s = "mse"}, .n_def = 3},
    [TEMPERATURE] = {.name = "temperature", .kind = OCT_ATTR_F32, .def = {.f = 1}},
    [WEIGHT] = {.name = "weight", .kind = OCT_ATTR_F32, .def = {.f = 1}},
    [AXIS] = {.name = "axis", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    [GROUP] = {.name = "group", .kind = OCT_ATTR_INT},
    {0},
};

const oct_op oct_op_distill_loss = {
    .name = "DistillLoss",
    .domain = OCT_TRAIN_DOMAIN,
    .min_in = 2,
    .max_in = 3,
    .min_out = 1,
    .max_out = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = distill_ref,
    .grad = oct_loss_grad,
};
