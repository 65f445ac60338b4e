/* SPDX-License-Identifier: Apache-2.0 */
/* octet attach, extract and convert on the demo's detector: what they write runs and finds the
 * same. */
#include "cli/program.h"

static char detector[4096];

/* A command on the detector. */
static int with(place *p, const char *command, const char *words)
{
    char all[8192];

    snprintf(all, sizeof(all), "%s '%s' %s", command, detector, words);
    return octet(p, all);
}

static double ap_of(place *p, const char *model, const char *words)
{
    char all[8192];
    double ap;
    json_t *j;

    snprintf(all, sizeof(all), "eval '%s' --images val --annotations val.json --json --quiet %s",
             model, words);
    assert_int_equal(octet(p, all), 0);
    j = printed_json(p);
    ap = json_number_value(json_object_get(j, "ap"));
    json_decref(j);
    return ap;
}

static void attached_files_score_the_same(void **state)
{
    place *p = *state;
    double want;

    assert_int_equal(octet(p, "synth --out . --split val --count 6 --quiet"), 0);
    want = ap_of(p, detector, "");
    assert_true(want > 0.2);
    assert_int_equal(with(p, "attach", "-o batch.onnx --score 0.01 --pre-nms 2000 --json"), 0);
    must_contain(p->last.out, "num_predictions");
    must_contain(p->last.out, "uint8");
    assert_true(fabs(ap_of(p, "batch.onnx", "") - want) < 1e-6);
    assert_true(fabs(ap_of(p, "batch.onnx", "--batch 4") - want) < 1e-6);
    assert_int_equal(with(p, "attach",
                          "-o flat.onnx --score 0.01 --pre-nms 2000 --format flat "
                          "--layout nhwc"),
                     0);
    must_contain(p->last.out, "1x256x256x3");
    assert_true(fabs(ap_of(p, "flat.onnx", "") - want) < 1e-6);
    assert_int_equal(with(p, "attach", "-o trt.onnx --nms tensorrt"), 0);
    must_contain(p->last.out, "num_dets");
    assert_int_equal(octet(p, "attach flat.onnx -o twice.onnx"), 1);
    must_contain(p->last.err, "part of the network already");
    assert_int_equal(with(p, "attach", "-o x.onnx --format rows"), 2);
    must_contain(p->last.err, "neither batch nor flat");
}

static void quantize_attaches(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "synth --out . --split val --count 6 --quiet"), 0);
    assert_int_equal(with(p, "quantize",
                          "-o int8.onnx --images val --attach-preprocess auto --nms "
                          "onnx --format flat --score 0.01 --quiet"),
                     0);
    assert_int_equal(octet(p, "inspect int8.onnx"), 0);
    must_contain(p->last.out, "flat_predictions");
    must_contain(p->last.out, "uint8");
    assert_true(ap_of(p, "int8.onnx", "") > 0.2);
}

static void converts_to_half(void **state)
{
    place *p = *state;
    double want;

    assert_int_equal(octet(p, "synth --out . --split val --count 6 --quiet"), 0);
    want = ap_of(p, detector, "");
    assert_int_equal(with(p, "convert", "-o half.onnx --half --images val --limit 2"), 0);
    assert_true(fabs(ap_of(p, "half.onnx", "") - want) < 0.02);
    assert_int_equal(with(p, "convert", "-o bf16.onnx --bf16"), 0);
    assert_true(fabs(ap_of(p, "bf16.onnx", "") - want) < 0.05);
    assert_int_equal(with(p, "convert", "-o x.onnx --half --bf16"), 2);
    assert_int_equal(with(p, "convert", "-o x.onnx --half-io"), 2);
    assert_int_equal(with(p, "convert", "-o net.xml"), 0);
    assert_int_equal(octet(p, "convert net.xml -o back.onnx"), 0);
    assert_true(fabs(ap_of(p, "back.onnx", "") - want) < 1e-3);
}

static void extracts_parts(void **state)
{
    place *p = *state;

    assert_int_equal(with(p, "extract", "-o head.onnx --outputs scores --json"), 0);
    must_contain(p->last.out, "1344");
    assert_int_equal(with(p, "extract", "-o x.onnx --outputs scors"), 2);
    must_contain(p->last.err, "did you mean 'scores'?");
    assert_int_equal(with(p, "extract", "-o x.onnx"), 2);
    must_contain(p->last.err, "where to cut");
}

/* Real pictures, and a trace that has their loading, memory and shapes. */
static void profiles_pictures(void **state)
{
    place *p = *state;
    json_t *j, *e;
    size_t i, n_memory = 0, n_shapes = 0, n_loads = 0;

    assert_int_equal(octet(p, "synth --out . --split val --count 3 --quiet"), 0);
    assert_int_equal(with(p, "profile", "--images val --runs 4 --warmup 1 --trace t.json"), 0);
    j = file_json(p, "t.json");
    json_array_foreach(json_object_get(j, "traceEvents"), i, e)
    {
        const char *name = json_string_value(json_object_get(e, "name"));

        n_memory += strcmp(name, "[memory]") == 0;
        n_loads += strstr(name, "DataLoader") != NULL;
        n_shapes += json_array_size(json_object_get(json_object_get(e, "args"), "Input Dims")) > 0;
    }
    assert_int_equal(n_loads, 4);
    assert_true(n_memory > 10);
    assert_true(n_shapes > 40);
    json_decref(j);
    assert_int_equal(with(p, "profile", "--images nowhere"), 2);
}

int main(int argc, char **argv)
{
    const char *root = getenv("OCTET_SOURCE_ROOT");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(attached_files_score_the_same, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(quantize_attaches, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(converts_to_half, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(extracts_parts, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(profiles_pictures, place_setup, place_teardown),
    };

    if (argc != 2) return 2;
    (void)snprintf(detector, sizeof(detector), "%s/examples/demo/detector.onnx", root ? root : ".");
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
