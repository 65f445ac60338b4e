/* SPDX-License-Identifier: Apache-2.0 */
/* COCO's annotation files, whole and broken. */
#include "tests/unit/data_files.h"

#define IMAGES   "\"images\": [{\"id\": 9, \"file_name\": \"b.jpg\", \"width\": 100, \"height\": 50},"
#define IMAGES_2 IMAGES "{\"id\": -7, \"file_name\": \"sub/a.jpg\"}]"
#define CATEGORIES                                                                                 \
    "\"categories\": [{\"id\": 18, \"name\": \"dog\"}, {\"id\": 3, \"name\": \"car\"}]"
#define BOX "\"bbox\": [1, 2.5, 3, 4]"

static void reads_pictures_labels_and_categories(void **state)
{
    files *t = *state;
    const char *path = put_text(
        t, "a.json",
        "\xef\xbb\xbf {\"info\": {\"x\": [1, {\"y\": \"}\\\"\"}]}, \"annotations\": ["
        "{\"id\": 1, \"image_id\": 9, \"category_id\": 18, " BOX ", \"area\": 5.5, \"iscrowd\": 1},"
        "{\"id\": 2, \"image_id\": 9, \"category_id\": 3, \"bbox\": [-5, 0, 10, 0]}], " IMAGES_2
        ", \"licenses\": null, " CATEGORIES "}\n");
    oct_dataset *d = NULL;
    int32_t n = 0;
    const oct_label *l;

    assert_ok(t->ctx, open_dataset(t->ctx, "/tmp/", path, false, &d));
    assert_string_equal(oct_dataset_kind(d), "COCO");
    assert_int_equal(oct_dataset_size(d), 2);
    assert_int_equal(oct_dataset_skipped(d), 0);
    assert_false(oct_dataset_is_tensors(d));
    /* in the order of ids */
    assert_int_equal(oct_dataset_image_id(d, 0), -7);
    assert_int_equal(oct_dataset_image_id(d, 1), 9);
    assert_string_equal(oct_dataset_path(d, 0), "/tmp/sub/a.jpg");
    assert_string_equal(oct_dataset_path(d, 1), "/tmp/b.jpg");
    assert_null(oct_dataset_path(d, 2));
    assert_int_equal(oct_dataset_n_categories(d), 2);
    assert_string_equal(oct_dataset_category_name(d, 0), "car");
    assert_int_equal(oct_dataset_category_id(d, 0), 3);
    assert_int_equal(oct_dataset_category_id(d, 1), 18);
    assert_null(oct_dataset_category_name(d, 2));
    assert_int_equal(oct_dataset_class(d, 0), -1);

    assert_null(oct_dataset_labels(d, 0, &n));
    assert_int_equal(n, 0);
    l = oct_dataset_labels(d, 1, &n);
    assert_int_equal(n, 2);
    assert_label(d, 1, 0, 1, 2.5, 3, 4, 1);
    assert_true(l[0].area == 5.5 && l[0].is_crowd == 1);
    assert_label(d, 1, 1, -5, 0, 10, 0, 0); /* not clipped; no height is allowed */
    assert_true(l[1].area == 0 && l[1].is_crowd == 0);
    oct_dataset_close(d);
}

static void needs_no_annotations_and_no_pictures(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;
    const char *path = put_text(t, "a.json", "{" IMAGES_2 "}");

    assert_ok(t->ctx, open_dataset(t->ctx, NULL, path, false, &d));
    assert_int_equal(oct_dataset_size(d), 2);
    assert_int_equal(oct_dataset_n_categories(d), 0);
    assert_string_equal(oct_dataset_path(d, 0), "sub/a.jpg");
    oct_dataset_close(d);
    path = put_text(t, "b.json", "{" IMAGES_2 ", " CATEGORIES ", \"annotations\": []}");
    assert_ok(t->ctx, open_dataset(t->ctx, t->folder, path, false, &d));
    oct_dataset_close(d);
}

/* Entries that are broken: an error that names them, or one less. */
static void names_broken_entries(void **state)
{
    files *t = *state;
    static const struct {
        const char *annotation, *error;
    } cases[] = {
        {"{\"category_id\": 3, " BOX "}", "annotations[1]: there is no \"image_id\""},
        {"{\"image_id\": 9, " BOX "}", "annotations[1]: there is no \"category_id\""},
        {"{\"image_id\": 9, \"category_id\": 3}", "annotations[1]: there is no \"bbox\""},
        {"{\"image_id\": 8, \"category_id\": 3, " BOX "}",
         "annotations[1]: image_id 8 is not among the images"},
        {"{\"image_id\": 9, \"category_id\": 4, " BOX "}",
         "annotations[1]: category_id 4 is not among the categories"},
        {"{\"image_id\": \"9\", \"category_id\": 4, " BOX "}", "\"image_id\" is not an integer"},
        {"{\"image_id\": 9.5, \"category_id\": 4, " BOX "}", "\"image_id\" is not an integer"},
        {"{\"image_id\": 9, \"category_id\": 3, \"bbox\": [1, 2, NaN, 4]}",
         "annotations[1]: line 1: invalid token near 'NaN'"},
        {"{\"image_id\": 9, \"category_id\": 3, \"bbox\": [1, 2, 1e999, 4]}", "annotations[1]"},
        {"{\"image_id\": 9, \"category_id\": 3, \"bbox\": [1, 2, 1e200, 4]}",
         "annotations[1]: a box of 1, 2, 1e+200 x 4"},
        {"{\"image_id\": 9, \"category_id\": 3, \"bbox\": [1, 2, -3, 4]}", "negative size"},
        {"{\"image_id\": 9, \"category_id\": 3, \"bbox\": [1, 2, 3]}", "array of 4 numbers"},
        {"{\"image_id\": 9, \"category_id\": 3, \"bbox\": [1, 2, 3, null]}", "array of 4 numbers"},
        {"{\"image_id\": 9, \"category_id\": 3, \"bbox\": [101, 2, 3, 4]}",
         "annotations[1]: the box 101, 2, 3 x 4 lies outside its picture of 100 x 50"},
        {"{\"image_id\": 9, \"category_id\": 3, \"bbox\": [1, -9, 3, 4]}", "lies outside"},
        {"{\"image_id\": 9, \"category_id\": 3, \"area\": \"x\", " BOX "}", "\"area\""},
        {"{\"id\": 1, \"image_id\": 9, \"category_id\": 3, " BOX "}",
         "annotations[1]: id 1 is that of annotations[0] already"},
        {"7", "annotations[1]: not an object"},
        {"{\"image_id\" 9}", "annotations[1]: line 1"},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        char text[1024];
        const char *path;
        oct_dataset *d = NULL;

        snprintf(text, sizeof(text),
                 "{" IMAGES_2 ", " CATEGORIES ", \"annotations\": [{\"id\": 1, \"image_id\": 9, "
                 "\"category_id\": 18, " BOX "}, %s, {\"image_id\": -7, \"category_id\": 3, " BOX
                 "}]}",
                 cases[i].annotation);
        path = put_text(t, "a.json", text);
        assert_bad(t, t->folder, path, cases[i].error, 2, 1);
        assert_bad(t, t->folder, path, "a.json", 2, 1);
        /* the others are still there */
        assert_ok(t->ctx, open_dataset(t->ctx, t->folder, path, true, &d));
        assert_label(d, 1, 0, 1, 2.5, 3, 4, 1);
        assert_label(d, 0, 0, 1, 2.5, 3, 4, 0);
        oct_dataset_close(d);
    }
}

static void names_broken_pictures_and_categories(void **state)
{
    files *t = *state;
    static const struct {
        const char *text, *error;
        int n_items;
    } cases[] = {
        {"{" IMAGES "{\"id\": 9, \"file_name\": \"c.jpg\"}]}",
         "images[1]: id 9 is that of images[0] already", 1},
        {"{" IMAGES "{\"file_name\": \"c.jpg\"}]}", "images[1]: there is no \"id\"", 1},
        {"{" IMAGES "{\"id\": 1}]}", "images[1]: there is no \"file_name\"", 1},
        {"{" IMAGES "{\"id\": 1, \"file_name\": \"\"}]}", "images[1]: \"file_name\"", 1},
        {"{" IMAGES "{\"id\": 1, \"file_name\": \"x\", \"width\": []}]}", "images[1]: \"width\"",
         1},
        {"{" IMAGES_2 ", \"categories\": [{\"id\": 1}]}", "categories[0]: there is no \"name\"", 2},
        {"{" IMAGES_2 ", \"categories\": [{\"id\": 1, \"name\": \"a\"}, {\"id\": 1, \"name\": "
         "\"b\"}]}",
         "categories[1]: id 1 is that of categories[0] already", 2},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        assert_bad(t, NULL, put_text(t, "a.json", cases[i].text), cases[i].error, cases[i].n_items,
                   1);
}

static void refuses_what_is_no_annotation_file(void **state)
{
    files *t = *state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "a.json: the file is empty"},
        {"{}", "there is no \"images\""},
        {"{\"images\": []}", "there is nothing in it"},
        {"{\"images\": {}}", "an array is expected"},
        {"{\"images\": [], \"images\": []}", "\"images\" appears twice"},
        {"[{\"image_id\": 1}]", "file of results"},
        {"{" IMAGES_2 "} x", "the end of the file is expected"},
        {"{\"images\" []}", "':' is expected"},
        {"{images: []}", "a key is expected"},
        {"{" IMAGES_2 " " CATEGORIES "}", "',' or '}' is expected"},
        {"{\"info\": , " IMAGES_2 "}", "a value is expected"},
        {"{\n\n\"x\": tru", "line 3: the file ends too early"},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++)
        assert_bad(t, NULL, put_text(t, "a.json", cases[i].text), cases[i].error, -1, 0);
}

/* Cut off anywhere: never whole, never a crash. */
static void refuses_what_is_cut_off(void **state)
{
    files *t = *state;
    const char *text = "{" IMAGES_2 ", " CATEGORIES ", \"annotations\": [{\"id\": 1, \"image_id\": "
                       "9, \"category_id\": 18, " BOX "}], \"info\": \"a\\\"b\"}";

    for (size_t n = 0; n < strlen(text); n++)
        assert_bad(t, NULL, put_bytes(t, "a.json", text, n), "a.json", -1, 0);
}

static void survives_depth(void **state)
{
    files *t = *state;
    char *text = malloc(200001);

    assert_non_null(text);
    memset(text, '[', 200000);
    memcpy(text, "{\"images\": ", 11);
    assert_bad(t, NULL, put_bytes(t, "a.json", text, 200000), "a.json", -1, 0);
    memcpy(text, "{\"other\": ", 10);
    assert_bad(t, NULL, put_bytes(t, "a.json", text, 200000), "a.json", -1, 0);
    free(text);
}

static const char *memory_path;

static oct_status open_coco(oct_ctx *ctx)
{
    oct_dataset *d = NULL;
    const oct_status st = open_dataset(ctx, NULL, memory_path, false, &d);

    oct_dataset_close(d);
    return st;
}

static void survives_lack_of_memory(void **state)
{
    files *t = *state;
    char path[128];

    snprintf(path, sizeof(path), "%s",
             put_text(t, "a.json",
                      "{" IMAGES_2 ", " CATEGORIES ", \"annotations\": [{\"id\": 1, \"image_id\": "
                      "9, \"category_id\": 18, " BOX "}]}"));
    memory_path = path;
    fail_each_allocation(open_coco);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_pictures_labels_and_categories, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(needs_no_annotations_and_no_pictures, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(names_broken_entries, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(names_broken_pictures_and_categories, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(refuses_what_is_no_annotation_file, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(refuses_what_is_cut_off, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(survives_depth, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(survives_lack_of_memory, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
