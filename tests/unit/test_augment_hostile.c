/* SPDX-License-Identifier: Apache-2.0 */
/* Batches from bad data: labels that are no boxes, broken pictures, odd sizes, no memory. */
#include "tests/unit/augment_case.h"

#include "base/rng.h"

/* A dataset whose second picture has this label must fail so, naming the picture. */
static void assert_label_fails(files *t, oct_label bad, oct_status status, const char *text)
{
    oct_dataset *d = rectangles(t, 1);
    batch_case *c = new_case(t, 32, 32);

    c->o.n_classes = 3;
    add_picture(t, d, 30, 30, 0, NULL, 0);
    add_labels(t, d, &bad, 1);
    assert_fails(t->ctx, oct_batches_new(t->ctx, d, &c->o, &c->b), status, text);
    assert_non_null(strstr(oct_ctx_error(t->ctx), "001.png"));
    free_case(c);
    oct_dataset_close(d);
}

static void test_bad_labels(void **state)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    files *t = *state;

    assert_label_fails(t, label_of(nan, 1, 5, 5, 0), OCT_ERR_FORMAT, "a box of nan");
    assert_label_fails(t, label_of(1, 1, inf, 5, 0), OCT_ERR_FORMAT, "inf x 5");
    assert_label_fails(t, label_of(1, 1, 5, -5, 0), OCT_ERR_FORMAT, "negative size");
    assert_label_fails(t, label_of(1, 1, 5, 5, 3), OCT_ERR_ARG, "class 3, but the network has");
    assert_label_fails(t, label_of(1, 1, 5, 5, -2), OCT_ERR_ARG, "category -2");
}

static void test_what_is_left_out(void **state)
{
    static const int32_t map[] = {0, -1, 1};
    oct_label crowd = label_of(1, 1, 20, 20, 0);
    const oct_label empty = label_of(3, 3, 0, 10, 0);
    files *t = *state;
    oct_dataset *d = rectangles(t, 6);
    batch_case *c = new_case(t, 32, 32);

    crowd.is_crowd = 1;
    add_picture(t, d, 30, 30, 0, NULL, 0);
    add_labels(t, d, &crowd, 1);
    add_picture(t, d, 30, 30, 0, NULL, 0);
    add_labels(t, d, &empty, 1);
    add_picture(t, d, 30, 30, 0, NULL, 0); /* none at all */
    c->o.class_map = map;
    c->o.batch = 9;
    assert_fails(t->ctx, oct_batches_new(t->ctx, d, &c->o, &c->b), OCT_ERR_ARG, "category 1 (b)");
    c->o.skip_unknown = true;
    start(c, d);
    take(c);
    assert_int_equal(oct_batches_max_boxes(c->b), 1);
    assert_int_equal(c->info.n_boxes, 4); /* of six, two are "b" */
    for (int i = 0; i < 9; i++)
        assert_true(row_of(c, i, 0)[0] == 0 || row_of(c, i, 0)[0] == 1 || row_of(c, i, 0)[0] == -1);
    assert_string_equal(oct_batches_note(c->b, 0),
                        "2 labels were left out: none of the network's classes");
    assert_string_equal(oct_batches_note(c->b, 1), "1 label was left out: without area");
    assert_string_equal(oct_batches_note(c->b, 2), "1 label was left out: of crowds");
    assert_null(oct_batches_note(c->b, 3));
    free_case(c);
    oct_dataset_close(d);
}

static void test_bad_options(void **state)
{
    files *t = *state;
    oct_dataset *d = rectangles(t, 2), *none = new_dataset(t);
    batch_case *c = new_case(t, 32, 32);
    const oct_batches_options good = c->o;

    assert_fails(t->ctx, oct_batches_new(t->ctx, none, &c->o, &c->b), OCT_ERR_ARG, "no pictures");
    add_picture(t, none, 4, 4, 0, NULL, 0);
    assert_fails(t->ctx, oct_batches_new(t->ctx, none, &c->o, &c->b), OCT_ERR_ARG,
                 "none of the 1 pictures has a label");
    none->is_boxes = false;
    assert_fails(t->ctx, oct_batches_new(t->ctx, none, &c->o, &c->b), OCT_ERR_ARG,
                 "boxes are missing");
    c->o.classes = true;
    assert_fails(t->ctx, oct_batches_new(t->ctx, d, &c->o, &c->b), OCT_ERR_ARG, "no class");
    c->o = good;
    c->o.batch = 0;
    assert_fails(t->ctx, oct_batches_new(t->ctx, d, &c->o, &c->b), OCT_ERR_ARG, "batch of 0");
    c->o = good;
    c->o.max_boxes = -1;
    assert_fails(t->ctx, oct_batches_new(t->ctx, d, &c->o, &c->b), OCT_ERR_ARG, "-1 boxes");
    c->o = good;
    c->o.n_threads = 100000;
    assert_fails(t->ctx, oct_batches_new(t->ctx, d, &c->o, &c->b), OCT_ERR_ARG, "100000 threads");
    c->o = good;
    c->o.preprocess = NULL;
    assert_fails(t->ctx, oct_batches_new(t->ctx, d, &c->o, &c->b), OCT_ERR_ARG, "preprocessing");
    c->o = good;
    c->p.std[1] = 0;
    assert_fails(t->ctx, oct_batches_new(t->ctx, d, &c->o, &c->b), OCT_ERR_ARG, "std 0");
    c->p.std[1] = 1;
    c->a.shear = 1000;
    assert_fails(t->ctx, oct_batches_new(t->ctx, d, &c->o, &c->b), OCT_ERR_ARG, "shear is 1000");
    free_case(c);
    oct_dataset_close(d);
    oct_dataset_close(none);
}

/* --- broken pictures --- */

static oct_dataset *with_broken(files *t, int n, int n_broken)
{
    oct_dataset *d = rectangles(t, n);

    for (int i = 0; i < n_broken; i++)
        put_text(t, strrchr(oct_dataset_path(d, 2 * i + 1), '/') + 1, "broken");
    return d;
}

static void test_broken_picture_is_an_error(void **state)
{
    files *t = *state;

    for (int threads = 1; threads <= 4; threads *= 2) {
        oct_dataset *d = with_broken(t, 6, 2);
        batch_case *c = new_case(t, 32, 32);
        oct_status st;

        c->o.n_threads = threads;
        c->o.batch = 6;
        c->o.shuffle = false;
        start(c, d);
        st = oct_batches_next(c->b, c->images, c->labels, NULL);
        assert_int_equal(st, OCT_ERR_FORMAT);
        assert_non_null(strstr(oct_ctx_error(t->ctx), "001.png")); /* always the first one */
        free_case(c);
        oct_dataset_close(d);
    }
}

static void test_broken_pictures_are_replaced(void **state)
{
    files *t = *state;
    uint64_t want[4];

    for (int threads = 1; threads <= 4; threads *= 2) {
        oct_dataset *d = with_broken(t, 6, 2);
        batch_case *c = new_case(t, 32, 32);

        d->skip_bad = true;
        c->o.n_threads = threads;
        c->a.mosaic = 0.5;
        c->a.mixup = 0.5;
        start(c, d);
        for (int i = 0; i < 12; i++) {
            take(c);
            if (threads == 1 && i < 4) want[i] = sum_of(c);
            if (i < 4) assert_true(sum_of(c) == want[i]);
        }
        assert_non_null(strstr(oct_dataset_note(d, 0), "2 "));
        free_case(c);
        oct_dataset_close(d);
    }
}

static void test_all_broken(void **state)
{
    files *t = *state;
    oct_dataset *d = with_broken(t, 2, 1);
    batch_case *c = new_case(t, 32, 32);

    put_text(t, "000.png", "");
    d->skip_bad = true;
    start(c, d);
    assert_fails(t->ctx, oct_batches_next(c->b, c->images, c->labels, NULL), OCT_ERR_FORMAT,
                 "no picture is left");
    assert_fails(t->ctx, oct_batches_next(c->b, c->images, c->labels, NULL), OCT_ERR_FORMAT,
                 "no picture is left"); /* and again */
    free_case(c);
    oct_dataset_close(d);
}

/* --- sizes --- */

static void check_rows(const batch_case *c)
{
    for (int b = 0; b < c->o.batch; b++)
        for (int r = 0; r < count_rows(c, b); r++) {
            const float *row = row_of(c, b, r);

            assert_true(row[1] >= 0 && row[2] >= 0 && row[1] < row[3] && row[2] < row[4]);
            assert_true(row[3] <= (float)c->p.width && row[4] <= (float)c->p.height);
        }
}

static oct_dataset *odd_pictures(files *t)
{
    static const int sizes[][2] = {{1, 1}, {1, 700}, {700, 1}, {3, 2}, {33, 31}};
    oct_dataset *d = new_dataset(t);

    for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
        const oct_label l = label_of(0, 0, sizes[i][0], sizes[i][1], 0);

        add_picture(t, d, sizes[i][0], sizes[i][1], 9, &l, 1);
    }
    return d;
}

/* Every preset, all fits, on pictures and inputs of unusual sizes. */
static void test_odd_sizes(void **state)
{
    static const int inputs[][2] = {{1, 1}, {7, 40}, {32, 32}};
    files *t = *state;
    oct_dataset *d = odd_pictures(t);

    for (int k = 0; oct_augment_preset_at(k); k++)
        for (size_t i = 0; i < OCT_COUNT(inputs); i++)
            for (int fit = OCT_FIT_LETTERBOX; fit <= OCT_FIT_CROP; fit++) {
                batch_case *c = new_case(t, inputs[i][0], inputs[i][1]);

                oct_augment_init(&c->a, oct_augment_preset_at(k));
                c->p.fit = fit;
                start(c, d);
                for (int n = 0; n < 9; n++) {
                    take(c);
                    check_rows(c);
                }
                free_case(c);
            }
    oct_dataset_close(d);
}

/* Any numbers that are in range, most of them at a limit. */
static void test_any_settings(void **state)
{
    files *t = *state;
    oct_dataset *d = odd_pictures(t);
    oct_rng r;

    oct_rng_init(&r, 5);
    for (int k = 0; k < 150; k++) {
        batch_case *c = new_case(t, 1 + (int)oct_rng_below(&r, 40), 1 + (int)oct_rng_below(&r, 40));
        const oct_augment_setting *s;

        for (int i = 0; (s = oct_augment_setting_at(i)); i++) {
            const double part = oct_rng_f64(&r), u = part < 0.3 ? 0 : part > 0.6 ? 1 : part;
            double v = s->least + u * (s->most - s->least);

            if (strstr(s->name, "_max")) v = fmax(v, *oct_augment_number(&c->a, i - 1));
            *oct_augment_number(&c->a, i) = v;
        }
        c->a.expand_max = fmax(c->a.expand_max, 1);
        c->p.fit = (int32_t)oct_rng_below(&r, 4);
        c->o.batch = 5;
        start(c, d);
        take(c);
        check_rows(c);
        free_case(c);
    }
    oct_dataset_close(d);
}

/* Freed while threads are at work, and never asked for anything. */
static void test_freed_early(void **state)
{
    files *t = *state;
    oct_dataset *d = rectangles(t, 5);

    for (int i = 0; i < 10; i++) {
        batch_case *c = new_case(t, 64, 64);

        c->o.n_threads = 1 + i % 4;
        c->o.depth = 1 + i % 3;
        c->a.mosaic = 1;
        start(c, d);
        if (i % 2) take(c);
        free_case(c);
    }
    oct_dataset_close(d);
}

/* --- memory --- */

static const oct_dataset *memory_dataset;

static oct_status make_batches(oct_ctx *ctx)
{
    oct_preprocess p;
    oct_augment a;
    oct_batches_options o = {.batch = 2, .preprocess = &p, .augment = &a, .n_epochs = 1};
    oct_batches *b = NULL;
    float images[2 * 3 * 16 * 16], labels[2 * 300 * 5];
    oct_status st;

    oct_preprocess_init(&p);
    p.width = p.height = 16;
    oct_augment_init(&a, oct_augment_preset_find("yolox"));
    if ((st = oct_batches_new(ctx, memory_dataset, &o, &b))) return st;
    for (int64_t i = 0; i < oct_batches_count(b) && !st; i++)
        st = oct_batches_next(b, images, labels, NULL);
    oct_batches_free(b);
    return st;
}

static void test_without_memory(void **state)
{
    files *t = *state;
    oct_dataset *d = rectangles(t, 4);

    memory_dataset = d;
    fail_each_allocation(make_batches);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bad_labels, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_what_is_left_out, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_bad_options, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_broken_picture_is_an_error, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(test_broken_pictures_are_replaced, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(test_all_broken, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_odd_sizes, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_any_settings, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_freed_early, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_without_memory, setup_files, teardown_files),
    };

    return run_test_group(tests);
}
