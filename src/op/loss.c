/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss over axis 1. */
#include <math.h>
#include <string.h>

#include "op/grad/rules.h"
#include "op/work.h"

enum { IGNORE_INDEX, REDUCTION };
enum { X, TARGET, WEIGHT };

typedef enum reduction { REDUCTION_NONE, REDUCTION_MEAN, REDUCTION_SUM } reduction;

static oct_status read_reduction(const oct_node *n, reduction *out)
{
    static const char *const names[] = {"none", "mean", "sum"};
    const char *s = n->attr[REDUCTION].s;

    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (strcmp(s, names[i]) == 0) {
            *out = (reduction)i;
            return OCT_OK;
        }
    return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "reduction '%.40s'", s);
}

static bool differs(int64_t a, int64_t b)
{
    return a >= 0 && b >= 0 && a != b;
}

/* x is [N x C x ...], target [N x ...], weight [C]. */
static oct_status shape(const oct_infer *q)
{
    const oct_type *x, *t, *w = oct_infer_in(q, WEIGHT);
    reduction r = REDUCTION_NONE;

    OCT_TRY(oct_infer_need(q, X, &x));
    OCT_TRY(oct_infer_need(q, TARGET, &t));
    OCT_TRY(oct_infer_check(q, X, OCT_SET_FLOAT));
    OCT_TRY(oct_infer_check(q, TARGET, OCT_SET_INT));
    OCT_TRY(oct_infer_check(q, WEIGHT, OCT_SET_FLOAT));
    OCT_TRY(read_reduction(q->node, &r));
    if (x->rank >= 0 && x->rank < 2)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "input has no classes");
    if (x->rank >= 0 && t->rank >= 0) {
        if (t->rank != x->rank - 1)
            return oct_infer_fail(q, OCT_ERR_SHAPE, "target has %d dims, input %d", t->rank,
                                  x->rank);
        for (int d = 0; d < t->rank; d++)
            if (differs(t->dim[d], x->dim[d ? d + 1 : 0]))
                return oct_infer_fail(q, OCT_ERR_SHAPE, "target does not fit the input");
    }
    if (w && w->rank >= 0 && (w->rank != 1 || (x->rank > 1 && differs(w->dim[0], x->dim[1]))))
        return oct_infer_fail(q, OCT_ERR_SHAPE, "weight is not one number for each class");
    q->out[0] = oct_type_make(x->dtype, 0, NULL);
    if (r == REDUCTION_NONE) {
        q->out[0] = t->rank >= 0 ? *t : oct_type_unknown(x->dtype);
        q->out[0].dtype = x->dtype;
        for (int d = 0; d < q->out[0].rank && x->rank >= 0; d++)
            if (q->out[0].dim[d] < 0) q->out[0].dim[d] = x->dim[d ? d + 1 : 0];
    }
    if (q->node->n_out > 1) q->out[1] = *x;
    return OCT_OK;
}

/* Log-probabilities of all classes at each position. */
static void log_softmax(int64_t outer, int64_t n, int64_t inner, const double *x, double *y)
{
    for (int64_t i = 0; i < outer * inner; i++) {
        const int64_t at = i / inner * n * inner + i % inner;
        double most = -INFINITY, sum = 0;

        for (int64_t k = 0; k < n; k++)
            most = fmax(most, x[at + k * inner]);
        for (int64_t k = 0; k < n; k++)
            sum += exp(x[at + k * inner] - most);
        for (int64_t k = 0; k < n; k++)
            y[at + k * inner] = x[at + k * inner] - most - log(sum);
    }
}

/* The loss at each position into loss[]; total and weight are summed for the reductions. */
static oct_status gather(const oct_args *a, const double *log_p, double *loss, double *sum,
                         double *weight)
{
    const oct_type *t = &a->in[X]->type;
    const int64_t n = t->dim[1], inner = oct_type_span(t, 2, t->rank);
    const bool ignores = oct_has(a->node, IGNORE_INDEX);
    const int64_t *target;
    const double *w;

    OCT_TRY(oct_work_in_i64(a, TARGET, &target));
    OCT_TRY(oct_work_in_f64(a, WEIGHT, &w));
    *sum = *weight = 0;
    for (int64_t i = 0; i < oct_tensor_len(a->in[TARGET]); i++) {
        const int64_t c = target[i];
        double scale;

        loss[i] = 0;
        if (ignores && c == oct_int(a->node, IGNORE_INDEX)) continue;
        if (c < 0 || c >= n)
            return oct_node_fail(a->node, OCT_ERR_SHAPE, "target %lld of %lld classes",
                                 (long long)c, (long long)n);
        scale = w ? w[c] : 1;
        loss[i] = -scale * log_p[(i / inner * n + c) * inner + i % inner];
        *sum += loss[i];
        *weight += scale;
    }
    return OCT_OK;
}

static oct_status run(const oct_args *a, bool takes_scores)
{
    const oct_type *t = &a->in[X]->type;
    const double *x;
    double *log_p, *loss, sum, weight;
    reduction r = REDUCTION_NONE;

    OCT_TRY(oct_args_check(a));
    OCT_TRY(read_reduction(a->node, &r));
    OCT_TRY(oct_work_in_f64(a, X, &x));
    log_p = oct_args_scratch(a, (size_t)oct_type_len(t) + 1, sizeof(double));
    loss = oct_args_scratch(a, (size_t)oct_tensor_len(a->in[TARGET]) + 1, sizeof(double));
    if (!log_p || !loss) return OCT_ERR_MEMORY;
    if (takes_scores) {
        log_softmax(t->dim[0], t->dim[1], oct_type_span(t, 2, t->rank), x, log_p);
        x = log_p;
        oct_work_done(a, 1, OCT_WORK_F64, log_p);
    }
    OCT_TRY(gather(a, x, loss, &sum, &weight));
    if (r == REDUCTION_SUM) loss[0] = sum;
    if (r == REDUCTION_MEAN) loss[0] = sum / weight;
    oct_work_done(a, 0, OCT_WORK_F64, loss);
    return OCT_OK;
}

static oct_status nll_ref(const oct_args *a)
{
    return run(a, false);
}

static oct_status cross_entropy_ref(const oct_args *a)
{
    return run(a, true);
}

static const oct_attr_def attrs[] = {
    [IGNORE_INDEX] = {.name = "ignore_index", .kind = OCT_ATTR_INT, .no_default = true},
    [REDUCTION] = {.name = "reduction", .kind = OCT_ATTR_STRING, .def = {.s = "mean"}, .n_def = 4},
    {0},
};

const oct_op oct_op_negative_log_likelihood_loss = {
    .name = "NegativeLogLikelihoodLoss",
    .since = 13,
    .min_in = 2,
    .max_in = 3,
    .attrs = attrs,
    .shape = shape,
    .ref = nll_ref,
    .grad = oct_grad_nll_loss,
    .flow = OCT_FLOW_STOP,
};

const oct_op oct_op_softmax_cross_entropy_loss = {
    .name = "SoftmaxCrossEntropyLoss",
    .since = 13,
    .min_in = 2,
    .max_in = 3,
    .min_out = 1,
    .max_out = 2,
    .attrs = attrs,
    .shape = shape,
    .ref = cross_entropy_ref,
    .grad = oct_grad_cross_entropy_loss,
    .flow = OCT_FLOW_STOP,
};
