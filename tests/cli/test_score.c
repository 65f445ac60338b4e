/* SPDX-License-Identifier: Apache-2.0 */
/* octet score on small files: what it prints and refuses. */
#include "cli/program.h"

static const char truth[] =
    "{\"images\": [{\"id\": 7, \"file_name\": \"a.jpg\"}, {\"id\": 5, \"file_name\": \"b.jpg\"}],\n"
    "\"categories\": [{\"id\": 1, \"name\": \"cat\"}, {\"id\": 2, \"name\": \"\\u001b[31mdog\"},\n"
    "{\"id\": 3, \"name\": \"cow\"}],\n"
    "\"annotations\": [\n"
    "{\"id\": 1, \"image_id\": 7, \"category_id\": 1, \"bbox\": [0, 0, 20, 20], \"area\": 400},\n"
    "{\"id\": 2, \"image_id\": 5, \"category_id\": 1, \"bbox\": [0, 0, 20, 20], \"area\": 400},\n"
    "{\"id\": 3, \"image_id\": 5, \"category_id\": 2, \"bbox\": [0, 0, 20, 20], \"area\": 400}]}";

static const char found[] =
    "[{\"image_id\": 7, \"category_id\": 1, \"bbox\": [0, 0, 20, 20], \"score\": 0.9},\n"
    "{\"image_id\": 5, \"category_id\": 2, \"bbox\": [0, 0, 20, 20], \"score\": 0.8}]";

#define SCORE "score --annotations truth.json --results found.json"

static int files_setup(void **state)
{
    if (place_setup(state)) return -1;
    write_file(*state, "truth.json", truth, sizeof(truth) - 1);
    write_file(*state, "found.json", found, sizeof(found) - 1);
    return 0;
}

static void assert_number(const json_t *j, const char *key, double want)
{
    const json_t *v = json_object_get(j, key);

    if (!json_is_number(v) || fabs(json_number_value(v) - want) > 1e-9)
        fail_msg("'%s' is not %g", key, want);
}

static void prints_the_agreed_keys(void **state)
{
    static const char *const nulls[] = {"ap_medium", "ap_large", "ar_medium", "ar_large"};
    const double ap = (51.0 / 101 + 1) / 2;
    place *p = *state;
    json_t *j, *classes;

    assert_int_equal(octet(p, SCORE " --json"), 0);
    j = printed_json(p);
    assert_number(j, "ap", ap);
    assert_number(j, "ap50", ap);
    assert_number(j, "ap75", ap);
    assert_number(j, "ap_small", ap);
    assert_number(j, "ar1", 0.75);
    assert_number(j, "ar10", 0.75);
    assert_number(j, "ar100", 0.75);
    assert_number(j, "ar_small", 0.75);
    assert_number(j, "voc_map50", 0.75);
    assert_number(j, "images", 2);
    for (size_t i = 0; i < OCT_COUNT(nulls); i++)
        assert_true(json_is_null(json_object_get(j, nulls[i])));
    assert_true(json_is_number(json_object_get(j, "seconds")));
    assert_true(json_number_value(json_object_get(j, "peak_rss_mb")) > 0);
    classes = json_object_get(j, "per_class");
    assert_int_equal(json_array_size(classes), 3);
    assert_number(json_array_get(classes, 0), "ap", 51.0 / 101);
    assert_number(json_array_get(classes, 1), "id", 2);
    assert_true(json_is_null(json_object_get(json_array_get(classes, 2), "ap")));
    assert_null(json_object_get(json_array_get(classes, 0), "precision"));
    json_decref(j);
}

static void curves_are_printed_on_request(void **state)
{
    place *p = *state;
    json_t *j, *curve;

    assert_int_equal(octet(p, SCORE " --json --per-class"), 0);
    j = printed_json(p);
    curve = json_object_get(json_array_get(json_object_get(j, "per_class"), 0), "precision");
    assert_int_equal(json_array_size(curve), 101);
    assert_true(json_number_value(json_array_get(curve, 50)) > 0.999);
    assert_true(json_number_value(json_array_get(curve, 51)) == 0);
    json_decref(j);
}

static void prints_a_table_for_people(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, SCORE), 0);
    must_contain(p->last.out, "AP         0.752  0.50:0.95  all");
    must_contain(p->last.out, "AP large       -");
    must_contain(p->last.out, "cat       0.505  0.505");
    must_contain(p->last.out, "2 pictures");
    assert_null(strchr(p->last.out, '\x1b')); /* of a category's name */
    assert_string_equal(p->last.err, "");
}

static void images_can_be_chosen(void **state)
{
    place *p = *state;
    json_t *j;

    assert_int_equal(octet(p, SCORE " --json --images 7 --images 7"), 0);
    j = printed_json(p);
    assert_number(j, "ap", 1);
    assert_number(j, "images", 1);
    json_decref(j);
    assert_int_equal(octet(p, SCORE " --images 5,7"), 0);
    assert_int_equal(octet(p, SCORE " --images 5,8"), 2);
    must_contain(p->last.err, "image id 8 is not in the annotations");
    assert_int_equal(octet(p, SCORE " --images 5,"), 2);
    must_contain(p->last.err, "wants ids");
}

static void says_what_is_wrong(void **state)
{
    static const char other[] = "[{\"image_id\": 6, \"category_id\": 1, \"bbox\": [0, 0, 1, 1], "
                                "\"score\": 1}]";
    place *p = *state;

    assert_int_equal(octet(p, "score --results found.json"), 2);
    must_contain(p->last.err, "option --annotations is missing");
    assert_int_equal(octet(p, "score --annotations truth.json"), 2);
    must_contain(p->last.err, "option --results is missing");
    assert_int_equal(octet(p, "score --annotations truht.json --results found.json"), 2);
    must_contain(p->last.err, "did you mean 'truth.json'");
    write_file(p, "other.json", other, sizeof(other) - 1);
    assert_int_equal(octet(p, "score --annotations truth.json --results other.json"), 1);
    must_contain(p->last.err, "other.json: result 0: image_id 6 is not in the annotations");
    assert_int_equal(octet(p, "score --annotations found.json --results found.json"), 1);
    must_contain(p->last.err, "found.json: ");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(prints_the_agreed_keys, files_setup, place_teardown),
        cmocka_unit_test_setup_teardown(curves_are_printed_on_request, files_setup, place_teardown),
        cmocka_unit_test_setup_teardown(prints_a_table_for_people, files_setup, place_teardown),
        cmocka_unit_test_setup_teardown(images_can_be_chosen, files_setup, place_teardown),
        cmocka_unit_test_setup_teardown(says_what_is_wrong, files_setup, place_teardown),
    };

    if (argc != 2) return 2;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
