/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of settings and presets of augmentation. */
#include "test.h"

#include "augment/augment.h"

static void test_defaults_are_in_range(void **state)
{
    fixture *f = *state;
    oct_augment a;

    oct_augment_init(&a, NULL);
    assert_ok(f->ctx, oct_augment_check(f->ctx, &a));
    for (int i = 0; oct_augment_setting_at(i); i++) {
        const oct_augment_setting *s = oct_augment_setting_at(i);

        assert_int_equal(oct_augment_setting_find(s->name), i);
        assert_true(*oct_augment_number(&a, i) == s->value);
        assert_true(strlen(s->help) > 5);
    }
    assert_null(oct_augment_setting_at(-1));
}

static void test_presets_are_in_range(void **state)
{
    fixture *f = *state;
    oct_augment a;
    int n = 0;

    for (; oct_augment_preset_at(n); n++) {
        oct_augment_init(&a, oct_augment_preset_at(n));
        assert_ok(f->ctx, oct_augment_check(f->ctx, &a));
        assert_ptr_equal(oct_augment_preset_find(oct_augment_preset_at(n)->name),
                         oct_augment_preset_at(n));
    }
    assert_true(n >= 7);
    assert_null(oct_augment_preset_find("yolo"));
}

/* The numbers of the projects' own recipes. */
static void test_known_numbers(void **state)
{
    oct_augment a;

    (void)state;
    oct_augment_init(&a, oct_augment_preset_of("yolov8"));
    assert_true(a.mosaic == 1 && a.scale_min == 0.5 && a.hsv_s == 0.7 && a.close == 10);
    assert_true(a.keep_side == 2 && a.keep_area == 0.1 && a.keep_aspect == 100);
    oct_augment_init(&a, oct_augment_preset_of("yolo-nas"));
    assert_true(a.mosaic == 0 && a.mixup == 0.5 && a.translate == 0.25 && a.keep_aspect == 20);
    oct_augment_init(&a, oct_augment_preset_of("yolox"));
    assert_true(a.degrees == 10 && a.shear == 2 && a.mixup == 1 && a.close == 15);
    assert_string_equal(oct_augment_preset_of("nanodet")->name, "nanodet");
    assert_string_equal(oct_augment_preset_of("ssd")->name, "picodet");
    assert_string_equal(oct_augment_preset_of("classifier")->name, "classifier");
    assert_string_equal(oct_augment_preset_of("yolo")->name, "light");
    assert_string_equal(oct_augment_preset_of(NULL)->name, "light");
}

static void test_set_by_name(void **state)
{
    fixture *f = *state;
    oct_augment a;

    oct_augment_init(&a, NULL);
    assert_ok(f->ctx, oct_augment_set(f->ctx, &a, "mosaic", "0.25"));
    assert_true(a.mosaic == 0.25);
    assert_ok(f->ctx, oct_augment_set(f->ctx, &a, "flip_lr", "1"));
    assert_true(a.flip_lr == 1);
    assert_fails(f->ctx, oct_augment_set(f->ctx, &a, "mosiac", "1"), OCT_ERR_ARG, "'mosiac'");
    assert_fails(f->ctx, oct_augment_set(f->ctx, &a, "mosaic", "1.5"), OCT_ERR_ARG, "from 0 to 1");
    assert_fails(f->ctx, oct_augment_set(f->ctx, &a, "mosaic", "nan"), OCT_ERR_ARG, "mosaic");
    assert_fails(f->ctx, oct_augment_set(f->ctx, &a, "mosaic", ""), OCT_ERR_ARG, "mosaic");
    assert_fails(f->ctx, oct_augment_set(f->ctx, &a, "mosaic", "1x"), OCT_ERR_ARG, "mosaic");
    assert_true(a.mosaic == 0.25);
}

static void test_check_names_what_is_wrong(void **state)
{
    fixture *f = *state;
    oct_augment a;

    oct_augment_init(&a, NULL);
    a.scale_min = 1.5;
    assert_fails(f->ctx, oct_augment_check(f->ctx, &a), OCT_ERR_ARG, "more than scale_max");
    oct_augment_init(&a, NULL);
    a.shear = (double)NAN;
    assert_fails(f->ctx, oct_augment_check(f->ctx, &a), OCT_ERR_ARG, "shear");
    oct_augment_init(&a, NULL);
    a.mixup = -1;
    assert_fails(f->ctx, oct_augment_check(f->ctx, &a), OCT_ERR_ARG, "mixup is -1");
}

/* --- the page --- */

static char *read_page(const char *name)
{
    const char *root = getenv("OCTET_SOURCE_ROOT");
    const size_t most = 1 << 18;
    char path[512], *text;
    FILE *file;

    if (!root) return NULL;
    snprintf(path, sizeof(path), "%s/docs/%s", root, name);
    assert_non_null(file = fopen(path, "rb"));
    assert_non_null(text = calloc(1, most));
    assert_true(fread(text, 1, most - 1, file) > 0);
    fclose(file);
    return text;
}

/* The table has the numbers that the presets have. */
static void test_page_is_up_to_date(void **state)
{
    char *page = read_page("training-data.md");
    const oct_augment_setting *s;

    (void)state;
    if (!page) skip_test("OCTET_SOURCE_ROOT is not set");
    for (int i = 0; (s = oct_augment_setting_at(i)); i++) {
        char row[512];
        int n = snprintf(row, sizeof(row), "| `%s` | %g |", s->name, s->value);

        for (int k = 1; oct_augment_preset_at(k); k++) {
            oct_augment a;
            double v;

            oct_augment_init(&a, oct_augment_preset_at(k));
            v = *oct_augment_number(&a, i);
            n += v == s->value ? snprintf(row + n, sizeof(row) - (size_t)n, " |")
                               : snprintf(row + n, sizeof(row) - (size_t)n, " %.3g |", v);
        }
        snprintf(row + n, sizeof(row) - (size_t)n, " %s |\n", s->help);
        if (!strstr(page, row)) fail_msg("docs/training-data.md has no line: %s", row);
    }
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_defaults_are_in_range, setup, teardown),
        cmocka_unit_test_setup_teardown(test_presets_are_in_range, setup, teardown),
        cmocka_unit_test_setup_teardown(test_known_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_set_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_check_names_what_is_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(test_page_is_up_to_date, setup, teardown),
    };

    return run_test_group(tests);
}
