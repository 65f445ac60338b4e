/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding: every kind of JPEG and PNG, broken ones, orientation, writing. */
#include "tests/alloc.h"

#include <unistd.h>

#include <jpeglib.h>
#include <png.h>

#include "data/image/image.h"

/* A file in memory. */
typedef struct blob {
    uint8_t *data;
    size_t size;
} blob;

/* --- making JPEG files --- */

typedef struct jpeg_kind {
    int n_components;
    J_COLOR_SPACE in, stored;
    bool progressive, restarts;
} jpeg_kind;

static const jpeg_kind rgb_jpeg = {3, JCS_RGB, JCS_YCbCr, false, false};

static blob make_jpeg(const jpeg_kind *k, int w, int h, const uint8_t *pixels, int orientation)
{
    struct jpeg_compress_struct c = {0};
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long size = 0;

    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &data, &size);
    c.image_width = (JDIMENSION)w;
    c.image_height = (JDIMENSION)h;
    c.input_components = k->n_components;
    c.in_color_space = k->in;
    jpeg_set_defaults(&c);
    jpeg_set_colorspace(&c, k->stored);
    jpeg_set_quality(&c, 100, TRUE);
    c.comp_info[0].h_samp_factor = c.comp_info[0].v_samp_factor = 1;
    if (k->progressive) jpeg_simple_progression(&c);
    if (k->restarts) c.restart_interval = 1;
    jpeg_start_compress(&c, TRUE);
    if (orientation) {
        uint8_t exif[] = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0";

        exif[6 + 8 + 2 + 9] = (uint8_t)orientation;
        jpeg_write_marker(&c, JPEG_APP0 + 1, exif, sizeof(exif) - 1);
    }
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = (JSAMPROW)pixels + c.next_scanline * (size_t)w * (size_t)k->n_components;

        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return (blob){data, size};
}

/* --- making PNG files --- */

static void put(png_struct *png, png_byte *p, size_t n)
{
    blob *b = png_get_io_ptr(png);

    b->data = realloc(b->data, b->size + n);
    assert_non_null(b->data);
    memcpy(b->data + b->size, p, n);
    b->size += n;
}

static void flush(png_struct *png)
{
    (void)png;
}

/* rows: as PNG stores them, `pitch` bytes apart. */
static blob make_png(int w, int h, int bits, int color, int interlace, const uint8_t *rows,
                     size_t pitch)
{
    const png_color palette[3] = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}};
    const png_byte transparent[3] = {0, 128, 255};
    png_struct *png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_info *info = png_create_info_struct(png);
    png_byte *pointers[64];
    blob b = {0};

    if (setjmp(png_jmpbuf(png))) fail_msg("cannot make a PNG");
    png_set_write_fn(png, &b, put, flush);
    png_set_IHDR(png, info, (png_uint_32)w, (png_uint_32)h, bits, color, interlace, 0, 0);
    if (color == PNG_COLOR_TYPE_PALETTE) {
        png_set_PLTE(png, info, palette, 3);
        png_set_tRNS(png, info, transparent, 3, NULL);
    }
    for (int y = 0; y < h; y++)
        pointers[y] = (png_byte *)rows + (size_t)y * pitch;
    png_write_info(png, info);
    png_write_image(png, pointers);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return b;
}

/* --- comparing --- */

static void assert_pixels(fixture *f, blob b, const oct_image_options *o, int w, int h,
                          const uint8_t *want, int tolerance)
{
    oct_image *im = NULL;
    const uint8_t *got;

    assert_ok(f->ctx, oct_image_decode(f->ctx, "test", b.data, b.size, o, &im));
    assert_int_equal(oct_image_width(im), w);
    assert_int_equal(oct_image_height(im), h);
    got = oct_image_rgb(im);
    for (int i = 0; i < w * h * 3; i++) {
        if (abs(got[i] - want[i]) > tolerance)
            fail_msg("byte %d is %d, want %d", i, got[i], want[i]);
    }
    oct_image_free(im);
}

static void fill(uint8_t *p, int n, const uint8_t *pixel, int size)
{
    for (int i = 0; i < n; i++)
        memcpy(p + i * size, pixel, (size_t)size);
}

/* --- JPEG --- */

static void reads_every_kind_of_jpeg(void **state)
{
    fixture *f = *state;
    static const struct {
        jpeg_kind kind;
        uint8_t pixel[4], want[3];
    } cases[] = {
        {{3, JCS_RGB, JCS_YCbCr, false, false}, {200, 100, 50}, {200, 100, 50}},
        {{3, JCS_RGB, JCS_YCbCr, true, false}, {200, 100, 50}, {200, 100, 50}},
        {{3, JCS_RGB, JCS_YCbCr, false, true}, {10, 20, 250}, {10, 20, 250}},
        {{3, JCS_RGB, JCS_RGB, false, false}, {200, 100, 50}, {200, 100, 50}},
        {{1, JCS_GRAYSCALE, JCS_GRAYSCALE, false, false}, {77}, {77, 77, 77}},
        {{1, JCS_GRAYSCALE, JCS_GRAYSCALE, true, false}, {77}, {77, 77, 77}},
        /* inverted, as Adobe writes them: red = cyan's byte times black's */
        {{4, JCS_CMYK, JCS_CMYK, false, false}, {255, 128, 0, 255}, {255, 128, 0}},
        {{4, JCS_CMYK, JCS_YCCK, false, false}, {255, 128, 0, 128}, {128, 64, 0}},
        {{4, JCS_CMYK, JCS_YCCK, true, false}, {0, 0, 0, 0}, {0, 0, 0}},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        uint8_t pixels[17 * 9 * 4], want[17 * 9 * 3];
        blob b;

        fill(pixels, 17 * 9, cases[i].pixel, cases[i].kind.n_components);
        fill(want, 17 * 9, cases[i].want, 3);
        b = make_jpeg(&cases[i].kind, 17, 9, pixels, 0);
        assert_pixels(f, b, NULL, 17, 9, want, 2);
        free(b.data);
    }
}

/* Where the four corners of the stored picture go, for each orientation. */
static void turns_by_exif(void **state)
{
    fixture *f = *state;
    /* 16 x 8 in four blocks of 8 x 4: a b / c d; rows of the upright picture */
    static const char *const want[9] = {NULL,   "abcd", "badc", "dcba", "cdab",
                                        "acbd", "cadb", "dbca", "bdac"};
    static const uint8_t level[4] = {0, 80, 160, 240};
    uint8_t pixels[16 * 8 * 3];
    oct_image_options o;

    for (int i = 0; i < 16 * 8; i++)
        memset(pixels + 3 * i, level[2 * (i / 16 / 4) + i % 16 / 8], 3);
    oct_image_options_init(&o);
    for (int orientation = 1; orientation <= 8; orientation++) {
        blob b = make_jpeg(&rgb_jpeg, 16, 8, pixels, orientation);
        const int w = orientation < 5 ? 16 : 8, h = orientation < 5 ? 8 : 16;
        uint8_t upright[16 * 8 * 3];

        for (int i = 0; i < w * h; i++)
            memset(upright + 3 * i,
                   level[want[orientation][2 * (i / w / (h / 2)) + i % w / (w / 2)] - 'a'], 3);
        o.exif = 0;
        assert_pixels(f, b, &o, 16, 8, pixels, 8);
        o.exif = 1;
        assert_pixels(f, b, &o, w, h, upright, 8);
        assert_pixels(f, b, NULL, w, h, upright, 8); /* as OpenCV and Ultralytics do */
        free(b.data);
    }
}

static void survives_strange_exif(void **state)
{
    uint8_t exif[] = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";

    (void)state;
    assert_int_equal(oct_exif_orientation((oct_bytes){exif, sizeof(exif) - 1}), 6);
    for (size_t n = 0; n < 20; n++) /* cut off anywhere before the value */
        assert_int_equal(oct_exif_orientation((oct_bytes){exif, n}), 1);
    exif[18] = 9;
    assert_int_equal(oct_exif_orientation((oct_bytes){exif, sizeof(exif) - 1}), 1);
    memset(exif + 4, 0xff, 4); /* the directory lies far outside */
    assert_int_equal(oct_exif_orientation((oct_bytes){exif, sizeof(exif) - 1}), 1);
}

/* --- PNG --- */

static void reads_every_kind_of_png(void **state)
{
    fixture *f = *state;
    const uint8_t rgb[] = {1, 2, 3, 250, 251, 252, 9, 8, 7, 100, 101, 102};
    const uint8_t rgb16[] = {1, 255, 2, 255, 3, 255, 250, 0, 251, 0, 252, 0,
                             9, 1,   8, 1,   7, 1,   100, 0, 101, 0, 102, 0};
    const uint8_t rgba[] = {1, 2, 3, 0, 250, 251, 252, 128, 9, 8, 7, 255, 100, 101, 102, 1};
    const uint8_t gray[] = {0, 7, 200, 255};
    const uint8_t gray_rgb[] = {0, 0, 0, 7, 7, 7, 200, 200, 200, 255, 255, 255};
    const uint8_t gray_alpha[] = {0, 9, 7, 9, 200, 9, 255, 9};
    const uint8_t bits[] = {0x40, 0x80}; /* 0 1 / 1 0 */
    const uint8_t bits_rgb[] = {0, 0, 0, 255, 255, 255, 255, 255, 255, 0, 0, 0};
    const uint8_t palette[] = {0, 1, 2, 0};
    const uint8_t palette_rgb[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 0, 0};
    const struct {
        int bits, color;
        const uint8_t *rows;
        size_t pitch;
        const uint8_t *want;
    } cases[] = {
        {8, PNG_COLOR_TYPE_RGB, rgb, 6, rgb},
        {16, PNG_COLOR_TYPE_RGB, rgb16, 12, rgb},
        {8, PNG_COLOR_TYPE_RGB_ALPHA, rgba, 8, rgb},
        {8, PNG_COLOR_TYPE_GRAY, gray, 2, gray_rgb},
        {1, PNG_COLOR_TYPE_GRAY, bits, 1, bits_rgb},
        {8, PNG_COLOR_TYPE_GRAY_ALPHA, gray_alpha, 4, gray_rgb},
        {8, PNG_COLOR_TYPE_PALETTE, palette, 2, palette_rgb},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        for (int interlace = 0; interlace < 2; interlace++) {
            blob b = make_png(2, 2, cases[i].bits, cases[i].color, interlace, cases[i].rows,
                              cases[i].pitch);

            assert_pixels(f, b, NULL, 2, 2, cases[i].want, 0);
            free(b.data);
        }
    }
}

/* --- broken --- */

static void decode_fails(fixture *f, blob b, size_t size, const char *text)
{
    oct_image *im = NULL;

    assert_fails(f->ctx, oct_image_decode(f->ctx, "x.jpg", b.data, size, NULL, &im), OCT_ERR_FORMAT,
                 text);
    assert_null(im);
    assert_non_null(strstr(oct_ctx_error(f->ctx), "x.jpg"));
}

static void refuses_what_is_cut_off(void **state)
{
    fixture *f = *state;
    uint8_t pixels[32 * 32 * 3];
    jpeg_kind progressive = rgb_jpeg;
    blob files[3];

    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (uint8_t)(i * i * 7 + i);
    progressive.progressive = true;
    files[0] = make_jpeg(&rgb_jpeg, 32, 32, pixels, 0);
    files[1] = make_jpeg(&progressive, 32, 32, pixels, 0);
    files[2] = make_png(32, 32, 8, PNG_COLOR_TYPE_RGB, 0, pixels, 96);
    for (int i = 0; i < 3; i++) {
        /* the last bytes (end of image; checksum and end) may be missing */
        const size_t end = files[i].size - (i < 2 ? 2 : 20);

        for (size_t n = 0; n < end; n += n < 700 ? 1 : 13)
            decode_fails(f, files[i], n, n ? "" : "empty");
        free(files[i].data);
    }
    decode_fails(f, (blob){(uint8_t *)"GIF89a", 6}, 6, "GIF is not read");
}

/* A cut file with an end marker put behind: as dangerous, as it looks whole. */
static void refuses_a_cut_scan_that_pretends_to_end(void **state)
{
    fixture *f = *state;
    uint8_t pixels[64 * 64 * 3];
    blob b;

    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (uint8_t)(i * i * 7 + i);
    b = make_jpeg(&rgb_jpeg, 64, 64, pixels, 0);
    b.data[b.size / 2] = 0xff;
    b.data[b.size / 2 + 1] = 0xd9;
    decode_fails(f, b, b.size / 2 + 2, "premature end");
    free(b.data);
}

static void survives_flipped_bytes(void **state)
{
    fixture *f = *state;
    uint8_t pixels[16 * 16 * 3];
    blob files[2];

    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (uint8_t)(i * 31);
    files[0] = make_jpeg(&rgb_jpeg, 16, 16, pixels, 6);
    files[1] = make_png(16, 16, 8, PNG_COLOR_TYPE_RGB, 1, pixels, 48);
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < files[k].size; i++) {
            const uint8_t old = files[k].data[i];
            oct_image_options o;
            oct_image *im = NULL;

            oct_image_options_init(&o);
            o.exif = 1;
            o.max_pixels = 1 << 16;
            files[k].data[i] = (uint8_t)(old ^ (1 << i % 8));
            if (!oct_image_decode(f->ctx, "x", files[k].data, files[k].size, &o, &im))
                oct_image_free(im);
            else
                assert_true(f->ctx->error[0]);
            files[k].data[i] = old;
        }
        free(files[k].data);
    }
}

static void refuses_too_many_pixels(void **state)
{
    fixture *f = *state;
    uint8_t pixels[20 * 10 * 3] = {0};
    blob b = make_jpeg(&rgb_jpeg, 20, 10, pixels, 0);
    oct_image_options o;
    oct_image *im = NULL;

    oct_image_options_init(&o);
    assert_int_equal(o.max_pixels, 178956970);
    o.max_pixels = 199;
    assert_fails(f->ctx, oct_image_decode(f->ctx, "x", b.data, b.size, &o, &im),
                 OCT_ERR_UNSUPPORTED, "20 x 10 pixels is over the limit of 199");
    free(b.data);
}

/* --- files --- */

static void writes_and_reads_odd_sizes(void **state)
{
    static const struct {
        int w, h;
        const char *name;
        int tolerance;
    } cases[] = {{1, 1, "a.png", 0},      {1, 1, "a.jpg", 2},     {30000, 1, "b.png", 0},
                 {30000, 1, "b.JPEG", 2}, {1, 30000, "c.png", 0}, {33, 7, "d.png", 0}};
    fixture *f = *state;
    char folder[64], path[128];

    make_folder(folder);
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_image *im = NULL, *back = NULL;
        int32_t w = 0, h = 0;

        snprintf(path, sizeof(path), "%s/%s", folder, cases[i].name);
        assert_ok(f->ctx, oct_image_new(f->ctx, cases[i].w, cases[i].h, &im));
        for (int k = 0; k < cases[i].w * cases[i].h; k++)
            memset(oct_image_rgb(im) + 3 * k, 200 - k / 64 % 100, 3);
        assert_ok(f->ctx, oct_image_save(f->ctx, im, path));
        assert_ok(f->ctx, oct_image_load(f->ctx, path, NULL, &back));
        assert_int_equal(oct_image_width(back), cases[i].w);
        assert_int_equal(oct_image_height(back), cases[i].h);
        for (int k = 0; k < cases[i].w * cases[i].h * 3; k++)
            assert_in_range(oct_image_rgb(back)[k] + 3 - oct_image_rgb(im)[k],
                            3 - cases[i].tolerance, 3 + cases[i].tolerance);
        assert_ok(f->ctx, oct_image_peek(f->ctx, path, &w, &h));
        assert_true(w == cases[i].w && h == cases[i].h);
        oct_image_free(im);
        oct_image_free(back);
    }
    remove_folder(folder);
}

static void names_the_file_in_errors(void **state)
{
    fixture *f = *state;
    char folder[64], path[128];
    oct_image *im = NULL;
    int32_t w, h;
    FILE *file;

    make_folder(folder);
    snprintf(path, sizeof(path), "%s/empty.jpg", folder);
    assert_fails(f->ctx, oct_image_load(f->ctx, path, NULL, &im), OCT_ERR_IO, "empty.jpg");
    file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_fails(f->ctx, oct_image_load(f->ctx, path, NULL, &im), OCT_ERR_FORMAT,
                 "empty.jpg: the file is empty");
    assert_fails(f->ctx, oct_image_peek(f->ctx, path, &w, &h), OCT_ERR_FORMAT, "empty.jpg");
    assert_fails(f->ctx, oct_image_load(f->ctx, folder, NULL, &im), OCT_ERR_IO, "directory");
    assert_fails(f->ctx, oct_image_new(f->ctx, 0, 5, &im), OCT_ERR_ARG, "0 x 5");
    assert_ok(f->ctx, oct_image_new(f->ctx, 2, 2, &im));
    assert_fails(f->ctx, oct_image_save(f->ctx, im, "x.gif"), OCT_ERR_ARG, "x.gif");
    snprintf(path, sizeof(path), "%s/no/where.png", folder);
    assert_fails(f->ctx, oct_image_save(f->ctx, im, path), OCT_ERR_IO, "where.png");
    oct_image_free(im);
    remove_folder(folder);
}

/* Too wide for a JPEG: the library's error must come back, and no file be left. */
static void reports_what_cannot_be_written(void **state)
{
    fixture *f = *state;
    char folder[64], path[128];
    oct_image *im = NULL;

    make_folder(folder);
    snprintf(path, sizeof(path), "%s/wide.jpg", folder);
    assert_ok(f->ctx, oct_image_new(f->ctx, 70000, 1, &im));
    assert_fails(f->ctx, oct_image_save(f->ctx, im, path), OCT_ERR_UNSUPPORTED, "wide.jpg");
    oct_image_free(im);
    assert_int_equal(rmdir(folder), 0);
}

static oct_status decode_both(oct_ctx *ctx)
{
    static const uint8_t pixels[8 * 8 * 4] = {0};
    const jpeg_kind cmyk = {4, JCS_CMYK, JCS_YCCK, false, false};
    blob files[2] = {make_jpeg(&cmyk, 8, 8, pixels, 6),
                     make_png(8, 8, 8, PNG_COLOR_TYPE_RGB, 0, pixels, 24)};
    oct_status st = OCT_OK;

    for (int i = 0; i < 2; i++) {
        oct_image_options o;
        oct_image *im = NULL;

        oct_image_options_init(&o);
        o.exif = 1;
        if (!st) st = oct_image_decode(ctx, "x", files[i].data, files[i].size, &o, &im);
        oct_image_free(im);
        free(files[i].data);
    }
    return st;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    fail_each_allocation(decode_both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_every_kind_of_jpeg, setup, teardown),
        cmocka_unit_test_setup_teardown(turns_by_exif, setup, teardown),
        cmocka_unit_test(survives_strange_exif),
        cmocka_unit_test_setup_teardown(reads_every_kind_of_png, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_what_is_cut_off, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_a_cut_scan_that_pretends_to_end, setup, teardown),
        cmocka_unit_test_setup_teardown(survives_flipped_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_too_many_pixels, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_and_reads_odd_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(names_the_file_in_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_what_cannot_be_written, setup, teardown),
        cmocka_unit_test(survives_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
