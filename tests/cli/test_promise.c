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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(compares_without_labels, files_setup, place_teardown),
    };

    if (argc > 1) place_set_program(argv[1]);
    return run_test_group(tests);
}
