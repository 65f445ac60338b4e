/* SPDX-License-Identifier: Apache-2.0 */
/* What was left out of a dataset is said: how many, why, and the first names. */
#include "tests/unit/data_files.h"

static void names_files_that_are_no_pictures(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;

    put_folder(t, "p");
    put_picture(t, "p/a.png", 4, 4);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), NULL, false, &d));
    assert_null(oct_dataset_note(d, 0));
    assert_null(oct_dataset_note(d, -1));
    oct_dataset_close(d);
    put_text(t, "p/notes.txt", "some words");
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), NULL, false, &d));
    assert_string_equal(oct_dataset_note(d, 0),
                        "1 file is no picture and was left out (notes.txt)");
    assert_null(oct_dataset_note(d, 1));
    oct_dataset_close(d);
    for (int i = 0; i < 8; i++) {
        char name[16];

        snprintf(name, sizeof(name), "p/%d.csv", i);
        put_text(t, name, "1,2");
    }
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), NULL, false, &d));
    assert_string_equal(oct_dataset_note(d, 0), "9 files are no pictures and were left out (0.csv, "
                                                "1.csv, 2.csv, 3.csv, ...)");
    assert_int_equal(oct_dataset_size(d), 1);
    assert_int_equal(oct_dataset_skipped(d), 0); /* they were never part of it */
    oct_dataset_close(d);
}

#define OBJECT(x1)                                                                                 \
    "<object><name>a</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>" x1 "</xmax><ymax>3</ymax>"  \
    "</bndbox></object>"

static void names_labels_that_are_left_out(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;

    put_folder(t, "images");
    put_folder(t, "annotations");
    put_picture(t, "images/a.png", 4, 4);
    put_text(t, "annotations/a.xml",
             "<annotation>" OBJECT("1") OBJECT("3") OBJECT("x") "</annotation>");
    assert_ok(t->ctx, open_dataset(t->ctx, t->folder, NULL, true, &d));
    assert_non_null(strstr(oct_dataset_note(d, 0), "1 entry of the labels is wrong and was left"));
    assert_non_null(strstr(oct_dataset_note(d, 0), "a.xml: object 3: <xmax> is \"x\""));
    assert_string_equal(oct_dataset_note(d, 1), "1 box has no area and was left out (a.xml)");
    assert_null(oct_dataset_note(d, 2));
    oct_dataset_close(d);
}

static oct_status open_whole(const files *t, const char *images, bool skip_bad, oct_dataset **out)
{
    oct_dataset_options o;

    oct_dataset_options_init(&o);
    o.images = below(t, images);
    o.annotations = below(t, "x.json");
    o.skip_bad = skip_bad;
    o.need_files = 1;
    return oct_dataset_open(t->ctx, &o, out);
}

static void counts_missing_pictures(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;

    put_folder(t, "p");
    put_picture(t, "p/a.png", 4, 4);
    put_text(t, "x.json",
             "{\"images\":[{\"id\":1,\"file_name\":\"a.png\"},{\"id\":2,"
             "\"file_name\":\"b.png\"},{\"id\":3,\"file_name\":\"c.png\"}]}");
    assert_fails(t->ctx, open_whole(t, "p", false, &d), OCT_ERR_IO,
                 "p/b.png: there is no such file; of 3 pictures 2 are missing");
    assert_ok(t->ctx, open_whole(t, "p", true, &d));
    assert_int_equal(oct_dataset_size(d), 1);
    assert_int_equal(oct_dataset_skipped(d), 2);
    assert_non_null(strstr(oct_dataset_note(d, 0), "2 pictures are missing and were left out ("));
    oct_dataset_close(d);
    assert_ok(t->ctx, open_dataset(t->ctx, NULL, below(t, "x.json"), false, &d)); /* labels alone */
    oct_dataset_close(d);
    put_folder(t, "q");
    assert_fails(t->ctx, open_whole(t, "q", true, &d), OCT_ERR_IO, "of 3 pictures 3 are missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_files_that_are_no_pictures, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(names_labels_that_are_left_out, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(counts_missing_pictures, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
