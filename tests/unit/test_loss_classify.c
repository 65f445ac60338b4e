/* SPDX-License-Identifier: Apache-2.0 */
/* Cross entropy of classifiers. */
#include "tests/unit/loss_case.h"

enum { PICTURES = 3, CLASSES = 5 };

static const int64_t dims[] = {PICTURES, CLASSES};

typedef struct plain {
    double x[PICTURES][CLASSES], smoothing;
    int label[PICTURES];
} plain;

/* By the probabilities themselves. */
static double plain_value(void *arg)
{
    const plain *p = arg;
    double sum = 0;
    int n = 0;

    for (int i = 0; i < PICTURES; i++) {
        double all = 0;

        if (p->label[i] < 0) continue;
        n++;
        for (int k = 0; k < CLASSES; k++)
            all += exp(p->x[i][k]);
        for (int k = 0; k < CLASSES; k++) {
            const double target =
                (k == p->label[i] ? 1 - p->smoothing : 0) + p->smoothing / CLASSES;

            sum -= target * log(exp(p->x[i][k]) / all);
        }
    }
    return n ? sum / n : 0;
}

static void compare(void **state, const int label[PICTURES], double smoothing)
{
    plain p = {.smoothing = smoothing};
    double as_double[PICTURES];
    oct_rng rng;
    loss_case c = loss_begin(state, "classify");

    oct_rng_init(&rng, 3);
    fill_random(&rng, p.x[0], (int64_t)PICTURES * CLASSES, -3, 3);
    for (int i = 0; i < PICTURES; i++)
        as_double[i] = p.label[i] = label[i];
    loss_set(&c, "smoothing", smoothing, NULL);
    loss_pred(&c, "x", &oct_op_identity, 2, dims, p.x[0]);
    c.job.labels = loss_input(&c, "labels", OCT_DTYPE_I64, 1, dims, as_double);
    loss_attach(&c);
    loss_run(&c);
    assert_near(c.loss, plain_value(&p), 1e-8);
    loss_check_grad(&c, 0, p.x[0], (int64_t)PICTURES * CLASSES, plain_value, &p, 1e-7);
    loss_end(&c);
}

static void cross_entropy(void **state)
{
    compare(state, (int[]){0, 4, 2}, 0);
}

static void smoothed(void **state)
{
    compare(state, (int[]){1, 1, 3}, .125);
}

static void pictures_without_label(void **state)
{
    compare(state, (int[]){2, -1, 0}, 0.25);
}

static void batch_without_labels(void **state)
{
    compare(state, (int[]){-1, -1, -1}, 0);
}

/* Logits of 1000: probabilities of 0 and 1. */
static void large_logits(void **state)
{
    const double x[PICTURES][CLASSES] = {{1000, -1000, 0, 0, 0}, {0, 1000, 0, 0, 0}, {0}};
    loss_case c = loss_begin(state, "classify");

    loss_pred(&c, "x", &oct_op_identity, 2, dims, x[0]);
    c.job.labels = loss_input(&c, "labels", OCT_DTYPE_I64, 1, dims, (double[]){0, 0, 0});
    loss_attach(&c);
    loss_run(&c);
    assert_near(c.loss, (0 + 1000 + log(5)) / 3, 1e-12);
    assert_near(oct_tensor_get_f64(c.grad[0], 5), -1. / 3, 1e-12);
    loss_end(&c);
}

static void unknown_class_is_refused(void **state)
{
    loss_case c = loss_begin(state, "classify");

    loss_pred(&c, "x", &oct_op_identity, 2, dims, NULL);
    c.job.labels = loss_input(&c, "labels", OCT_DTYPE_I64, 1, dims, (double[]){0, 5, 0});
    loss_attach(&c);
    assert_fails(c.f->ctx, loss_try(&c), OCT_ERR_SHAPE, "picture 1 of the batch has label 5");
    loss_end(&c);
}

/* Probabilities [n, classes, 1, 1] that a Reshape makes flat: the Softmax is left out. */
static void upstream_of_softmax(void **state)
{
    const int64_t dim[] = {2, 3, 1, 1};
    const double x[] = {1, 2, 3, 0, 0, 4};
    double want = 0;
    loss_case c = loss_begin(state, "classify");
    oct_value *y = loss_input(&c, "x", OCT_DTYPE_F64, 4, dim, x);
    oct_node *softmax = oct_emit_node(&c.f->b, &oct_op_softmax, &y, 1, 1);

    oct_emit_int(&c.f->b, softmax, "axis", 1);
    c.pred[c.n_pred++] = y;
    y = oct_emit(&c.f->b, &oct_op_flatten, oct_emitted(&c.f->b, softmax), NULL, NULL);
    assert_ok(c.f->ctx, oct_graph_add_output(c.f->g, y));
    c.job.labels = loss_input(&c, "labels", OCT_DTYPE_I64, 1, dim, (double[]){2, 0});
    loss_attach(&c);
    assert_non_null(strstr(c.found.why, "Softmax"));
    loss_run(&c);
    want -= log(exp(3) / (exp(1) + exp(2) + exp(3)));
    want -= log(1 / (1 + 1 + exp(4)));
    assert_near(c.loss, want / 2, 1e-12);
    assert_near(oct_tensor_get_f64(c.grad[0], 0), exp(1) / (exp(1) + exp(2) + exp(3)) / 2, 1e-12);
    loss_end(&c);
}

static void detectors_are_refused(void **state)
{
    loss_case c = loss_begin(state, "classify");

    loss_pred(&c, "x", &oct_op_identity, 3, (int64_t[]){1, 10, 6}, NULL);
    c.job.labels = loss_input(&c, "labels", OCT_DTYPE_I64, 1, (int64_t[]){1}, NULL);
    assert_fails(c.f->ctx, c.row->attach(&c.job, &c.found), OCT_ERR_UNSUPPORTED,
                 "[pictures, classes]");
    loss_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cross_entropy, setup, teardown),
        cmocka_unit_test_setup_teardown(smoothed, setup, teardown),
        cmocka_unit_test_setup_teardown(pictures_without_label, setup, teardown),
        cmocka_unit_test_setup_teardown(batch_without_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(large_logits, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_class_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(upstream_of_softmax, setup, teardown),
        cmocka_unit_test_setup_teardown(detectors_are_refused, setup, teardown),
    };

    return run_test_group(tests);
}
