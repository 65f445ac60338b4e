/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing: inside the picture whatever the box, legible, labels beside each other. */
#include "tests/test.h"

#include "detect/font.h"

static oct_image *grey(fixture *f, int32_t w, int32_t h)
{
    oct_image *im = NULL;

    assert_ok(f->ctx, oct_image_new(f->ctx, w, h, &im));
    memset(oct_image_rgb(im), 128, (size_t)w * (size_t)h * 3);
    return im;
}

static const uint8_t *pixel(oct_image *im, int32_t x, int32_t y)
{
    return oct_image_rgb(im) + ((size_t)y * (size_t)oct_image_width(im) + (size_t)x) * 3;
}

static bool is_grey(oct_image *im, int32_t x, int32_t y)
{
    const uint8_t *p = pixel(im, x, y);

    return p[0] == 128 && p[1] == 128 && p[2] == 128;
}

static void draws_the_frame_where_the_box_is(void **state)
{
    fixture *f = *state;
    const oct_detection d = {100, 120, 200, 150, 0.9f, 0};
    oct_image *im = grey(f, 640, 480);

    assert_ok(f->ctx, oct_detections_draw(f->ctx, im, &d, 1, NULL, 0));
    for (int32_t x = 100; x < 300; x++)
        assert_false(is_grey(im, x, 120) || is_grey(im, x, 269));
    for (int32_t y = 120; y < 270; y++)
        assert_false(is_grey(im, 100, y) || is_grey(im, 299, y));
    assert_true(is_grey(im, 200, 200)); /* its inside is left alone */
    assert_true(is_grey(im, 96, 200));
    assert_true(is_grey(im, 304, 200));
    assert_memory_equal(pixel(im, 100, 120), pixel(im, 299, 269), 3);
    oct_image_free(im);
}

/* Any box, any size of picture: no byte outside is touched (sanitizers look on). */
static void stays_inside_any_picture(void **state)
{
    static const int32_t sizes[][2] = {{1, 1}, {7, 3}, {1, 300}, {300, 1}, {64, 64}, {3000, 40}};
    const oct_detection d[] = {
        {-50, -50, 1e6f, 1e6f, 0.9f, 1},
        {0, 0, 1, 1, 0.8f, 2},
        {0.2f, 0.2f, 0.1f, 0.1f, 0.7f, 3},
        {5000, 0, 10, 10, 0.6f, 4},
        {NAN, 0, 10, 10, 0.5f, 5},
        {0, 0, INFINITY, 2, 0.4f, -7},
        {2, 2, -5, 5, 0.3f, 6},
        {2, 2, 30, 30, NAN, 9999999},
    };

    for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
        fixture *f = *state;
        oct_image *im = grey(f, sizes[i][0], sizes[i][1]);

        assert_ok(f->ctx, oct_detections_draw(f->ctx, im, d, (int32_t)OCT_COUNT(d), NULL, 0));
        oct_image_free(im);
    }
}

static void counts_changed(oct_image *im, const oct_image *before, int64_t *n)
{
    const size_t size = (size_t)oct_image_width(im) * (size_t)oct_image_height(im) * 3;
    const uint8_t *a = oct_image_rgb(im), *b = oct_image_rgb((oct_image *)(uintptr_t)before);

    *n = 0;
    for (size_t i = 0; i < size; i += 3)
        *n += memcmp(a + i, b + i, 3) != 0;
}

/* Two boxes on the same spot: their labels do not cover each other. */
static void labels_make_room(void **state)
{
    fixture *f = *state;
    const oct_detection d[] = {{100, 100, 200, 200, 0.9f, 0}, {100, 100, 200, 200, 0.8f, 0}};
    oct_image *one = grey(f, 640, 480), *two = grey(f, 640, 480), *none = grey(f, 640, 480);
    int64_t n_one, n_two;

    assert_ok(f->ctx, oct_detections_draw(f->ctx, one, d, 1, NULL, 0));
    assert_ok(f->ctx, oct_detections_draw(f->ctx, two, d, 2, NULL, 0));
    counts_changed(one, none, &n_one);
    counts_changed(two, none, &n_two);
    /* "person 0.80" covers 11 letters; at most its overlap with the frame is not new. */
    assert_true(n_two - n_one > 11 * OCT_FONT_ADVANCE * OCT_FONT_HEIGHT * 8 / 10);
    oct_image_free(one);
    oct_image_free(two);
    oct_image_free(none);
}

static void names_are_used(void **state)
{
    static const char *const names[] = {"cell", ""};
    fixture *f = *state;
    const oct_detection d[] = {{100, 100, 200, 200, 0.9f, 0}, {10, 300, 20, 20, 0.8f, 1}};
    oct_image *own = grey(f, 640, 480), *coco = grey(f, 640, 480);
    int64_t n;

    assert_ok(f->ctx, oct_detections_draw(f->ctx, own, d, 2, names, 2));
    assert_ok(f->ctx, oct_detections_draw(f->ctx, coco, d, 2, NULL, 0));
    counts_changed(own, coco, &n);
    assert_true(n > 20);
    oct_image_free(own);
    oct_image_free(coco);
}

static void colours_of_classes_differ(void **state)
{
    fixture *f = *state;
    uint8_t seen[80][3];

    for (int32_t k = 0; k < 80; k++) {
        const oct_detection d = {50, 50, 100, 100, 0.9f, k};
        oct_image *im = grey(f, 200, 200);

        assert_ok(f->ctx, oct_detections_draw(f->ctx, im, &d, 1, NULL, 0));
        memcpy(seen[k], pixel(im, 100, 149), 3);
        for (int32_t i = 0; i < k; i++)
            assert_memory_not_equal(seen[k], seen[i], 3);
        oct_image_free(im);
    }
}

static void every_letter_differs(void **state)
{
    (void)state;
    for (char a = ' '; a < '~'; a++)
        for (char b = (char)(a + 1); b <= '~'; b++)
            assert_memory_not_equal(oct_font_glyph(a), oct_font_glyph(b), OCT_FONT_HEIGHT);
    assert_memory_equal(oct_font_glyph('\n'), oct_font_glyph('?'), OCT_FONT_HEIGHT);
    assert_memory_equal(oct_font_glyph((char)0xe4), oct_font_glyph('?'), OCT_FONT_HEIGHT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(draws_the_frame_where_the_box_is),
        TEST(stays_inside_any_picture),
        TEST(labels_make_room),
        TEST(names_are_used),
        TEST(colours_of_classes_differ),
        TEST(every_letter_differs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
