/* SPDX-License-Identifier: Apache-2.0 */
/* octet qat: the file is what was measured, and the same after a kill. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/train_place.h"

/* The demo's detector, and a few pictures of shapes. */
static char detector[1024];

#define EVAL "--eval-images s/train --eval-annotations s/train.json "
#define FEW  "--epochs 2 --batch 2 --augment none --warmup-epochs -1 --rate 0.0002 "

static int qat(place *p, const char *more)
{
    char words[1024];

    assert_true(snprintf(words, sizeof(words), "qat %s " FEW "%s", detector, more) <
                (int)sizeof(words));
    return octet(p, words);
}

static int system_in(const place *p, const char *command)
{
    char words[1024];

    assert_true(snprintf(words, sizeof(words), "cd %s && %s", p->dir, command) <
                (int)sizeof(words));
    return system(words);
}

static double ap_of(place *p, const char *file)
{
    char words[256];
    json_t *j;
    double ap;

    (void)snprintf(words, sizeof(words), "eval %s " DATA "--json", file);
    assert_int_equal(octet(p, words), 0);
    j = line(p, 0);
    ap = number(j, "ap");
    json_decref(j);
    return ap;
}

/* What the last epoch measured, the file and the checkpoint are one network. */
static void the_file_is_what_was_measured(void **state)
{
    place *p = *state;
    json_t *last;
    double ap;

    assert_int_equal(qat(p, DATA EVAL "-o q.onnx --json --eval-every 2"), 0);
    last = line(p, 1);
    assert_int_equal(json_integer_value(json_object_get(last, "step")), 6);
    assert_true(json_is_true(json_object_get(last, "best")));
    ap = number(last, "ap");
    json_decref(last);
    assert_true(ap > .3);
    assert_true(ap_of(p, "q.onnx") == ap);
    assert_true(ap_of(p, "q.train/best.safetensors") == ap);
    assert_int_equal(octet(p, "export q.train/best.safetensors -o e.onnx"), 0);
    assert_int_equal(system_in(p, "cmp q.onnx e.onnx"), 0);
    assert_int_equal(octet(p, "inspect q.onnx"), 0);
    must_contain(p->last.out, "INT8 by octet");
}

/* Killed before scales are fixed and after, and resumed: the same bytes as without. */
static void goes_on_bit_for_bit(void **state)
{
    static const char rest[] = DATA "--target npu-pow2 --freeze-scales 0.7 --quiet ";
    place *p = *state;
    char words[2048];

    (void)snprintf(words, sizeof(words), "%s-o whole.onnx", rest);
    assert_int_equal(qat(p, words), 0);
    (void)snprintf(words, sizeof(words), "qat %s " FEW "%s-o part.onnx", detector, rest);
    for (int i = 0; i < 3; i++) {
        (void)octet_interrupted(p, words, 1500 + 700 * i, i == 1 ? SIGTERM : SIGKILL);
        if (!exists(p, "part.train/last.safetensors")) continue;
        (void)snprintf(words, sizeof(words),
                       "qat %s " FEW "%s-o part.onnx --resume part.train/last.safetensors",
                       detector, rest);
    }
    assert_int_equal(octet(p, words), 0);
    assert_int_equal(system_in(p, "cmp whole.onnx part.onnx"), 0);
    assert_int_not_equal(
        qat(p, DATA "--target octet -o b.onnx --resume part.train/last.safetensors"), 0);
    must_contain(p->last.err, "target");
}

static void the_table_has_its_files(void **state)
{
    static const char *const files[] = {NULL, "t_folded.onnx", "t_ptq.onnx", "t_unaligned.onnx",
                                        "t.onnx"};
    place *p = *state;
    json_t *last, *table;

    assert_int_equal(qat(p, DATA EVAL "--target npu-pow2 -o t.onnx --table --report r --json"), 0);
    last = line(p, 3);
    table = json_object_get(last, "table");
    assert_int_equal(json_array_size(table), 5);
    for (int i = 0; i < 5; i++) {
        const json_t *row = json_array_get(table, (size_t)i);
        const char *file = json_string_value(json_object_get(row, "file"));

        assert_string_equal(file, files[i] ? files[i] : detector);
        assert_true(json_integer_value(json_object_get(row, "bytes")) > 0);
        assert_true(json_real_value(json_object_get(row, "milliseconds")) > 0);
        assert_true(json_real_value(json_object_get(row, "ap")) > .3);
        assert_true(i == 0 || exists(p, file));
    }
    json_decref(last);
    assert_int_equal(system_in(p, "grep -q t_folded.onnx r/index.html"), 0);
    /* Scales were fixed, and made to fit, half way: in the end there is nothing to move. */
    assert_int_equal(system_in(p, "cmp t.onnx t_unaligned.onnx"), 0);
    assert_int_equal(octet(p, "inspect t.onnx --npu"), 0);
    must_contain(p->last.out, "keeps all limits");
    assert_int_equal(qat(p, DATA "--target npu-pow2 -o t.onnx --force"), 0);
    must_contain(p->last.out, "layers, calibrated on 6 pictures");
}

/* All files of the table have the outputs that were chosen. */
static void the_table_drops_outputs(void **state)
{
    static const char *const files[] = {"o_folded.onnx", "o_ptq.onnx", "o_unaligned.onnx",
                                        "o.onnx"};
    place *p = *state;
    json_t *j;
    char words[2048];
    const char *name;

    (void)snprintf(words, sizeof(words), "inspect %s --json", detector);
    assert_int_equal(octet(p, words), 0);
    j = line(p, 0);
    name = json_string_value(
        json_object_get(json_array_get(json_object_get(j, "outputs"), 0), "name"));
    (void)snprintf(words, sizeof(words),
                   DATA "--target npu-pow2 -o o.onnx --table --quiet --outputs %s", name);
    json_decref(j);
    assert_int_equal(qat(p, words), 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        (void)snprintf(words, sizeof(words), "inspect %s --json", files[i]);
        assert_int_equal(octet(p, words), 0);
        j = line(p, 0);
        assert_int_equal(json_array_size(json_object_get(j, "outputs")), 1);
        json_decref(j);
    }
}

/* Scales go elsewhere if they learn from what is clipped alone. */
static void clipping_alone_is_another_lesson(void **state)
{
    place *p = *state;

    assert_int_equal(qat(p, DATA "--epochs 1 -o lsq.onnx --quiet"), 0);
    assert_int_equal(qat(p, DATA "--epochs 1 -o pact.onnx --pact --quiet"), 0);
    assert_int_not_equal(system_in(p, "cmp -s lsq.onnx pact.onnx"), 0);
    assert_int_equal(octet(p, "inspect pact.onnx"), 0);
    must_contain(p->last.out, "INT8 by octet");
}

static void learns_without_labels(void **state)
{
    place *p = *state;
    json_t *first, *second;

    assert_int_equal(qat(p, "--images s/train --loss distill --weight-bits 4 -o d.onnx --json "
                            "--fix-scales --learn-zeros --ema none"),
                     0);
    first = line(p, 0);
    second = line(p, 1);
    assert_true(number(second, "loss") < number(first, "loss"));
    json_decref(first);
    json_decref(second);
    assert_true(exists(p, "d.onnx"));
}

static void mistakes_are_explained(void **state)
{
    place *p = *state;

    assert_int_equal(qat(p, DATA "-o q.onnx --target npu"), 2);
    must_contain(p->last.err, "npu-pow2");
    assert_int_equal(qat(p, DATA "-o q.onnx --from-scratch"), 2);
    must_contain(p->last.err, "random weights");
    assert_int_equal(qat(p, DATA "-o q.onnx --bn-adapt 4 --freeze-statistics"), 2);
    must_contain(p->last.err, "adapted");
    assert_int_equal(qat(p, DATA "-o q.onnx --pact --fix-scales"), 2);
    must_contain(p->last.err, "clipped");
    assert_int_equal(qat(p, DATA "-o q.onnx --scale-rate 5 --print-recipe"), 0);
    must_contain(p->last.out, "# octet qat");
    must_contain(p->last.out, "scale_rate: 5");
    assert_int_equal(qat(p, DATA "-o q.onnx --bn-adapt 4 --quiet"), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_file_is_what_was_measured, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(goes_on_bit_for_bit, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(the_table_has_its_files, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(the_table_drops_outputs, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(clipping_alone_is_another_lesson, setup_data,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(learns_without_labels, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(mistakes_are_explained, setup_data, place_teardown),
    };
    const char *root = getenv("OCTET_SOURCE_ROOT");

    if (argc < 2) return 2;
    place_set_program(argv[1]);
    (void)snprintf(detector, sizeof(detector), "%s/examples/demo/detector.onnx", root ? root : ".");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
