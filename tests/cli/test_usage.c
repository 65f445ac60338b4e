/* SPDX-License-Identifier: Apache-2.0 */
/* What the program says to people who ask for help or type something wrong. */
#include "cli/program.h"

static void help_names_every_command_and_option(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "--help"), 0);
    for (const char *const *c = (const char *const[]){"inspect", "simplify", "run", "bench",
                                                      "profile", "--threads", "--seed", NULL};
         *c; c++)
        must_contain(p->last.out, *c);
    assert_string_equal(p->last.err, "");
    assert_int_equal(octet(p, "help"), 0);
}

static void help_of_a_command_has_examples(void **state)
{
    static const char *const commands[] = {"inspect", "simplify", "run", "bench", "profile"};
    place *p = *state;
    char words[64];

    for (size_t i = 0; i < OCT_COUNT(commands); i++) {
        char *first;

        snprintf(words, sizeof(words), "help %s", commands[i]);
        assert_int_equal(octet(p, words), 0);
        must_contain(p->last.out, "examples:");
        must_contain(p->last.out, "usage: octet ");
        first = strdup(p->last.out);
        snprintf(words, sizeof(words), "%s --help", commands[i]);
        assert_int_equal(octet(p, words), 0);
        assert_string_equal(p->last.out, first);
        snprintf(words, sizeof(words), "%s nosuchfile -h", commands[i]); /* help wins */
        assert_int_equal(octet(p, words), 0);
        free(first);
    }
}

static void no_words_is_bad_usage(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, ""), 2);
    assert_string_equal(p->last.out, "");
    must_contain(p->last.err, "usage: octet");
}

static void version_is_shown(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "--version"), 0);
    must_contain(p->last.out, oct_version());
    must_contain(p->last.out, "oneDNN ");
    must_contain(p->last.out, "libfyaml ");
    must_contain(p->last.out, "kernels: float ");
}

static void doctor_names_kernels_and_libraries(void **state)
{
    place *p = *state;
    json_t *j;

    assert_int_equal(octet(p, "doctor"), 0);
    must_contain(p->last.out, "integer kernels");
    must_contain(p->last.out, "oneDNN ");
    must_contain(p->last.out, "libtiff ");
    must_contain(p->last.out, "libwebp ");
    must_contain(p->last.out, "libavformat ");
    must_contain(p->last.out, "libavcodec ");
    assert_int_equal(octet(p, "doctor --json"), 0);
    j = printed_json(p);
    assert_true(json_integer_value(json_object_get(j, "threads")) >= 1);
    assert_true(json_integer_value(json_object_get(j, "memory_bytes")) > 0);
    assert_true(json_array_size(json_object_get(j, "libraries")) > 5);
    assert_true(json_is_array(json_object_get(j, "slow")));
    json_decref(j);
}

/* What is switched off is told, with the reason. */
static void doctor_tells_what_is_slow(void **state)
{
    place *p = *state;

    assert_int_equal(setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1), 0);
    assert_int_equal(octet(p, "doctor"), 0);
    assert_int_equal(unsetenv("ONEDNN_MAX_CPU_ISA"), 0);
    must_contain(p->last.out, "What will be slow, and why:");
    must_contain(p->last.out, "ONEDNN_MAX_CPU_ISA=SSE41");
    must_contain(p->last.out, "Float kernels use 'base'");
    assert_int_equal(octet(p, "doctor --threads 1000"), 0);
    must_contain(p->last.out, "1000 threads on ");
#ifdef __SANITIZE_ADDRESS__
    must_contain(p->last.out, "Built with a sanitizer");
#endif
}

/* Each line: words, what the error must say. All are exit status 2, with nothing on stdout. */
static void mistakes_get_an_answer(void **state)
{
    static const struct {
        const char *words, *answer;
    } cases[] = {
        {"inspekt x", "no command 'inspekt'; did you mean 'inspect'?"},
        {"help benhc", "did you mean 'bench'?"},
        {"qqqqqq", "no command 'qqqqqq'\n"},
        {"inspect modle.txt", "modle.txt: no such file; did you mean 'model.txt'?"},
        {"inspect ./modle.txt", "did you mean './model.txt'?"},
        {"inspect nodir/model.txt", "its folder does not exist"},
        {"inspect .", "is a folder"},
        {"inspect ''", "empty name"},
        {"inspect", "MODEL is missing; usage: octet inspect MODEL [options]"},
        {"inspect model.txt other", "'other' is one word too many"},
        {"inspect model.txt --grap x.svg", "did you mean '--graph'?"},
        {"inspect model.txt --grap=x.svg", "inspect has no option '--grap'; did you mean"},
        {"inspect model.txt -x", "has no option '-x'"},
        {"inspect model.txt --graph", "option --graph wants a value: --graph FILE"},
        {"inspect model.txt --json=1", "option --json takes no value"},
        {"inspect model.txt --filter '(('", "is no valid pattern"},
        {"bench model.txt --threads 0", "whole number of at least 1, not '0'"},
        {"bench model.txt --runs 1x", "not '1x'"},
        {"bench model.txt --runs 99999999999999999999", "not '99999999999999999999'"},
        {"bench model.txt --seconds -1", "a number above 0, not '-1'"},
        {"bench model.txt --seconds nan", "a number above 0"},
        {"simplify model.txt", "OUT is missing"},
        {"simplify model.txt nodir/out.onnx", "its folder does not exist"},
        {"simplify model.txt out.onnx --only fold-konstants", "there is no pass 'fold-konstants'"},
        {"simplify model.txt out.onnx --skip ,", "there is no pass ''"},
    };
    place *p = *state;

    write_file(p, "model.txt", "not a model", 11);
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        must_refuse(p, cases[i].words, 2, cases[i].answer);
        assert_true(strncmp(p->last.err, "octet: ", 7) == 0);
    }
    assert_int_equal(count_files(p), 1);
}

static void broken_model_is_failed_work(void **state)
{
    place *p = *state;

    write_file(p, "model.txt", "not a model", 11);
    assert_int_equal(octet(p, "inspect model.txt"), 1);
    assert_true(strncmp(p->last.err, "octet: model.txt: ", 18) == 0);
    assert_string_equal(p->last.out, "");
    assert_int_equal(octet(p, "simplify model.txt out.onnx"), 1);
    assert_int_equal(count_files(p), 1);
}

static void options_may_come_anywhere(void **state)
{
    place *p = *state;

    write_file(p, "-odd", "not a model", 11);
    assert_int_equal(octet(p, "inspect -- -odd"), 1); /* read as a file: broken, not missing */
    assert_int_equal(octet(p, "inspect --json --filter=x -- -odd"), 1);
}

static void passes_are_listed(void **state)
{
    place *p = *state;
    json_t *j;

    assert_int_equal(octet(p, "simplify --list"), 0);
    must_contain(p->last.out, "bit-exact");
    assert_int_equal(octet(p, "simplify --list --json"), 0);
    j = printed_json(p);
    assert_true(json_array_size(j) > 5);
    assert_non_null(json_object_get(json_array_get(j, 0), "promise"));
    json_decref(j);
}

/* octet(1) names every command; each has a page of its own, with its options and their choices. */
static void manual_pages_are_whole(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "--man"), 0);
    must_contain(p->last.out, ".TH OCTET 1");
    must_contain(p->last.out, "It quantizes to INT8");
    must_contain(p->last.out, ".BR octet\\-quantize (1)");
    must_contain(p->last.out, "\\-\\-threads");
    assert_int_equal(octet(p, "--man quantize"), 0);
    must_contain(p->last.out, ".TH OCTET-QUANTIZE 1");
    must_contain(p->last.out, "octet\\-quantize \\- ");
    must_contain(p->last.out, "\\-\\-input\\-shape");
    must_contain(p->last.out, "tensorrt"); /* a choice of --target */
    assert_int_equal(octet(p, "--man quantise"), 2);
    must_contain(p->last.err, "did you mean 'quantize'?");
}

/* tests/cli/completion asks real shells; here, that all are there. */
static void completions_are_whole(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "--completion bash"), 0);
    must_contain(p->last.out, "complete -F _octet octet");
    assert_int_equal(octet(p, "--completion zsh"), 0);
    must_contain(p->last.out, "#compdef octet");
    assert_int_equal(octet(p, "--completion fish"), 0);
    must_contain(p->last.out, "complete -c octet");
    must_refuse(p, "--completion csh", 2, "bash, zsh or fish, not 'csh'");
    must_refuse(p, "--completion", 2, "bash, zsh or fish\n");
}

/* Every word that people try first. */
static void help_helps_itself(void **state)
{
    static const char *const words[] = {"help help", "help --help", "help -h", "-h", "help"};
    place *p = *state;

    for (size_t i = 0; i < OCT_COUNT(words); i++) {
        assert_int_equal(octet(p, words[i]), 0);
        must_contain(p->last.out, "usage: octet COMMAND");
    }
    assert_int_equal(octet(p, "-V"), 0);
    must_contain(p->last.out, oct_version());
}

/* Names of targets, families and kinds of ranges, as the library lists them. */
static void help_lists_what_the_library_has(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "quantize --help"), 0);
    for (int i = 0; oct_target_name(i); i++) {
        must_contain(p->last.out, oct_target_name(i));
        assert_non_null(oct_target_help(oct_target_name(i)));
    }
    for (int i = 0; oct_observer_name(i); i++)
        must_contain(p->last.out, oct_observer_name(i));
    assert_int_equal(octet(p, "eval --help"), 0);
    for (int i = 0; oct_family_name(i); i++)
        must_contain(p->last.out, oct_family_name(i));
    assert_null(oct_target_name(-1));
    assert_null(oct_observer_name(-1));
    assert_null(oct_target_help("no such"));
}

static void full_disk_is_noticed(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "simplify --list >/dev/full"), 1);
    must_contain(p->last.err, "cannot write to standard output");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(help_names_every_command_and_option, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(help_of_a_command_has_examples, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(no_words_is_bad_usage, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(version_is_shown, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(doctor_names_kernels_and_libraries, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(doctor_tells_what_is_slow, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(mistakes_get_an_answer, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(broken_model_is_failed_work, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(options_may_come_anywhere, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(passes_are_listed, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(manual_pages_are_whole, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(completions_are_whole, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(help_helps_itself, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(help_lists_what_the_library_has, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(full_disk_is_noticed, place_setup, place_teardown),
    };

    if (argc != 2) return 2;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
