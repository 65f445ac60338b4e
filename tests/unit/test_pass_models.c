/* SPDX-License-Identifier: Apache-2.0 */
/* Holds simplification to its promises on real networks: outputs, and how many nodes are left. */
#include "tests/test.h"

#include "base/rng.h"
#include "op/op.h"
#include "pass/pass.h"

static int count(const oct_graph *g, const oct_op *op)
{
    int k = 0;

    for (const oct_node *n = g->first; n; n = n->next)
        k += oct_node_is(n, op);
    return k;
}

static oct_graph *load(oct_ctx *ctx, const char *file)
{
    char path[1024];
    oct_graph *g = NULL;

    snprintf(path, sizeof(path), "%s/data/%s", getenv("OCTET_SHARED"), file);
    assert_ok(ctx, oct_onnx_load(ctx, path, &g));
    return g;
}

static oct_tensor *load_npy(oct_ctx *ctx, const char *file)
{
    char path[1024];
    oct_tensor *t = NULL;

    snprintf(path, sizeof(path), "%s/data/%s", getenv("OCTET_SHARED"), file);
    assert_ok(ctx, oct_tensor_load_npy(ctx, path, &t));
    return t;
}

/* Smooth noise between 0 and 1: nearer to a picture than white noise. */
static oct_tensor *make_input(oct_ctx *ctx, const oct_type *type)
{
    oct_tensor *t = NULL;
    oct_rng rng;
    float *x, level = 0.5f;

    assert_ok(ctx, oct_tensor_make(ctx, type, &t));
    assert_int_equal(type->dtype, OCT_DTYPE_F32);
    oct_rng_init(&rng, 3);
    x = t->data;
    for (int64_t i = 0, n = oct_type_len(type); i < n; i++) {
        level += 0.2f * (float)(oct_rng_f64(&rng) - 0.5);
        level = level < 0 ? 0 : level > 1 ? 1 : level;
        x[i] = level;
    }
    return t;
}

#define MAX_OUT 16

static void evaluate(const oct_graph *g, oct_tensor *x, oct_tensor **out)
{
    assert_int_equal(g->n_inputs, 1);
    assert_true(g->n_outputs <= MAX_OUT);
    assert_ok(g->ctx, oct_graph_eval(g, &x, out, NULL));
}

static double largest_error(const oct_tensor *a, const oct_tensor *b, double *largest)
{
    double error = 0;

    assert_true(oct_type_equal(&a->type, &b->type));
    *largest = 0;
    for (int64_t i = 0, n = oct_tensor_len(a); i < n; i++) {
        const double x = oct_tensor_get_f64(a, i), d = fabs(x - oct_tensor_get_f64(b, i));

        *largest = fmax(*largest, fabs(x));
        if (!(d <= error)) error = d; /* NaN counts */
    }
    return error;
}

static void compare(oct_tensor **a, oct_tensor **b, int32_t n, double tol, const char *file)
{
    for (int32_t i = 0; i < n; i++) {
        double largest;
        const double error = largest_error(a[i], b[i], &largest);

        printf("%s: output %d: off by %.2g of %.4g\n", file, (int)i, error, largest);
        if (!(error <= tol * largest)) fail_msg("%s: more than %g of it", file, tol);
    }
}

static void forget(oct_tensor **t, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        oct_tensor_unref(t[i]);
}

typedef struct network {
    const char *file;
    int32_t max_nodes;        /* what onnxsim leaves, its Constant nodes not counted */
    const oct_op *activation; /* that a plan sees where the file has a formula */
    int n_activations;
} network;

static void networks_keep_their_outputs_with_few_nodes(void **state)
{
    static const network networks[] = {
#ifndef __SANITIZE_ADDRESS__ /* minutes on plain kernels; the others have the same operators */
        {"models/yolov8n.onnx", 232, &oct_op_swish, 57},
#endif
        {"models/yolox_nano_416.onnx", 365, &oct_op_swish, 104},
        {"models/picodet_s_416.onnx", 632, &oct_op_hard_swish, 87},
        {"models/nanodet_m_416.onnx", 225, &oct_op_leaky_relu, 48},
        {"models/mobilenet_v1_0.25_224.onnx", 57, &oct_op_clip, 27},
    };
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(networks); i++) {
        oct_graph *g = load(f->ctx, networks[i].file);
        oct_tensor *x = make_input(f->ctx, &g->inputs[0]->type);
        oct_tensor *before[MAX_OUT], *after[MAX_OUT];
        const int32_t n_nodes = g->n_nodes;

        evaluate(g, x, before);
        assert_ok(f->ctx, oct_graph_simplify(g, NULL));
        assert_ok(f->ctx, oct_graph_verify(g));
        printf("%s: %d nodes before, %d after\n", networks[i].file, (int)n_nodes, (int)g->n_nodes);
        assert_true(g->n_nodes <= networks[i].max_nodes);
        evaluate(g, x, after);
        compare(before, after, g->n_outputs, 1e-5, networks[i].file);
        forget(after, g->n_outputs);
        assert_ok(f->ctx, oct_pipeline_run(g, "execute", NULL, NULL));
        assert_int_equal(count(g, networks[i].activation), networks[i].n_activations);
        evaluate(g, x, after);
        /* what peers may differ by: yolox_nano makes 1e-4 of a last bit in its first layer */
        compare(before, after, g->n_outputs, 2e-4, networks[i].file);
        forget(after, g->n_outputs);
        forget(before, g->n_outputs);
        oct_tensor_unref(x);
        oct_graph_free(g);
    }
}

/* Each pass alone, on a network with a bit of everything. */
static void every_pass_keeps_its_promise(void **state)
{
    fixture *f = *state;
    oct_graph *g = load(f->ctx, "yolo-nas/yolo_nas_bccd_train.onnx");
    oct_tensor *x = load_npy(f->ctx, "yolo-nas/expected_input0.npy");
    oct_tensor *before[MAX_OUT], *after[MAX_OUT];

    evaluate(g, x, before);
    for (int i = 0; oct_pass_at(i); i++) {
        const oct_pass *p = oct_pass_at(i);
        oct_graph *copy = NULL;
        int n_changed = 0, again = 0;

        assert_ok(f->ctx, oct_graph_clone(g, &copy));
        assert_ok(f->ctx, oct_pass_run(p, copy, &n_changed));
        assert_ok(f->ctx, oct_graph_verify(copy));
        printf("%s: %d changes, %d nodes\n", p->name, n_changed, (int)copy->n_nodes);
        if (n_changed) {
            evaluate(copy, x, after);
            compare(before, after, g->n_outputs, p->promise == OCT_PASS_BIT_EXACT ? 0 : 1e-5,
                    p->name);
            forget(after, g->n_outputs);
        }
        assert_ok(f->ctx, oct_pass_run(p, copy, &again));
        assert_int_equal(again, 0);
        oct_graph_free(copy);
    }
    forget(before, g->n_outputs);
    oct_tensor_unref(x);
    oct_graph_free(g);
}

static void check_detections(oct_graph *g, const char *which)
{
    static const struct {
        const char *name;
        double tol;
    } outputs[] = {{"boxes", 0.002}, {"scores", 1e-5}};
    oct_tensor *x, *out[MAX_OUT];
    char file[128];

    snprintf(file, sizeof(file), "yolo-nas/expected_input%s.npy", which);
    x = load_npy(g->ctx, file);
    evaluate(g, x, out);
    for (int i = 0; i < 2; i++) {
        oct_tensor *want;
        double error, largest;

        snprintf(file, sizeof(file), "yolo-nas/expected_%s%s.npy", outputs[i].name, which);
        want = load_npy(g->ctx, file);
        assert_string_equal(g->outputs[i]->name, outputs[i].name);
        error = largest_error(want, out[i], &largest);
        printf("%s %s: off by %.3g\n", outputs[i].name, which, error);
        assert_true(error <= outputs[i].tol);
        oct_tensor_unref(want);
    }
    forget(out, g->n_outputs);
    oct_tensor_unref(x);
}

static void yolo_nas_in_training_form_is_folded(void **state)
{
    fixture *f = *state;
    oct_graph *g = load(f->ctx, "yolo-nas/yolo_nas_bccd_train.onnx");

    assert_ok(f->ctx, oct_graph_simplify(g, NULL));
    printf("yolo_nas_bccd_train: %d nodes\n", (int)g->n_nodes);
    assert_int_equal(count(g, &oct_op_conv), 81);
    assert_int_equal(count(g, &oct_op_conv_transpose), 2);
    assert_int_equal(count(g, &oct_op_batch_normalization), 0);
    assert_int_equal(count(g, &oct_op_shape), 0);
    assert_int_equal(count(g, &oct_op_expand), 0);
    assert_int_equal(count(g, &oct_op_unsqueeze), 0);
    assert_int_equal(g->n_outputs, 7);
    check_detections(g, "0");
    check_detections(g, "1");
    oct_graph_free(g);
}

static void yolo_nas_in_folded_form_agrees(void **state)
{
    fixture *f = *state;
    oct_graph *g = load(f->ctx, "yolo-nas/yolo_nas_bccd_folded.onnx");

    assert_ok(f->ctx, oct_graph_simplify(g, NULL));
    assert_int_equal(count(g, &oct_op_conv), 81);
    assert_true(g->n_nodes <= 215);
    check_detections(g, "0");
    check_detections(g, "1");
    oct_graph_free(g);
}

/* Quantized files keep their quantized weights, and what they compute. */
static void quantized_networks_stay_small(void **state)
{
    static const char *const files[] = {"models/mobilenetv2_qdq_244.onnx",
                                        "models/yolov8n_qdq_int8.onnx"};
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(files); i++) {
        oct_graph *g = load(f->ctx, files[i]);
        const int n_before = count(g, &oct_op_dequantize_linear);

        assert_ok(f->ctx, oct_graph_simplify(g, NULL));
        assert_ok(f->ctx, oct_graph_verify(g));
        printf("%s: %d nodes\n", files[i], (int)g->n_nodes);
        assert_int_equal(count(g, &oct_op_dequantize_linear), n_before);
        oct_graph_free(g);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(yolo_nas_in_training_form_is_folded), TEST(yolo_nas_in_folded_form_agrees),
        TEST(every_pass_keeps_its_promise),        TEST(networks_keep_their_outputs_with_few_nodes),
        TEST(quantized_networks_stay_small),
    };

    if (!shared_dir("test_pass_models")) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
