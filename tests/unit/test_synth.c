/* SPDX-License-Identifier: Apache-2.0 */
/* Drawn pictures: the same bytes for ever, true labels, files. */
#include "tests/unit/data_files.h"

#include <unistd.h>

#include "base/file.h"
#include "synth/synth.h"

static uint64_t fnv(uint64_t h, const void *data, size_t size)
{
    const uint8_t *p = data;

    for (size_t i = 0; i < size; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static uint64_t hash_file(oct_ctx *ctx, const char *path)
{
    oct_file *f = NULL;
    uint64_t h;

    assert_ok(ctx, oct_file_map(ctx, path, &f));
    h = fnv(0xcbf29ce484222325u, oct_file_data(f), oct_file_size(f));
    oct_file_unref(f);
    return h;
}

static void assert_hash(const char *what, uint64_t got, uint64_t want)
{
    if (got != want)
        fail_msg("%s: hash %016llx, want %016llx", what, (unsigned long long)got,
                 (unsigned long long)want);
}

static oct_status write_series(oct_ctx *ctx, const char *folder, const char *split, int32_t count,
                               uint64_t seed)
{
    oct_synth_options o;

    oct_synth_options_init(&o);
    o.split = split;
    o.count = count;
    o.seed = seed;
    o.size = 128;
    return oct_synth_write(ctx, folder, &o, NULL);
}

/* --- the same on every machine --- */

static void pictures_are_the_same_everywhere(void **state)
{
    static const struct {
        uint64_t seed;
        int64_t index;
        int32_t size;
        uint64_t pixels, labels;
    } cases[] = {
        {0, 0, 256, 0xcb92a6ffa3e2761cu, 0xef2ce7ecdde093f4u},
        {0, 1, 256, 0x4f4d345c6e516e46u, 0x94345525a8a1d8fbu},
        {1, 123, 256, 0x02f2321364d6cda6u, 0xa2fe84e12d1d8187u},
        {7, 20000, 320, 0xbe99f0002d71dba5u, 0xf00548f12efcace5u},
        {UINT64_MAX, 5, 64, 0x77d6bd8b08a4d82cu, 0x50f5a72ac01e645fu},
    };
    fixture *f = *state;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const size_t size = (size_t)cases[i].size * (size_t)cases[i].size * 3;
        uint8_t *rgb = malloc(size);
        oct_synth_labels labels;
        oct_canvas c;

        assert_non_null(rgb);
        assert_ok(f->ctx, oct_canvas_new(f->ctx, cases[i].size, &c));
        oct_synth_picture(&c, oct_synth_key(cases[i].seed, "val"), cases[i].index, &labels);
        oct_canvas_export(&c, rgb);
        assert_hash(
            "labels",
            fnv(0xcbf29ce484222325u, labels.items, (size_t)labels.n * sizeof(labels.items[0])),
            cases[i].labels);
        assert_hash("pixels", fnv(0xcbf29ce484222325u, rgb, size), cases[i].pixels);
        oct_canvas_free(f->ctx, &c);
        free(rgb);
    }
}

static void files_are_the_same_everywhere(void **state)
{
    const files *t = *state;

    assert_ok(t->ctx, write_series(t->ctx, t->folder, "val", 6, 3));
    assert_hash("val.json", hash_file(t->ctx, below(t, "val.json")), 0x199172d33769ff86u);
    assert_hash("000005.jpg", hash_file(t->ctx, below(t, "val/000005.jpg")), 0xa61177b8fee2dc0cu);
}

static void count_and_threads_change_nothing(void **state)
{
    const files *t = *state;
    const char *one = put_folder(t, "one"), *many = put_folder(t, "many");

    oct_ctx_set_threads(t->ctx, 1);
    assert_ok(t->ctx, write_series(t->ctx, one, "val", 5, 3));
    oct_ctx_set_threads(t->ctx, 3);
    assert_ok(t->ctx, write_series(t->ctx, many, "val", 66, 3));
    for (int i = 0; i < 5; i++) {
        char a[64], b[64];

        snprintf(a, sizeof(a), "one/val/%06d.jpg", i);
        snprintf(b, sizeof(b), "many/val/%06d.jpg", i);
        assert_hash(a, hash_file(t->ctx, below(t, a)), hash_file(t->ctx, below(t, b)));
    }
}

static void seed_split_and_number_change_everything(void **state)
{
    const files *t = *state;

    assert_ok(t->ctx, write_series(t->ctx, t->folder, "a", 2, 3));
    assert_ok(t->ctx, write_series(t->ctx, t->folder, "b", 2, 3));
    assert_true(hash_file(t->ctx, below(t, "a/000000.jpg")) !=
                hash_file(t->ctx, below(t, "b/000000.jpg")));
    assert_true(hash_file(t->ctx, below(t, "a/000000.jpg")) !=
                hash_file(t->ctx, below(t, "a/000001.jpg")));
    assert_true(oct_synth_key(3, "a") != oct_synth_key(4, "a"));
}

/* --- true labels --- */

static void boxes_hold_what_is_seen(void **state)
{
    fixture *f = *state;
    int32_t found[OCT_SYNTH_CLASSES] = {0}, n_objects = 0, n_small = 0, n_large = 0;
    oct_synth_labels labels;
    oct_canvas c;

    assert_ok(f->ctx, oct_canvas_new(f->ctx, 256, &c));
    for (int64_t i = 0; i < 40; i++) {
        oct_synth_picture(&c, oct_synth_key(11, "val"), i, &labels);
        assert_in_range(labels.n, 1, OCT_SYNTH_MAX_OBJECTS);
        for (int32_t k = 0; k < labels.n; k++) {
            const oct_synth_label *l = &labels.items[k];
            int32_t area = 0, inside = 0;

            for (int32_t p = 0; p < 256 * 256; p++) {
                if (c.owner[p] != k + 1) continue;
                area++;
                inside += p % 256 >= l->x && p % 256 < l->x + l->width && p / 256 >= l->y &&
                          p / 256 < l->y + l->height;
            }
            assert_int_equal(area, l->area);
            assert_int_equal(area, inside);
            assert_true(area >= 8 && l->width >= 4 && l->height >= 4);
            found[l->category]++;
            n_objects++;
            n_small += area < 32 * 32;
            n_large += area > 96 * 96;
        }
    }
    oct_canvas_free(f->ctx, &c);
    for (int32_t i = 0; i < OCT_SYNTH_CLASSES; i++)
        assert_true(found[i] > n_objects / 20);
    assert_true(n_objects > 130 && n_small > 50 && n_large > 1);
}

/* A box ends where its last pixel does. */
static void boxes_are_tight(void **state)
{
    fixture *f = *state;
    oct_synth_labels labels;
    oct_canvas c;

    assert_ok(f->ctx, oct_canvas_new(f->ctx, 256, &c));
    oct_synth_picture(&c, oct_synth_key(12, "val"), 0, &labels);
    for (int32_t k = 0; k < labels.n; k++) {
        const oct_synth_label *l = &labels.items[k];
        bool left = false, right = false, top = false, low = false;

        for (int32_t p = 0; p < 256 * 256; p++) {
            if (c.owner[p] != k + 1) continue;
            left = left || p % 256 == l->x;
            right = right || p % 256 == l->x + l->width - 1;
            top = top || p / 256 == l->y;
            low = low || p / 256 == l->y + l->height - 1;
        }
        assert_true(left && right && top && low);
    }
    oct_canvas_free(f->ctx, &c);
}

static void labels_are_read_back(void **state)
{
    const files *t = *state;
    oct_dataset *d = NULL;
    oct_synth_labels labels;
    oct_canvas c;

    assert_ok(t->ctx, write_series(t->ctx, t->folder, "val", 3, 9));
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "val"), below(t, "val.json"), false, &d));
    assert_int_equal(oct_dataset_size(d), 3);
    assert_int_equal(oct_dataset_n_categories(d), OCT_SYNTH_CLASSES);
    for (int32_t i = 0; i < OCT_SYNTH_CLASSES; i++)
        assert_string_equal(oct_dataset_category_name(d, i), oct_synth_class_name(i));
    assert_null(oct_synth_class_name(OCT_SYNTH_CLASSES));
    assert_ok(t->ctx, oct_canvas_new(t->ctx, 128, &c));
    for (int64_t i = 0; i < 3; i++) {
        int32_t n = 0;

        oct_synth_picture(&c, oct_synth_key(9, "val"), i, &labels);
        oct_dataset_labels(d, i, &n);
        assert_int_equal(n, labels.n);
        for (int32_t k = 0; k < n; k++) {
            const oct_synth_label *l = &labels.items[k];

            assert_label(d, i, k, l->x, l->y, l->width, l->height, l->category);
        }
    }
    oct_canvas_free(t->ctx, &c);
    oct_dataset_close(d);
}

/* --- parts --- */

static void shapes_have_an_inside(void **state)
{
    static const struct {
        int32_t category;
        float x, y;
        bool inside;
    } cases[] = {
        {0, 0, 0, true},        {0, 0.8f, 0.8f, false},  /* disc */
        {1, 0, 0, false},       {1, 0, 0.9f, true},      /* ring */
        {2, 0.7f, 0.7f, true},  {2, 0.9f, 0, false},     /* square */
        {3, 0, 0.2f, true},     {3, 0.8f, -0.8f, false}, /* triangle */
        {4, 0, -0.9f, true},    {4, 0.97f, 0, false},    /* star: a point is up */
        {5, 0, 0.9f, true},     {5, 0.5f, 0.5f, false},  /* cross */
        {6, 0.9f, 0, true},     {6, -0.5f, 0.4f, false}, /* arrow: to the right */
        {7, -0.9f, 0.0f, true}, {7, 0.6f, 0, false},     /* crescent: open to the right */
    };

    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        for (size_t i = 0; i < OCT_COUNT(cases); i++) {
            oct_shape s;
            oct_rng r;
            float d;

            oct_rng_init(&r, seed);
            oct_shape_init(&s, cases[i].category, &r);
            d = oct_shape_distance(&s, cases[i].x, cases[i].y);
            if ((d < 0) != cases[i].inside)
                fail_msg("%s: (%g, %g) is %g from the outline",
                         oct_synth_class_name(cases[i].category), (double)cases[i].x,
                         (double)cases[i].y, (double)d);
            assert_true(oct_shape_distance(&s, 3, 3) > 2);
        }
    }
}

static void angles_are_right(void **state)
{
    (void)state;
    for (int i = -40; i <= 40; i++) {
        const double turns = i / 16.0 + 0.003;
        float s, c;

        oct_sin_cos((float)turns, &s, &c);
        assert_true(fabs((double)s - sin(turns * 6.283185307179586)) < 4e-6);
        assert_true(fabs((double)c - cos(turns * 6.283185307179586)) < 4e-6);
    }
}

static void noise_and_textures_stay_in_range(void **state)
{
    (void)state;
    for (int k = 0; k < OCT_TEXTURE_KINDS; k++) {
        float lo = 1, hi = 0;
        oct_texture t = {0};
        oct_rng r;

        oct_rng_init(&r, 5);
        oct_texture_init(&t, (oct_texture_kind)k, 100, &r);
        for (int i = 0; i < 10000; i++) {
            const float mix = oct_texture_mix(&t, (float)(i % 100) - 50, (float)i / 100 - 50);

            lo = OCT_MIN(lo, mix);
            hi = OCT_MAX(hi, mix);
        }
        assert_true(lo >= 0 && hi <= 1);
        if (k != OCT_TEXTURE_FLAT) assert_true(hi - lo > 0.4f);
    }
}

/* --- what can go wrong --- */

static void nonsense_is_refused(void **state)
{
    const files *t = *state;
    oct_synth_options o;

    assert_fails(t->ctx, write_series(t->ctx, t->folder, "../up", 1, 0), OCT_ERR_ARG, "../up");
    assert_fails(t->ctx, write_series(t->ctx, t->folder, "", 1, 0), OCT_ERR_ARG, "split");
    assert_fails(t->ctx, write_series(t->ctx, t->folder, "a", 0, 0), OCT_ERR_ARG, "count");
    assert_fails(t->ctx, write_series(t->ctx, "/nonexistent/x", "a", 1, 0), OCT_ERR_IO,
                 "/nonexistent/x");
    put_text(t, "file", "not a folder");
    assert_fails(t->ctx, write_series(t->ctx, below(t, "file"), "a", 1, 0), OCT_ERR_IO, "file");
    oct_synth_options_init(&o);
    assert_int_equal(o.size, 256);
    o.size = 63;
    assert_fails(t->ctx, oct_synth_write(t->ctx, t->folder, &o, NULL), OCT_ERR_ARG, "size");
}

/* A picture that cannot be written is an error that names it; no labels are left. */
static void a_failed_picture_fails_the_series(void **state)
{
    const files *t = *state;

    put_folder(t, "val");
    put_folder(t, "val/000002.jpg");
    assert_fails(t->ctx, write_series(t->ctx, t->folder, "val", 4, 0), OCT_ERR_IO, "000002.jpg");
    assert_false(access(below(t, "val.json"), F_OK) == 0);
}

static oct_status write_two(oct_ctx *ctx)
{
    char folder[64];
    oct_status st;

    oct_ctx_set_threads(ctx, 1);
    make_folder(folder);
    st = write_series(ctx, folder, "val", 2, 0);
    remove_folder(folder);
    return st;
}

static void memory_may_end_anywhere(void **state)
{
    (void)state;
    fail_each_allocation(write_two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pictures_are_the_same_everywhere, setup, teardown),
        cmocka_unit_test_setup_teardown(files_are_the_same_everywhere, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(count_and_threads_change_nothing, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(seed_split_and_number_change_everything, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(boxes_hold_what_is_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(boxes_are_tight, setup, teardown),
        cmocka_unit_test_setup_teardown(labels_are_read_back, setup_files, teardown_files),
        cmocka_unit_test(shapes_have_an_inside),
        cmocka_unit_test(angles_are_right),
        cmocka_unit_test(noise_and_textures_stay_in_range),
        cmocka_unit_test_setup_teardown(nonsense_is_refused, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(a_failed_picture_fails_the_series, setup_files,
                                        teardown_files),
        cmocka_unit_test(memory_may_end_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
