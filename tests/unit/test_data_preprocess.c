/* SPDX-License-Identifier: Apache-2.0 */
/* Every option of preprocessing against values worked out by hand; its words. */
#include "tests/alloc.h"

#include "data/image/image.h"

/* A picture whose red is levels[], green is 10 more, blue 20 more. */
static oct_image *picture(oct_ctx *ctx, int w, int h, const uint8_t *levels)
{
    oct_image *im = NULL;

    assert_ok(ctx, oct_image_new(ctx, w, h, &im));
    for (int i = 0; i < w * h; i++) {
        for (int c = 0; c < 3; c++)
            oct_image_rgb(im)[3 * i + c] = (uint8_t)(levels[i] + 10 * c);
    }
    return im;
}

/* The first n values that these words make of the picture. */
static void assert_values(oct_ctx *ctx, const char *words, const oct_image *im, const float *want,
                          int n)
{
    static float got[64 * 64 * 3];
    oct_preprocess p;

    oct_preprocess_init(&p);
    assert_ok(ctx, oct_preprocess_parse(ctx, &p, words));
    assert_true(p.width * p.height * 3 <= (int)OCT_COUNT(got));
    memset(got, 0xff, sizeof(got));
    assert_ok(ctx, oct_preprocess_run(ctx, &p, im, OCT_DTYPE_F32, got, NULL));
    for (int i = 0; i < n; i++) {
        if (!(fabsf(got[i] - want[i]) <= 1e-5f))
            fail_msg("%s: value %d is %g, want %g", words, i, (double)got[i], (double)want[i]);
    }
}

#define VALUES(...)                                                                                \
    (const float[]){__VA_ARGS__}, (int)(sizeof((float[]){__VA_ARGS__}) / sizeof(float))

static void letterboxes(void **state)
{
    fixture *f = *state;
    oct_image *im = picture(f->ctx, 2, 1, (const uint8_t[]){10, 20});

    /* 2 x 1 into 4 x 4: doubled, one row of padding above and below */
    assert_values(f->ctx, "size=4x4,scale=1,pad=7,interpolation=linear", im,
                  VALUES(7, 7, 7, 7, 10, 13, 18, 20, 10, 13, 18, 20, 7, 7, 7, 7, 7, 7, 7, 7, 20));
    assert_values(f->ctx, "size=4x4,scale=1,pad=7,fit=letterbox_top_left", im,
                  VALUES(10, 13, 18, 20, 10, 13, 18, 20, 7, 7, 7, 7, 7, 7, 7, 7, 20));
    /* the same inside a frame: fitted to 2 x 2, in the middle of 4 x 4 */
    assert_values(f->ctx, "size=4x4,inner=2x2,scale=1,pad=7", im,
                  VALUES(7, 7, 7, 7, 7, 10, 20, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 20));
    {
        oct_preprocess p;
        char text[256];

        oct_preprocess_init(&p);
        assert_ok(f->ctx, oct_preprocess_parse(f->ctx, &p, "inner=636"));
        assert_non_null(strstr(oct_preprocess_text(&p, text, sizeof(text)), "inner=636x636"));
        assert_fails(f->ctx, oct_preprocess_parse(f->ctx, &p, "inner=700x10"), OCT_ERR_ARG,
                     "does not lie in size");
        assert_fails(f->ctx, oct_preprocess_parse(f->ctx, &p, "fit=stretch"), OCT_ERR_ARG,
                     "letterbox only");
    }
    /* an odd rest: the smaller half comes first */
    assert_values(f->ctx, "size=2x4,scale=1,pad=7", im,
                  VALUES(7, 7, 10, 20, 7, 7, 7, 7, 7, 7, 20, 30, 7, 7, 7, 7));
    oct_image_free(im);
    /* padding left and right */
    im = picture(f->ctx, 1, 2, (const uint8_t[]){10, 20});
    assert_values(f->ctx, "size=4x2,scale=1,pad=0", im, VALUES(0, 10, 0, 0, 0, 20, 0, 0, 0, 20));
    oct_image_free(im);
}

static void stretches(void **state)
{
    fixture *f = *state;
    oct_image *im = picture(f->ctx, 2, 1, (const uint8_t[]){0, 100});

    assert_values(f->ctx, "size=4x2,scale=1,fit=stretch,interpolation=linear", im,
                  VALUES(0, 25, 75, 100, 0, 25, 75, 100, 10, 35, 85, 110));
    assert_values(f->ctx, "size=4x2,scale=1,fit=stretch,interpolation=antialias", im,
                  VALUES(0, 25, 75, 100, 0, 25, 75, 100, 10, 35, 85, 110));
    oct_image_free(im);

    /* Smaller: two neighbours of the middle, or a triangle over all that it covers. */
    im = picture(f->ctx, 4, 1, (const uint8_t[]){0, 40, 80, 120});
    assert_values(f->ctx, "size=2x1,scale=1,fit=stretch,interpolation=linear", im,
                  VALUES(20, 100, 30, 110));
    /* (0 * .75 + 40 * .75 + 80 * .25) / 1.75, (40 * .25 + 80 * .75 + 120 * .75) / 1.75 */
    assert_values(f->ctx, "size=2x1,scale=1,fit=stretch,interpolation=antialias", im,
                  VALUES(29, 91, 39, 101));
    oct_image_free(im);

    im = picture(f->ctx, 1, 4, (const uint8_t[]){0, 40, 80, 120});
    assert_values(f->ctx, "size=1x2,scale=1,fit=stretch,interpolation=linear", im,
                  VALUES(20, 100, 30, 110));
    assert_values(f->ctx, "size=1x2,scale=1,fit=stretch,interpolation=antialias", im,
                  VALUES(29, 91, 39, 101));
    oct_image_free(im);

    /* linear takes two neighbours only, however far apart: at 0.5 * 6 - 0.5 = 2.5 */
    im = picture(f->ctx, 6, 1, (const uint8_t[]){200, 200, 10, 20, 200, 200});
    assert_values(f->ctx, "size=1x1,scale=1,fit=stretch,interpolation=linear", im, VALUES(15, 25));
    oct_image_free(im);
}

static void crops_the_centre(void **state)
{
    fixture *f = *state;
    oct_image *im =
        picture(f->ctx, 6, 4, (const uint8_t[]){1,  2,  3,  4,  5,  6,  11, 12, 13, 14, 15, 16,
                                                21, 22, 23, 24, 25, 26, 31, 32, 33, 34, 35, 36});

    /* The short side is 4 already: columns 2 and 3, rows 1 and 2. */
    assert_values(f->ctx, "size=2x2,fit=crop,crop_resize=4,scale=1", im,
                  VALUES(13, 14, 23, 24, 23, 24, 33, 34));
    /* No crop_resize: 7 / 0.875 = 8, doubled; the middle 7 of 12 columns begin at 2, rows at 0. */
    assert_values(f->ctx, "size=7x7,fit=crop,scale=1,interpolation=linear", im,
                  VALUES(2, 2, 3, 3, 4, 4, 5));
    /* Never smaller than what is cut out. */
    assert_values(f->ctx, "size=6x4,fit=crop,crop_resize=1,scale=1", im, VALUES(1, 2, 3, 4, 5, 6));
    oct_image_free(im);
}

static void orders_and_scales_values(void **state)
{
    fixture *f = *state;
    oct_image *im = picture(f->ctx, 2, 1, (const uint8_t[]){51, 102});

    assert_values(f->ctx, "size=2x1", im, VALUES(.2f, .4f, 61 / 255.f, 112 / 255.f));
    assert_values(f->ctx, "size=2x1,scale=1,color=bgr", im, VALUES(71, 122, 61, 112, 51, 102));
    assert_values(f->ctx, "size=2x1,scale=1,layout=nhwc", im, VALUES(51, 61, 71, 102, 112, 122));
    assert_values(f->ctx, "size=2x1,scale=1,layout=nhwc,color=bgr", im,
                  VALUES(71, 61, 51, 122, 112, 102));
    assert_values(f->ctx, "size=2x1,mean=.1:.2:.3,std=.5:.25:2", im,
                  VALUES(.2f, .6f, (61 / 255.f - .2f) / .25f, (112 / 255.f - .2f) / .25f,
                         (71 / 255.f - .3f) / 2, (122 / 255.f - .3f) / 2));
    /* mean and std are in the order of the colours */
    assert_values(f->ctx, "size=2x1,scale=1,color=bgr,mean=70:60:50", im,
                  VALUES(1, 52, 1, 52, 1, 52));
    assert_values(f->ctx, "size=2x1,scale=127.5,mean=1", im,
                  VALUES(51 / 127.5f - 1, 102 / 127.5f - 1));
    /* 0.299 r + 0.587 g + 0.114 b */
    assert_values(f->ctx, "size=2x1,scale=1,color=gray", im, VALUES(59, 110));
    /* padding goes through the same arithmetic */
    assert_values(f->ctx, "size=2x2,fit=letterbox_top_left,mean=.5,std=.5,pad=127.5", im,
                  VALUES(-.6f, -.2f, 0, 0));
    oct_image_free(im);
}

static void makes_bytes_without_arithmetic(void **state)
{
    fixture *f = *state;
    oct_image *im = picture(f->ctx, 2, 1, (const uint8_t[]){51, 102});
    oct_preprocess p;
    uint8_t got[12];

    oct_preprocess_init(&p);
    assert_ok(f->ctx, oct_preprocess_parse(f->ctx, &p, "size=2x2,mean=5,fit=letterbox_top_left"));
    assert_ok(f->ctx, oct_preprocess_run(f->ctx, &p, im, OCT_DTYPE_U8, got, NULL));
    assert_memory_equal(
        got, ((const uint8_t[]){51, 102, 114, 114, 61, 112, 114, 114, 71, 122, 114, 114}), 12);
    p.layout = OCT_IMAGE_NHWC;
    p.color = OCT_COLOR_BGR;
    assert_ok(f->ctx, oct_preprocess_run(f->ctx, &p, im, OCT_DTYPE_U8, got, NULL));
    assert_memory_equal(
        got, ((const uint8_t[]){71, 61, 51, 122, 112, 102, 114, 114, 114, 114, 114, 114}), 12);
    assert_fails(f->ctx, oct_preprocess_run(f->ctx, &p, im, OCT_DTYPE_I64, got, NULL), OCT_ERR_TYPE,
                 "int64");
    oct_image_free(im);
}

/* Each mapping takes the picture's corners to where they are in the network's input. */
static void tells_the_mapping(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *words;
        int w, h;
        float sx, sy, ox, oy;
    } cases[] = {
        {"size=640x640", 640, 480, 1, 1, 0, 80},
        {"size=320x320", 640, 480, .5f, .5f, 0, 40},
        {"size=640x640", 480, 640, 1, 1, 80, 0},
        {"size=640x640,fit=letterbox_top_left", 320, 240, 2, 2, 0, 0},
        {"size=416x416,fit=stretch", 640, 480, .65f, 416 / 480.f, 0, 0},
        {"size=224x224,fit=crop", 512, 256, 1, 1, -144, -16},
        /* 640 * 426 / 640 is 426; 427 * 416 / 640 = 277.55 is 278 */
        {"size=416x416", 640, 427, .65f, 278 / 427.f, 0, 69},
        /* half to even: 5 * 0.5 = 2.5 is 2 */
        {"size=4x4", 8, 5, .5f, .4f, 0, 1},
        {"size=64x32", 640, 480, 43 / 640.f, 32 / 480.f, 10, 0},
    };
    float *dst = malloc(640 * 640 * 3 * sizeof(*dst));

    assert_non_null(dst);
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_image *im = NULL;
        oct_mapping m;
        oct_preprocess p;

        oct_preprocess_init(&p);
        assert_ok(f->ctx, oct_preprocess_parse(f->ctx, &p, cases[i].words));
        assert_ok(f->ctx, oct_image_new(f->ctx, cases[i].w, cases[i].h, &im));
        assert_ok(f->ctx, oct_preprocess_run(f->ctx, &p, im, OCT_DTYPE_F32, dst, &m));
        assert_float_equal(m.scale_x, cases[i].sx, 1e-6);
        assert_float_equal(m.scale_y, cases[i].sy, 1e-6);
        assert_float_equal(m.offset_x, cases[i].ox, 1e-6);
        assert_float_equal(m.offset_y, cases[i].oy, 1e-6);
        assert_true(m.image_width == cases[i].w && m.image_height == cases[i].h);
        oct_image_free(im);
    }
    free(dst);
}

/* One colour stays that colour, whatever the sizes; white does not run over. */
static void keeps_flat_pictures_flat(void **state)
{
    fixture *f = *state;
    static const int sizes[][2] = {{1, 1}, {30000, 1}, {1, 30000}, {7, 3}, {641, 479}, {13, 200}};
    static const char *const fits[] = {"letterbox", "letterbox_top_left", "stretch", "crop"};
    static float got[3 * 50 * 40];

    for (size_t i = 0; i < OCT_COUNT(sizes) * 8; i++) {
        oct_image *im = NULL;
        oct_preprocess p;
        char words[128];

        snprintf(words, sizeof(words), "size=50x40,scale=1,pad=255,fit=%s,interpolation=%s",
                 fits[i % 4], i / 4 % 2 ? "linear" : "antialias");
        oct_preprocess_init(&p);
        assert_ok(f->ctx, oct_preprocess_parse(f->ctx, &p, words));
        assert_ok(f->ctx, oct_image_new(f->ctx, sizes[i / 8][0], sizes[i / 8][1], &im));
        memset(oct_image_rgb(im), 255, (size_t)sizes[i / 8][0] * (size_t)sizes[i / 8][1] * 3);
        memset(got, 0, sizeof(got));
        assert_ok(f->ctx, oct_preprocess_run(f->ctx, &p, im, OCT_DTYPE_F32, got, NULL));
        for (size_t k = 0; k < OCT_COUNT(got); k++) {
            if (got[k] != 255.0f)
                fail_msg("%s of %d x %d: value %zu is %g", words, sizes[i / 8][0], sizes[i / 8][1],
                         k, (double)got[k]);
        }
        oct_image_free(im);
    }
}

/* --- words --- */

static void reads_words(void **state)
{
    fixture *f = *state;
    oct_preprocess p;

    oct_preprocess_init(&p);
    assert_int_equal(p.struct_size, sizeof(p));
    assert_true(p.fit == OCT_FIT_LETTERBOX && p.interpolation == OCT_INTERPOLATION_ANTIALIAS);
    assert_true(p.pad == 114 && p.scale == 255 && p.std[2] == 1 && p.mean[0] == 0);
    assert_ok(f->ctx, oct_preprocess_parse(f->ctx, &p,
                                           "size=640x480,fit=crop,pad=1.5,color=gray,scale=2,"
                                           "mean=.485:.456:.406,std=.229,interpolation=linear, "
                                           "layout=nhwc,crop_resize=256"));
    assert_true(p.width == 640 && p.height == 480 && p.fit == OCT_FIT_CROP);
    assert_true(p.pad == 1.5f && p.scale == 2 && p.color == OCT_COLOR_GRAY);
    assert_true(p.mean[0] == .485f && p.mean[2] == .406f && p.std[0] == .229f && p.std[2] == .229f);
    assert_true(p.interpolation == OCT_INTERPOLATION_LINEAR && p.layout == OCT_IMAGE_NHWC);
    assert_int_equal(p.crop_resize, 256);
    assert_ok(f->ctx, oct_preprocess_parse(f->ctx, &p, "size=320"));
    assert_true(p.width == 320 && p.height == 320 && p.fit == OCT_FIT_CROP);
    assert_ok(f->ctx, oct_preprocess_parse(f->ctx, &p, ""));
}

static void writes_words_that_read_back(void **state)
{
    fixture *f = *state;
    oct_preprocess p, q;
    char text[512];

    oct_preprocess_init(&p);
    assert_string_equal(oct_preprocess_text(&p, text, sizeof(text)),
                        "size=640x640,fit=letterbox,interpolation=antialias,color=rgb,layout=nchw,"
                        "pad=114,scale=255,mean=0:0:0,std=1:1:1");
    assert_ok(f->ctx, oct_preprocess_parse(f->ctx, &p,
                                           "size=1x2,fit=letterbox_top_left,pad=.1,color=bgr,scale="
                                           "58.395,mean=.1:.2:.3,layout=nhwc,crop_resize=7"));
    p.std[1] = 1 / 3.0f;
    oct_preprocess_text(&p, text, sizeof(text));
    oct_preprocess_init(&q);
    assert_ok(f->ctx, oct_preprocess_parse(f->ctx, &q, text));
    assert_memory_equal(&p, &q, sizeof(p));
    assert_string_equal(oct_preprocess_text(&p, text, 9), "size=1x2");
}

static void names_the_nearest_word(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *words, *error;
    } cases[] = {
        {"sice=640", "there is no \"sice\"; did you mean \"size\"?"},
        {"colour=rgb", "did you mean \"color\"?"},
        {"zzzzzzzz=1", "there are size, fit,"},
        {"fit=leterbox", "fit cannot be \"leterbox\"; did you mean \"letterbox\"?"},
        {"color=purple", "there are rgb, bgr, gray"},
        {"interpolation=lineer", "did you mean \"linear\"?"},
        {"layout=nhcw", "did you mean \"nchw\"?"},
        {"size=640y480", "it is like 640x480"},
        {"size=", "size cannot be \"\""},
        {"size=0x5", "size 0x5, each side must be 1 to"},
        {"size=99999999999", "size cannot be"},
        {"size=40000x40000", "each side must be 1 to 32768"},
        {"mean=1:2", "it is one number, or three"},
        {"mean=1:2:3:4", "it is one number, or three"},
        {"mean=nan", "it is one number, or three"},
        {"std=0", "std 0"},
        {"scale=0", "scale 0"},
        {"scale=x", "it is a number"},
        {"pad=inf", "pad cannot be \"inf\""},
        {"crop_resize=-1", "crop_resize -1"},
        {"crop_resize=1.5", "it is a number"},
        {"letterbox", "\"letterbox\" is not like NAME=VALUE"},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_preprocess p, before;

        oct_preprocess_init(&p);
        before = p;
        assert_fails(f->ctx, oct_preprocess_parse(f->ctx, &p, cases[i].words), OCT_ERR_ARG,
                     cases[i].error);
        assert_memory_equal(&p, &before, sizeof(p)); /* untouched */
    }
}

static void refuses_nonsense_in_fields(void **state)
{
    fixture *f = *state;
    oct_image *im = picture(f->ctx, 1, 1, (const uint8_t[]){1});
    oct_preprocess p;
    float dst[3];

    for (int i = 0; i < 7; i++) {
        oct_preprocess_init(&p);
        p.width = p.height = 1;
        if (i == 0) p.fit = 4;
        if (i == 1) p.interpolation = -1;
        if (i == 2) p.color = 3;
        if (i == 3) p.layout = 2;
        if (i == 4) p.scale = NAN;
        if (i == 5) p.mean[1] = INFINITY;
        if (i == 6) p.width = -3;
        assert_fails(f->ctx, oct_preprocess_run(f->ctx, &p, im, OCT_DTYPE_F32, dst, NULL),
                     OCT_ERR_ARG, "preprocess");
    }
    oct_image_free(im);
}

/* A caller compiled against a shorter struct: its bytes are all that is read and written. */
static void respects_struct_size(void **state)
{
    fixture *f = *state;
    const size_t size = offsetof(oct_preprocess, color);
    oct_preprocess p;

    memset(&p, 0x55, sizeof(p));
    oct_preprocess_init_sized(&p, size);
    assert_int_equal(p.struct_size, size);
    assert_ok(f->ctx, oct_preprocess_parse(f->ctx, &p, "size=8x9,color=gray"));
    assert_true(p.width == 8 && p.height == 9);
    assert_int_equal(p.color, 0x55555555);
}

static oct_status resize_both(oct_ctx *ctx)
{
    float dst[5 * 5 * 3];
    oct_status st = OCT_OK;

    for (int i = 0; !st && i < 3; i++) {
        oct_image *im = NULL;
        oct_preprocess p;

        oct_preprocess_init(&p);
        p.width = p.height = 5;
        p.interpolation = i % 2;
        if (i == 2) p.color = OCT_COLOR_GRAY;
        if ((st = oct_image_new(ctx, 9, 7, &im))) break;
        st = oct_preprocess_run(ctx, &p, im, OCT_DTYPE_F32, dst, NULL);
        oct_image_free(im);
    }
    return st;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    fail_each_allocation(resize_both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(letterboxes, setup, teardown),
        cmocka_unit_test_setup_teardown(stretches, setup, teardown),
        cmocka_unit_test_setup_teardown(crops_the_centre, setup, teardown),
        cmocka_unit_test_setup_teardown(orders_and_scales_values, setup, teardown),
        cmocka_unit_test_setup_teardown(makes_bytes_without_arithmetic, setup, teardown),
        cmocka_unit_test_setup_teardown(tells_the_mapping, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_flat_pictures_flat, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_words, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_words_that_read_back, setup, teardown),
        cmocka_unit_test_setup_teardown(names_the_nearest_word, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_nonsense_in_fields, setup, teardown),
        cmocka_unit_test_setup_teardown(respects_struct_size, setup, teardown),
        cmocka_unit_test(survives_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
