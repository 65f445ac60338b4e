/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Losses attached to real networks: the raw predictions they find, made into scores again, are the
 * network's outputs; the loss and its gradient run in a plan.
 */
#include "base/rng.h"
#include "loss/loss.h"
#include "op/op.h"
#include "tests/test.h"

static const char *shared;

typedef struct net {
    fixture *f;
    const oct_loss_row *row;
    oct_loss_job job;
    oct_loss_found found;
    oct_plan *plan;
    oct_run *run;
} net;

static void load(net *n, void **state, const char *model, const char *row)
{
    char path[512];

    *n = (net){.f = *state, .row = oct_loss_find(row)};
    assert_non_null(n->row);
    assert_true(snprintf(path, sizeof(path), "%s/data/models/%s.onnx", shared, model) <
                (int)sizeof(path));
    oct_graph_free(n->f->g);
    n->f->g = NULL;
    assert_ok(n->f->ctx, oct_onnx_load(n->f->ctx, path, &n->f->g));
    assert_ok(n->f->ctx, oct_graph_infer(n->f->g));
    n->f->b = (oct_builder){.g = n->f->g};
    n->job.g = n->f->g;
    oct_loss_defaults(n->row, &n->job);
}

static void attach(net *n)
{
    assert_ok(n->f->ctx, n->row->attach(&n->job, &n->found));
    assert_ok(n->f->ctx, oct_graph_verify(n->f->g));
    print_message("%s: %s\n", n->row->name, n->found.why);
}

/* Operand i of the loss's operator. */
static oct_value *operand(const net *n, int32_t i)
{
    return oct_node_in(n->found.loss->producer, i);
}

static void show(net *n, oct_value *v)
{
    if (!v->is_output) assert_ok(n->f->ctx, oct_graph_add_output(n->f->g, v));
}

/* Compiles and fills the inputs: pictures with noise of this width, all others with zeros. */
static void compile(net *n, float width)
{
    oct_plan_options o;
    oct_rng rng;

    oct_rng_init(&rng, 5);
    oct_plan_options_init(&o);
    assert_ok(n->f->ctx, oct_plan_new(n->f->g, &o, &n->plan));
    assert_ok(n->f->ctx, oct_run_new(n->f->ctx, n->plan, &n->run));
    for (int32_t i = 0; i < oct_plan_n_inputs(n->plan); i++) {
        const oct_value *v = oct_graph_find_value(n->f->g, oct_plan_input_name(n->plan, i));
        void *data;
        size_t size;

        assert_ok(n->f->ctx, oct_run_input(n->run, v->name, &data, &size));
        memset(data, 0, size);
        for (size_t k = 0; v->type.rank == 4 && k < size / sizeof(float); k++)
            ((float *)data)[k] = width * (float)oct_rng_f64(&rng);
    }
}

static void unload(net *n)
{
    oct_run_free(n->run);
    oct_plan_free(n->plan);
}

static const oct_tensor *output(net *n, const oct_value *v)
{
    const oct_tensor *t = NULL;

    for (int32_t i = 0; i < oct_plan_n_outputs(n->plan); i++)
        if (strcmp(oct_plan_output_name(n->plan, i), v->name) == 0)
            assert_ok(n->f->ctx, oct_run_output(n->run, i, &t));
    assert_non_null(t);
    return t;
}

static oct_value *add_input(net *n, const char *name, oct_dtype dtype, int32_t rank,
                            const int64_t *dims)
{
    return graph_input(n->f, name, dtype, rank, dims);
}

/* --- classifiers --- */

static void mobilenet(void **state)
{
    net n;
    int64_t *label;
    size_t size;
    const oct_tensor *t;
    double sum = 0;

    load(&n, state, "mobilenet_v1_0.25_224", "classify");
    n.job.labels = add_input(&n, "labels", OCT_DTYPE_I64, 1, (int64_t[]){1});
    attach(&n);
    show(&n, n.found.loss);
    compile(&n, 1);
    assert_ok(n.f->ctx, oct_run_input(n.run, "labels", (void **)&label, &size));
    *label = 123;
    assert_ok(n.f->ctx, oct_run_execute(n.run));
    t = output(&n, operand(&n, 0));
    for (int64_t i = 0; i < 1000; i++)
        sum += exp(oct_tensor_get_f64(t, i));
    assert_true(fabs(oct_tensor_get_f64(output(&n, n.found.loss), 0) -
                     (log(sum) - oct_tensor_get_f64(t, 123))) < 1e-5);
    unload(&n);
}

/* --- detectors --- */

enum { BOXES = 3 };

/* Three boxes, two of them in use. */
static void label(net *n)
{
    static const float rows[BOXES][OCT_LABEL_SIZE] = {
        {7, 40, 60, 180, 300}, {30, 200, 100, 400, 180}, {-1, 0, 0, 0, 0}};
    void *data;
    size_t size;

    assert_ok(n->f->ctx, oct_run_input(n->run, "labels", &data, &size));
    assert_int_equal(size, sizeof(rows));
    memcpy(data, rows, sizeof(rows));
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* The loss is a sum of parts above 0 (the first n_parts), and its gradient is not all zeros. */
static void check_loss(net *n, int n_parts)
{
    const oct_tensor *parts = output(n, n->found.parts);
    const oct_tensor *grad = output(n, n->found.loss->producer->out[2]);
    double sum = 0, norm = 0;

    for (int i = 0; i < oct_tensor_len(parts); i++) {
        const double part = oct_tensor_get_f64(parts, i);

        assert_true(i < n_parts ? part > 0 && isfinite(part) : part == 0);
        sum += part;
    }
    assert_true(fabs(sum - oct_tensor_get_f64(output(n, n->found.loss), 0)) < 1e-5 * sum);
    for (int64_t i = 0; i < oct_tensor_len(grad); i++)
        norm += fabs(oct_tensor_get_f64(grad, i));
    assert_true(norm > 1e-3 && isfinite(norm));
}

static void run_detector(void **state, net *n, const char *model, const char *row, float width)
{
    load(n, state, model, row);
    n->job.labels = add_input(n, "labels", OCT_DTYPE_F32, 3, (int64_t[]){1, BOXES, OCT_LABEL_SIZE});
    attach(n);
    for (int i = 0; i < n->found.loss->producer->n_out; i++)
        show(n, n->found.loss->producer->out[i]);
    show(n, operand(n, 0));
    show(n, operand(n, 1));
    compile(n, width);
    label(n);
    assert_ok(n->f->ctx, oct_run_execute(n->run));
}

static void yolox(void **state)
{
    net n;
    const oct_tensor *raw, *out;

    run_detector(state, &n, "yolox_nano_416", "yolox", 255);
    raw = output(&n, operand(&n, 0));
    out = output(&n, oct_graph_find_value(n.f->g, "output"));
    assert_dims(&raw->type, 3, (int64_t[]){1, 3549, 85});
    for (int64_t i = 0; i < oct_tensor_len(raw); i++) {
        const double x = oct_tensor_get_f64(raw, i);

        assert_true(fabs((i % 85 < 4 ? x : logistic(x)) - oct_tensor_get_f64(out, i)) < 1e-4);
    }
    check_loss(&n, 3);
    unload(&n);
}

/* Outputs for each feature map: the operands are theirs, one level after the other. */
static void levels(void **state, const char *model, const char *row, const char *const scores[],
                   const char *const distances[], int n_levels, int64_t n_anchors)
{
    net n;
    const oct_tensor *raw[2];
    int64_t at[2] = {0, 0};

    run_detector(state, &n, model, row, 1);
    raw[0] = output(&n, operand(&n, 0));
    raw[1] = output(&n, operand(&n, 1));
    assert_dims(&raw[0]->type, 3, (int64_t[]){1, n_anchors, 80});
    assert_dims(&raw[1]->type, 3, (int64_t[]){1, n_anchors, 32});
    for (int l = 0; l < n_levels; l++)
        for (int k = 0; k < 2; k++) {
            const char *name = (k ? distances : scores)[l];
            const oct_tensor *out = output(&n, oct_graph_find_value(n.f->g, name));

            for (int64_t i = 0; i < oct_tensor_len(out); i++) {
                const double x = oct_tensor_get_f64(raw[k], at[k]++);

                assert_true(fabs((k ? x : logistic(x)) - oct_tensor_get_f64(out, i)) < 1e-4);
            }
        }
    check_loss(&n, 3);
    unload(&n);
}

static void nanodet(void **state)
{
    levels(state, "nanodet_m_416", "nanodet", (const char *[]){"792", "814", "836"},
           (const char *[]){"795", "817", "839"}, 3, 3549);
}

static void picodet(void **state)
{
    levels(state, "picodet_s_416", "picodet",
           (const char *[]){"save_infer_model/scale_0.tmp_1", "save_infer_model/scale_1.tmp_1",
                            "save_infer_model/scale_2.tmp_1", "save_infer_model/scale_3.tmp_1"},
           (const char *[]){"save_infer_model/scale_4.tmp_1", "save_infer_model/scale_5.tmp_1",
                            "save_infer_model/scale_6.tmp_1", "save_infer_model/scale_7.tmp_1"},
           4, 3598);
}

/* --- distillation --- */

/* Fed with the network's own values there is no loss; with zeros there is one. */
static void distil(void **state, const char *model, int32_t n_pairs, float width)
{
    net n;

    load(&n, state, model, "distill");
    attach(&n);
    assert_int_equal(n.found.n_pairs, n_pairs);
    show(&n, n.found.loss);
    for (int32_t i = 0; i < n.found.n_pairs; i++)
        assert_ok(n.f->ctx,
                  n.found.pairs[i].value->is_output
                      ? OCT_OK
                      : oct_graph_add_output(n.f->g, (oct_value *)n.found.pairs[i].value));
    compile(&n, width);
    assert_ok(n.f->ctx, oct_run_execute(n.run));
    assert_true(oct_tensor_get_f64(output(&n, n.found.loss), 0) > 1e-3);
    for (int32_t i = 0; i < n.found.n_pairs; i++) {
        const oct_loss_pair *p = &n.found.pairs[i];

        assert_ok(n.f->ctx, oct_run_set_input(n.run, p->teacher->name, output(&n, p->value)));
    }
    assert_ok(n.f->ctx, oct_run_execute(n.run));
    assert_true(fabs(oct_tensor_get_f64(output(&n, n.found.loss), 0)) < 1e-9);
    unload(&n);
}

static void distil_mobilenet(void **state)
{
    distil(state, "mobilenet_v1_0.25_224", 1, 1);
}

/* Boxes, objectness and classes of three feature maps. */
static void distil_yolox(void **state)
{
    distil(state, "yolox_nano_416", 9, 255);
}

/* Scores and distances of three feature maps, though one layer gives both. */
static void distil_nanodet(void **state)
{
    distil(state, "nanodet_m_416", 6, 1);
}

static void distil_picodet(void **state)
{
    distil(state, "picodet_s_416", 8, 1);
}

/* Distributions of distances before their Softmax, scores before their Sigmoid. */
static void distil_yolov8(void **state)
{
    distil(state, "yolov8n", 2, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mobilenet, setup, teardown),
        cmocka_unit_test_setup_teardown(yolox, setup, teardown),
        cmocka_unit_test_setup_teardown(nanodet, setup, teardown),
        cmocka_unit_test_setup_teardown(picodet, setup, teardown),
        cmocka_unit_test_setup_teardown(distil_mobilenet, setup, teardown),
        cmocka_unit_test_setup_teardown(distil_yolox, setup, teardown),
        cmocka_unit_test_setup_teardown(distil_nanodet, setup, teardown),
        cmocka_unit_test_setup_teardown(distil_picodet, setup, teardown),
        cmocka_unit_test_setup_teardown(distil_yolov8, setup, teardown),
    };

    if (!(shared = shared_dir("test_loss_models"))) return 77;
    return run_test_group(tests);
}
