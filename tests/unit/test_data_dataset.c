/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets other than COCO's: recognised, read, cut down; broken ones. */
#include "tests/unit/data_files.h"

#define VOC(objects)                                                                               \
    "<annotation><filename>p.png</filename><size><width>20</width><height>10</height>"             \
    "<depth>3</depth></size>" objects "</annotation>"
#define OBJECT(name, x0, y0, x1, y1, more)                                                         \
    "<object><name> " name " </name>" more "<bndbox><xmin>" x0 "</xmin><ymin>" y0                  \
    "</ymin><xmax>" x1 "</xmax><ymax>" y1 "</ymax></bndbox></object>"

static void make_voc(files *t)
{
    put_folder(t, "images");
    put_folder(t, "annotations");
    put_picture(t, "images/p.png", 20, 10);
    put_picture(t, "images/q.jpg", 20, 10);
    put_picture(t, "images/unlabelled.png", 2, 2);
    put_text(t, "annotations/a.xml",
             VOC(OBJECT("zebra", "1", "2", "4", "8", "<difficult>1</difficult>")
                     OBJECT("ant", "0", "0", "20", "10.5", "")));
    put_text(t, "annotations/q.xml", "<annotation><object/></annotation>");
}

static void reads_voc(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;
    int32_t n = 0;
    const oct_label *l;

    make_voc(t);
    assert_bad(t, below(t, "images"), below(t, "annotations"),
               "q.xml: object 1: there is no <name>", 2, 1);
    put_text(t, "annotations/q.xml", "<annotation></annotation>");
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "images"), below(t, "annotations"), false, &d));
    assert_string_equal(oct_dataset_kind(d), "VOC");
    assert_int_equal(oct_dataset_size(d), 2);
    assert_string_equal(oct_dataset_path(d, 0), below(t, "images/p.png")); /* by <filename> */
    assert_string_equal(oct_dataset_path(d, 1), below(t, "images/q.jpg")); /* by its own name */
    assert_int_equal(oct_dataset_image_id(d, 1), 1);
    assert_string_equal(oct_dataset_category_name(d, 0), "ant");
    assert_string_equal(oct_dataset_category_name(d, 1), "zebra");
    assert_label(d, 0, 0, 1, 2, 3, 6, 1);
    assert_label(d, 0, 1, 0, 0, 20, 10.5, 0);
    l = oct_dataset_labels(d, 0, &n);
    assert_true(n == 2 && l[0].is_crowd && !l[1].is_crowd && l[0].area == 18);
    assert_null(oct_dataset_labels(d, 1, &n));
    oct_dataset_close(d);

    /* A point is no object. */
    put_text(t, "annotations/q.xml", VOC(OBJECT("bee", "3", "3", "3", "3", "")));
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "images"), below(t, "annotations"), false, &d));
    assert_null(oct_dataset_labels(d, 1, &n));
    assert_int_equal(oct_dataset_skipped(d), 1);
    assert_int_equal(oct_dataset_n_categories(d), 2);
    oct_dataset_close(d);
    put_text(t, "annotations/q.xml", "<annotation></annotation>");

    /* The folder above both; and the labels alone. */
    assert_ok(t->ctx, open_dataset(t->ctx, t->folder, NULL, false, &d));
    assert_string_equal(oct_dataset_kind(d), "VOC");
    oct_dataset_close(d);
    assert_bad(t, NULL, below(t, "annotations"), "q.xml: there is no <filename>", 1, 1);
}

static void names_broken_voc_files(void **state)
{
    files *t = *state;
    static const struct {
        const char *text, *error;
        int n_items;
    } cases[] = {
        {"", "q.xml", 1},
        {"<annotation>", "q.xml: line 1: ", 1},
        {"<wrong/>", "q.xml: there is no <annotation>", 1},
        {"<!DOCTYPE a [<!ENTITY x \"y\">]><annotation><filename>&x;</filename></annotation>",
         "q.xml: XML with a DTD is not read", 1},
        {"<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><annotation/>", "with a DTD", 1},
        {"<annotation><size><width>x</width></size></annotation>", "<width> is \"x\", not a number",
         1},
        {"<annotation><size><width>2</width><height>1e99</height></size></annotation>",
         "q.xml: a picture of 2 x 1e+99", 1},
        {"<annotation><object><name>a</name></object></annotation>",
         "q.xml: object 1: there is no <bndbox>", 2},
        {"<annotation><object><name>a</name><bndbox/></object></annotation>",
         "q.xml: object 1: there is no <xmin>", 2},
        {VOC(OBJECT("a", "1", "2", "nan", "4", "")), "<xmax> is \"nan\", not a number", 2},
        {VOC(OBJECT("a", "1", "2", "0", "4", "")), "object 1: a box of negative size", 2},
        {VOC(OBJECT("a", "1", "2", "3", "4", "") OBJECT("a", "21", "2", "30", "4", "")),
         "object 2: the box 21, 2, 9 x 2 lies outside", 2},
        {VOC(OBJECT("", "1", "2", "3", "4", "")), "object 1: there is no <name>", 2},
    };

    make_voc(t);
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        put_text(t, "annotations/q.xml", cases[i].text);
        assert_bad(t, below(t, "images"), below(t, "annotations"), cases[i].error, cases[i].n_items,
                   1);
    }
    put_text(t, "annotations/r.xml", "<annotation/>");
    put_text(t, "annotations/q.xml", "<annotation/>");
    assert_bad(t, below(t, "images"), below(t, "annotations"), "r.xml: its picture is not in", 2,
               1);
}

static void reads_yolo(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;
    int32_t n = 0;

    put_folder(t, "images");
    put_folder(t, "labels");
    put_picture(t, "images/a.png", 40, 20);
    put_picture(t, "images/b.jpg", 40, 20);
    put_picture(t, "images/c.png", 4, 2);
    put_text(t, "labels/a.txt", "2 0.5 0.5 0.5 0.25\n\n 0  .25 .5 .5 1 \r\n");
    put_text(t, "labels/b.txt", "");
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "images"), below(t, "labels"), false, &d));
    assert_string_equal(oct_dataset_kind(d), "YOLO");
    assert_int_equal(oct_dataset_size(d), 3);
    assert_int_equal(oct_dataset_n_categories(d), 3);
    assert_string_equal(oct_dataset_category_name(d, 2), "2");
    assert_label(d, 0, 0, 10, 7.5, 20, 5, 2);
    assert_label(d, 0, 1, 0, 0, 20, 20, 0);
    assert_null(oct_dataset_labels(d, 1, &n)); /* an empty file */
    assert_null(oct_dataset_labels(d, 2, &n)); /* no file */
    oct_dataset_close(d);

    put_text(t, "labels/classes.txt", "ant\nbee\r\ncat\ndog\n");
    assert_ok(t->ctx, open_dataset(t->ctx, t->folder, NULL, false, &d));
    assert_int_equal(oct_dataset_n_categories(d), 4);
    assert_string_equal(oct_dataset_category_name(d, 1), "bee");
    oct_dataset_close(d);
    assert_fails(t->ctx, open_dataset(t->ctx, NULL, below(t, "labels"), false, &d), OCT_ERR_ARG,
                 "the pictures must be given");
}

static void names_broken_yolo_lines(void **state)
{
    files *t = *state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"0 .5 .5 .5\n", "a.txt: line 1: 4 numbers; a box has 5"},
        {"0 .5 .5 .5 .5\n0 .5 .5 .5 .5 .5\n", "a.txt: line 2: 6 numbers"},
        {"x .5 .5 .5 .5\n", "a.txt: line 1: \"x .5 .5 .5 .5\" is not a number"},
        {"0 .5 nan .5 .5\n", "is not a number"},
        {"1.5 .5 .5 .5 .5\n", "there is no class 1.5"},
        {"-1 .5 .5 .5 .5\n", "there is no class -1"},
        {"99999999 .5 .5 .5 .5\n", "there is no class"},
        {"0 .5 .5 -.5 .5\n", "negative size"},
        {"0 320 240 100 100\n", "is not a part of the picture"},
        {"0 1.4 .5 .1 .1\n", "lies outside"},
    };

    put_folder(t, "images");
    put_folder(t, "labels");
    put_picture(t, "images/a.png", 40, 20);
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        put_text(t, "labels/a.txt", cases[i].text);
        assert_bad(t, below(t, "images"), below(t, "labels"), cases[i].error, 1, 1);
    }
    put_text(t, "images/b.png", "not a picture");
    put_text(t, "labels/b.txt", "0 .5 .5 .5 .5\n");
    put_text(t, "labels/a.txt", "");
    assert_bad(t, below(t, "images"), below(t, "labels"), "b.png: no picture: neither JPEG nor PNG",
               1, 1);
}

static void reads_lists(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;

    put_folder(t, "val");
    put_text(t, "labels.txt", "# comment\na.jpg 3\n\nwith space.jpg\t0\r\n  /abs/c.jpg   3");
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "val"), below(t, "labels.txt"), false, &d));
    assert_string_equal(oct_dataset_kind(d), "list");
    assert_int_equal(oct_dataset_size(d), 3);
    assert_int_equal(oct_dataset_n_categories(d), 4);
    assert_string_equal(oct_dataset_path(d, 1), below(t, "val/with space.jpg"));
    assert_string_equal(oct_dataset_path(d, 2), "/abs/c.jpg");
    assert_int_equal(oct_dataset_class(d, 0), 3);
    assert_int_equal(oct_dataset_class(d, 1), 0);
    oct_dataset_close(d);

    /* words; relative to the list itself */
    put_text(t, "words.txt", "a.jpg dog\nb.jpg cat\nc.jpg dog\nd.jpg 7\n");
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "words.txt"), NULL, false, &d));
    assert_int_equal(oct_dataset_n_categories(d), 3);
    assert_string_equal(oct_dataset_path(d, 0), below(t, "a.jpg"));
    assert_int_equal(oct_dataset_class(d, 0), 2);
    assert_int_equal(oct_dataset_class(d, 1), 1);
    assert_int_equal(oct_dataset_class(d, 2), 2);
    assert_int_equal(oct_dataset_class(d, 3), 0);
    oct_dataset_close(d);

    put_text(t, "plain.txt", "a.jpg\nb.jpg\n");
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "val"), below(t, "plain.txt"), false, &d));
    assert_int_equal(oct_dataset_class(d, 1), -1);
    assert_int_equal(oct_dataset_n_categories(d), 0);
    oct_dataset_close(d);

    put_text(t, "mixed.txt", "a.jpg 1\nb.jpg\nc.jpg 2\n");
    assert_bad(t, NULL, below(t, "mixed.txt"), "mixed.txt: line 2: \"b.jpg\" has no class", 2, 1);
    put_text(t, "binary.txt", "a.jpg 1\nb.jpg 2\n");
    put_bytes(t, "binary.txt", "a 1\nb\0c 2\n", 10);
    assert_bad(t, NULL, below(t, "binary.txt"), "binary.txt: line 2: not a text", 1, 1);
}

static void reads_folders(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;

    put_folder(t, "plain");
    put_picture(t, "plain/b.png", 1, 1);
    put_picture(t, "plain/a.JPG", 1, 1);
    put_picture(t, "plain/B.jpeg", 1, 1);
    put_text(t, "plain/readme.txt", "x");
    put_text(t, "plain/.hidden.png", "x");
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "plain"), NULL, false, &d));
    assert_string_equal(oct_dataset_kind(d), "pictures");
    assert_int_equal(oct_dataset_size(d), 3);
    assert_string_equal(oct_dataset_path(d, 0), below(t, "plain/B.jpeg")); /* by bytes */
    assert_string_equal(oct_dataset_path(d, 1), below(t, "plain/a.JPG"));
    assert_int_equal(oct_dataset_image_id(d, 2), 2);
    oct_dataset_close(d);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "plain/b.png"), NULL, false, &d));
    assert_int_equal(oct_dataset_size(d), 1);
    oct_dataset_close(d);

    put_folder(t, "classes");
    put_folder(t, "classes/dog");
    put_folder(t, "classes/cat");
    put_folder(t, "classes/empty");
    put_picture(t, "classes/dog/2.png", 1, 1);
    put_picture(t, "classes/cat/1.png", 1, 1);
    put_picture(t, "classes/dog/1.png", 1, 1);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "classes"), NULL, false, &d));
    assert_string_equal(oct_dataset_kind(d), "class folders");
    assert_int_equal(oct_dataset_size(d), 3);
    assert_int_equal(oct_dataset_n_categories(d), 3);
    assert_string_equal(oct_dataset_category_name(d, 1), "dog");
    assert_int_equal(oct_dataset_class(d, 0), 0);
    assert_int_equal(oct_dataset_class(d, 2), 1);
    assert_string_equal(oct_dataset_path(d, 2), below(t, "classes/dog/2.png"));
    oct_dataset_close(d);
}

static void says_what_it_cannot_recognise(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;
    oct_dataset_options o;

    put_folder(t, "empty");
    assert_fails(t->ctx, open_dataset(t->ctx, below(t, "empty"), NULL, false, &d), OCT_ERR_FORMAT,
                 "no pictures");
    assert_fails(t->ctx, open_dataset(t->ctx, below(t, "empty"), below(t, "empty"), false, &d),
                 OCT_ERR_FORMAT, "neither .xml (VOC) nor .txt (YOLO)");
    assert_fails(t->ctx, open_dataset(t->ctx, below(t, "none"), NULL, false, &d), OCT_ERR_IO,
                 "none");
    assert_fails(t->ctx, open_dataset(t->ctx, below(t, "none"), below(t, "x.json"), false, &d),
                 OCT_ERR_IO, "none: not a folder of pictures");
    assert_fails(t->ctx, open_dataset(t->ctx, NULL, below(t, "x.json"), false, &d), OCT_ERR_IO,
                 "x.json");
    assert_fails(t->ctx, open_dataset(t->ctx, NULL, NULL, false, &d), OCT_ERR_ARG, "neither");
    put_text(t, "a.json", "{}");
    assert_fails(t->ctx, open_dataset(t->ctx, below(t, "a.json"), NULL, false, &d), OCT_ERR_ARG,
                 "give it as annotations");
    put_text(t, "empty/a.json", "{}");
    put_text(t, "empty/b.json", "{}");
    assert_fails(t->ctx, open_dataset(t->ctx, NULL, below(t, "empty"), false, &d), OCT_ERR_ARG,
                 "2 .json files");
    oct_dataset_options_init(&o);
    o.images = t->folder;
    o.limit = -1;
    assert_fails(t->ctx, oct_dataset_open(t->ctx, &o, &d), OCT_ERR_ARG, "limit -1");
}

/* --- which of them --- */

static const char *chosen(files *t, const oct_dataset_options *o, char text[64])
{
    oct_dataset *d = NULL;
    size_t used = 0;

    assert_ok(t->ctx, oct_dataset_open(t->ctx, o, &d));
    text[0] = '\0';
    for (int64_t i = 0; i < oct_dataset_size(d); i++)
        used += (size_t)snprintf(text + used, 64 - used, "%s", oct_dataset_path(d, i));
    oct_dataset_close(d);
    return text;
}

static void picks_subsets(void **state)
{
    files *t = *state;
    oct_dataset_options o;
    char text[64], again[64];
    int differ = 0;

    put_text(t, "list.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
    put_folder(t, "v");
    oct_dataset_options_init(&o);
    o.annotations = below(t, "list.txt");
    assert_string_equal(chosen(t, &o, text), "abcdefghij");
    o.limit = 4;
    assert_string_equal(chosen(t, &o, text), "abcd");
    o.limit = 0;
    o.subset_size = 3;
    assert_string_equal(chosen(t, &o, text), "adg");
    o.subset_size = 10;
    assert_string_equal(chosen(t, &o, text), "abcdefghij");
    o.subset_size = 99;
    assert_string_equal(chosen(t, &o, text), "abcdefghij");
    o.limit = 6;
    o.subset_size = 2;
    assert_string_equal(chosen(t, &o, text), "ad");

    o.limit = 0;
    o.subset_size = 4;
    o.random = 1;
    for (uint64_t seed = 0; seed < 20; seed++) {
        o.seed = seed;
        assert_string_equal(chosen(t, &o, text), chosen(t, &o, again));
        assert_int_equal(strlen(text), 4);
        for (int i = 1; i < 4; i++)
            assert_true(text[i] > text[i - 1]); /* in order, each once */
        o.seed = seed + 1;
        differ += strcmp(text, chosen(t, &o, again)) != 0;
    }
    assert_true(differ > 10);
}

static const files *in_memory;

static oct_status open_voc(oct_ctx *ctx)
{
    oct_dataset *d = NULL;
    const oct_status st = open_dataset(ctx, in_memory->folder, NULL, false, &d);

    oct_dataset_close(d);
    return st;
}

static void survives_lack_of_memory(void **state)
{
    files *t = *state;

    make_voc(t);
    put_text(t, "annotations/q.xml", "<annotation/>");
    in_memory = t;
    fail_each_allocation(open_voc);
    /* the same pictures with YOLO's labels */
    assert_int_equal(remove(below(t, "annotations/q.xml")), 0);
    assert_int_equal(remove(below(t, "annotations/a.xml")), 0);
    put_text(t, "annotations/p.txt", "0 .5 .5 .5 .5\n");
    fail_each_allocation(open_voc);
}

static void survives_lack_of_memory_with_lists(void **state)
{
    files *t = *state;

    put_folder(t, "a");
    put_folder(t, "b");
    put_picture(t, "a/1.png", 1, 1);
    put_picture(t, "b/1.png", 1, 1);
    in_memory = t;
    fail_each_allocation(open_voc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_voc, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(names_broken_voc_files, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(reads_yolo, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(names_broken_yolo_lines, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(reads_lists, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(reads_folders, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(says_what_it_cannot_recognise, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(picks_subsets, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(survives_lack_of_memory, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(survives_lack_of_memory_with_lists, setup_files,
                                        teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
