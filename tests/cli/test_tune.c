/* SPDX-License-Identifier: Apache-2.0 */
/* octet tune: the result is no worse than the default, repeats, and survives a kill. */
#include <signal.h>

#include "cli/train_place.h"

/* The demo's detector. */
static char detector[1024];

#define TUNE "tune net.onnx --images img --annotations classes.txt --trials 9 "

static const json_t *trial_at(const json_t *j, size_t i)
{
    return json_array_get(json_object_get(j, "trials"), i);
}

static const char *text_of(const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));

    return text ? text : "";
}

static bool is_true(const json_t *j, const char *key)
{
    return json_is_true(json_object_get(j, key));
}

static int shell(const place *p, const char *command)
{
    char words[16384];

    assert_true(snprintf(words, sizeof(words), "cd %s && %s", p->dir, command) <
                (int)sizeof(words));
    return system(words);
}

/* On a real detector: better than the default or it, and the recipe makes the same bytes. */
static void the_best_repeats(void **state)
{
    place *p = *state;
    double best = -1, of_default = -1;
    char words[2048];
    json_t *j;

    (void)snprintf(words, sizeof(words),
                   "tune %s -o best.onnx " DATA "--trials 4 --report page --json", detector);
    assert_int_equal(octet(p, words), 0);
    j = printed_json(p);
    assert_string_equal(text_of(j, "score"), "AP");
    for (size_t i = 0; trial_at(j, i); i++) {
        const json_t *t = trial_at(j, i);

        assert_true(is_true(t, "done"));
        assert_true(number(t, "ms") > 0 && number(t, "bytes") > 1e5);
        if (is_true(t, "best")) best = number(t, "score");
        if (number(t, "round") == 2 && !is_true(t, "float") && !*text_of(t, "settings"))
            of_default = number(t, "score");
    }
    assert_true(of_default > .3 && best >= of_default);
    json_decref(j);
    assert_int_equal(octet(p, "quantize --recipe best.tune.yaml -o again.onnx --quiet"), 0);
    assert_int_equal(shell(p, "cmp best.onnx again.onnx"), 0);
    assert_int_equal(shell(p, "grep -q '\"tuning\":' page/index.html"), 0);
}

/* The trials of two searches are the same, except for times. */
static void assert_same_trials(const json_t *a, const json_t *b)
{
    size_t n = 0;

    assert_true(number(a, "best") == number(b, "best"));
    for (; trial_at(a, n); n++) {
        const json_t *x = trial_at(a, n), *y = trial_at(b, n);

        assert_non_null(y);
        assert_string_equal(text_of(x, "settings"), text_of(y, "settings"));
        assert_true(number(x, "round") == number(y, "round"));
        assert_true(number(x, "score") == number(y, "score"));
        assert_true(number(x, "bytes") == number(y, "bytes"));
    }
    assert_null(trial_at(b, n));
    assert_true(n > 12);
}

/* Killed at any time, and gone on with: the same trials and the same best. */
static void a_kill_changes_nothing(void **state)
{
    place *p = *state;
    json_t *whole, *parts;

    assert_int_equal(octet(p, TUNE "--database whole.db --save-recipe a.yaml --json"), 0);
    whole = printed_json(p);
    for (int i = 0; i < 6; i++)
        (void)octet_interrupted(p, TUNE "--database parts.db --save-recipe b.yaml --quiet",
                                60 + 90 * i, i == 3 ? SIGINT : SIGKILL);
    assert_int_equal(octet(p, TUNE "--database parts.db --save-recipe b.yaml --json --force"), 0);
    parts = printed_json(p);
    assert_same_trials(whole, parts);
    json_decref(parts);
    /* A search that is over only shows its result. */
    assert_int_equal(octet(p, TUNE "--database whole.db --save-recipe a.yaml --json"), 0);
    parts = printed_json(p);
    assert_same_trials(whole, parts);
    for (size_t i = 0; trial_at(whole, i); i++)
        assert_true(number(trial_at(whole, i), "ms") == number(trial_at(parts, i), "ms"));
    json_decref(parts);
    json_decref(whole);
}

/* Several processes share the work, and come to what one comes to. */
static void processes_share_a_file(void **state)
{
    place *p = *state;
    json_t *alone, *together;
    char command[2 * sizeof(p->program) + 1024];

    assert_int_equal(octet(p, TUNE "--database a.db --save-recipe a.yaml --json"), 0);
    alone = printed_json(p);
    (void)snprintf(command, sizeof(command),
                   "{ %s " TUNE "--database b.db --save-recipe 1.yaml --quiet >1.txt & "
                   "%s " TUNE "--database b.db --save-recipe 2.yaml --quiet >2.txt & "
                   "wait; }",
                   p->program, p->program);
    assert_int_equal(shell(p, command), 0);
    assert_true(exists(p, "1.yaml") && exists(p, "2.yaml"));
    assert_int_equal(octet(p, TUNE "--database b.db --save-recipe 3.yaml --json"), 0);
    together = printed_json(p);
    assert_same_trials(alone, together);
    json_decref(alone);
    json_decref(together);
}

static void without_labels_float_is_the_measure(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "tune net.onnx -o out.onnx --images img --trials 3 --ranges mse"), 0);
    must_contain(p->last.out, "same top 1 ");
    must_contain(p->last.err, "the default");
    assert_null(strstr(p->last.err, "ranges.activations"));
    assert_true(exists(p, "out.onnx") && exists(p, "out.tune.yaml") && exists(p, "out.tune.db"));
}

static void mistakes_are_explained(void **state)
{
    place *p = *state;

    must_refuse(p, "tune net.onnx", 2, "pictures to tune on");
    must_refuse(p, TUNE "--time soon", 2, "'soon' is no time");
    must_refuse(p, TUNE "--targets octet,moon", 2, "no target 'moon'");
    must_refuse(p, "tune net.onnx --images - --trials 2", 2, "more than once");
    write_file(p, "letter.txt", "Dear database, this is not one.", 31);
    must_refuse(p, TUNE "--database letter.txt", 2, "letter.txt");
    must_refuse(p, TUNE "--database letter.txt --force --quiet", 1, "not a database");
    assert_int_equal(octet(p, "tune net.onnx --images img --trials 2 --quiet"), 0);
    must_refuse(p, "tune net.onnx --images img --trials 3 --quiet", 2, "another search");
    assert_int_equal(octet(p, TUNE "--database l.db --save-recipe l.yaml --quiet"), 0);
    write_file(p, "classes.txt", "0.png 1\n1.png 0\n2.png 2\n3.png 0\n", 32);
    must_refuse(p, TUNE "--database l.db --save-recipe l.yaml --quiet", 2, "another search");
    assert_int_equal(octet(p, "tune net.onnx --images img --trials 2 --database x.db --max-mb "
                              "0.000001 --save-recipe x.yaml --quiet"),
                     1);
    must_contain(p->last.err, "keeps the budgets");
    assert_false(exists(p, "x.yaml"));
}

int main(int argc, char **argv)
{
    const char *root = getenv("OCTET_SOURCE_ROOT");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_best_repeats, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(a_kill_changes_nothing, files_setup, place_teardown),
        cmocka_unit_test_setup_teardown(processes_share_a_file, files_setup, place_teardown),
        cmocka_unit_test_setup_teardown(without_labels_float_is_the_measure, files_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(mistakes_are_explained, files_setup, place_teardown),
    };

    if (argc > 1) place_set_program(argv[1]);
    (void)snprintf(detector, sizeof(detector), "%s/examples/demo/detector.onnx", root ? root : ".");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
