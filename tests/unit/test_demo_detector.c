/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's detector finds what octet draws, with nothing said about how to feed or read it. */
#include "tests/unit/data_files.h"

enum { PICTURES = 40 };

static double average_precision(const files *t, const oct_graph *g)
{
    oct_eval_result r = {.struct_size = sizeof(r)};
    oct_eval_options o;
    oct_dataset *d = NULL;

    oct_eval_options_init(&o);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "val"), below(t, "val.json"), false, &d));
    assert_ok(t->ctx, oct_eval_run(g, d, &o, &r, NULL));
    assert_int_equal(r.images, PICTURES);
    oct_dataset_close(d);
    return r.box.ap;
}

static void finds_what_is_drawn(void **state)
{
    const files *t = *state;
    const char *root = getenv("OCTET_SOURCE_ROOT");
    oct_graph *g = NULL;
    oct_detector *detector = NULL;
    oct_synth_options o;
    char path[512];
    double ap;

    oct_synth_options_init(&o);
    o.count = PICTURES;
    o.seed = 4;
    assert_ok(t->ctx, oct_synth_write(t->ctx, t->folder, &o, NULL));
    snprintf(path, sizeof(path), "%s/examples/demo/detector.onnx", root ? root : ".");
    assert_ok(t->ctx, oct_onnx_load(t->ctx, path, &g));
    assert_ok(t->ctx, oct_detector_new(g, NULL, &detector));
    assert_string_equal(oct_detector_family(detector), "yolo-nas");
    assert_int_equal(oct_detector_n_classes(detector), OCT_SYNTH_CLASSES);
    oct_detector_free(detector);
    ap = average_precision(t, g);
    if (!(ap > 0.78 && ap < 0.9)) fail_msg("AP is %.4f", ap);
    oct_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_what_is_drawn, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
