/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures given as folders, patterns, lists, several at once, and as videos. */
#include <unistd.h>

#include "tests/avi.h"
#include "tests/unit/data_files.h"

#include "data/dataset.h"
#include "data/image/video.h"

static oct_dataset *open_inputs(const files *t, const char *const *paths, int n, int every)
{
    oct_dataset_options o;
    oct_dataset *d = NULL;

    oct_dataset_options_init(&o);
    o.images = paths[0];
    o.more_images = paths + 1;
    o.n_more_images = n - 1;
    o.every = every;
    assert_ok(t->ctx, oct_dataset_open(t->ctx, &o, &d));
    return d;
}

/* Paths below the test's folder, in this order and no others. */
static void assert_paths(const files *t, const oct_dataset *d, const char *const *want)
{
    int64_t n = 0;

    for (; want[n]; n++) {
        const char *path = oct_dataset_path(d, n);

        if (!path || strcmp(path, below(t, want[n])) != 0)
            fail_msg("picture %d is %s, want %s", (int)n, path ? path : "none", want[n]);
    }
    assert_int_equal(oct_dataset_size(d), n);
}

static void make_pictures(const files *t)
{
    put_folder(t, "p");
    put_folder(t, "p/sub");
    put_folder(t, "p/sub/deep");
    put_picture(t, "p/b.png", 4, 4);
    put_picture(t, "p/a.jpg", 5, 4);
    put_picture(t, "p/sub/c.png", 6, 4);
    put_picture(t, "p/sub/deep/d.png", 7, 4);
    put_text(t, "p/notes.txt", "words");
}

static void reads_folders_to_their_depth(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;

    make_pictures(t);
    assert_int_equal(symlink("..", below(t, "p/sub/loop")), 0); /* does not go round */
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), NULL, false, &d));
    assert_paths(t, d,
                 (const char *[]){"p/a.jpg", "p/b.png", "p/sub/c.png", "p/sub/deep/d.png", NULL});
    assert_non_null(strstr(oct_dataset_note(d, 0), "(notes.txt)"));
    oct_dataset_close(d);
    /* Pictures two folders down are no classes. */
    assert_int_equal(rename(below(t, "p/sub/c.png"), below(t, "p/sub/deep/c.png")), 0);
    assert_int_equal(unlink(below(t, "p/a.jpg")), 0);
    assert_int_equal(unlink(below(t, "p/b.png")), 0);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), NULL, false, &d));
    assert_string_equal(oct_dataset_kind(d), "pictures");
    assert_paths(t, d, (const char *[]){"p/sub/deep/c.png", "p/sub/deep/d.png", NULL});
    oct_dataset_close(d);
}

static void knows_pictures_by_their_bytes(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;

    put_folder(t, "p");
    put_picture(t, "p/a.png", 4, 4);
    assert_int_equal(rename(below(t, "p/a.png"), below(t, "p/a")), 0);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p"), NULL, false, &d));
    assert_paths(t, d, (const char *[]){"p/a", NULL});
    oct_dataset_close(d);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p/a"), NULL, false, &d));
    assert_paths(t, d, (const char *[]){"p/a", NULL});
    oct_dataset_close(d);
}

static void reads_patterns(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;

    make_pictures(t);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p/*"), NULL, false, &d));
    assert_paths(t, d,
                 (const char *[]){"p/a.jpg", "p/b.png", "p/sub/c.png", "p/sub/deep/d.png", NULL});
    assert_non_null(strstr(oct_dataset_note(d, 0), "p/notes.txt"));
    oct_dataset_close(d);
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p/?.png"), NULL, false, &d));
    assert_paths(t, d, (const char *[]){"p/b.png", NULL});
    oct_dataset_close(d);
    assert_fails(t->ctx, open_dataset(t->ctx, below(t, "p/*.gif"), NULL, false, &d), OCT_ERR_IO,
                 "p/*.gif: no file has such a name");
    put_picture(t, "p/[1].png", 4, 4); /* a name, not a pattern */
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "p/[1].png"), NULL, false, &d));
    assert_paths(t, d, (const char *[]){"p/[1].png", NULL});
    oct_dataset_close(d);
}

static void reads_several_at_once(void **state)
{
    files *t = *state;
    char paths[4][256];
    oct_dataset_options o;
    oct_dataset *d;

    make_pictures(t);
    put_text(t, "list.txt", "p/b.png\n# none\n\n p/none.png \n");
    snprintf(paths[0], 256, "%s", below(t, "p/sub"));
    snprintf(paths[1], 256, "%s", below(t, "p/*.jpg"));
    snprintf(paths[2], 256, "%s", below(t, "list.txt"));
    d = open_inputs(t, (const char *[]){paths[0], paths[1], paths[2]}, 3, 0);
    assert_paths(t, d,
                 (const char *[]){"p/sub/c.png", "p/sub/deep/d.png", "p/a.jpg", "p/b.png",
                                  "p/none.png", NULL});
    oct_dataset_close(d);
    oct_dataset_options_init(&o);
    o.images = paths[0];
    o.more_images = (const char *[]){paths[1]};
    o.n_more_images = 1;
    o.annotations = paths[2];
    assert_fails(t->ctx, oct_dataset_open(t->ctx, &o, &d), OCT_ERR_ARG,
                 "with labels, pictures are one folder");
}

/* --- videos --- */

static void put_video(const files *t, const char *name, int n)
{
    avi a = make_avi(t->ctx, n, 33, 17, below(t, "scratch.jpg"));

    put_bytes(t, name, a.data, a.size);
    free(a.data);
}

static void assert_frame(const files *t, oct_dataset *d, int64_t i, int64_t frame)
{
    oct_image *im = NULL;

    assert_int_equal(oct_dataset_frame(d, i), frame);
    assert_ok(t->ctx, oct_dataset_load(d, i, &im));
    assert_int_equal(oct_image_width(im), 33);
    assert_int_equal(oct_image_height(im), 17);
    for (int k = 0; k < 33 * 17 * 3; k++)
        assert_in_range(oct_image_rgb(im)[k] + 3 - (20 * frame + 10), 0, 6);
    oct_image_free(im);
}

static void reads_every_nth_frame(void **state)
{
    files *t = *state;
    const char *path;
    oct_dataset *d;

    put_video(t, "clip.bin", 10); /* the name does not matter */
    path = below(t, "clip.bin");
    d = open_inputs(t, &path, 1, 0);
    assert_int_equal(oct_dataset_size(d), 10);
    for (int64_t i = 0; i < 10; i++)
        assert_frame(t, d, i, i);
    assert_frame(t, d, 3, 3); /* back again */
    oct_dataset_close(d);
    d = open_inputs(t, &path, 1, 4);
    assert_int_equal(oct_dataset_size(d), 3);
    for (int64_t i = 0; i < 3; i++)
        assert_frame(t, d, i, 4 * i);
    oct_dataset_close(d);
    put_picture(t, "a.png", 4, 4);
    path = below(t, "a.png");
    d = open_inputs(t, &path, 1, 4);
    assert_int_equal(oct_dataset_frame(d, 0), -1);
    oct_dataset_close(d);
}

static void loads_frames_on_threads(void **state)
{
    files *t = *state;
    const char *path;
    oct_preprocess p;
    oct_dataset *d;

    put_video(t, "clip.avi", 9);
    path = below(t, "clip.avi");
    d = open_inputs(t, &path, 1, 2);
    oct_preprocess_init(&p);
    p.width = p.height = 8;
    p.fit = OCT_FIT_STRETCH;
    p.scale = 1;
    for (int32_t threads = 1; threads <= 3; threads++) {
        const oct_loaded *item = NULL;
        oct_loader *l = NULL;

        assert_ok(t->ctx, open_loader(t->ctx, d, &p, OCT_DTYPE_F32, threads, 0, &l));
        for (int64_t i = 0; i < 5; i++) {
            assert_ok(t->ctx, oct_loader_take(l, t->ctx, &item));
            assert_non_null(item);
            assert_in_range(((const float *)item->data)[7] + 3 - (float)(40 * i + 10), 0, 6);
            oct_loader_done(l, item);
        }
        assert_ok(t->ctx, oct_loader_take(l, t->ctx, &item));
        assert_null(item);
        oct_loader_free(l);
    }
    oct_dataset_close(d);
}

/* Cut anywhere, or with any byte wrong: never a crash, and what can be decoded is. */
static void survives_broken_videos(void **state)
{
    files *t = *state;
    avi a = make_avi(t->ctx, 3, 16, 16, below(t, "scratch.jpg"));

    for (size_t i = 0; i < a.size; i += 7) {
        const uint8_t old = a.data[i];
        oct_video *v = NULL;
        oct_image *im = NULL;
        int64_t n = 0;

        a.data[i] ^= (uint8_t)(1 << i % 8);
        put_bytes(t, "x.avi", a.data, i % 2 ? a.size : OCT_MAX(i, (size_t)16));
        a.data[i] = old;
        if (oct_video_open(t->ctx, below(t, "x.avi"), &v)) continue;
        if (!oct_video_count(v, &n)) {
            assert_true(n >= 0 && n < 1000);
            if (!oct_video_read(v, 1, &im)) oct_image_free(im);
        }
        oct_video_close(v);
    }
    free(a.data);
}

static void tells_videos_by_their_bytes(void **state)
{
    (void)state;
#define KNOWS(text) oct_is_video((oct_bytes){(const uint8_t *)(text), sizeof(text) - 1})
    assert_true(KNOWS("\0\0\0\x20"
                      "ftypisom----"));
    assert_true(KNOWS("\x1a\x45\xdf\xa3----"));
    assert_true(KNOWS("RIFF----AVI LIST"));
    assert_false(KNOWS("RIFF----WEBPVP8 "));
    assert_false(KNOWS("\0\0\0\x20"
                       "ftypheic----"));
    assert_false(KNOWS("words, words"));
    assert_false(KNOWS(""));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_files, teardown_files)
    const struct CMUnitTest tests[] = {
        TEST(reads_folders_to_their_depth),
        TEST(knows_pictures_by_their_bytes),
        TEST(reads_patterns),
        TEST(reads_several_at_once),
        TEST(reads_every_nth_frame),
        TEST(loads_frames_on_threads),
        TEST(survives_broken_videos),
        cmocka_unit_test(tells_videos_by_their_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
