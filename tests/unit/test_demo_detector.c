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
    if (!(ap > 0.70 && ap < 0.85)) fail_msg("AP is %.4f", ap);
    oct_graph_free(g);
}

/* Pictures to calibrate on, drawn from another seed than those that are scored. */
static oct_dataset *draw_calibration(const files *t)
{
    oct_dataset *d = NULL;
    oct_synth_options o;
    char path[512];

    oct_synth_options_init(&o);
    o.count = PICTURES;
    o.seed = 11;
    assert_ok(t->ctx, oct_synth_write(t->ctx, put_folder(t, "other"), &o, NULL));
    snprintf(path, sizeof(path), "%s/other/val", t->folder);
    assert_ok(t->ctx, open_dataset(t->ctx, path, NULL, false, &d));
    return d;
}

static double int8_precision(const files *t, const oct_graph *g, const oct_dataset *d,
                             const char *correction, const oct_quant_override *coarse)
{
    oct_quantize_options o;
    oct_quantized *q = NULL;
    double ap;

    oct_quantize_options_init(&o);
    o.bias_correction = correction;
    o.overrides = coarse;
    o.n_overrides = coarse != NULL;
    assert_ok(t->ctx, oct_quantize(g, d, &o, &q));
    ap = average_precision(t, oct_quantized_graph(q));
    oct_quantized_free(q);
    return ap;
}

/* INT8 finds as much; and with 4 bits, where weights are off, correcting biases helps. */
static void finds_as_much_in_integers(void **state)
{
    const files *t = *state;
    const oct_quant_override coarse = {.pattern = ".*", .weight_bits = 4};
    const char *root = getenv("OCTET_SOURCE_ROOT");
    double ap, usual, none, fast;
    oct_graph *g = NULL;
    oct_synth_options o;
    oct_dataset *d;
    char path[512];

    oct_synth_options_init(&o);
    o.count = PICTURES;
    o.seed = 4;
    assert_ok(t->ctx, oct_synth_write(t->ctx, t->folder, &o, NULL));
    snprintf(path, sizeof(path), "%s/examples/demo/detector.onnx", root ? root : ".");
    assert_ok(t->ctx, oct_onnx_load(t->ctx, path, &g));
    d = draw_calibration(t);
    ap = average_precision(t, g);
    usual = int8_precision(t, g, d, NULL, NULL);
    none = int8_precision(t, g, d, "none", &coarse);
    fast = int8_precision(t, g, d, "fast", &coarse);
    print_message("AP %.4f, INT8 %.4f; 4 bits %.4f, corrected %.4f\n", ap, usual, none, fast);
    if (!(fabs(usual - ap) < 0.015)) fail_msg("AP is %.4f, INT8 %.4f", ap, usual);
    if (!(fast > none)) fail_msg("4 bits: AP is %.4f, with corrected biases %.4f", none, fast);
    oct_dataset_close(d);
    oct_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_what_is_drawn, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(finds_as_much_in_integers, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
