/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distillation of heads with class logits and distributions over distances, anchor by anchor. With
 * w = the highest score that the teacher gives an anchor, and N = max(sum of w, 1), two sums over
 * all anchors, over N:
 *
 *   scores       of the divergence of the student's score from the teacher's, of each class
 *   boxes        of w times the mean over four sides of the divergence of the distributions
 *
 * Most anchors are background: there boxes mean nothing, and a mean over all anchors would make
 * what matters vanish. N is to the teacher's scores what the labels' loss divides by.
 */
#include <math.h>

#include "base/parallel.h"
#include "loss/dfl_head.h"
#include "loss/distill.h"
#include "loss/loss_op.h"
#include "loss/pieces.h"
#include "op/grad/rules.h"
#include "op/work.h"

enum { CLS, REG, TEACHER_CLS, TEACHER_REG, N_OPERANDS };
enum { WEIGHT };
enum { SCORES, BOXES, N_PARTS };

typedef struct head_job {
    const double *cls, *reg, *teacher_cls, *teacher_reg;
    double *d_cls, *d_reg;
    int64_t n_anchors, n_classes, bins;
    double scale;
    double (*sum)[N_PARTS]; /* of each picture */
} head_job;

/* The divergence of two scores, given as logits. */
static double score_term(double s, double t, double *slope)
{
    const double p_t = oct_sigmoid_f64(t);

    *slope = oct_sigmoid_f64(s) - p_t;
    return p_t * (oct_softplus(-s) - oct_softplus(-t)) +
           oct_sigmoid_f64(-t) * (oct_softplus(s) - oct_softplus(t));
}

static double log_sum(const double *x, int64_t n)
{
    double most = -INFINITY, sum = 0;

    for (int64_t i = 0; i < n; i++)
        most = fmax(most, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - most);
    return most + log(sum);
}

/* The divergence of two distributions, given as logits; its slope is times `scale`. */
static double side_term(const double *s, const double *t, int64_t n, double scale, double *ds)
{
    const double all_s = log_sum(s, n), all_t = log_sum(t, n);
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        const double log_s = s[i] - all_s, log_t = t[i] - all_t, p_t = exp(log_t);

        sum += p_t * (log_t - log_s);
        if (ds) ds[i] = scale * (exp(log_s) - p_t);
    }
    return sum;
}

static double best_score(const head_job *j, int64_t anchor)
{
    double most = -INFINITY;

    for (int64_t c = 0; c < j->n_classes; c++)
        most = fmax(most, j->teacher_cls[anchor * j->n_classes + c]);
    return oct_sigmoid_f64(most);
}

static void sum_anchor(const head_job *j, int64_t at, double sum[N_PARTS])
{
    const double w = best_score(j, at) / 4;

    for (int64_t c = at * j->n_classes; c < (at + 1) * j->n_classes; c++) {
        double slope;

        sum[SCORES] += score_term(j->cls[c], j->teacher_cls[c], &slope);
        if (j->d_cls) j->d_cls[c] = j->scale * slope;
    }
    for (int64_t k = 4 * at; k < 4 * (at + 1); k++)
        sum[BOXES] += w * side_term(j->reg + k * j->bins, j->teacher_reg + k * j->bins, j->bins,
                                    j->scale * w, j->d_reg ? j->d_reg + k * j->bins : NULL);
}

static void sum_pictures(void *arg, int64_t begin, int64_t end)
{
    const head_job *j = arg;

    for (int64_t i = begin; i < end; i++) {
        double sum[N_PARTS] = {0};

        for (int64_t k = 0; k < j->n_anchors; k++)
            sum_anchor(j, i * j->n_anchors + k, sum);
        for (int k = 0; k < N_PARTS; k++)
            j->sum[i][k] = sum[k];
    }
}

/* --- the operator --- */

static oct_status shape(const oct_infer *q)
{
    const oct_type *t[N_OPERANDS];

    for (int i = 0; i < N_OPERANDS; i++)
        OCT_TRY(oct_loss_need(q, i, OCT_PRED_RANK, OCT_SET_FLOAT, &t[i]));
    for (int i = 0; i < 2; i++)
        if (oct_type_is_static(t[i]) && oct_type_is_static(t[i + 2]) &&
            !oct_type_equal(t[i], t[i + 2]))
            return oct_infer_fail(q, OCT_ERR_SHAPE, "student and teacher have different shapes");
    if (t[REG]->rank == OCT_PRED_RANK && t[REG]->dim[2] % 4)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "%lld values for the four sides of a box",
                              (long long)t[REG]->dim[2]);
    if (t[CLS]->rank == OCT_PRED_RANK && t[REG]->rank == OCT_PRED_RANK &&
        (t[CLS]->dim[0] != t[REG]->dim[0] || t[CLS]->dim[1] != t[REG]->dim[1]))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "scores and distances of different anchors");
    return oct_loss_shape(q, 2, N_PARTS);
}

static double normalizer(const head_job *j, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += best_score(j, i);
    return 1 / fmax(sum, 1);
}

static oct_status ref(const oct_args *a)
{
    const oct_type *t = &a->in[CLS]->type;
    double parts[N_PARTS] = {0};
    void *d_cls, *d_reg;
    head_job j = {0};

    OCT_TRY(oct_args_check(a));
    j.n_anchors = t->dim[1];
    j.n_classes = t->dim[2];
    j.bins = a->in[REG]->type.dim[2] / 4;
    OCT_TRY(oct_work_in_f64(a, CLS, &j.cls));
    OCT_TRY(oct_work_in_f64(a, REG, &j.reg));
    OCT_TRY(oct_work_in_f64(a, TEACHER_CLS, &j.teacher_cls));
    OCT_TRY(oct_work_in_f64(a, TEACHER_REG, &j.teacher_reg));
    OCT_TRY(oct_work_out(a, 2, OCT_WORK_F64, &d_cls));
    OCT_TRY(oct_work_out(a, 3, OCT_WORK_F64, &d_reg));
    j.d_cls = d_cls;
    j.d_reg = d_reg;
    j.sum = oct_args_scratch(a, (size_t)t->dim[0] + 1, sizeof(*j.sum));
    if (!j.sum) return OCT_ERR_MEMORY;
    j.scale = (double)oct_f32(a->node, WEIGHT) * normalizer(&j, t->dim[0] * j.n_anchors);
    oct_parallel_for(a->n_threads, t->dim[0], 1, sum_pictures, &j);
    for (int64_t i = 0; i < t->dim[0]; i++)
        for (int k = 0; k < N_PARTS; k++)
            parts[k] += j.scale * j.sum[i][k];
    oct_loss_store(a, parts, N_PARTS);
    oct_work_done(a, 2, OCT_WORK_F64, d_cls);
    oct_work_done(a, 3, OCT_WORK_F64, d_reg);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [WEIGHT] = {.name = "weight", .kind = OCT_ATTR_F32, .def = {.f = 1}},
    {0},
};

const oct_op oct_op_distill_head_loss = {
    .name = "DistillHeadLoss",
    .domain = OCT_TRAIN_DOMAIN,
    .min_in = N_OPERANDS,
    .max_in = N_OPERANDS,
    .min_out = 1,
    .max_out = 4,
    .attrs = attrs,
    .shape = shape,
    .ref = ref,
    .grad = oct_loss_grad,
};
