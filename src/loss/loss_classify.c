/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross entropy of classifiers, with label smoothing e:
 *
 *   (1 - e) * -log p[label] + e / K * sum over k of -log p[k],  p = softmax(logits)
 *
 * The mean over all pictures that have a label; label -1: the picture has none.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "loss/loss_op.h"
#include "loss/raw.h"
#include "op/grad/rules.h"
#include "op/work.h"

enum { SMOOTHING };
enum { LOGITS, LABELS };

typedef struct classify_job {
    const double *x;
    const int64_t *label;
    double *dx;   /* NULL: not wanted */
    double *loss; /* of each picture */
    int64_t n_classes, n_labelled;
    double smoothing;
} classify_job;

static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *t;

    OCT_TRY(oct_loss_need(q, LOGITS, 2, OCT_SET_FLOAT, &x));
    OCT_TRY(oct_loss_need(q, LABELS, 1, OCT_SET_INT, &t));
    if (x->rank == 2 && t->rank == 1 && x->dim[0] >= 0 && t->dim[0] >= 0 && x->dim[0] != t->dim[0])
        return oct_infer_fail(q, OCT_ERR_SHAPE, "%lld labels for %lld pictures",
                              (long long)t->dim[0], (long long)x->dim[0]);
    if (x->rank == 2 && x->dim[1] == 0) return oct_infer_fail(q, OCT_ERR_SHAPE, "no classes");
    return oct_loss_shape(q, 1, 1);
}

static void classify_picture(const classify_job *j, int64_t i)
{
    const int64_t n = j->n_classes, label = j->label[i];
    const double *x = j->x + i * n, e = j->smoothing;
    double most = -INFINITY, sum = 0, log_sum, mean = 0;

    j->loss[i] = 0;
    if (label < 0) return;
    for (int64_t k = 0; k < n; k++)
        most = fmax(most, x[k]);
    for (int64_t k = 0; k < n; k++)
        sum += exp(x[k] - most);
    log_sum = most + log(sum);
    for (int64_t k = 0; k < n; k++)
        mean += (log_sum - x[k]) / (double)n;
    j->loss[i] = ((1 - e) * (log_sum - x[label]) + e * mean) / (double)j->n_labelled;
    for (int64_t k = 0; j->dx && k < n; k++)
        j->dx[i * n + k] = (exp(x[k] - log_sum) - (k == label ? 1 - e : 0) - e / (double)n) /
                           (double)j->n_labelled;
}

static void classify_pictures(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        classify_picture(arg, i);
}

static oct_status check_labels(const oct_args *a, classify_job *j, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (j->label[i] < -1 || j->label[i] >= j->n_classes)
            return oct_node_fail(a->node, OCT_ERR_SHAPE,
                                 "picture %lld of the batch has label %lld, but the network has "
                                 "%lld classes (-1: no label)",
                                 (long long)i, (long long)j->label[i], (long long)j->n_classes);
        j->n_labelled += j->label[i] >= 0;
    }
    return OCT_OK;
}

static oct_status classify_ref(const oct_args *a)
{
    classify_job j = {.smoothing = (double)oct_f32(a->node, SMOOTHING)};
    double part = 0;
    void *dx;
    int64_t n;

    OCT_TRY(oct_args_check(a));
    n = a->in[LOGITS]->type.dim[0];
    j.n_classes = a->in[LOGITS]->type.dim[1];
    OCT_TRY(oct_work_in_f64(a, LOGITS, &j.x));
    OCT_TRY(oct_work_in_i64(a, LABELS, &j.label));
    OCT_TRY(check_labels(a, &j, n));
    OCT_TRY(oct_work_out(a, 2, OCT_WORK_F64, &dx));
    j.dx = dx;
    if (!(j.loss = oct_args_scratch(a, (size_t)n + 1, sizeof(*j.loss)))) return OCT_ERR_MEMORY;
    if (j.dx) memset(j.dx, 0, (size_t)(n * j.n_classes) * sizeof(*j.dx));
    oct_parallel_for(a->n_threads, n, 1, classify_pictures, &j);
    for (int64_t i = 0; i < n; i++)
        part += j.loss[i];
    oct_loss_store(a, &part, 1);
    oct_work_done(a, 2, OCT_WORK_F64, j.dx);
    return OCT_OK;
}

static const oct_attr_def attrs[] = {
    [SMOOTHING] = {.name = "smoothing", .kind = OCT_ATTR_F32},
    {0},
};

static const oct_op op = {
    .name = "ClassifyLoss",
    .domain = OCT_TRAIN_DOMAIN,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = classify_ref,
    .grad = oct_loss_grad,
};

static const oct_loss_setting settings[] = {
    {.name = "smoothing", .help = "share of the target that goes to all classes evenly"},
    {0},
};

/* Pictures x classes, with dims of 1 after them. */
static bool is_scores(const oct_type *t)
{
    return t->rank >= 2 && t->dim[0] > 0 && t->dim[1] > 1 && oct_type_span(t, 2, t->rank) == 1;
}

/* The last Softmax upstream of v, with nothing but copies and shapes after it; NULL: none. */
static const oct_node *final_softmax(const oct_value *v)
{
    for (const oct_node *n = v->producer; n; n = n->in[0]->producer) {
        if (oct_node_is(n, &oct_op_softmax) || oct_node_is(n, &oct_op_log_softmax)) return n;
        if (!oct_raw_is_move(n) || !n->n_in || !n->in[0]) return NULL;
    }
    return NULL;
}

static oct_status attach(const oct_loss_job *job, oct_loss_found *out)
{
    oct_builder b = {.g = job->g, .prefix = "loss"};
    oct_value *v = NULL, *x;
    const oct_node *softmax;

    for (int32_t i = 0; i < job->g->n_outputs && !v; i++)
        if (oct_raw_is_float(job->g->outputs[i]) && is_scores(&job->g->outputs[i]->type))
            v = job->g->outputs[i];
    if (!v)
        return oct_fail(job->g->ctx, OCT_ERR_UNSUPPORTED,
                        "the loss of classifiers needs an output [pictures, classes]; this network "
                        "has none");
    softmax = final_softmax(v);
    x = softmax ? softmax->in[0] : v;
    if (x->type.rank != 2 || x->type.dim[0] != v->type.dim[0])
        x = oct_emit(&b, &oct_op_reshape, x, oct_ints(&b, v->type.dim, 2), NULL);
    (void)snprintf(out->why, sizeof(out->why), "logits '%.100s' [%lld, %lld]%s", x ? x->name : "",
                   (long long)v->type.dim[0], (long long)v->type.dim[1],
                   softmax ? ", upstream of the last Softmax" : ", an output of the network");
    return oct_loss_emitted(
        &b, oct_loss_emit(&b, &op, settings, job, (oct_value *[]){x, job->labels}, 2, 1), out);
}

const oct_loss_row oct_loss_classify = {
    .name = "classify",
    .help = "cross entropy of classifiers",
    .family = "classifier",
    .parts = {"cross_entropy"},
    .settings = settings,
    .attach = attach,
};
