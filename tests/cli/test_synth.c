/* SPDX-License-Identifier: Apache-2.0 */
/* octet synth: what it writes, prints and refuses. */
#include "cli/program.h"

static void writes_pictures_labels_and_names(void **state)
{
    place *p = *state;
    json_t *j, *labels;

    assert_int_equal(octet(p, "synth --out shapes --count 3 --size 64 --seed 5 --json"), 0);
    j = printed_json(p);
    assert_string_equal(json_string_value(json_object_get(j, "folder")), "shapes/val");
    assert_string_equal(json_string_value(json_object_get(j, "annotations")), "shapes/val.json");
    assert_string_equal(json_string_value(json_object_get(j, "names")), "shapes/names.txt");
    assert_int_equal(json_integer_value(json_object_get(j, "images")), 3);
    assert_int_equal(json_integer_value(json_object_get(j, "seed")), 5);
    labels = file_json(p, "shapes/val.json");
    assert_int_equal(json_array_size(json_object_get(labels, "images")), 3);
    assert_int_equal(json_array_size(json_object_get(labels, "categories")), 8);
    assert_int_equal(json_array_size(json_object_get(labels, "annotations")),
                     json_integer_value(json_object_get(j, "objects")));
    assert_true(exists(p, "shapes/val/000002.jpg"));
    assert_false(exists(p, "shapes/val/000003.jpg"));
    assert_true(exists(p, "shapes/names.txt"));
    json_decref(labels);
    json_decref(j);
}

static void says_where_things_are(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "synth --out d --count 1 --size 64 --split train"), 0);
    must_contain(p->last.err, "d/train");
    must_contain(p->last.err, "d/train.json");
    assert_int_equal(octet(p, "synth --out d --count 1 --size 64 --quiet"), 0);
    assert_string_equal(p->last.err, "");
}

static void wrong_words_are_explained(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "synth"), 2);
    must_contain(p->last.err, "--out");
    assert_int_equal(octet(p, "synth --out d --size 63"), 2);
    must_contain(p->last.err, "64");
    assert_int_equal(octet(p, "synth --out d --size 4096"), 2);
    must_contain(p->last.err, "2048");
    assert_int_equal(octet(p, "synth --out d --split a/b"), 2);
    must_contain(p->last.err, "a/b");
    assert_int_equal(octet(p, "synth --out no/such/place"), 1);
    must_contain(p->last.err, "no/such/place");
    assert_int_equal(octet(p, "synth --help"), 0);
    must_contain(p->last.out, "--split");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_pictures_labels_and_names, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(says_where_things_are, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(wrong_words_are_explained, place_setup, place_teardown),
    };

    if (argc < 2) return 2;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
