/* SPDX-License-Identifier: Apache-2.0 */
/* Real detectors train in less memory with the same bytes. */
#include "tests/unit/train_memory.h"

static const char *shared;

static void check(void **state, const char *name, const char *loss, int32_t side, double least)
{
    fixture *f = *state;
    const oct_train_net_options o = {
        .batch = 2, .width = side, .height = side, .max_boxes = 8, .loss = oct_loss_find(loss)};
    char path[1200];
    oct_graph *g = NULL;

    (void)snprintf(path, sizeof(path), "%s/data/%s", shared, name);
    assert_ok(f->ctx, oct_onnx_load(f->ctx, path, &g));
    assert_bounded(f->ctx, g, o, least);
    oct_graph_free(g);
}

static void yolo_nas(void **state)
{
    check(state, "yolo-nas/yolo_nas_bccd_train.onnx", "yolo_nas", 320, .75);
}

static void yolov8(void **state)
{
    check(state, "models/yolov8n.onnx", "yolov8", 640, .75);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(yolo_nas, setup, teardown),
        cmocka_unit_test_setup_teardown(yolov8, setup, teardown),
    };

    shared = shared_dir("test_train_memory_shared");
    if (!shared) return 77;
    return run_test_group(tests);
}
