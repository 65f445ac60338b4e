/* SPDX-License-Identifier: Apache-2.0 */
/* torch.export archives of real networks against what PyTorch computed, and their ONNX twins. */
#include "data/npz.h"
#include "tests/test.h"

static const char *shared;

static const char *path_of(char path[4096], const char *folder, const char *name, const char *end)
{
    (void)snprintf(path, 4096, "%s/data/%s/%s%s", shared, folder, name, end);
    return path;
}

static oct_graph *load(fixture *f, const char *folder, const char *name, const char *end)
{
    oct_graph *g = NULL;
    char path[4096];

    assert_ok(f->ctx, oct_model_load(f->ctx, path_of(path, folder, name, end), &g));
    return g;
}

/* The outputs of one run; the caller owns them. */
static void run_plan(fixture *f, const oct_graph *g, oct_tensor *x, oct_tensor **out, int32_t n)
{
    oct_plan *plan = NULL;
    oct_run *run = NULL;

    assert_ok(f->ctx, oct_plan_new(g, NULL, &plan));
    assert_ok(f->ctx, oct_run_new(f->ctx, plan, &run));
    assert_ok(f->ctx, oct_run_set_input(run, "x", x));
    assert_ok(f->ctx, oct_run_execute(run));
    for (int32_t i = 0; i < n; i++) {
        const oct_tensor *t = NULL;

        assert_ok(f->ctx, oct_run_output(run, i, &t));
        assert_ok(f->ctx, oct_tensor_copy(f->ctx, t, &out[i]));
    }
    oct_run_free(run);
    oct_plan_free(plan);
}

static void assert_near(const oct_tensor *got, const oct_tensor *want, double tolerance,
                        const char *name)
{
    double worst = 0;

    if (!oct_type_equal(&got->type, &want->type)) fail_msg("%s: another shape", name);
    for (int64_t i = 0; i < oct_type_len(&want->type); i++)
        worst = fmax(worst, fabs(oct_tensor_get_f64(got, i) - oct_tensor_get_f64(want, i)));
    print_message("%s: differs by %.2g\n", name, worst);
    if (!(worst <= tolerance)) fail_msg("%s: differs by %.3g", name, worst);
}

static void classifiers_answer_as_in_pytorch(void **state)
{
    static const char *const names[] = {"resnet_tiny", "mobilenet_v3_small_035", "squeezenet1_1"};
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        oct_graph *g = load(f, "pt2", names[i], ".pt2");
        oct_tensor *x = NULL, *want = NULL, *got = NULL;
        oct_npz *z = NULL;
        char path[4096];

        assert_ok(f->ctx, oct_npz_open(f->ctx, path_of(path, "pt2", names[i], ".npz"), &z));
        assert_int_equal(oct_npz_count(z), 2);
        assert_ok(f->ctx, oct_npz_read(z, 0, &x));
        assert_ok(f->ctx, oct_npz_read(z, 1, &want));
        run_plan(f, g, x, &got, 1);
        assert_near(got, want, 1e-5, names[i]);
        oct_tensor_unref(got);
        oct_tensor_unref(want);
        oct_tensor_unref(x);
        oct_npz_close(z);
        oct_graph_free(g);
    }
}

static oct_tensor *read_npy(fixture *f, const char *name)
{
    oct_tensor *t = NULL;
    char path[4096];

    assert_ok(f->ctx, oct_tensor_load_npy(f->ctx, path_of(path, "yolo-nas", name, ".npy"), &t));
    return t;
}

/* Both forms of the detector: boxes in pixels, scores below one. */
static void detectors_answer_as_in_pytorch(void **state)
{
    static const char *const names[] = {"yolo_nas_bccd", "yolo_nas_bccd_train"};
    fixture *f = *state;
    oct_tensor *x = read_npy(f, "expected_input0"), *boxes = read_npy(f, "expected_boxes0");
    oct_tensor *scores = read_npy(f, "expected_scores0");

    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        oct_graph *g = load(f, "pt2", names[i], ".pt2");
        oct_detector *d = NULL;
        oct_tensor *got[2];

        run_plan(f, g, x, got, 2);
        assert_near(got[0], boxes, 2e-3, names[i]);
        assert_near(got[1], scores, 1e-5, names[i]);
        assert_ok(f->ctx, oct_detector_new(g, "auto", &d));
        assert_string_equal(oct_detector_family(d), "yolo-nas");
        oct_detector_free(d);
        oct_tensor_unref(got[0]);
        oct_tensor_unref(got[1]);
        oct_graph_free(g);
    }
    oct_tensor_unref(x);
    oct_tensor_unref(boxes);
    oct_tensor_unref(scores);
}

static void layers_are_called_as_their_modules(void **state)
{
    fixture *f = *state;
    oct_graph *g = load(f, "pt2", "squeezenet1_1", ".pt2");
    const oct_node *n = oct_graph_find_node(g, "/features/3/squeeze/Conv");

    assert_non_null(n);
    assert_string_equal(n->doc, "torch.nn: SqueezeNet > Sequential > Fire > Conv2d");
    assert_string_equal(n->in[1]->name, "features.3.squeeze.weight");
    oct_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(classifiers_answer_as_in_pytorch, setup, teardown),
        cmocka_unit_test_setup_teardown(detectors_answer_as_in_pytorch, setup, teardown),
        cmocka_unit_test_setup_teardown(layers_are_called_as_their_modules, setup, teardown),
    };

    if (!(shared = shared_dir("test_torch_models"))) return 77;
    return run_test_group(tests);
}
