/* SPDX-License-Identifier: Apache-2.0 */
/* Which class of a network is which category of a dataset: told, or refused, never guessed. */
#include <math.h>

#include "tests/unit/data_files.h"
#include "tests/unit/detect_net.h"

enum { SIDE = 128, CELLS = 336 };

static oct_detector *network(files *t, int n_classes, const char *names)
{
    fixture *f = t->f;
    oct_detector *d = NULL;

    picture_input(f, 1, SIDE, SIDE);
    output(f, "output0", 3, (int64_t[]){1, 4 + n_classes, CELLS}, 0, NULL);
    if (names) assert_ok(f->ctx, oct_graph_set_metadata(f->g, "names", names));
    assert_ok(f->ctx, oct_detector_new(f->g, NULL, &d));
    return d;
}

/* VOC: one picture with a box of each of the names. */
static oct_dataset *voc(files *t, const char *const *names)
{
    char text[2048] = "<annotation><filename>a.png</filename>";
    oct_dataset *d = NULL;

    for (int i = 0; names[i]; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "<object><name>%s</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax>"
                 "<ymax>9</ymax></bndbox></object>",
                 names[i]);
    strcat(text, "</annotation>");
    put_folder(t, "v");
    put_text(t, "v/a.xml", text);
    assert_ok(t->ctx, open_dataset(t->ctx, NULL, below(t, "v"), false, &d));
    return d;
}

static oct_dataset *coco(files *t, const char *categories)
{
    char text[2048];
    oct_dataset *d = NULL;

    snprintf(text, sizeof(text),
             "{\"images\": [{\"id\": 1, \"file_name\": \"a.png\"}], \"categories\": [%s]}",
             categories);
    assert_ok(t->ctx, open_dataset(t->ctx, NULL, put_text(t, "a.json", text), false, &d));
    return d;
}

static void voc_is_matched_by_name(void **state)
{
    files *t = *state;
    oct_detector *net = network(t, 3, "{0: 'RBC', 1: 'WBC', 2: 'Platelets'}");
    oct_dataset *d = voc(t, (const char *[]){"WBC", "Platelets", "RBC", NULL});
    oct_class_map *m = NULL;

    assert_ok(t->ctx, oct_class_map_new(net, d, &m));
    assert_string_equal(oct_class_map_how(m), "by name");
    assert_int_equal(oct_class_map_size(m), 3);
    assert_int_equal(oct_class_map_category(m, 0), 1); /* sorted: Platelets, RBC, WBC */
    assert_int_equal(oct_class_map_category(m, 1), 2);
    assert_int_equal(oct_class_map_category(m, 2), 0);
    assert_int_equal(oct_class_map_category(m, 3), -1);
    assert_true(oct_class_map_is_clear(m));
    oct_class_map_free(m);
    oct_dataset_close(d);
    oct_detector_free(net);
}

static void voc_without_names_is_refused(void **state)
{
    files *t = *state;
    oct_detector *net = network(t, 3, NULL);
    oct_dataset *d = voc(t, (const char *[]){"WBC", "Platelets", "RBC", NULL});
    oct_class_map *m = NULL;

    assert_fails(t->ctx, oct_class_map_new(net, d, &m), OCT_ERR_ARG,
                 "which of the network's 3 classes is which of the dataset's 3 categories "
                 "(Platelets, RBC, WBC) cannot be told");
    assert_non_null(strstr(oct_ctx_error(t->ctx), "--labels"));
    oct_dataset_close(d);
    oct_detector_free(net);
}

static void names_may_be_written_otherwise(void **state)
{
    files *t = *state;
    oct_detector *net = network(t, 3, "['Dining Table', 'sofa', 'cat']");
    oct_dataset *d = voc(t, (const char *[]){"cat", "diningtable", "bird", NULL});
    oct_class_map *m = NULL;

    assert_ok(t->ctx, oct_class_map_new(net, d, &m));
    assert_int_equal(oct_class_map_category(m, 0), 2);
    assert_int_equal(oct_class_map_category(m, 1), -1);
    assert_int_equal(oct_class_map_category(m, 2), 1);
    assert_false(oct_class_map_is_clear(m)); /* nothing finds birds */
    oct_class_map_free(m);
    oct_dataset_close(d);
    oct_detector_free(net);
}

static void names_without_anything_in_common_are_refused(void **state)
{
    files *t = *state;
    oct_detector *net = network(t, 2, "['cat', 'dog']");
    oct_dataset *d = voc(t, (const char *[]){"x", "y", NULL});
    oct_class_map *m = NULL;

    assert_fails(t->ctx, oct_class_map_new(net, d, &m), OCT_ERR_ARG,
                 "none of the network's classes (cat, dog; from metadata) is a category of the "
                 "dataset (x, y)");
    oct_dataset_close(d);
    oct_detector_free(net);
}

static void one_each_needs_no_names(void **state)
{
    files *t = *state;
    oct_detector *net = network(t, 1, NULL);
    oct_dataset *d = voc(t, (const char *[]){"x", NULL});
    oct_class_map *m = NULL;

    assert_ok(t->ctx, oct_class_map_new(net, d, &m));
    assert_int_equal(oct_class_map_category(m, 0), 0);
    oct_class_map_free(m);
    oct_dataset_close(d);
    oct_detector_free(net);
}

static void coco_without_names_by_order_of_ids(void **state)
{
    files *t = *state;
    oct_detector *net = network(t, 2, NULL);
    oct_dataset *d = coco(t, "{\"id\": 9, \"name\": \"a\"}, {\"id\": 4, \"name\": \"b\"}");
    oct_class_map *m = NULL;

    assert_ok(t->ctx, oct_class_map_new(net, d, &m));
    assert_string_equal(oct_class_map_how(m), "by the order of ids");
    assert_int_equal(oct_class_map_category(m, 1), 1);
    assert_false(oct_class_map_is_clear(m));
    oct_class_map_free(m);
    oct_dataset_close(d);
    d = coco(t, "{\"id\": 9, \"name\": \"a\"}, {\"id\": 4, \"name\": \"b\"}, {\"id\": 5, \"name\": "
                "\"c\"}");
    assert_fails(t->ctx, oct_class_map_new(net, d, &m), OCT_ERR_ARG, "cannot be told");
    oct_dataset_close(d);
    oct_detector_free(net);
}

static void coco_by_its_own_80_names(void **state)
{
    files *t = *state;
    oct_detector *net = network(t, 80, NULL);
    oct_dataset *d = coco(t, "{\"id\": 18, \"name\": \"dog\"}, {\"id\": 1, \"name\": \"person\"}");
    oct_class_map *m = NULL;

    assert_ok(t->ctx, oct_class_map_new(net, d, &m));
    assert_int_equal(oct_class_map_category(m, 0), 0);
    assert_int_equal(oct_class_map_category(m, 16), 1);
    assert_int_equal(oct_class_map_category(m, 2), -1);
    assert_true(oct_class_map_is_clear(m));
    oct_class_map_free(m);
    oct_dataset_close(d);
    oct_detector_free(net);
}

/* --- YOLO --- */

static oct_dataset *yolo(files *t, const char *lines, const char *names)
{
    oct_dataset *d = NULL;

    put_folder(t, "i");
    put_folder(t, "l");
    put_picture(t, "i/a.png", 20, 20);
    put_text(t, "l/a.txt", lines);
    if (names) put_text(t, "l/classes.txt", names);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "i"), below(t, "l"), false, &d));
    return d;
}

static void numbers_of_yolo_are_the_networks(void **state)
{
    files *t = *state;
    oct_detector *net = network(t, 5, NULL);
    oct_dataset *d = yolo(t, "1 .5 .5 .5 .5\n2 .5 .5 .5 .5\n", NULL); /* 3 and 4 are not there */
    oct_class_map *m = NULL;

    assert_ok(t->ctx, oct_class_map_new(net, d, &m));
    assert_int_equal(oct_class_map_size(m), 5);
    assert_int_equal(oct_class_map_category(m, 2), 2);
    assert_int_equal(oct_class_map_category(m, 4), -1);
    assert_true(oct_class_map_is_clear(m));
    oct_class_map_free(m);
    oct_dataset_close(d);
    oct_detector_free(net);
}

static void numbers_beyond_the_network_are_named(void **state)
{
    files *t = *state;
    oct_detector *net = network(t, 2, NULL);
    oct_dataset *d = yolo(t, "1 .5 .5 .5 .5\n\n2 .5 .5 .5 .5\n", NULL);
    oct_class_map *m = NULL;

    assert_fails(t->ctx, oct_class_map_new(net, d, &m), OCT_ERR_FORMAT,
                 "l/a.txt: line 3: class 2, but the network's classes are 0 to 1");
    oct_dataset_close(d);
    oct_detector_free(net);
}

static void names_that_differ_from_yolos_are_shown(void **state)
{
    files *t = *state;
    oct_detector *net = network(t, 2, "['dog', 'cat']");
    oct_dataset *d = yolo(t, "1 .5 .5 .5 .5\n", "cat\ndog\n");
    oct_class_map *m = NULL;

    assert_ok(t->ctx, oct_class_map_new(net, d, &m));
    assert_int_equal(oct_class_map_category(m, 0), 0); /* numbers count */
    assert_false(oct_class_map_is_clear(m));
    oct_class_map_free(m);
    oct_dataset_close(d);
    oct_detector_free(net);
}

static void without_boxes_labels_are_missing(void **state)
{
    files *t = *state;
    oct_detector *net = network(t, 2, NULL);
    oct_dataset *d = NULL;
    oct_class_map *m = NULL;

    put_folder(t, "i");
    put_picture(t, "i/a.png", 20, 20);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "i"), NULL, false, &d));
    assert_fails(t->ctx, oct_class_map_new(net, d, &m), OCT_ERR_ARG,
                 "labels are missing: give --annotations FILE|DIR");
    oct_dataset_close(d);
    assert_ok(t->ctx,
              open_dataset(t->ctx, below(t, "i"), put_text(t, "x.txt", "a.png\n"), false, &d));
    assert_fails(t->ctx, oct_class_map_new(net, d, &m), OCT_ERR_ARG,
                 "the labels are a list of pictures");
    oct_dataset_close(d);
    oct_detector_free(net);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup_files, teardown_files)
    const struct CMUnitTest tests[] = {
        T(voc_is_matched_by_name),
        T(voc_without_names_is_refused),
        T(names_may_be_written_otherwise),
        T(names_without_anything_in_common_are_refused),
        T(one_each_needs_no_names),
        T(coco_without_names_by_order_of_ids),
        T(coco_by_its_own_80_names),
        T(numbers_of_yolo_are_the_networks),
        T(numbers_beyond_the_network_are_named),
        T(names_that_differ_from_yolos_are_shown),
        T(without_boxes_labels_are_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
