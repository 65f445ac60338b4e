/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Losses on small graphs in float64: predictions are inputs of the graph that go to its outputs
 * unchanged; a row is attached to them, and the loss, its parts and the gradients are computed with
 * the reference kernels.
 */
#ifndef OCT_TESTS_LOSS_CASE_H
#define OCT_TESTS_LOSS_CASE_H

#include "base/rng.h"
#include "grad/grad.h"
#include "loss/loss.h"
#include "op/op.h"
#include "tests/test.h"

enum { LOSS_MAX_PRED = 4, LOSS_MAX_IN = 16 };

typedef struct loss_case {
    fixture *f;
    const oct_loss_row *row;
    oct_loss_job job;
    oct_loss_found found;
    oct_value *pred[LOSS_MAX_PRED]; /* differentiated */
    oct_tensor *x[LOSS_MAX_IN];     /* elements of the graph's inputs, in their order */
    int n_pred;
    double loss, parts[OCT_LOSS_MAX_PARTS];
    oct_tensor *grad[LOSS_MAX_PRED]; /* of the last run */
} loss_case;

static inline loss_case loss_begin(void **state, const char *row)
{
    loss_case c = {.f = *state, .row = oct_loss_find(row)};

    assert_non_null(c.row);
    c.job.g = c.f->g;
    oct_loss_defaults(c.row, &c.job);
    return c;
}

static inline void loss_set(loss_case *c, const char *setting, double number, const char *word)
{
    for (int i = 0; c->row->settings[i].name; i++)
        if (strcmp(c->row->settings[i].name, setting) == 0) {
            c->job.number[i] = number;
            c->job.word[i] = word;
            return;
        }
    fail_msg("%s has no setting '%s'", c->row->name, setting);
}

/* An input of the graph with these elements; NULL: zeros. */
static inline oct_value *loss_input(loss_case *c, const char *name, oct_dtype dtype, int32_t rank,
                                    const int64_t *dims, const double *v)
{
    const oct_type type = oct_type_make(dtype, rank, dims);
    oct_value *in = graph_input(c->f, name, dtype, rank, dims);
    oct_tensor **x = &c->x[c->f->g->n_inputs - 1];

    assert_ok(c->f->ctx, oct_tensor_make(c->f->ctx, &type, x));
    if (v) oct_store_f64(dtype, (*x)->data, 0, oct_type_len(&type), v);
    return in;
}

/* Predictions: an input that is differentiated; `op` (Identity, Sigmoid) leads to an output. */
static inline oct_value *loss_pred(loss_case *c, const char *name, const oct_op *op, int32_t rank,
                                   const int64_t *dims, const double *v)
{
    oct_value *x = loss_input(c, name, OCT_DTYPE_F64, rank, dims, v);
    oct_value *y = oct_emit(&c->f->b, op, x, NULL, NULL);

    assert_non_null(y);
    assert_ok(c->f->ctx, oct_graph_add_output(c->f->g, y));
    c->pred[c->n_pred++] = op == &oct_op_identity ? y : x;
    return y;
}

/* Attaches and differentiates; the graph's outputs become loss, parts, gradients. */
static inline void loss_attach(loss_case *c)
{
    oct_graph *g = c->f->g;
    oct_value *d[LOSS_MAX_PRED];

    assert_ok(c->f->ctx, c->row->attach(&c->job, &c->found));
    assert_true(strlen(c->found.why) > 0);
    for (int32_t i = 0; i < g->n_outputs; i++)
        g->outputs[i]->is_output = false;
    g->n_outputs = 0;
    assert_ok(c->f->ctx, oct_grad(g, c->found.loss, c->pred, c->n_pred, d));
    assert_ok(c->f->ctx, oct_graph_add_output(g, c->found.loss));
    assert_ok(c->f->ctx, oct_graph_add_output(g, c->found.parts));
    for (int i = 0; i < c->n_pred; i++) {
        oct_value *own = oct_emit(&c->f->b, &oct_op_identity, d[i], NULL, NULL);

        assert_non_null(own);
        assert_ok(c->f->ctx, oct_graph_add_output(g, own));
    }
    assert_ok(c->f->ctx, oct_graph_verify(g));
}

static inline void loss_forget(loss_case *c)
{
    for (int i = 0; i < c->n_pred; i++) {
        oct_tensor_unref(c->grad[i]);
        c->grad[i] = NULL;
    }
}

static inline oct_status loss_try(loss_case *c)
{
    oct_tensor *out[LOSS_MAX_PRED + 2] = {0};
    oct_status st;

    loss_forget(c);
    if ((st = oct_graph_eval(c->f->g, c->x, out, NULL))) return st;
    c->loss = oct_tensor_get_f64(out[0], 0);
    for (int i = 0; i < oct_tensor_len(out[1]); i++)
        c->parts[i] = oct_tensor_get_f64(out[1], i);
    for (int i = 0; i < c->n_pred; i++)
        c->grad[i] = out[i + 2];
    oct_tensor_unref(out[0]);
    oct_tensor_unref(out[1]);
    return OCT_OK;
}

static inline void loss_run(loss_case *c)
{
    double sum = 0;

    assert_ok(c->f->ctx, loss_try(c));
    for (int i = 0; c->row->parts[i]; i++)
        sum += c->parts[i];
    assert_true(fabs(sum - c->loss) <= 1e-9 * (1 + fabs(sum)));
}

/* Loss and gradients have the same bits with one thread and with four. */
static inline void loss_check_threads(loss_case *c)
{
    oct_tensor *first[LOSS_MAX_PRED];
    double loss;

    oct_ctx_set_threads(c->f->ctx, 1);
    loss_run(c);
    loss = c->loss;
    for (int i = 0; i < c->n_pred; i++) {
        first[i] = c->grad[i];
        c->grad[i] = NULL;
    }
    oct_ctx_set_threads(c->f->ctx, 4);
    loss_run(c);
    assert_memory_equal(&loss, &c->loss, sizeof(loss));
    for (int i = 0; i < c->n_pred; i++) {
        assert_memory_equal(first[i]->data, c->grad[i]->data, first[i]->size);
        oct_tensor_unref(first[i]);
    }
}

static inline void loss_end(loss_case *c)
{
    loss_forget(c);
    for (int32_t i = 0; i < c->f->g->n_inputs; i++)
        oct_tensor_unref(c->x[i]);
}

static inline void assert_near(double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol * (1 + fabs(want)))) fail_msg("%.12g, want %.12g", got, want);
}

/* The gradient of prediction k against differences of `value`, a loss whose targets are fixed. */
static inline void loss_check_grad(loss_case *c, int k, double *x, int64_t n,
                                   double (*value)(void *arg), void *arg, double tol)
{
    for (int64_t i = 0; i < n; i++) {
        const double h = 1e-5, x0 = x[i], have = oct_tensor_get_f64(c->grad[k], i);
        double want;

        x[i] = x0 + h;
        want = value(arg);
        x[i] = x0 - h;
        want = (want - value(arg)) / (2 * h);
        x[i] = x0;
        if (!(fabs(have - want) <= tol * (1 + fabs(want))))
            fail_msg("d/d prediction %d [%lld] is %.10g, differences give %.10g", k, (long long)i,
                     have, want);
    }
}

static inline void fill_random(oct_rng *rng, double *x, int64_t n, double low, double high)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = low + (high - low) * oct_rng_f64(rng);
}

#endif
