/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accuracy of real networks, recognised without help. The first argument "all" takes every
 * picture; without it a part of them, against what octet itself had on that part when all agreed.
 * Figures on all pictures come from ../shared/README.md, except mobilenet's: that file says about
 * .51, while ONNX Runtime with the preprocessing it describes has .470 on these pictures, as octet.
 */
#include "test.h"

typedef struct row {
    const char *model, *family, *images, *annotations;
    bool is_classifier;
    double want, tolerance; /* AP or top-1 on all pictures */
    double want50;          /* AP50; 0: not asked */
    int32_t part;           /* pictures of the quick check; 0: all */
    double want_part;
} row;

#define COCO    "coco/val", "coco/instances_val320.json"
#define BCCD    "bccd/images", "yolo-nas/bccd_val.json"
#define CLASSES "imagenet/val", "imagenet/labels.txt"

// clang-format off
static const row rows[] = {
    {"models/yolov8n", "yolov8", COCO, false, .423, .004, 0, 40, .4532},
    {"models/yolox_nano_416", "yolox", COCO, false, .307, .004, 0, 40, .3527},
    {"models/picodet_s_416", "picodet", COCO, false, .348, .004, 0, 40, .3723},
    {"models/nanodet_m_416", "nanodet", COCO, false, .239, .004, 0, 40, .2752},
    {"yolo-nas/yolo_nas_bccd_train", "yolo-nas", BCCD, false, .633, .003, .919, 0, 0},
    {"yolo-nas/yolo_nas_bccd_folded", "yolo-nas", BCCD, false, .633, .003, .919, 0, 0},
    {"models/mobilenet_v1_0.25_224", "classifier", CLASSES, true, .470, .005, 0, 100, .530},
};
// clang-format on

static const char *shared;
static bool all_pictures;

static oct_status evaluate(fixture *f, const row *r, const oct_dataset *d, oct_eval_result *out)
{
    oct_detector *detector = NULL;
    oct_eval_options o;
    oct_graph *g = NULL;
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/data/%s.onnx", shared, r->model);
    assert_ok(f->ctx, oct_onnx_load(f->ctx, path, &g));
    assert_ok(f->ctx, oct_detector_new(g, "auto", &detector));
    assert_string_equal(oct_detector_family(detector), r->family);
    oct_detector_free(detector);
    oct_eval_options_init(&o);
    assert_ok(f->ctx, oct_eval_run(g, d, &o, out, NULL));
    oct_graph_free(g);
    return OCT_OK;
}

static void check_row(fixture *f, const row *r)
{
    const bool part = r->part && !all_pictures;
    oct_eval_result out = {.struct_size = sizeof(out)};
    oct_dataset_options o;
    oct_dataset *d = NULL;
    char images[4096], annotations[4096];
    double got, want = part ? r->want_part : r->want;

    (void)snprintf(images, sizeof(images), "%s/data/%s", shared, r->images);
    (void)snprintf(annotations, sizeof(annotations), "%s/data/%s", shared, r->annotations);
    oct_dataset_options_init(&o);
    o.images = images;
    o.annotations = annotations;
    o.limit = part ? r->part : 0;
    assert_ok(f->ctx, oct_dataset_open(f->ctx, &o, &d));
    assert_ok(f->ctx, evaluate(f, r, d, &out));
    got = r->is_classifier ? out.top1 : out.box.ap;
    print_message("%-32s %-10s %lld pictures: %.4f, want %.4f\n", r->model, r->family,
                  (long long)out.images, got, want);
    if (fabs(got - want) > r->tolerance) fail_msg("%s: %.4f, want %.4f", r->model, got, want);
    if (r->want50 > 0 && fabs(out.box.ap50 - r->want50) > r->tolerance)
        fail_msg("%s: AP50 %.4f, want %.4f", r->model, out.box.ap50, r->want50);
    oct_dataset_close(d);
}

static void accuracy_is_what_it_should_be(void **state)
{
    for (size_t i = 0; i < OCT_COUNT(rows); i++)
        check_row(*state, &rows[i]);
}

/* Networks that other tools quantized are read in the same way. */
static void quantized_networks_are_recognised(void **state)
{
    static const char *const names[] = {"yolov8n_qdq_int8", "yolov8n_qdq_allops_broken",
                                        "yolov8n_dynint8"};
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        oct_detector *d = NULL;
        oct_graph *g = NULL;
        char path[4096];

        (void)snprintf(path, sizeof(path), "%s/data/models/%s.onnx", shared, names[i]);
        assert_ok(f->ctx, oct_onnx_load(f->ctx, path, &g));
        assert_ok(f->ctx, oct_detector_new(g, "auto", &d));
        assert_string_equal(oct_detector_family(d), "yolov8");
        assert_int_equal(oct_detector_n_classes(d), 80);
        oct_detector_free(d);
        oct_graph_free(g);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(accuracy_is_what_it_should_be, setup, teardown),
        cmocka_unit_test_setup_teardown(quantized_networks_are_recognised, setup, teardown),
    };

    all_pictures = argc > 1 && strcmp(argv[1], "all") == 0;
    if (!(shared = shared_dir("test_eval_accuracy"))) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
