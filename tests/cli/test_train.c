/* SPDX-License-Identifier: Apache-2.0 */
/* octet train and octet export: what they print, write and refuse; going on after a kill. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/train_place.h"

/* The demo's detector, and a few pictures of shapes. */
static char detector[1024];

#define FEW "--epochs 2 --batch 2 --augment none --warmup-epochs -1 "

static int train(place *p, const char *more)
{
    char words[1024];

    assert_true(snprintf(words, sizeof(words), "train %s " DATA FEW "%s", detector, more) <
                (int)sizeof(words));
    return octet(p, words);
}

static void writes_a_network_and_checkpoints(void **state)
{
    place *p = *state;
    json_t *first, *second;

    assert_int_equal(train(p, "-o new.onnx --json"), 0);
    first = line(p, 0);
    second = line(p, 1);
    assert_int_equal(json_integer_value(json_object_get(first, "epoch")), 1);
    assert_int_equal(json_integer_value(json_object_get(second, "step")), 6);
    assert_true(json_real_value(json_object_get(first, "loss")) > 0);
    assert_int_equal(json_object_size(json_object_get(first, "parts")), 3);
    assert_true(exists(p, "new.onnx"));
    assert_true(exists(p, "new.train/last.safetensors"));
    json_decref(first);
    json_decref(second);
    assert_int_equal(octet(p, "export new.train/last.safetensors -o out.onnx"), 0);
    assert_int_equal(octet(p, "eval out.onnx " DATA "--json"), 0);
    assert_int_equal(octet(p, "eval new.train/last.safetensors " DATA "--json"), 0);
}

/* What the page of a report shows. */
static json_t *report_data(place *p, const char *name)
{
    static const char begin[] = "id=\"data\">";
    size_t size;
    char *page = contents(p, name, &size), *at;
    json_t *data;

    at = strstr(page, begin);
    assert_non_null(at);
    data = json_loads(at + sizeof(begin) - 1, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(data);
    free(page);
    return data;
}

/* The page holds each epoch, and is there after the first. */
static void writes_curves(void **state)
{
    place *p = *state;
    const json_t *training, *rows;
    json_t *data;

    assert_int_equal(train(p, "-o new.onnx --eval-images s/train --eval-annotations s/train.json "
                              "--eval-every 2 --report rep"),
                     0);
    data = report_data(p, "rep/index.html");
    training = json_object_get(data, "training");
    rows = json_object_get(training, "epochs");
    assert_int_equal(json_array_size(rows), 2);
    assert_int_equal(json_array_size(json_object_get(training, "parts")), 3);
    assert_int_equal(json_integer_value(json_object_get(training, "best")), 2);
    assert_int_equal(json_array_size(json_array_get(rows, 0)), 9);
    assert_true(json_number_value(json_array_get(json_array_get(rows, 0), 1)) > 0);
    assert_true(json_number_value(json_array_get(json_array_get(rows, 0), 3)) < 0);
    assert_true(json_number_value(json_array_get(json_array_get(rows, 1), 3)) >= 0);
    json_decref(data);
    assert_int_equal(train(p, "-o other.onnx --report s/names.txt"), 2);
    assert_non_null(strstr(p->last.err, "is not a folder"));
    assert_false(exists(p, "other.onnx"));
}

static void classifiers_are_scored_by_top1(void **state)
{
    place *p = *state;
    json_t *j;

    assert_int_equal(octet(p, "train net.onnx -o new.onnx --images img --annotations classes.txt "
                              "--epochs 1 --batch 2 --augment none --rate 1e-6 --eval-images img "
                              "--eval-annotations classes.txt --json"),
                     0);
    j = line(p, 0);
    assert_true(number(j, "top1") > .9);
    assert_null(json_object_get(j, "ap"));
    assert_true(json_is_true(json_object_get(j, "best")));
    json_decref(j);
}

static void shows_what_it_does(void **state)
{
    place *p = *state;

    assert_int_equal(train(p, "-o new.onnx --eval-images s/train --eval-annotations s/train.json"),
                     0);
    must_contain(p->last.out, "yolo_nas");
    must_contain(p->last.out, "epoch");
    must_contain(p->last.out, "best");
    must_contain(p->last.out, "new.onnx");
    assert_true(exists(p, "new.train/best.safetensors"));
    assert_int_equal(train(p, "--show-batch batch.jpg"), 0);
    assert_true(exists(p, "batch.jpg"));
}

/* Killed at any moment, and resumed until it is done: the same bytes as without. */
static void goes_on_bit_for_bit(void **state)
{
    place *p = *state;
    char words[1024];

    assert_int_equal(train(p, "-o whole.onnx --quiet"), 0);
    assert_true(snprintf(words, sizeof(words), "train %s " DATA FEW "-o part.onnx --quiet",
                         detector) < (int)sizeof(words));
    for (int i = 0; i < 3; i++) {
        (void)octet_interrupted(p, words, 900 + 700 * i, i == 1 ? SIGTERM : SIGKILL);
        if (!exists(p, "part.train/last.safetensors")) continue;
        assert_true(snprintf(words, sizeof(words),
                             "train %s " DATA FEW
                             "-o part.onnx --quiet --resume part.train/last.safetensors",
                             detector) < (int)sizeof(words));
    }
    assert_int_equal(octet(p, words), 0);
    assert_true(snprintf(words, sizeof(words), "cmp %s/whole.onnx %s/part.onnx", p->dir, p->dir) <
                (int)sizeof(words));
    assert_int_equal(system(words), 0);
}

/* Whatever it is doing: the state between two steps is saved, and a line says how to go on. */
static void interrupts_save(void **state)
{
    place *p = *state;
    char words[1024];

    assert_true(snprintf(words, sizeof(words),
                         "train %s " DATA "--epochs 10000 --batch 2 --augment none -o long.onnx",
                         detector) < (int)sizeof(words));
    assert_int_equal(octet_interrupted(p, words, 2500, SIGTERM), 128 + SIGTERM);
    assert_true(exists(p, "long.train/last.safetensors"));
    assert_false(exists(p, "long.onnx"));
}

/* The error for too little memory names what suffices, which gives the same bytes. */
static void memory_is_bounded(void **state)
{
    place *p = *state;
    char words[1024];
    const char *needs;
    double mb = 0;

    assert_int_equal(train(p, "-o whole.onnx --quiet"), 0);
    assert_int_not_equal(train(p, "-o small.onnx --quiet --memory 100k"), 0);
    needs = strstr(p->last.err, "training needs ");
    assert_non_null(needs);
    assert_int_equal(sscanf(needs, "training needs %lf MB", &mb), 1);
    (void)snprintf(words, sizeof(words), "-o small.onnx --quiet --memory %.1fM", mb);
    assert_int_equal(train(p, words), 0);
    assert_true(snprintf(words, sizeof(words), "cmp %s/whole.onnx %s/small.onnx", p->dir, p->dir) <
                (int)sizeof(words));
    assert_int_equal(system(words), 0);
    assert_int_equal(train(p, "-o small.onnx --memory plenty"), 2);
    must_contain(p->last.err, "800M");
}

static void trains_in_bf16(void **state)
{
    place *p = *state;

    assert_int_equal(train(p, "-o half.onnx --precision bf16"), 0);
    must_contain(p->last.out, "bfloat16");
    assert_true(exists(p, "half.onnx"));
    assert_int_not_equal(train(p, "-o half.onnx --resume half.train/last.safetensors"), 0);
    must_contain(p->last.err, "train.precision");
    assert_int_equal(train(p, "-o half.onnx --precision fp8"), 2);
    must_contain(p->last.err, "bf16");
}

static void mistakes_are_explained(void **state)
{
    place *p = *state;

    assert_int_equal(train(p, "-o new.onnx --loss yolonas"), 2);
    must_contain(p->last.err, "yolo_nas");
    assert_int_equal(train(p, "-o new.onnx --optimizer adamx"), 2);
    must_contain(p->last.err, "adam");
    assert_int_equal(train(p, "-o new.onnx --loss-set weight_iou=much"), 2);
    must_contain(p->last.err, "weight_iou");
    assert_int_equal(train(p, "-o new.onnx --freeze-name no_such_layer"), 2);
    must_contain(p->last.err, "no_such_layer");
    assert_int_equal(
        train(
            p,
            "-o new.onnx --optimizer sgd --rate 1000 --weight-decay 10 --decay-all --clip-norm -1"),
        1);
    must_contain(p->last.err, "not finite");
    write_file(p, "bad.safetensors", "\x08\0\0\0\0\0\0\0{\"a\":1}}", 16);
    assert_int_equal(train(p, "-o new.onnx --resume bad.safetensors"), 1);
    must_contain(p->last.err, "bad.safetensors");
}

static void other_settings_are_not_resumed(void **state)
{
    place *p = *state;

    assert_int_equal(train(p, "-o a.onnx --quiet"), 0);
    assert_int_not_equal(train(p, "-o b.onnx --rate 0.5 --resume a.train/last.safetensors"), 0);
    must_contain(p->last.err, "rate");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_curves, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(writes_a_network_and_checkpoints, setup_data,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(classifiers_are_scored_by_top1, files_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(shows_what_it_does, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(goes_on_bit_for_bit, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(interrupts_save, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(memory_is_bounded, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(trains_in_bf16, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(mistakes_are_explained, setup_data, place_teardown),
        cmocka_unit_test_setup_teardown(other_settings_are_not_resumed, setup_data, place_teardown),
    };

    const char *root = getenv("OCTET_SOURCE_ROOT");

    if (argc < 2) return 2;
    place_set_program(argv[1]);
    (void)snprintf(detector, sizeof(detector), "%s/examples/demo/detector.onnx", root ? root : ".");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
