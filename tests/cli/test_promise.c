/* SPDX-License-Identifier: Apache-2.0 */
/* Quality under control: eval --against, quantize with a promise, verify. */
#include "cli/quantize_net.h"

static void compares_without_labels(void **state)
{
    place *p = *state;
    json_t *j;

    assert_int_equal(octet(p, "quantize net.onnx -o int8.onnx --images img --quiet"), 0);
    assert_int_equal(octet(p, "eval int8.onnx --against net.onnx --images img"), 0);
    must_contain(p->last.out, "top-1 1.0000   of 4 pictures have the same best class");
    must_contain(p->last.out, "output");
    assert_int_equal(octet(p, "eval int8.onnx --against net.onnx --images img --json --limit 3"),
                     0);
    j = printed_json(p);
    assert_string_equal(json_string_value(json_object_get(j, "kind")), "classes");
    assert_true(number(j, "images") == 3 && number(j, "repeat") == 1);
    assert_true(number(j, "noise") > 0 && number(j, "noise") < .1);
    assert_int_equal(json_array_size(json_object_get(j, "outputs")), 1);
    json_decref(j);
    assert_int_equal(octet(p, "eval net.onnx --against net.onnx --images img --json"), 0);
    j = printed_json(p);
    assert_true(number(j, "noise") == 0);
    json_decref(j);
    must_refuse(p, "eval int8.onnx --against net.onnx", 2, "--images");
    must_refuse(p, "eval int8.onnx --against net.onnx --images img --annotations classes.txt", 2,
                "not both");
}

/* The made-up network loses nothing; what noise is left can be promised away only in part. */
static void keeps_a_promise(void **state)
{
    place *p = *state;
    const json_t *promise;
    double noise, limit;
    char words[256];
    json_t *j;

    assert_int_equal(octet(p, QUANTIZE "--max-drop 0.01 --annotations classes.txt --json"), 0);
    j = printed_json(p);
    promise = json_object_get(j, "promise");
    assert_true(number(promise, "float") == 1 && number(promise, "score") == 1);
    assert_true(number(promise, "restored") == 0 && number(promise, "scores") == 1);
    assert_true(number(j, "top1_before") == 1 && number(j, "top1_after") == 1);
    json_decref(j);
    assert_int_equal(octet(p, "inspect out.onnx"), 0);
    must_contain(p->last.out, "promise: top-1 drops by at most 0.01: 1.0000 float, 1 INT8, 0 "
                              "layers float for it");

    assert_int_equal(octet(p, "eval out.onnx --against net.onnx --images img --json"), 0);
    j = printed_json(p);
    noise = number(j, "noise");
    json_decref(j);
    limit = noise * .99;
    (void)snprintf(words, sizeof(words), QUANTIZE "--force --max-noise %.9g --json", limit);
    assert_int_equal(octet(p, words), 0);
    must_contain(p->last.err, "as it is: noise");
    must_contain(p->last.err, "float /");
    j = printed_json(p);
    promise = json_object_get(j, "promise");
    assert_true(number(promise, "first") > limit && number(promise, "score") <= limit);
    assert_true(number(promise, "restored") >= 1);
    assert_int_equal(json_array_size(json_object_get(promise, "layers")),
                     (size_t)number(promise, "restored"));
    assert_true(number(j, "layers_quantized") < number(j, "layers_total"));
    json_decref(j);
    assert_int_equal(octet(p, "inspect out.onnx --json"), 0);
    j = printed_json(p);
    promise = json_object_get(json_object_get(j, "quantization"), "promise");
    assert_string_equal(json_string_value(json_object_get(promise, "measure")), "noise");
    assert_true(json_is_true(json_object_get(promise, "held")));
    json_decref(j);
}

static void verifies_it(void **state)
{
    place *p = *state;
    json_t *j;

    assert_int_equal(
        octet(p, QUANTIZE "--max-drop 0.01 --annotations classes.txt --drop-type relative --quiet"),
        0);
    assert_int_equal(octet(p, "verify out.onnx --images img --annotations classes.txt"), 0);
    must_contain(p->last.out, "promised  top-1 drops by at most 1 %");
    must_contain(p->last.out,
                 "measured  top-1 1.0000 on 4 pictures; 0.9900 or more keeps it: kept");
    assert_int_equal(
        octet(p,
              "verify out.onnx --images img --annotations classes.txt --against net.onnx --json"),
        0);
    j = printed_json(p);
    assert_true(json_is_true(json_object_get(j, "holds")) && number(j, "float") == 1);
    json_decref(j);
    /* Labels that the float network would not reach either. */
    write_file(p, "wrong.txt", "0.png 1\n1.png 1\n2.png 2\n3.png 0\n", 32);
    assert_int_equal(octet(p, "verify out.onnx --images img --annotations wrong.txt"), 1);
    must_contain(p->last.out, "broken");
    must_contain(p->last.err, "the promise does not hold: top-1 0.7500, needed 0.9900");
    assert_int_equal(
        octet(p, "verify out.onnx --images img --annotations wrong.txt --against net.onnx"), 0);

    assert_int_equal(octet(p, QUANTIZE "--min-repeat 0.9 --quiet --force"), 0);
    assert_int_equal(octet(p, "verify out.onnx --images img --against net.onnx"), 0);
    must_contain(p->last.out, "repeat at least 0.9");
    must_refuse(p, "verify out.onnx --images img", 2, "--against is missing");
    must_refuse(p, "verify out.onnx --against net.onnx", 2, "--images");
    must_refuse(p, "verify net.onnx --images img", 2, "promises nothing");
}

static void says_what_cannot_be_kept(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, QUANTIZE "--max-noise 1e-12 --quiet"), 1);
    must_contain(p->last.err, "the promise cannot be kept");
    assert_true(exists(p, "out.onnx"));
    assert_int_equal(octet(p, "inspect out.onnx"), 0);
    must_contain(p->last.out, "NOT KEPT");
    must_refuse(p, "quantize net.onnx -o o.onnx --images img --max-drop .01", 2,
                "option --max-drop needs labels");
    must_refuse(p, "quantize net.onnx -o o.onnx --images img --max-noise .01 --min-repeat .9", 2,
                "one of --max-drop");
    must_refuse(p, "quantize net.onnx -o o.onnx --images img --drop-type relative", 2,
                "needs --max-drop");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(compares_without_labels, files_setup, place_teardown),
        cmocka_unit_test_setup_teardown(keeps_a_promise, files_setup, place_teardown),
        cmocka_unit_test_setup_teardown(verifies_it, files_setup, place_teardown),
        cmocka_unit_test_setup_teardown(says_what_cannot_be_kept, files_setup, place_teardown),
    };

    if (argc > 1) place_set_program(argv[1]);
    return run_test_group(tests);
}
