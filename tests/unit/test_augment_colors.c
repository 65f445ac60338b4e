/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of colour: nothing where nothing is asked for, known colours to known colours. */
#include "tests/unit/augment_case.h"

#include "augment/hsv.h"

enum { STEPS = 24, N_COLORS = STEPS * STEPS * STEPS };

/* All colours on a grid, one in each pixel. */
static uint8_t *all_colors(void)
{
    uint8_t *rgb = malloc((size_t)N_COLORS * 3);

    assert_non_null(rgb);
    for (int i = 0; i < N_COLORS; i++) {
        rgb[3 * i] = (uint8_t)(i % STEPS * 255 / (STEPS - 1));
        rgb[3 * i + 1] = (uint8_t)(i / STEPS % STEPS * 255 / (STEPS - 1));
        rgb[3 * i + 2] = (uint8_t)(i / STEPS / STEPS * 255 / (STEPS - 1));
    }
    return rgb;
}

static void test_hsv_of_nothing_is_exact(void **state)
{
    const oct_hsv_change nothing = {.s = 1, .v = 1}, turn = {.turn = 1, .s = 1, .v = 1};
    uint8_t *a = all_colors(), *b = all_colors();
    const oct_rgb im = {N_COLORS, 1, a};

    (void)state;
    oct_hsv_apply(&im, &nothing);
    assert_memory_equal(a, b, (size_t)N_COLORS * 3);
    oct_hsv_apply(&im, &turn);
    assert_memory_equal(a, b, (size_t)N_COLORS * 3);
    free(a);
    free(b);
}

static void assert_becomes(oct_hsv_change c, const uint8_t from[3], const uint8_t to[3])
{
    uint8_t p[3] = {from[0], from[1], from[2]};
    const oct_rgb im = {1, 1, p};

    oct_hsv_apply(&im, &c);
    if (memcmp(p, to, 3) != 0)
        fail_msg("%d %d %d, want %d %d %d", p[0], p[1], p[2], to[0], to[1], to[2]);
}

static void test_known_colors(void **state)
{
    const uint8_t red[3] = {200, 0, 0}, green[3] = {0, 200, 0}, blue[3] = {0, 0, 200};
    const uint8_t pale[3] = {200, 100, 100}, grey[3] = {200, 200, 200}, dark[3] = {100, 0, 0};
    const uint8_t bright[3] = {255, 0, 0}, yellow[3] = {200, 200, 0};

    (void)state;
    assert_becomes((oct_hsv_change){.turn = 1.0 / 3, .s = 1, .v = 1}, red, green);
    assert_becomes((oct_hsv_change){.turn = -1.0 / 3, .s = 1, .v = 1}, red, blue);
    assert_becomes((oct_hsv_change){.turn = 1.0 / 6, .s = 1, .v = 1}, red, yellow);
    assert_becomes((oct_hsv_change){.turn = 2.0 / 3, .s = 1, .v = 1}, blue, green);
    assert_becomes((oct_hsv_change){.s = 0.5, .v = 1}, red, pale);
    assert_becomes((oct_hsv_change){.s = 0, .v = 1}, red, grey);
    assert_becomes((oct_hsv_change){.s = 2, .v = 1}, pale, red);
    assert_becomes((oct_hsv_change){.s = 3, .v = 1}, pale, red); /* full is full */
    assert_becomes((oct_hsv_change){.s = 1, .add_s = 0.5, .v = 1}, pale, red);
    assert_becomes((oct_hsv_change){.s = 1, .v = 0.5}, red, dark);
    assert_becomes((oct_hsv_change){.s = 1, .v = 2}, red, bright);
    assert_becomes((oct_hsv_change){.s = 1, .v = 1, .add_v = -100.0 / 255}, red, dark);
    assert_becomes((oct_hsv_change){.turn = 0.4, .s = 1.5, .v = 1}, grey, grey);
}

/* Levels of the first channel of a uniform picture of level 100 after a change, lowest and highest.
 */
static void levels_after(files *t, void (*set)(oct_augment *a), float *lo, float *hi)
{
    const oct_label l = label_of(50, 50, 5, 5, 0);
    oct_dataset *d = new_dataset(t);
    batch_case *c = new_case(t, 8, 8);

    add_picture(t, d, 8, 8, 100, &l, 1);
    c->o.batch = 1;
    set(&c->a);
    start(c, d);
    *lo = 255;
    *hi = 0;
    for (int i = 0; i < 200; i++) {
        take(c);
        *lo = fminf(*lo, c->images[0]);
        *hi = fmaxf(*hi, c->images[0]);
    }
    free_case(c);
    oct_dataset_close(d);
}

static void set_zero(oct_augment *a)
{
    a->hsv = a->hsv_add = a->jitter = a->swap_channels = 1;
}

static void set_value(oct_augment *a)
{
    a->hsv = 1;
    a->hsv_v = 0.4;
}

static void set_add(oct_augment *a)
{
    a->hsv_add = 1;
    a->hsv_add_v = 30;
}

static void set_contrast(oct_augment *a)
{
    a->jitter = 0.5;
    a->contrast_min = 0.6;
    a->contrast_max = 1.4;
}

static void set_brightness(oct_augment *a)
{
    a->jitter = 0.5;
    a->brightness_add = 0.2;
}

static void test_ranges(void **state)
{
    files *t = *state;
    float lo, hi;

    levels_after(t, set_zero, &lo, &hi);
    assert_true(lo == 100 && hi == 100);
    levels_after(t, set_value, &lo, &hi);
    assert_true(lo >= 60 && lo < 65 && hi <= 140 && hi > 135);
    levels_after(t, set_add, &lo, &hi);
    assert_true(lo >= 70 && lo < 75 && hi <= 130 && hi > 125);
    levels_after(t, set_contrast, &lo, &hi);
    assert_true(lo >= 60 && lo < 65 && hi <= 140 && hi > 135);
    levels_after(t, set_brightness, &lo, &hi);
    assert_true(lo >= 49 && lo < 55 && hi <= 151 && hi > 145);
}

static void test_swap(void **state)
{
    const oct_label l = label_of(50, 50, 5, 5, 0);
    files *t = *state;
    oct_dataset *d = new_dataset(t);
    batch_case *c = new_case(t, 4, 4);
    oct_image *im = NULL;
    int n = 0;

    add_picture(t, d, 4, 4, 0, &l, 1);
    assert_ok(t->ctx, oct_image_new(t->ctx, 4, 4, &im));
    for (int i = 0; i < 16; i++)
        oct_image_rgb(im)[3 * i] = 200;
    assert_ok(t->ctx, oct_image_save(t->ctx, im, oct_dataset_path(d, 0)));
    oct_image_free(im);
    c->o.batch = 1;
    c->a.swap_channels = 0.5;
    start(c, d);
    for (int i = 0; i < 100; i++) {
        take(c);
        assert_true(c->images[0] + c->images[32] == 200 && c->images[16] == 0);
        n += c->images[0] == 200;
    }
    assert_in_range(n, 25, 75);
    free_case(c);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hsv_of_nothing_is_exact),
        cmocka_unit_test(test_known_colors),
        cmocka_unit_test_setup_teardown(test_ranges, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_swap, setup_files, teardown_files),
    };

    return run_test_group(tests);
}
