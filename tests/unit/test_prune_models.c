/* SPDX-License-Identifier: Apache-2.0 */
/* Real networks pruned by 10, 30 and 50 %: what is left computes what the masked network does. */
#include "prune_case.h"

static const char *shared;

/* `least`: of the MACs of a float network at least so much goes with half of its channels. */
static void check(void **state, const char *name, double least)
{
    static const double levels[] = {.1, .3, .5};
    fixture *f = *state;
    oct_prune_options o;
    oct_graph *g = NULL;
    char path[512];
    double gone = 0;

    snprintf(path, sizeof(path), "%s/data/%s", shared, name);
    assert_ok(f->ctx, oct_onnx_load(f->ctx, path, &g));
    for (size_t i = 0; i < OCT_COUNT(levels); i++) {
        oct_prune_options_init(&o);
        o.channels = levels[i];
        o.multiple = 1;
        gone = prune_both(f, g, &o, name);
        print_message("%s: %.0f %% of the channels, %.1f %% of the MACs\n", name, 100 * levels[i],
                      100 * gone);
    }
    oct_graph_free(g);
    if (gone < least) fail_msg("%s: %.3f of the MACs went, want %.3f", name, gone, least);
}

static void mobilenet_v1(void **state)
{
    check(state, "models/mobilenet_v1_0.25_224.onnx", .6);
}

static void nanodet(void **state)
{
    check(state, "models/nanodet_m_416.onnx", .5);
}

static void picodet(void **state)
{
    check(state, "models/picodet_s_416.onnx", .5);
}

static void yolov8n(void **state)
{
    check(state, "models/yolov8n.onnx", .5);
}

static void yolox(void **state)
{
    check(state, "models/yolox_nano_416.onnx", .5);
}

static void yolo_nas(void **state)
{
    check(state, "yolo-nas/yolo_nas_bccd_train.onnx", .5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mobilenet_v1, setup, teardown),
        cmocka_unit_test_setup_teardown(nanodet, setup, teardown),
        cmocka_unit_test_setup_teardown(picodet, setup, teardown),
        cmocka_unit_test_setup_teardown(yolo_nas, setup, teardown),
        cmocka_unit_test_setup_teardown(yolov8n, setup, teardown),
        cmocka_unit_test_setup_teardown(yolox, setup, teardown),
    };

    if (!(shared = shared_dir("test_prune_models"))) return 77;
    return run_test_group(tests);
}
