/* SPDX-License-Identifier: Apache-2.0 */
/* Names of classes in all the forms they come in, and Ultralytics' data.yaml. */
#include "tests/unit/data_files.h"

#include "data/labels/class_names.h"

static oct_status parse(oct_ctx *ctx, const char *text, oct_class_names **out)
{
    oct_class_names *c = NULL;
    oct_status st = oct_class_names_new(ctx, &c);

    if (!st) st = oct_class_names_literal(c, "names", text);
    if (st)
        oct_class_names_free(c);
    else
        *out = c;
    return st;
}

static void reads_literals(void **state)
{
    files *t = *state;
    static const char *const texts[] = {
        "{0: 'cat', 1: \"dog's\", 2: 'a b'}",
        "{\"0\": \"cat\", \"1\": \"dog's\", \"2\": \"a b\"}",
        " [ 'cat' , \"dog's\", 'a b', ]\n",
        "('cat','dog\\'s','a\\x20b')",
        "{2: 'a\\u0020b', 0: 'cat', 1: 'dog\\'s'}",
    };

    for (size_t i = 0; i < OCT_COUNT(texts); i++) {
        oct_class_names *c = NULL;

        assert_ok(t->ctx, parse(t->ctx, texts[i], &c));
        assert_int_equal(oct_class_names_size(c), 3);
        assert_string_equal(oct_class_names_at(c, 0), "cat");
        assert_string_equal(oct_class_names_at(c, 1), "dog's");
        assert_string_equal(oct_class_names_at(c, 2), "a b");
        assert_null(oct_class_names_at(c, 3));
        assert_null(oct_class_names_at(c, -1));
        oct_class_names_free(c);
    }
    assert_int_equal(oct_class_names_size(NULL), 0);
}

static void keeps_gaps_and_letters_of_other_languages(void **state)
{
    files *t = *state;
    oct_class_names *c = NULL, *copy = NULL;

    assert_ok(t->ctx, parse(t->ctx, "{3: '\\u732b', 1: '\xc3\xa9', 5: '\\U0001F600'}", &c));
    assert_ok(t->ctx, oct_class_names_copy(t->ctx, c, &copy));
    oct_class_names_free(c);
    assert_int_equal(oct_class_names_size(copy), 6);
    assert_null(oct_class_names_at(copy, 0));
    assert_string_equal(oct_class_names_at(copy, 1), "\xc3\xa9");
    assert_string_equal(oct_class_names_at(copy, 3), "\xe7\x8c\xab");
    assert_string_equal(oct_class_names_at(copy, 5), "\xf0\x9f\x98\x80");
    oct_class_names_free(copy);
}

static void refuses_hostile_literals(void **state)
{
    files *t = *state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "neither a list nor a map"},
        {"cat", "neither a list nor a map"},
        {"{0: 'a'", "neither ',' nor the end"},
        {"{0: 'a", "a text without an end"},
        {"{0: 'a\\", "an escape that is not read"},
        {"{0: 'a\\x4", "a broken escape"},
        {"{0: '\\u0000'}", "an escape that is not read"},
        {"{0: '\\ud800'}", "an escape that is not read"},
        {"{0: 'a', 0: 'b'}", "class 0 has two names"},
        {"{-1: 'a'}", "no text in quotes"},
        {"{65536: 'a'}", "classes are 0 to 65535"},
        {"{99999999999999999999: 'a'}", "no number of a class"},
        {"{'a': 'b'}", "a key that is no number"},
        {"{0 'a'}", "no ':'"},
        {"{0: __import__('os')}", "no text in quotes"},
        {"['a'] + ['b']", "something after the end"},
        {"[['a']]", "no text in quotes"},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_class_names *c = NULL;

        assert_fails(t->ctx, parse(t->ctx, cases[i].text, &c), OCT_ERR_FORMAT, cases[i].error);
        assert_null(c);
    }
}

static void assert_cat_dog(oct_ctx *ctx, const char *path)
{
    oct_class_names *c = NULL;

    assert_ok(ctx, oct_class_names_load(ctx, path, &c));
    assert_int_equal(oct_class_names_size(c), 2);
    assert_string_equal(oct_class_names_at(c, 0), "cat");
    assert_string_equal(oct_class_names_at(c, 1), "hot dog");
    oct_class_names_free(c);
}

static void reads_files(void **state)
{
    files *t = *state;
    oct_class_names *c = NULL;

    assert_cat_dog(t->ctx, put_text(t, "a.txt", "cat\r\nhot dog \r\n\n\n"));
    assert_cat_dog(t->ctx, put_text(t, "a.names",
                                    "\xef\xbb\xbf"
                                    "cat\nhot dog"));
    assert_cat_dog(t->ctx, put_text(t, "a.yaml", "path: x\nnames:\n  0: cat\n  1: hot dog\n"));
    assert_cat_dog(t->ctx, put_text(t, "b.yml", "nc: 2\nnames: ['cat', 'hot dog']\n"));
    assert_cat_dog(t->ctx, put_text(t, "c.yaml", "- cat\n- hot dog\n"));
    assert_cat_dog(t->ctx, put_text(t, "d.json", "{\"0\": \"cat\", \"1\": \"hot dog\"}"));
    assert_fails(t->ctx, oct_class_names_load(t->ctx, put_text(t, "e", "\n\n"), &c), OCT_ERR_FORMAT,
                 "no names are in it");
    assert_fails(t->ctx, oct_class_names_load(t->ctx, put_bytes(t, "f", "a\0b\n", 4), &c),
                 OCT_ERR_FORMAT, "not a text");
    assert_fails(t->ctx, oct_class_names_load(t->ctx, put_text(t, "g.yaml", "names: {a: b}\n"), &c),
                 OCT_ERR_FORMAT, "g.yaml:1:9: 'a' is no number of a class");
    assert_fails(t->ctx, oct_class_names_load(t->ctx, put_text(t, "h.yaml", "train: x\n"), &c),
                 OCT_ERR_FORMAT, "there is no 'names'");
    assert_fails(t->ctx, oct_class_names_load(t->ctx, below(t, "none"), &c), OCT_ERR_IO, "none");
}

/* --- data.yaml --- */

/* Two pictures for validation, one to train; labels of the larger numbers are missing. */
static void make_yolo(files *t)
{
    put_folder(t, "images");
    put_folder(t, "images/val");
    put_folder(t, "images/train");
    put_folder(t, "labels");
    put_folder(t, "labels/val");
    put_folder(t, "labels/train");
    put_picture(t, "images/val/a.png", 100, 50);
    put_picture(t, "images/val/b.png", 40, 40);
    put_picture(t, "images/train/c.png", 10, 10);
    put_text(t, "labels/val/a.txt", "1 0.5 0.5 0.2 0.4\n");
    put_text(t, "labels/train/c.txt", "0 0.5 0.5 1 1\n");
}

static void reads_data_yaml(void **state)
{
    files *t = *state;
    const char *yaml;
    oct_dataset *d = NULL;

    make_yolo(t);
    yaml = put_text(t, "data.yaml",
                    "path: .\ntrain: images/train\nval: images/val\ntest:\nnc: 3\n"
                    "names: {0: cat, 1: dog, 2: cow}\ndownload: |\n  x = 1\n");
    assert_ok(t->ctx, open_dataset(t->ctx, NULL, yaml, false, &d));
    assert_string_equal(oct_dataset_kind(d), "YOLO");
    assert_int_equal(oct_dataset_size(d), 2);
    assert_int_equal(oct_dataset_n_categories(d), 3);
    assert_string_equal(oct_dataset_category_name(d, 2), "cow");
    assert_label(d, 0, 0, 40, 15, 20, 20, 1);
    oct_dataset_close(d);
    /* the pictures of another folder, with their own labels */
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "images/train/"), yaml, false, &d));
    assert_int_equal(oct_dataset_size(d), 1);
    assert_label(d, 0, 0, 0, 0, 10, 10, 0);
    oct_dataset_close(d);
    /* to calibrate on: those of training */
    assert_ok(t->ctx, open_dataset(t->ctx, yaml, NULL, false, &d));
    assert_string_equal(oct_dataset_kind(d), "pictures");
    assert_int_equal(oct_dataset_size(d), 1);
    assert_non_null(strstr(oct_dataset_path(d, 0), "c.png"));
    oct_dataset_close(d);
}

static void reads_lists_and_roboflow_paths(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;

    make_yolo(t);
    put_text(t, "val.txt", "./images/val/b.png\nimages/val/a.png\r\n\n");
    put_text(t, "l.yaml", "val: [val.txt, images/train]\nnames: [cat, dog]\n");
    assert_ok(t->ctx, open_dataset(t->ctx, NULL, below(t, "l.yaml"), false, &d));
    assert_int_equal(oct_dataset_size(d), 3);
    assert_label(d, 1, 0, 40, 15, 20, 20, 1);
    assert_label(d, 2, 0, 0, 0, 10, 10, 0);
    oct_dataset_close(d);
    put_text(t, "r.yaml", "val: ../images/val\nnames: [cat, dog]\n");
    assert_ok(t->ctx, open_dataset(t->ctx, NULL, below(t, "r.yaml"), false, &d));
    assert_int_equal(oct_dataset_size(d), 2);
    oct_dataset_close(d);
}

static void names_what_is_wrong_in_data_yaml(void **state)
{
    files *t = *state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"val: images/val\n", "there is no 'names'"},
        {"names: [cat, dog]\n", "neither 'val' nor 'train'"},
        {"val: nowhere\nnames: [cat, dog]\n", "d.yaml:1:6: "},
        {"path: nowhere\nval: x\nnames: [cat, dog]\n", "d.yaml:1:7: path: the folder "},
        {"val: images/val\nnames: [cat]\n",
         "a.txt: line 1: class 1, but only 1 classes have names"},
        {"val: images/val\nnames: [cat, dog]\nnc: 3\n", "d.yaml:3:5: nc is 3, but there are 2"},
        {"val: {a: b}\nnames: [cat, [dog]]\n", "a name is one text"},
        {"- a\n", "not a data.yaml"},
        {"val: labels\nnames: [cat, dog]\n", "nothing in it"},
    };

    make_yolo(t);
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_dataset *d = NULL;
        const char *path = put_text(t, "d.yaml", cases[i].text);

        assert_int_not_equal(open_dataset(t->ctx, NULL, path, false, &d), OCT_OK);
        if (!strstr(oct_ctx_error(t->ctx), cases[i].error))
            fail_msg("\"%s\", want \"%s\"", oct_ctx_error(t->ctx), cases[i].error);
    }
}

static void says_what_a_file_is_that_is_no_annotation(void **state)
{
    files *t = *state;

    make_yolo(t);
    assert_bad(t, below(t, "images/val"), below(t, "labels/val/a.txt"),
               "YOLO's labels of one picture; give the folder", -1, 0);
    assert_bad(t, below(t, "images/val"), put_text(t, "x.xml", "<annotation/>"),
               "give the folder of VOC's .xml files", -1, 0);
}

/* For fail_each_allocation(). */
static const char *yaml_path;

static oct_status open_yaml(oct_ctx *ctx)
{
    oct_dataset *d = NULL;
    const oct_status st = open_dataset(ctx, NULL, yaml_path, false, &d);

    oct_dataset_close(d);
    return st;
}

static void survives_want_of_memory(void **state)
{
    files *t = *state;
    char path[256];

    make_yolo(t);
    put_text(t, "val.txt", "images/val/a.png\n");
    snprintf(path, sizeof(path), "%s",
             put_text(t, "d.yaml", "path: .\nval: [val.txt, images/train]\nnames: [cat, dog]\n"));
    yaml_path = path;
    fail_each_allocation(open_yaml);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup_files, teardown_files)
    const struct CMUnitTest tests[] = {
        T(reads_literals),
        T(keeps_gaps_and_letters_of_other_languages),
        T(refuses_hostile_literals),
        T(reads_files),
        T(reads_data_yaml),
        T(reads_lists_and_roboflow_paths),
        T(names_what_is_wrong_in_data_yaml),
        T(says_what_a_file_is_that_is_no_annotation),
        T(survives_want_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
