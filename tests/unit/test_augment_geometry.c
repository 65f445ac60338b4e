/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes stay on their objects: pictures are black with one white rectangle each, so that after each
 * augmentation everything white must be in a box, and every box be full of white.
 */
#include "tests/unit/augment_case.h"

#define WIDTH  96
#define HEIGHT 80

typedef struct pixel_box {
    int x1, y1, x2, y2; /* the last are outside */
} pixel_box;

static bool is_white(const batch_case *c, int i, int x, int y)
{
    const size_t plane = (size_t)WIDTH * HEIGHT;
    /* An edge is where half of the white is left, and blending leaves half of that. */
    const float white = c->a.mixup > 0 ? 64 : 128;

    return c->images[(size_t)i * 3 * plane + (size_t)(y * WIDTH + x)] >= white;
}

static bool is_inside(const float *row, float x, float y, float border)
{
    return x >= row[1] - border && x <= row[3] + border && y >= row[2] - border &&
           y <= row[4] + border;
}

/* Extent of what is white in the box and three pixels round it. */
static pixel_box white_in(const batch_case *c, int i, const float *row)
{
    pixel_box b = {WIDTH, HEIGHT, 0, 0};

    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            if (!is_inside(row, (float)x + 0.5f, (float)y + 0.5f, 3) || !is_white(c, i, x, y))
                continue;
            b = (pixel_box){OCT_MIN(b.x1, x), OCT_MIN(b.y1, y), OCT_MAX(b.x2, x + 1),
                            OCT_MAX(b.y2, y + 1)};
        }
    return b;
}

/* Does another box come near? */
static bool is_alone(const batch_case *c, int i, int k)
{
    const float *a = row_of(c, i, k);

    for (int j = 0; j < count_rows(c, i); j++) {
        const float *b = row_of(c, i, j);

        if (j != k && b[1] < a[3] + 6 && b[3] > a[1] - 6 && b[2] < a[4] + 6 && b[4] > a[2] - 6)
            return false;
    }
    return true;
}

static bool touches_border(const float *row)
{
    return row[1] < 0.5f || row[2] < 0.5f || row[3] > WIDTH - 0.5f || row[4] > HEIGHT - 0.5f;
}

static void check_row(const batch_case *c, int i, int k, float tolerance, bool turned)
{
    const float *row = row_of(c, i, k);
    const pixel_box w = white_in(c, i, row);

    assert_true(row[1] >= 0 && row[2] >= 0 && row[3] <= WIDTH && row[4] <= HEIGHT);
    assert_true(row[3] > row[1] && row[4] > row[2]);
    assert_true(row[0] == 0 || row[0] == 1 || row[0] == 2);
    if (!is_alone(c, i, k) || (turned && touches_border(row))) return;
    if (row[3] - row[1] < 3 || row[4] - row[2] < 3) return; /* may be too faint */
    if (fabsf((float)w.x1 - row[1]) > tolerance || fabsf((float)w.y1 - row[2]) > tolerance ||
        fabsf((float)w.x2 - row[3]) > tolerance || fabsf((float)w.y2 - row[4]) > tolerance)
        fail_msg("box %g %g %g %g, but white is %d %d %d %d", (double)row[1], (double)row[2],
                 (double)row[3], (double)row[4], w.x1, w.y1, w.x2, w.y2);
}

static void check_all_is_labelled(const batch_case *c, int i)
{
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            bool found = !is_white(c, i, x, y);

            for (int k = 0; k < count_rows(c, i) && !found; k++)
                found = is_inside(row_of(c, i, k), (float)x + 0.5f, (float)y + 0.5f, 1.5f);
            if (!found) fail_msg("pixel %d, %d of picture %d is white and in no box", x, y, i);
        }
}

/* Epochs of batches with the settings of a case; returns how many boxes there were. */
static int64_t check_case(files *t, void (*set)(batch_case *c), float tolerance, bool turned,
                          bool all)
{
    oct_dataset *d = rectangles(t, 9);
    batch_case *c = new_case(t, WIDTH, HEIGHT);
    int64_t n = 0;

    set(c);
    start(c, d);
    for (int64_t k = 0; k < 6 * oct_batches_count(c->b); k++) {
        int64_t here = 0;

        take(c);
        for (int i = 0; i < c->o.batch; i++) {
            for (int j = 0; j < count_rows(c, i); j++)
                check_row(c, i, j, tolerance, turned);
            if (all) check_all_is_labelled(c, i);
            here += count_rows(c, i);
        }
        assert_int_equal(here, c->info.n_boxes);
        n += here;
    }
    free_case(c);
    oct_dataset_close(d);
    return n;
}

/* --- cases --- */

static void set_nothing(batch_case *c)
{
    (void)c;
}

static void set_flips(batch_case *c)
{
    c->a.flip_lr = 0.5;
    c->a.flip_ud = 0.5;
}

static void set_scale(batch_case *c)
{
    c->a.affine = 1;
    c->a.scale_min = 0.4;
    c->a.scale_max = 2.5;
    c->a.stretch_min = 0.7;
    c->a.stretch_max = 1.4;
    c->a.translate = 0.4;
}

static void set_linear_scale(batch_case *c)
{
    set_scale(c);
    c->p.interpolation = OCT_INTERPOLATION_LINEAR;
}

static void set_turn(batch_case *c)
{
    c->a.affine = 1;
    c->a.degrees = 180;
    c->a.shear = 20;
    c->a.translate = 0.2;
    c->a.scale_min = 0.5;
    c->a.scale_max = 1.5;
}

static void set_corner(batch_case *c)
{
    set_turn(c);
    c->a.degrees = 10;
    c->a.shear = 2;
    c->a.affine_corner = 1;
}

static void set_expand(batch_case *c)
{
    c->a.expand = 1;
    c->a.expand_max = 3;
}

static void set_crop(batch_case *c)
{
    c->p.fit = OCT_FIT_STRETCH;
    c->a.crop = 1;
}

static void set_mosaic(batch_case *c)
{
    c->a.mosaic = 1;
}

static void set_mosaic_scale(batch_case *c)
{
    set_scale(c);
    c->a.mosaic = 1;
    c->a.flip_lr = 0.5;
}

static void set_mosaic_turn(batch_case *c)
{
    set_turn(c);
    c->a.mosaic = 1;
}

static void set_mixup(batch_case *c)
{
    c->a.mixup = 1;
    c->a.mixup_scale_min = 0.5;
    c->a.mixup_scale_max = 1.5;
    c->a.mixup_flip = 0.5;
    c->a.flip_ud = 0.5;
}

static void set_mixup_whole(batch_case *c)
{
    set_mosaic_scale(c);
    c->a.mixup = 1;
    c->a.mixup_whole = 1;
}

static void set_fit_crop(batch_case *c)
{
    c->p.fit = OCT_FIT_CROP;
    c->a.flip_lr = 0.5;
}

static void test_each_alone(void **state)
{
    files *t = *state;

    /* Nine pictures, ten samples an epoch, six epochs. */
    assert_int_equal(check_case(t, set_nothing, 1.2f, false, true), 60);
    assert_int_equal(check_case(t, set_flips, 1.2f, false, true), 60);
    assert_int_equal(check_case(t, set_expand, 1.2f, false, true), 60);
    assert_int_equal(check_case(t, set_fit_crop, 1.2f, false, true), 60);
}

static void test_scale_and_shift(void **state)
{
    files *t = *state;

    assert_in_range(check_case(t, set_scale, 1.2f, false, true), 30, 60);
    assert_in_range(check_case(t, set_linear_scale, 1.5f, false, true), 30, 60);
}

static void test_turns(void **state)
{
    files *t = *state;

    assert_in_range(check_case(t, set_turn, 1.7f, true, true), 40, 60);
    assert_in_range(check_case(t, set_corner, 1.7f, true, true), 30, 60);
}

static void test_crop(void **state)
{
    /* Of a rectangle whose centre is not in the part, the rest stays without a box. */
    assert_int_equal(check_case(*state, set_crop, 1.7f, false, false), 60);
}

static void test_mosaic(void **state)
{
    files *t = *state;

    assert_in_range(check_case(t, set_mosaic, 1.2f, false, true), 61, 240);
    assert_in_range(check_case(t, set_mosaic_scale, 1.2f, false, true), 61, 240);
    assert_in_range(check_case(t, set_mosaic_turn, 1.7f, true, true), 61, 240);
}

static void test_mixup(void **state)
{
    files *t = *state;

    assert_in_range(check_case(t, set_mixup, 1.5f, false, true), 80, 120);
    assert_in_range(check_case(t, set_mixup_whole, 1.5f, false, true), 121, 480);
}

/* --- which boxes are dropped --- */

static oct_dataset *one_picture(files *t, const oct_label *labels, size_t n)
{
    oct_dataset *d = new_dataset(t);

    add_picture(t, d, 96, 80, 0, labels, n);
    return d;
}

/* Boxes left of one picture of the network's size. */
static int left(files *t, const oct_label *labels, size_t n, void (*set)(batch_case *c))
{
    oct_dataset *d = one_picture(t, labels, n);
    batch_case *c = new_case(t, WIDTH, HEIGHT);
    int m;

    c->o.batch = 1;
    set(c);
    start(c, d);
    take(c);
    m = count_rows(c, 0);
    free_case(c);
    oct_dataset_close(d);
    return m;
}

static void set_keep_side(batch_case *c)
{
    c->a.keep_side = 2;
}

static void set_keep_aspect(batch_case *c)
{
    c->a.keep_aspect = 20;
}

/* The middle sixteenth of the picture is seen. */
static void set_enlarged(batch_case *c)
{
    c->a.affine = 1;
    c->a.scale_min = c->a.scale_max = 4;
}

static void set_enlarged_keep(batch_case *c)
{
    set_enlarged(c);
    c->a.keep_area = 0.1;
}

static void test_dropped_boxes(void **state)
{
    const oct_label small = label_of(10, 10, 2, 30, 0), thin = label_of(5, 5, 60, 2.5, 0);
    const oct_label large = label_of(0, 0, 96, 80, 0), inner = label_of(40, 35, 10, 10, 0);
    const oct_label outside = label_of(96, 10, 20, 20, 0), partly = label_of(-10, 70, 30, 30, 1);
    files *t = *state;

    assert_int_equal(left(t, &small, 1, set_nothing), 1);
    assert_int_equal(left(t, &small, 1, set_keep_side), 0);
    assert_int_equal(left(t, &thin, 1, set_nothing), 1);
    assert_int_equal(left(t, &thin, 1, set_keep_aspect), 0);
    assert_int_equal(left(t, &large, 1, set_enlarged), 1);
    assert_int_equal(left(t, &large, 1, set_enlarged_keep), 0);
    assert_int_equal(left(t, &inner, 1, set_enlarged_keep), 1);
    assert_int_equal(left(t, &outside, 1, set_nothing), 0);
    assert_int_equal(left(t, &partly, 1, set_nothing), 1);
}

static void test_boxes_are_clipped_to_the_picture(void **state)
{
    const oct_label partly = label_of(-10, 70, 30, 30, 1);
    files *t = *state;
    oct_dataset *d = one_picture(t, &partly, 1);
    batch_case *c = new_case(t, WIDTH, HEIGHT);
    const float want[5] = {1, 0, 70, 20, 80};

    c->o.batch = 1;
    start(c, d);
    take(c);
    assert_memory_equal(row_of(c, 0, 0), want, sizeof(want));
    assert_int_equal(count_rows(c, 0), 1);
    free_case(c);
    oct_dataset_close(d);
}

static void test_smallest_boxes_have_no_row(void **state)
{
    const oct_label labels[] = {label_of(1, 1, 5, 5, 0), label_of(20, 1, 30, 30, 1),
                                label_of(1, 40, 10, 10, 2), label_of(60, 40, 2, 2, 0)};
    files *t = *state;
    oct_dataset *d = one_picture(t, labels, 4);
    batch_case *c = new_case(t, WIDTH, HEIGHT);

    c->o.batch = 1;
    c->o.max_boxes = 2;
    start(c, d);
    take(c);
    assert_int_equal(oct_batches_max_boxes(c->b), 2);
    assert_int_equal(c->info.n_boxes, 2);
    assert_int_equal(c->info.n_dropped, 2);
    assert_non_null(strstr(oct_batches_note(c->b, 0), "2 labels were left out: more boxes"));
    assert_true(row_of(c, 0, 0)[0] == 1 && row_of(c, 0, 1)[0] == 2);
    free_case(c);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_alone, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_scale_and_shift, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_turns, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_crop, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_mosaic, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_mixup, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_dropped_boxes, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(test_boxes_are_clipped_to_the_picture, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(test_smallest_boxes_have_no_row, setup_files,
                                        teardown_files),
    };

    return run_test_group(tests);
}
