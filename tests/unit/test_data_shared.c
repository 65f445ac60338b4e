/* SPDX-License-Identifier: Apache-2.0 */
/* Real datasets: blood cells as VOC and as COCO, COCO's 5,000 pictures, classes, tensors. */
#include "tests/unit/data_files.h"

#include "base/machine.h"

static const char *shared;

static const char *in_shared(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/data/%s", shared, name);
    return path;
}

static int64_t count_labels(const oct_dataset *d)
{
    int64_t total = 0;

    for (int64_t i = 0; i < oct_dataset_size(d); i++) {
        int32_t n = 0;

        oct_dataset_labels(d, i, &n);
        total += n;
    }
    return total;
}

static int64_t find_picture(const oct_dataset *d, const char *name)
{
    for (int64_t i = 0; i < oct_dataset_size(d); i++) {
        if (!strcmp(strrchr(oct_dataset_path(d, i), '/') + 1, name)) return i;
    }
    return -1;
}

/* The same boxes written down twice, by different programs. */
static void reads_blood_cells_twice(void **state)
{
    fixture *f = *state;
    oct_dataset *voc = NULL, *coco = NULL;

    assert_ok(f->ctx, open_dataset(f->ctx, in_shared("bccd"), NULL, false, &voc));
    assert_string_equal(oct_dataset_kind(voc), "VOC");
    assert_int_equal(oct_dataset_size(voc), 364);
    assert_int_equal(count_labels(voc) + oct_dataset_skipped(voc), 4888); /* some are points */
    assert_true(oct_dataset_skipped(voc) < 30);
    assert_int_equal(oct_dataset_n_categories(voc), 3);
    assert_string_equal(oct_dataset_category_name(voc, 0), "Platelets");
    assert_string_equal(oct_dataset_category_name(voc, 2), "WBC");
    assert_ok(f->ctx, open_dataset(f->ctx, in_shared("bccd/images"),
                                   in_shared("yolo-nas/bccd_val.json"), false, &coco));
    assert_int_equal(oct_dataset_size(coco), 72);
    assert_int_equal(count_labels(coco), 964);
    for (int64_t i = 0; i < 72; i++) {
        const int64_t k = find_picture(voc, strrchr(oct_dataset_path(coco, i), '/') + 1);
        int32_t n = 0, n_voc = 0;
        const oct_label *a = oct_dataset_labels(coco, i, &n), *b;

        assert_true(k >= 0);
        b = oct_dataset_labels(voc, k, &n_voc);
        assert_int_equal(n, n_voc);
        for (int32_t j = 0; j < n; j++) {
            assert_true(a[j].x == b[j].x && a[j].y == b[j].y && a[j].width == b[j].width);
            assert_string_equal(oct_dataset_category_name(coco, a[j].category),
                                oct_dataset_category_name(voc, b[j].category));
        }
    }
    oct_dataset_close(coco);
    oct_dataset_close(voc);
}

static void reads_coco_quickly_and_leanly(void **state)
{
    fixture *f = *state;
    oct_dataset *d = NULL;
    const size_t rss = oct_machine_peak_rss();
    const int64_t start = oct_time_ns();

    assert_ok(f->ctx, open_dataset(f->ctx, NULL, in_shared("coco/instances_val2017_rebuilt.json"),
                                   false, &d));
    /* It takes a fifth of a second; the rest is for a machine that has other work. */
    assert_true(oct_time_ns() - start < (int64_t)5e9);
#ifndef __SANITIZE_ADDRESS__ /* it keeps what was freed */
    assert_true(oct_machine_peak_rss() - rss < (size_t)100 << 20);
#endif
    (void)rss;
    assert_int_equal(oct_dataset_size(d), 5000);
    assert_int_equal(oct_dataset_n_categories(d), 80);
    assert_int_equal(count_labels(d), 36781);
    assert_int_equal(oct_dataset_image_id(d, 0), 139);
    oct_dataset_close(d);
    assert_ok(f->ctx, open_dataset(f->ctx, in_shared("coco/val"),
                                   in_shared("coco/instances_val320.json"), false, &d));
    assert_int_equal(oct_dataset_size(d), 320);
    oct_dataset_close(d);
}

static void reads_classes(void **state)
{
    fixture *f = *state;
    oct_dataset *d = NULL;

    assert_ok(f->ctx, open_dataset(f->ctx, in_shared("imagenet/val"),
                                   in_shared("imagenet/labels.txt"), false, &d));
    assert_int_equal(oct_dataset_size(d), 500);
    assert_int_equal(oct_dataset_class(d, 2), 101);
    oct_dataset_close(d);
}

/* What somebody else's Python made of two pictures, read from .npz and made again here. */
static void makes_the_inputs_another_program_made(void **state)
{
    static const char *const names[] = {"BloodImage_00004.jpg", "BloodImage_00115.jpg"};
    fixture *f = *state;
    oct_dataset *d = NULL, *npy = NULL;
    oct_preprocess p;
    float *got = malloc(3 * 320 * 320 * sizeof(*got));

    assert_non_null(got);
    oct_preprocess_init(&p);
    p.width = p.height = 320;
    assert_ok(f->ctx, open_dataset(f->ctx, in_shared("yolo-nas/expected.npz"), NULL, false, &d));
    assert_string_equal(oct_dataset_kind(d), "npz");
    assert_int_equal(oct_dataset_size(d), 2);
    assert_ok(f->ctx, open_dataset(f->ctx, in_shared("pt2"), NULL, false, &npy));
    assert_string_equal(oct_dataset_kind(npy), "npz folder");
    oct_dataset_close(npy);
    for (int64_t i = 0; i < 2; i++) {
        oct_image *im = NULL;
        oct_tensor *want = NULL, *boxes = NULL;
        char path[512];
        float worst = 0;

        snprintf(path, sizeof(path), "%s/%s", in_shared("bccd/images"), names[i]);
        assert_ok(f->ctx, oct_image_load(f->ctx, path, NULL, &im));
        assert_ok(f->ctx, oct_preprocess_run(f->ctx, &p, im, OCT_DTYPE_F32, got, NULL));
        assert_ok(f->ctx, oct_dataset_tensor(d, i, "input", &want));
        assert_int_equal(oct_tensor_len(want), 3 * 320 * 320);
        for (int64_t k = 0; k < oct_tensor_len(want); k++)
            worst = fmaxf(worst, fabsf(got[k] - ((const float *)oct_tensor_data(want))[k]));
        assert_true(worst <= 1.001f / 255);
        assert_ok(f->ctx, oct_dataset_tensor(d, i, "boxes", &boxes));
        assert_int_equal(oct_tensor_len(boxes), 2100 * 4);
        oct_tensor_unref(boxes);
        oct_tensor_unref(want);
        oct_image_free(im);
    }
    oct_dataset_close(d);
    free(got);
}

/* All real pictures at hand go through the loader. */
static void loads_real_pictures(void **state)
{
    fixture *f = *state;
    oct_dataset *d = NULL;
    oct_loader *l = NULL;
    oct_preprocess p;
    const oct_loaded *item = NULL;

    oct_preprocess_init(&p);
    p.width = p.height = 416;
    assert_ok(f->ctx, open_dataset(f->ctx, in_shared("coco/calib"), NULL, false, &d));
    assert_int_equal(oct_dataset_size(d), 128);
    assert_ok(f->ctx, open_loader(f->ctx, d, &p, OCT_DTYPE_F32, 2, 0, &l));
    for (int64_t i = 0; i < 128; i++) {
        assert_ok(f->ctx, oct_loader_next(l, &item));
        if (item->status) fail_msg("%s", item->error);
        oct_loader_done(l, item);
    }
    oct_loader_free(l);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_blood_cells_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_coco_quickly_and_leanly, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_classes, setup, teardown),
        cmocka_unit_test_setup_teardown(makes_the_inputs_another_program_made, setup, teardown),
        cmocka_unit_test_setup_teardown(loads_real_pictures, setup, teardown),
    };

    shared = shared_dir("test_data_shared");
    return shared ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
