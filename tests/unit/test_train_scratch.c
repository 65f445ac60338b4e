/* SPDX-License-Identifier: Apache-2.0 */
/* Random weights to begin with, on the demo's detector. */
#include "tests/test.h"
#include "train/train.h"

enum { CLASSES = 8, EPOCHS = 12 };

static oct_train_net *make_net(fixture *f, int32_t scratch_epochs)
{
    const char *root = getenv("OCTET_SOURCE_ROOT");
    const oct_train_net_options o = {.batch = 1,
                                     .width = 256,
                                     .height = 256,
                                     .max_boxes = 1,
                                     .scratch_epochs = scratch_epochs,
                                     .loss = oct_loss_find("yolo_nas"),
                                     .n_threads = 1};
    oct_train_net *t = NULL;
    oct_graph *g = NULL;
    char path[512];

    snprintf(path, sizeof(path), "%s/examples/demo/detector.onnx", root ? root : ".");
    assert_ok(f->ctx, oct_onnx_load(f->ctx, path, &g));
    assert_ok(f->ctx, oct_train_net_new(g, &o, &t));
    oct_graph_free(g);
    return t;
}

static double deviation(const float *x, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum / (double)n);
}

static void all_are(const float *x, int64_t n, double want)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)x[i] - want) < 1e-5)) fail_msg("%g, not %g", (double)x[i], want);
}

static bool has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

static void weights_begin_as_he_says(void **state)
{
    oct_train_net *t = make_net(*state, EPOCHS);
    const oct_params *p = oct_train_net_params(t);
    int n_predictions = 0, n_seen = 0;

    oct_train_from_scratch(t, CLASSES, 1);
    for (int32_t i = 0; i < p->n; i++) {
        const oct_param *q = &p->v[i];
        const float *w = oct_train_net_weights(t) + q->offset;
        double fan = 1;

        for (int32_t d = 1; d < q->value->type.rank; d++)
            fan *= (double)q->value->type.dim[d];
        if (has(q->name, "cls_pred.weight")) {
            assert_true(fabs(deviation(w, q->len) - .01) < 1e-6);
            n_predictions++;
        } else if (has(q->name, "cls_pred.bias")) {
            all_are(w, q->len, log(.01 / .99));
            n_predictions++;
        } else if (q->kind == OCT_PARAM_NORM_SCALE || has(q->name, "alpha")) {
            all_are(w, q->len, 1);
        } else if (q->kind == OCT_PARAM_BIAS) {
            all_are(w, q->len, 0);
        } else if (q->kind == OCT_PARAM_WEIGHT && q->len > 4000 && !has(q->name, "up.")) {
            assert_true(fabs(deviation(w, q->len) / sqrt(2 / fan) - 1) < .05);
            n_seen++;
        }
    }
    assert_int_equal(n_predictions, 6); /* weight and bias of three feature maps */
    assert_true(n_seen > 20);
    oct_train_net_free(t);
}

static void atss_comes_first(void **state)
{
    oct_train_net *t = make_net(*state, EPOCHS);

    assert_non_null(strstr(oct_train_net_why(t), "ATSS for the first 2 epochs"));
    oct_train_net_free(t);
    t = make_net(*state, 0);
    assert_null(strstr(oct_train_net_why(t), "ATSS"));
    oct_train_net_free(t);
}

/* The same step gives another loss once the epochs of ATSS are over. */
static void the_epoch_counts(void **state)
{
    oct_train_net *t = make_net(*state, EPOCHS);
    double loss[3];
    int64_t n = 0;

    oct_train_from_scratch(t, CLASSES, 1);
    memcpy(oct_train_net_labels(t, &n), (float[]){3, 10, 12, 41, 50}, 5 * sizeof(float));
    for (int i = 0; i < 3; i++) {
        oct_train_net_set_epoch(t, i);
        assert_ok(((fixture *)*state)->ctx, oct_train_net_step(t));
        loss[i] = oct_train_net_loss(t);
        assert_true(isfinite(loss[i]) && loss[i] > 0);
    }
    assert_true(loss[0] == loss[1]);
    assert_true(loss[1] != loss[2]);
    oct_train_net_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(weights_begin_as_he_says, setup, teardown),
        cmocka_unit_test_setup_teardown(atss_comes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(the_epoch_counts, setup, teardown),
    };

    return run_test_group(tests);
}
