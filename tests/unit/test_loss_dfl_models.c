/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The losses of YOLO-NAS and YOLOv8 on real networks: the predictions they find, decoded, are the
 * network's outputs; the loss of a real batch is that of PyTorch and SuperGradients.
 */
#include "detect/detector.h"
#include "loss/loss.h"
#include "loss/pieces.h"
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

enum { MAX_BOXES = 64, MAX_BINS = 17 };

static const char *path_of(char *path, size_t size, const char *name)
{
    assert_true(snprintf(path, size, "%s/data/%s", shared, name) < (int)size);
    return path;
}

static oct_tensor *load_npy(oct_ctx *ctx, const char *name)
{
    oct_tensor *t = NULL;
    char path[512];

    assert_ok(ctx, oct_tensor_load_npy(ctx, path_of(path, sizeof(path), name), &t));
    return t;
}

/* The network for this many pictures, and inputs for their labels. */
static void load(net *n, void **state, const char *model, const char *row, int32_t batch)
{
    oct_simplify_options o;
    oct_graph *g = NULL;
    char path[512];

    *n = (net){.f = *state, .row = oct_loss_find(row)};
    assert_non_null(n->row);
    oct_graph_free(n->f->g);
    n->f->g = NULL;
    assert_ok(n->f->ctx, oct_onnx_load(n->f->ctx, path_of(path, sizeof(path), model), &g));
    /* The batch of 1 in the file's shapes is computed by nodes. */
    oct_simplify_options_init(&o);
    o.only = "fold-constants";
    assert_ok(n->f->ctx, oct_graph_simplify(g, &o));
    const int64_t *dim = g->inputs[0]->type.dim;
    assert_ok(n->f->ctx, oct_detector_bind(g, batch, (int32_t)dim[3], (int32_t)dim[2], &n->f->g));
    oct_graph_free(g);
    n->f->b = (oct_builder){.g = n->f->g};
    n->job.g = n->f->g;
    n->job.labels = graph_input(n->f, "labels", OCT_DTYPE_F32, 3,
                                (int64_t[]){batch, MAX_BOXES, OCT_LABEL_SIZE});
    oct_loss_defaults(n->row, &n->job);
}

static void show(net *n, oct_value *v)
{
    if (!v->is_output) assert_ok(n->f->ctx, oct_graph_add_output(n->f->g, v));
}

/* Attaches the loss, and compiles a plan whose outputs are its predictions and results too. */
static void attach(net *n)
{
    oct_plan_options o;
    oct_node *loss;

    assert_ok(n->f->ctx, n->row->attach(&n->job, &n->found));
    assert_ok(n->f->ctx, oct_graph_verify(n->f->g));
    print_message("%s: %s\n", n->row->name, n->found.why);
    loss = n->found.loss->producer;
    for (int32_t i = 0; i < 2; i++)
        show(n, loss->in[i]);
    for (int32_t i = 0; i < loss->n_out; i++)
        show(n, loss->out[i]);
    oct_plan_options_init(&o);
    assert_ok(n->f->ctx, oct_plan_new(n->f->g, &o, &n->plan));
    assert_ok(n->f->ctx, oct_run_new(n->f->ctx, n->plan, &n->run));
}

static void unload(net *n)
{
    oct_run_free(n->run);
    oct_plan_free(n->plan);
}

static float *input_of(net *n, const char *name, size_t *len)
{
    void *data = NULL;

    assert_ok(n->f->ctx, oct_run_input(n->run, name, &data, len));
    *len /= sizeof(float);
    return data;
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

static const oct_tensor *output_named(net *n, const char *name)
{
    const oct_value *v = oct_graph_find_value(n->f->g, name);

    assert_non_null(v);
    return output(n, v);
}

static void clear_labels(net *n)
{
    size_t len;
    float *labels = input_of(n, "labels", &len);

    for (size_t i = 0; i < len; i++)
        labels[i] = -1;
}

/* --- the loss of a real batch --- */

/* Statistics of the batch in every BatchNormalization. */
static void train_mode(net *n)
{
    for (oct_node *k = n->f->g->first; k; k = k->next)
        if (oct_node_is(k, &oct_op_batch_normalization))
            assert_ok(n->f->ctx, oct_node_set_int(k, "training_mode", 1));
}

static void fill_batch(net *n)
{
    oct_tensor *pixels = load_npy(n->f->ctx, "yolo-nas/training/batch.npy");
    oct_tensor *targets = load_npy(n->f->ctx, "yolo-nas/training/targets.npy");
    int rows[8] = {0};
    size_t len;
    float *x = input_of(n, "input", &len);

    assert_int_equal(len, oct_tensor_len(pixels));
    for (size_t i = 0; i < len; i++)
        x[i] = (float)((const uint8_t *)pixels->data)[i] / 255;
    clear_labels(n);
    float *labels = input_of(n, "labels", &len);
    for (int64_t i = 0; i < targets->type.dim[0]; i++) {
        const double *t = (const double *)targets->data + 6 * i;
        const int picture = (int)t[0], row = rows[picture]++;
        float *label = labels + (picture * MAX_BOXES + row) * OCT_LABEL_SIZE;

        assert_true(row < MAX_BOXES);
        label[OCT_LABEL_CLASS] = (float)t[1];
        for (int k = 0; k < 4; k++)
            label[OCT_LABEL_X1 + k] = (float)(t[2 + k % 2] + (k < 2 ? -.5 : .5) * t[4 + k % 2]);
    }
    oct_tensor_unref(pixels);
    oct_tensor_unref(targets);
}

static void real_batch(void **state)
{
    /* reference.json: cls, iou, dfl, total */
    static const double want[2][4] = {
        {0.7744294244875304, 0.4642626616547491, 0.465502603464672, 1.7041946896069513},
        {1.4015093682938986, 0.5659289139457997, 0.5214828755743259, 2.4889211578140245}};
    net n;

    for (int i = 0; i < 2; i++) {
        load(&n, state, "yolo-nas/yolo_nas_bccd_train.onnx", "yolo_nas", 8);
        assert_string_equal(n.row->settings[0].name, "assigner");
        n.job.word[0] = i ? "atss" : "tal";
        train_mode(&n);
        attach(&n);
        fill_batch(&n);
        assert_ok(n.f->ctx, oct_run_execute(n.run));
        for (int k = 0; k < 4; k++) {
            const double have = k < 3 ? oct_tensor_get_f64(output(&n, n.found.parts), k)
                                      : oct_tensor_get_f64(output(&n, n.found.loss), 0);

            print_message("%.9f (%.9f)\n", have, want[i][k]);
            assert_true(fabs(have - want[i][k]) <= 1e-5 * want[i][k]);
        }
        unload(&n);
    }
}

/* --- what was found is what the network decodes --- */

/* Distances of one anchor to left, top, right, bottom, in strides. */
static void distances_of(const oct_tensor *reg, int64_t anchor, double d[4])
{
    const int bins = (int)(reg->type.dim[2] / 4);
    double z[MAX_BINS], p[MAX_BINS];

    assert_true(bins <= MAX_BINS);
    for (int k = 0; k < 4; k++) {
        oct_load_f64(reg->type.dtype, reg->data, (anchor * 4 + k) * bins, bins, z);
        d[k] = oct_dfl_decode(z, bins, p);
    }
}

/* Of a picture of this size with strides 8, 16, 32. */
static void anchor_at(int64_t i, int64_t size, double *x, double *y, double *stride)
{
    int64_t s = 8;

    for (; i >= size / s * (size / s); s *= 2)
        i -= size / s * (size / s);
    *stride = (double)s;
    *x = ((double)(i % (size / s)) + .5) * *stride;
    *y = ((double)(i / (size / s)) + .5) * *stride;
}

static void expect(double have, double want, double tolerance)
{
    if (!(fabs(have - want) <= tolerance)) fail_msg("%.7g, expected %.7g", have, want);
}

static void fill_picture(net *n, const char *name)
{
    oct_tensor *t = load_npy(n->f->ctx, name);
    size_t len;
    float *x = input_of(n, n->f->g->inputs[0]->name, &len);

    assert_int_equal(len, oct_tensor_len(t));
    memcpy(x, t->data, len * sizeof(float));
    clear_labels(n);
    oct_tensor_unref(t);
}

/* Its outputs are raw in one file; in the other they are upstream of Sigmoid and Softmax. */
static void decoded_yolo_nas(void **state)
{
    static const char *const models[] = {"yolo-nas/yolo_nas_bccd_train.onnx",
                                         "yolo-nas/yolo_nas_bccd_folded.onnx"};

    for (int m = 0; m < 2; m++) {
        net n;

        load(&n, state, models[m], "yolo_nas", 1);
        attach(&n);
        assert_non_null(strstr(n.found.why, m ? "upstream" : "outputs"));
        fill_picture(&n, "yolo-nas/expected_input0.npy");
        assert_ok(n.f->ctx, oct_run_execute(n.run));
        const oct_node *loss = n.found.loss->producer;
        const oct_tensor *cls = output(&n, loss->in[0]), *reg = output(&n, loss->in[1]);
        const oct_tensor *boxes = output_named(&n, "boxes"), *scores = output_named(&n, "scores");
        assert_dims(&reg->type, 3, (int64_t[]){1, 2100, 68});
        for (int64_t i = 0; i < 2100 * 3; i++)
            expect(oct_sigmoid_f64(oct_tensor_get_f64(cls, i)), oct_tensor_get_f64(scores, i),
                   1e-6);
        for (int64_t i = 0; i < 2100; i++) {
            double d[4], point[2], stride;

            distances_of(reg, i, d);
            anchor_at(i, 320, &point[0], &point[1], &stride);
            for (int k = 0; k < 4; k++)
                expect(point[k % 2] + (k < 2 ? -d[k] : d[k]) * stride,
                       oct_tensor_get_f64(boxes, 4 * i + k), 1e-3);
        }
        unload(&n);
    }
}

static void decoded_yolov8(void **state)
{
    const int64_t n_anchors = 8400;
    size_t len;
    net n;

    load(&n, state, "models/yolov8n.onnx", "yolov8", 1);
    attach(&n);
    float *x = input_of(&n, n.f->g->inputs[0]->name, &len);
    for (size_t i = 0; i < len; i++)
        x[i] = (float)(i % 977) / 977;
    clear_labels(&n);
    float *labels = input_of(&n, "labels", &len);
    memcpy(labels, (float[]){7, 40, 60, 380, 500}, OCT_LABEL_SIZE * sizeof(float));
    assert_ok(n.f->ctx, oct_run_execute(n.run));
    const oct_node *loss = n.found.loss->producer;
    const oct_tensor *cls = output(&n, loss->in[0]), *reg = output(&n, loss->in[1]);
    const oct_tensor *out = output_named(&n, "output0");
    assert_dims(&cls->type, 3, (int64_t[]){1, n_anchors, 80});
    assert_dims(&reg->type, 3, (int64_t[]){1, n_anchors, 64});
    for (int64_t i = 0; i < n_anchors; i++) {
        double d[4], point[2], stride;

        for (int64_t c = 0; c < 80; c++)
            expect(oct_sigmoid_f64(oct_tensor_get_f64(cls, 80 * i + c)),
                   oct_tensor_get_f64(out, (4 + c) * n_anchors + i), 1e-6);
        distances_of(reg, i, d);
        anchor_at(i, 640, &point[0], &point[1], &stride);
        for (int k = 0; k < 2; k++) {
            expect(point[k] + (d[k + 2] - d[k]) / 2 * stride,
                   oct_tensor_get_f64(out, k * n_anchors + i), 1e-3);
            expect((d[k + 2] + d[k]) * stride, oct_tensor_get_f64(out, (k + 2) * n_anchors + i),
                   1e-3);
        }
    }
    for (int k = 0; k < 3; k++)
        assert_true(oct_tensor_get_f64(output(&n, n.found.parts), k) > 0);
    unload(&n);
}

/* A classifier has no such predictions. */
static void nothing_to_find(void **state)
{
    net n;

    load(&n, state, "models/mobilenet_v1_0.25_224.onnx", "yolov8", 1);
    assert_fails(n.f->ctx, n.row->attach(&n.job, &n.found), OCT_ERR_UNSUPPORTED,
                 "the loss needs the network's raw predictions");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(real_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(decoded_yolo_nas, setup, teardown),
        cmocka_unit_test_setup_teardown(decoded_yolov8, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_to_find, setup, teardown),
    };

    if (!(shared = shared_dir("test_loss_dfl_models"))) return 77;
    return run_test_group(tests);
}
