/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of real datasets: all labels arrive, every preset works on them. */
#include "tests/unit/augment_case.h"

static const char *shared;

static oct_dataset *open_shared(files *t, const char *images, const char *annotations)
{
    char a[512], b[512];
    oct_dataset *d = NULL;

    snprintf(a, sizeof(a), "%s/data/%s", shared, images);
    snprintf(b, sizeof(b), "%s/data/%s", shared, annotations);
    assert_ok(t->ctx, open_dataset(t->ctx, a, b, false, &d));
    return d;
}

/* Labels that training takes. */
static int64_t count_labels(const oct_dataset *d)
{
    int64_t total = 0;

    for (int64_t i = 0; i < oct_dataset_size(d); i++) {
        int32_t n = 0;
        const oct_label *l = oct_dataset_labels(d, i, &n);

        for (int32_t k = 0; k < n; k++)
            total += !l[k].is_crowd;
    }
    return total;
}

/* An epoch as it is: every label has a row. */
static void test_all_labels_arrive(void **state)
{
    files *t = *state;
    oct_dataset *d = open_shared(t, "bccd/images", "yolo-nas/bccd_val.json");
    batch_case *c = new_case(t, 320, 320);
    int64_t n = 0;

    c->o.batch = 8; /* of 72 pictures */
    c->o.n_threads = 2;
    start(c, d);
    for (int64_t i = 0; i < oct_batches_count(c->b); i++) {
        take(c);
        n += c->info.n_boxes;
        assert_int_equal(c->info.n_dropped, 0);
    }
    assert_int_equal(n, count_labels(d));
    free_case(c);
    oct_dataset_close(d);
}

static void test_presets(void **state)
{
    files *t = *state;
    oct_dataset *d = open_shared(t, "coco/val", "coco/instances_val320.json");

    for (int k = 0; oct_augment_preset_at(k); k++) {
        batch_case *c = new_case(t, 320, 256);
        float sum = 0;

        oct_augment_init(&c->a, oct_augment_preset_at(k));
        c->o.batch = 8;
        c->o.n_threads = 2;
        start(c, d);
        take(c);
        assert_true(c->info.n_boxes > 8 && oct_batches_max_boxes(c->b) <= 300);
        for (int i = 0; i < 8; i++)
            for (int r = 0; r < count_rows(c, i); r++)
                assert_in_range((int)row_of(c, i, r)[0], 0, 79);
        for (size_t i = 0; i < oct_batches_image_size(c->b); i += 97)
            sum += c->images[i];
        assert_true(sum > 0);
        free_case(c);
    }
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_labels_arrive, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_presets, setup_files, teardown_files),
    };

    if (!(shared = shared_dir("test_augment_shared"))) return 77;
    return run_test_group(tests);
}
