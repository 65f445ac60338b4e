/* SPDX-License-Identifier: Apache-2.0 */
/* Every command on the real networks, where they are there. */
#include "cli/program.h"

/* Runs a command whose result must be JSON. */
static void run_json(place *p, const char *words)
{
    if (octet(p, words)) fail_msg("octet %s: %s", words, p->last.err);
    json_decref(printed_json(p));
}

static void try_model(place *p, const char *path)
{
    /* The only one with open dimensions that must not be 1. */
    const char *shape = strstr(path, "nms-yolov8") ? "--input-shape detection:1x84x100" : "";
    char words[8192];

    snprintf(words, sizeof(words), "inspect '%s' --json", path);
    run_json(p, words);
    snprintf(words, sizeof(words), "inspect '%s' --quiet --graph net.dot", path);
    assert_int_equal(octet(p, words), 0);
    snprintf(words, sizeof(words), "simplify '%s' small.onnx --json", path);
    run_json(p, words);
    run_json(p, "inspect small.onnx --json");
    snprintf(words, sizeof(words), "bench '%s' %s --runs 1 --warmup 0 --json", path, shape);
    run_json(p, words);
    snprintf(words, sizeof(words), "profile '%s' %s --runs 1 --warmup 0 --json --trace t.json",
             path, shape);
    run_json(p, words);
    json_decref(file_json(p, "t.json"));
}

static void commands_work_on_real_networks(void **state)
{
    static const char *const files[] = {
        "models/mobilenet_v1_0.25_224.onnx",
        "models/mobilenetv2_qdq_244.onnx",
        "models/mobilenetv2_qoperator.onnx",
        "models/nanodet_m_416.onnx",
        "models/nms-yolov8.onnx",
        "models/picodet_s_416.onnx",
        "models/yolov8n.onnx",
        "models/yolov8n_dynint8.onnx",
        "models/yolov8n_qdq_int8.onnx",
        "models/yolov8n_qdq_allops_broken.onnx",
        "models/yolox_nano_416.onnx",
        "yolo-nas/yolo_nas_bccd_folded.onnx",
        "yolo-nas/yolo_nas_bccd_train.onnx",
        "pt2/mobilenet_v3_small_035.onnx",
        "pt2/resnet_tiny.onnx",
        "pt2/squeezenet1_1.onnx",
    };
    char path[4096];

    for (size_t i = 0; i < OCT_COUNT(files); i++) {
        snprintf(path, sizeof(path), "%s/data/%s", getenv("OCTET_SHARED"), files[i]);
        try_model(*state, path);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(commands_work_on_real_networks, place_setup,
                                        place_teardown),
    };

    if (argc != 2) return 2;
    if (!shared_dir("cli_real")) return 77;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
