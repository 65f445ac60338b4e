/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: the same bytes whatever the threads, epochs, seeking, closing, the network's numbers. */
#include "tests/unit/augment_case.h"

#define N_BATCHES 14

/* Everything at once. */
static void set_all(batch_case *c)
{
    oct_augment_init(&c->a, oct_augment_preset_find("yolox"));
    c->a.mosaic = 0.7;
    c->a.mixup = 0.7;
    c->a.mixup_beta = 8;
    c->a.mixup_whole = 1;
    c->a.flip_ud = 0.5;
    c->a.hsv = c->a.jitter = c->a.swap_channels = c->a.crop = c->a.expand = 0.5;
    c->a.hsv_s = c->a.brightness_add = 0.3;
    c->a.contrast_min = 0.5;
}

static void sums(batch_case *c, const oct_dataset *d, uint64_t *out)
{
    start(c, d);
    for (int i = 0; i < N_BATCHES; i++) {
        take(c);
        assert_int_equal(c->info.epoch, i / oct_batches_count(c->b));
        assert_int_equal(c->info.batch, i % oct_batches_count(c->b));
        out[i] = sum_of(c);
    }
    stop(c);
}

static void test_threads_do_not_matter(void **state)
{
    static const int32_t threads[] = {2, 4, 1, 3}, depths[] = {0, 5, 1, 2};
    files *t = *state;
    oct_dataset *d = rectangles(t, 11);
    batch_case *c = new_case(t, 96, 80);
    uint64_t want[N_BATCHES], got[N_BATCHES];

    set_all(c);
    c->o.batch = 3;
    sums(c, d, want);
    for (int i = 1; i < N_BATCHES; i++)
        assert_true(want[i] != want[i - 1]);
    for (size_t k = 0; k < OCT_COUNT(threads); k++) {
        c->o.n_threads = threads[k];
        c->o.depth = depths[k];
        c->o.cache_bytes = k == 1 ? -1 : k == 2 ? 20000 : 0;
        sums(c, d, got);
        assert_memory_equal(got, want, sizeof(want));
    }
    c->o.seed = 2;
    sums(c, d, got);
    for (int i = 0; i < N_BATCHES; i++)
        assert_true(got[i] != want[i]);
    free_case(c);
    oct_dataset_close(d);
}

static void test_seek(void **state)
{
    static const int targets[] = {0, 13, 5, 4, 4, 9};
    files *t = *state;
    oct_dataset *d = rectangles(t, 11);
    batch_case *c = new_case(t, 64, 64);
    uint64_t want[N_BATCHES];
    int64_t n;

    set_all(c);
    c->o.n_threads = 2;
    sums(c, d, want);
    start(c, d);
    n = oct_batches_count(c->b);
    for (size_t k = 0; k < OCT_COUNT(targets); k++) {
        assert_ok(t->ctx, oct_batches_seek(c->b, targets[k] / n, targets[k] % n));
        take(c);
        assert_true(sum_of(c) == want[targets[k]]);
        if (targets[k] + 1 == N_BATCHES) continue;
        take(c);
        assert_true(sum_of(c) == want[targets[k] + 1]);
    }
    assert_fails(t->ctx, oct_batches_seek(c->b, -1, 0), OCT_ERR_ARG, "epoch -1");
    assert_fails(t->ctx, oct_batches_seek(c->b, 0, n), OCT_ERR_ARG, "an epoch has 6");
    free_case(c);
    oct_dataset_close(d);
}

/* Without augmentation the bytes are those that the network gets in use. */
static void test_none_is_as_in_use(void **state)
{
    static const char *const words[] = {
        "fit=letterbox,pad=114", "fit=letterbox_top_left,color=bgr,mean=.1:.2:.3,std=.5:.6:.7",
        "fit=stretch,layout=nhwc", "fit=crop,color=gray", "fit=letterbox,interpolation=linear"};
    files *t = *state;
    oct_dataset *d = rectangles(t, 4);

    for (size_t k = 0; k < OCT_COUNT(words); k++) {
        batch_case *c = new_case(t, 40, 56);
        float *want;

        oct_preprocess_init(&c->p);
        c->p.width = 40;
        c->p.height = 56;
        if (oct_preprocess_parse(t->ctx, &c->p, words[k]))
            fail_msg("%s: %s", words[k], oct_ctx_error(t->ctx));
        c->o.shuffle = false;
        c->o.augment = NULL;
        start(c, d);
        want = calloc(oct_batches_image_size(c->b), sizeof(*want));
        for (int64_t i = 0; i < 4; i++) {
            const size_t size = oct_batches_image_size(c->b) / 2;
            oct_image *im = NULL;

            assert_ok(t->ctx, oct_dataset_load(d, i, &im));
            assert_ok(t->ctx, oct_preprocess_run(t->ctx, &c->p, im, OCT_DTYPE_F32, want, NULL));
            oct_image_free(im);
            if (i % 2 == 0) take(c);
            assert_memory_equal(c->images + (size_t)(i % 2) * size, want, size * sizeof(float));
        }
        free(want);
        free_case(c);
    }
    oct_dataset_close(d);
}

/* Pictures of levels 1, 2, ... and no label but one that is never seen. */
static oct_dataset *levels(files *t, int n)
{
    oct_dataset *d = new_dataset(t);
    const oct_label l = label_of(100, 100, 5, 5, 0);

    for (int i = 0; i < n; i++)
        add_picture(t, d, 8, 8, i + 1, &l, 1);
    return d;
}

/* How often each level is in the next `n` batches. */
static void count_levels(batch_case *c, int64_t n, int *seen)
{
    const size_t size = oct_batches_image_size(c->b) / (size_t)c->o.batch;

    for (int64_t k = 0; k < n; k++) {
        take(c);
        for (int i = 0; i < c->o.batch; i++)
            seen[(int)c->images[(size_t)i * size]]++;
    }
}

static void test_epochs(void **state)
{
    files *t = *state;
    oct_dataset *d = levels(t, 10);
    batch_case *c = new_case(t, 8, 8);

    c->o.batch = 4;
    start(c, d);
    assert_int_equal(oct_batches_count(c->b), 3);
    for (int epoch = 0; epoch < 4; epoch++) { /* each once, and two more */
        int seen[11] = {0}, more = 0;

        count_levels(c, 3, seen);
        for (int i = 1; i <= 10; i++) {
            assert_in_range(seen[i], 1, 2);
            more += seen[i] - 1;
        }
        assert_int_equal(more, 2);
    }
    stop(c);
    c->o.drop_last = true;
    start(c, d);
    assert_int_equal(oct_batches_count(c->b), 2);
    for (int epoch = 0; epoch < 4; epoch++) {
        int seen[11] = {0};

        count_levels(c, 2, seen);
        for (int i = 1; i <= 10; i++)
            assert_in_range(seen[i], 0, 1);
    }
    stop(c);
    c->o.batch = 25; /* more than there are */
    start(c, d);
    assert_int_equal(oct_batches_count(c->b), 1);
    for (int epoch = 0; epoch < 2; epoch++) {
        int seen[11] = {0};

        count_levels(c, 1, seen);
        for (int i = 1; i <= 10; i++)
            assert_in_range(seen[i], 2, 3);
    }
    free_case(c);
    oct_dataset_close(d);
}

static void test_order(void **state)
{
    files *t = *state;
    oct_dataset *d = levels(t, 10);
    batch_case *c = new_case(t, 8, 8);
    int same = 0;

    c->o.batch = 1;
    c->o.shuffle = false;
    start(c, d);
    for (int i = 0; i < 20; i++) {
        take(c);
        assert_int_equal((int)c->images[0], i % 10 + 1);
    }
    stop(c);
    c->o.shuffle = true;
    start(c, d);
    for (int i = 0; i < 20; i++) {
        take(c);
        same += (int)c->images[0] == i % 10 + 1;
    }
    assert_in_range(same, 0, 10);
    free_case(c);
    oct_dataset_close(d);
}

/* The last epochs are as if there was no mosaic and mixup. */
static void test_close(void **state)
{
    files *t = *state;
    oct_dataset *d = rectangles(t, 4);
    batch_case *c = new_case(t, 64, 64);
    uint64_t with[6], without[6];

    c->o.n_epochs = 3;
    c->a.mosaic = c->a.mixup = 1;
    c->a.close = 1;
    start(c, d);
    for (int i = 0; i < 6; i++) {
        take(c);
        with[i] = sum_of(c);
    }
    assert_fails(t->ctx, oct_batches_next(c->b, c->images, c->labels, NULL), OCT_ERR_STATE,
                 "3 epochs are over");
    c->o.max_boxes = oct_batches_max_boxes(c->b);
    stop(c);
    c->a.mosaic = c->a.mixup = 0;
    start(c, d);
    for (int i = 0; i < 6; i++) {
        take(c);
        without[i] = sum_of(c);
    }
    for (int i = 0; i < 6; i++)
        assert_int_equal(with[i] == without[i], i >= 4);
    free_case(c);
    oct_dataset_close(d);
}

/* --- classes --- */

static oct_dataset *classes(files *t)
{
    oct_dataset *d = levels(t, 6);

    d->is_boxes = false;
    for (int i = 0; i < 6; i++)
        d->items[i].class_index = i % 3;
    return d;
}

static void test_classes(void **state)
{
    static const int32_t map[] = {7, -1, 5};
    files *t = *state;
    oct_dataset *d = classes(t);
    batch_case *c = new_case(t, 8, 8);
    const int64_t *got;

    c->o.classes = true;
    c->p.fit = OCT_FIT_STRETCH;
    c->o.batch = 4;
    c->o.class_map = map;
    oct_augment_init(&c->a, oct_augment_preset_of("classifier"));
    assert_fails(t->ctx, oct_batches_new(t->ctx, d, &c->o, &c->b), OCT_ERR_ARG, "category 1 (b)");
    c->o.skip_unknown = true;
    start(c, d);
    assert_int_equal(oct_batches_count(c->b), 1); /* of six pictures, two have an unknown class */
    got = (const int64_t *)(const void *)c->labels;
    for (int k = 0; k < 3; k++) {
        take(c);
        for (int i = 0; i < 4; i++)
            assert_int_equal(got[i], map[((int)c->images[(size_t)i * 3 * 64] - 1) % 3]);
    }
    assert_string_equal(oct_batches_note(c->b, 0),
                        "2 labels were left out: none of the network's classes");
    assert_null(oct_batches_note(c->b, 1));
    stop(c);
    c->a.mosaic = 1;
    assert_fails(t->ctx, oct_batches_new(t->ctx, d, &c->o, &c->b), OCT_ERR_ARG, "mosaic needs");
    free_case(c);
    oct_dataset_close(d);
}

/* --- the sheet --- */

static void test_contact_sheet(void **state)
{
    const oct_label l = label_of(40, 30, 40, 30, 2);
    const char *names[] = {"a", "b", "cell"};
    files *t = *state;
    oct_dataset *d = new_dataset(t);
    batch_case *c = new_case(t, 120, 90);
    oct_image *im = NULL;
    const uint8_t *p;

    for (int i = 0; i < 5; i++)
        add_picture(t, d, 120, 90, 20, &l, 1);
    c->o.batch = 5;
    c->p.color = OCT_COLOR_BGR;
    c->p.mean[1] = 10;
    start(c, d);
    take(c);
    assert_ok(t->ctx,
              oct_batches_draw(c->b, c->images, c->labels, names, 3, below(t, "sheet.png")));
    assert_ok(t->ctx, oct_image_load(t->ctx, below(t, "sheet.png"), NULL, &im));
    assert_int_equal(oct_image_width(im), 2 * 126 - 6);
    assert_int_equal(oct_image_height(im), 3 * 96 - 6);
    p = oct_image_rgb(im) + (size_t)((96 + 10) * im->width + 126 + 10) * 3; /* the fourth's back */
    assert_true(p[0] == 20 && p[1] == 20 && p[2] == 20);
    p = oct_image_rgb(im) + (size_t)((96 + 50) * im->width + 126 + 60) * 3; /* in its box */
    assert_true(p[0] == 255 && p[1] == 255 && p[2] == 255);
    p = oct_image_rgb(im) + (size_t)((96 + 50) * im->width + 126 + 40) * 3; /* its frame */
    assert_true(p[0] != p[1] || p[1] != p[2]);
    oct_image_free(im);
    free_case(c);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_threads_do_not_matter, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_seek, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_none_is_as_in_use, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_epochs, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_order, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_close, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_classes, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_contact_sheet, setup_files, teardown_files),
    };

    return run_test_group(tests);
}
