/* SPDX-License-Identifier: Apache-2.0 */
/* WebP, BMP and TIFF: every kind, turned ones, broken ones; files of kinds that are not read. */
#include "tests/unit/data_files.h"

#include <png.h>
#include <tiffio.h>
#include <webp/encode.h>

#include "data/image/image.h"

enum { W = 6, H = 4, N_BYTES = W * H * 3 };

typedef struct blob {
    uint8_t *data;
    size_t size;
} blob;

/* A picture without any symmetry. */
static void draw(uint8_t rgb[N_BYTES])
{
    for (int i = 0; i < W * H; i++) {
        rgb[3 * i] = (uint8_t)(i * 10);
        rgb[3 * i + 1] = (uint8_t)(255 - i * 7);
        rgb[3 * i + 2] = (uint8_t)(i % W * 40);
    }
}

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static void assert_picture(oct_ctx *ctx, blob b, int w, int h, const uint8_t *want)
{
    oct_image *im = NULL;

    assert_ok(ctx, oct_image_decode(ctx, "test", b.data, b.size, NULL, &im));
    assert_int_equal(oct_image_width(im), w);
    assert_int_equal(oct_image_height(im), h);
    for (int i = 0; i < w * h * 3; i++)
        if (oct_image_rgb(im)[i] != want[i])
            fail_msg("byte %d is %d, want %d", i, oct_image_rgb(im)[i], want[i]);
    oct_image_free(im);
}

/* What orientation 6 makes of it: the first column, from below, is the first row. */
static void turn_right(const uint8_t *from, uint8_t *to)
{
    for (int y = 0; y < W; y++)
        for (int x = 0; x < H; x++)
            memcpy(to + 3 * (y * H + x), from + 3 * ((H - 1 - x) * W + y), 3);
}

/* --- WebP --- */

static blob make_webp(const uint8_t *rgb)
{
    blob b = {0};

    b.size = WebPEncodeLosslessRGB(rgb, W, H, 3 * W, &b.data);
    assert_true(b.size > 0);
    return b;
}

/* The extended form: a header that announces EXIF, the picture, EXIF. */
static blob add_exif(blob webp, int orientation)
{
    uint8_t exif[] = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    const size_t n_exif = sizeof(exif) - 1;
    blob b = {.size = webp.size + 18 + 8 + n_exif};

    exif[18] = (uint8_t)orientation;
    b.data = calloc(1, b.size);
    assert_non_null(b.data);
    memcpy(b.data, webp.data, 12);
    put32(b.data + 4, (uint32_t)b.size - 8);
    memcpy(b.data + 12, "VP8X\x0a\0\0\0\x08\0\0\0", 12);
    b.data[24] = W - 1;
    b.data[27] = H - 1;
    memcpy(b.data + 30, webp.data + 12, webp.size - 12);
    memcpy(b.data + 18 + webp.size, "EXIF", 4);
    put32(b.data + 22 + webp.size, (uint32_t)n_exif);
    memcpy(b.data + 26 + webp.size, exif, n_exif);
    return b;
}

static void reads_webp(void **state)
{
    files *t = *state;
    uint8_t rgb[N_BYTES], turned[N_BYTES], rgba[W * H * 4];
    int32_t w = 0, h = 0;
    blob b, extended;

    draw(rgb);
    turn_right(rgb, turned);
    b = make_webp(rgb);
    assert_picture(t->ctx, b, W, H, rgb);
    extended = add_exif(b, 6);
    assert_picture(t->ctx, extended, H, W, turned);
    put_bytes(t, "x.webp", extended.data, extended.size);
    assert_ok(t->ctx, oct_image_peek(t->ctx, below(t, "x.webp"), &w, &h));
    assert_true(w == H && h == W);
    free(extended.data);
    WebPFree(b.data);

    for (int i = 0; i < W * H; i++) { /* transparency is left out, not blended */
        memcpy(rgba + 4 * i, rgb + 3 * i, 3);
        rgba[4 * i + 3] = 128;
    }
    b.size = WebPEncodeLosslessRGBA(rgba, W, H, 4 * W, &b.data);
    assert_picture(t->ctx, b, W, H, rgb);
    WebPFree(b.data);
}

/* --- BMP --- */

/* Both headers, `extra` bytes (masks or palette) behind them, then rows. */
static blob make_bmp(uint32_t header, int bits, uint32_t storage, int32_t height,
                     const uint8_t *extra, size_t n_extra, const uint8_t *rows, size_t n_rows)
{
    const size_t start = 14 + header + n_extra;
    blob b = {calloc(1, start + n_rows), start + n_rows};

    assert_non_null(b.data);
    memcpy(b.data, "BM", 2);
    put32(b.data + 2, (uint32_t)b.size);
    put32(b.data + 10, (uint32_t)start);
    put32(b.data + 14, header);
    if (header == 12) {
        put32(b.data + 18, 2 | (uint32_t)height << 16);
        put32(b.data + 22, 1 | (uint32_t)bits << 16);
    } else {
        put32(b.data + 18, 2);
        put32(b.data + 22, (uint32_t)height);
        put32(b.data + 26, 1 | (uint32_t)bits << 16);
        put32(b.data + 30, storage);
    }
    if (n_extra) memcpy(b.data + 14 + header, extra, n_extra);
    memcpy(b.data + start, rows, n_rows);
    return b;
}

static void reads_every_kind_of_bmp(void **state)
{
    files *t = *state;
    static const uint8_t want[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255};
    static const uint8_t flipped[] = {0, 0, 255, 255, 255, 255, 255, 0, 0, 0, 255, 0};
    /* red green / blue white; stored from below */
    static const uint8_t rows24[] = {255, 0, 0, 255, 255, 255, 0, 0, 0, 0, 255, 0, 255, 0, 0, 0};
    static const uint8_t rows32[] = {255, 0, 0, 9, 255, 255, 255, 9, 0, 0, 255, 9, 0, 255, 0, 9};
    static const uint8_t rows555[] = {0x1f, 0, 0xff, 0x7f, 0, 0x7c, 0xe0, 0x03};
    static const uint8_t rows565[] = {0x1f, 0, 0xff, 0xff, 0, 0xf8, 0xe0, 0x07};
    static const uint8_t masks565[] = {0, 0xf8, 0, 0, 0xe0, 7, 0, 0, 0x1f, 0, 0, 0};
    static const uint8_t rows8[] = {2, 3, 0, 0, 0, 1, 0, 0};
    static const uint8_t rows4[] = {0x23, 0, 0, 0, 0x01, 0, 0, 0};
    uint8_t palette[1024] = {0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0, 0, 255, 255, 255, 0};
    uint8_t core[768] = {0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 255};
    const uint8_t black_white[] = {0, 0, 0, 0, 255, 255, 255, 0};
    const uint8_t rows1[] = {0x40, 0, 0, 0, 0x80, 0, 0, 0}; /* 0 1 above 1 0, from below */
    const uint8_t want1[] = {255, 255, 255, 0, 0, 0, 0, 0, 0, 255, 255, 255};
    const struct {
        uint32_t header;
        int bits;
        uint32_t storage;
        int32_t height;
        const uint8_t *extra;
        size_t n_extra;
        const uint8_t *rows;
        size_t n_rows;
        const uint8_t *want;
    } cases[] = {
        {40, 24, 0, 2, NULL, 0, rows24, 16, want},
        {40, 24, 0, -2, NULL, 0, rows24, 16, flipped}, /* from above */
        {12, 24, 0, 2, NULL, 0, rows24, 16, want},
        {124, 24, 0, 2, NULL, 0, rows24, 16, want},
        {40, 32, 0, 2, NULL, 0, rows32, 16, want},
        {40, 16, 0, 2, NULL, 0, rows555, 8, want},
        {40, 16, 3, 2, masks565, 12, rows565, 8, want},
        {40, 8, 0, 2, palette, 1024, rows8, 8, want},
        {12, 8, 0, 2, core, 768, rows8, 8, want},
        {40, 4, 0, 2, palette, 64, rows4, 8, want},
        {40, 1, 0, 2, black_white, 8, rows1, 8, want1},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        blob b = make_bmp(cases[i].header, cases[i].bits, cases[i].storage, cases[i].height,
                          cases[i].extra, cases[i].n_extra, cases[i].rows, cases[i].n_rows);

        assert_picture(t->ctx, b, 2, 2, cases[i].want);
        free(b.data);
    }
}

static void refuses_strange_bmp(void **state)
{
    files *t = *state;
    static const struct {
        size_t at;
        uint32_t value;
        const char *error;
    } cases[] = {
        {30, 1, "run-length coded ones are not read"},
        {30, 4, "stored in way 4"},
        {26, 1 | 7u << 16, "7 bits for a pixel are not read"},
        {26, 1 | 8u << 16, "the file ends too early"}, /* no palette */
        {18, 0, "a picture of 0 x 2"},
        {18, 0x80000000u, "a picture of -2147483648 x 2"},
        {22, 0x80000000u, "x 2147483648"},
        {22, 3, "the file ends too early"},
        {10, 0xffffffffu, "the file ends too early"},
    };
    uint8_t rows[16] = {0};

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        blob b = make_bmp(40, 24, 0, 2, NULL, 0, rows, sizeof(rows));
        oct_image *im = NULL;

        put32(b.data + cases[i].at, cases[i].value);
        assert_fails(t->ctx, oct_image_decode(t->ctx, "x", b.data, b.size, NULL, &im),
                     OCT_ERR_FORMAT, cases[i].error);
        free(b.data);
    }
}

/* --- TIFF --- */

static blob read_back(const char *path)
{
    FILE *f = fopen(path, "rb");
    blob b = {malloc(65536), 0};

    assert_non_null(f);
    b.size = fread(b.data, 1, 65536, f);
    assert_int_equal(fclose(f), 0);
    return b;
}

static blob make_tiff(const files *t, int bits, int n_samples, int compression, int orientation,
                      const void *rows, size_t pitch)
{
    TIFF *tif = TIFFOpen(below(t, "made.tif"), "w");

    assert_non_null(tif);
    TIFFSetField(tif, TIFFTAG_IMAGEWIDTH, W);
    TIFFSetField(tif, TIFFTAG_IMAGELENGTH, H);
    TIFFSetField(tif, TIFFTAG_BITSPERSAMPLE, bits);
    TIFFSetField(tif, TIFFTAG_SAMPLESPERPIXEL, n_samples);
    TIFFSetField(tif, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tif, TIFFTAG_PHOTOMETRIC,
                 n_samples == 1 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB);
    TIFFSetField(tif, TIFFTAG_COMPRESSION, compression);
    TIFFSetField(tif, TIFFTAG_ORIENTATION, orientation);
    for (uint32_t y = 0; y < H; y++)
        assert_int_equal(TIFFWriteScanline(tif, (char *)rows + y * pitch, y, 0), 1);
    TIFFClose(tif);
    return read_back(below(t, "made.tif"));
}

static void reads_tiff(void **state)
{
    static const int compressions[] = {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE,
                                       COMPRESSION_PACKBITS};
    files *t = *state;
    uint8_t rgb[N_BYTES], turned[N_BYTES], gray[W * H], gray_rgb[N_BYTES];
    uint16_t rgb16[N_BYTES];
    int32_t w = 0, h = 0;
    blob b;

    draw(rgb);
    turn_right(rgb, turned);
    for (size_t i = 0; i < OCT_COUNT(compressions); i++) {
        b = make_tiff(t, 8, 3, compressions[i], 1, rgb, W * 3);
        assert_picture(t->ctx, b, W, H, rgb);
        free(b.data);
    }
    b = make_tiff(t, 8, 3, COMPRESSION_NONE, 6, rgb, W * 3);
    assert_picture(t->ctx, b, H, W, turned);
    assert_ok(t->ctx, oct_image_peek(t->ctx, below(t, "made.tif"), &w, &h));
    assert_true(w == H && h == W);
    free(b.data);
    for (int i = 0; i < N_BYTES; i++)
        rgb16[i] = (uint16_t)(rgb[i] * 257);
    b = make_tiff(t, 16, 3, COMPRESSION_NONE, 1, rgb16, W * 6);
    assert_picture(t->ctx, b, W, H, rgb);
    free(b.data);
    for (int i = 0; i < W * H; i++) {
        gray[i] = (uint8_t)(i * 9);
        memset(gray_rgb + 3 * i, gray[i], 3);
    }
    b = make_tiff(t, 8, 1, COMPRESSION_LZW, 1, gray, W);
    assert_picture(t->ctx, b, W, H, gray_rgb);
    free(b.data);
}

/* The picture is as it would be seen, for all eight ways of storing it. */
static void turns_tiff_every_way(void **state)
{
    files *t = *state;
    uint8_t upright[N_BYTES], stored[N_BYTES];

    draw(upright);
    for (int orientation = 1; orientation <= 4; orientation++) {
        const bool mirror = orientation == 2 || orientation == 3;
        const bool flip = orientation == 3 || orientation == 4;
        blob b;

        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                memcpy(stored + 3 * (y * W + x),
                       upright + 3 * ((flip ? H - 1 - y : y) * W + (mirror ? W - 1 - x : x)), 3);
        b = make_tiff(t, 8, 3, COMPRESSION_NONE, orientation, stored, W * 3);
        assert_picture(t->ctx, b, W, H, upright);
        free(b.data);
    }
    for (int orientation = 5; orientation <= 8; orientation++) {
        const bool from_right = orientation == 6 || orientation == 7;
        const bool from_below = orientation == 7 || orientation == 8;
        uint8_t want[N_BYTES]; /* H wide, W high */
        blob b;

        for (int y = 0; y < W; y++)
            for (int x = 0; x < H; x++)
                memcpy(want + 3 * (y * H + x),
                       upright +
                           3 * ((from_right ? H - 1 - x : x) * W + (from_below ? W - 1 - y : y)),
                       3);
        b = make_tiff(t, 8, 3, COMPRESSION_NONE, orientation, upright, W * 3);
        assert_picture(t->ctx, b, H, W, want);
        free(b.data);
    }
}

/* Labels are parts of the upright picture. */
static void matches_labels_with_turned_pictures(void **state)
{
    files *t = *state;
    oct_dataset *d = NULL;
    uint8_t rgb[N_BYTES];

    draw(rgb);
    free(make_tiff(t, 8, 3, COMPRESSION_NONE, 6, rgb, W * 3).data);
    put_folder(t, "images");
    put_folder(t, "labels");
    assert_int_equal(rename(below(t, "made.tif"), below(t, "images/a.tif")), 0);
    put_text(t, "labels/a.txt", "0 0.5 0.5 0.5 1\n");
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "images"), below(t, "labels"), false, &d));
    assert_label(d, 0, 0, H * 0.25, 0, H * 0.5, W, 0);
    oct_dataset_close(d);
}

/* --- PNG's own EXIF --- */

static void turns_png_by_exif(void **state)
{
    files *t = *state;
    uint8_t rgb[N_BYTES], turned[N_BYTES];
    uint8_t exif[] = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    FILE *f = fopen(below(t, "x.png"), "wb");
    png_struct *png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_info *info = png_create_info_struct(png);
    blob b;

    assert_non_null(f);
    draw(rgb);
    turn_right(rgb, turned);
    png_init_io(png, f);
    png_set_IHDR(png, info, W, H, 8, PNG_COLOR_TYPE_RGB, 0, 0, 0);
    png_set_eXIf_1(png, info, sizeof(exif) - 1, exif);
    png_write_info(png, info);
    for (int y = 0; y < H; y++)
        png_write_row(png, rgb + (size_t)y * W * 3);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    assert_int_equal(fclose(f), 0);
    b = read_back(below(t, "x.png"));
    assert_picture(t->ctx, b, H, W, turned);
    free(b.data);
}

/* --- all of them --- */

/* One of each. */
static void make_all(const files *t, blob all[3])
{
    uint8_t rgb[N_BYTES], rows[16] = {1, 2, 3, 4, 5, 6};

    draw(rgb);
    all[0] = make_webp(rgb);
    all[1] = make_bmp(40, 24, 0, 2, NULL, 0, rows, sizeof(rows));
    all[2] = make_tiff(t, 8, 3, COMPRESSION_LZW, 6, rgb, W * 3);
}

static void free_all(blob all[3])
{
    WebPFree(all[0].data);
    free(all[1].data);
    free(all[2].data);
}

static void refuses_what_is_cut_off(void **state)
{
    files *t = *state;
    blob all[3];

    make_all(t, all);
    for (int k = 0; k < 3; k++) {
        for (size_t n = 0; n < all[k].size - (k == 0); n++) { /* WebP ends with a filler byte */
            oct_image *im = NULL;

            if (!oct_image_decode(t->ctx, "x", all[k].data, n, NULL, &im))
                fail_msg("file %d of %zu bytes is read from its first %zu", k, all[k].size, n);
            assert_true(strlen(oct_ctx_error(t->ctx)) > 4);
        }
    }
    free_all(all);
}

static void survives_flipped_bytes(void **state)
{
    files *t = *state;
    blob all[3];

    make_all(t, all);
    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; i < all[k].size * 8; i++) {
            oct_image_options o;
            oct_image *im = NULL;

            oct_image_options_init(&o);
            o.max_pixels = 1 << 16;
            all[k].data[i / 8] ^= (uint8_t)(1 << i % 8);
            if (!oct_image_decode(t->ctx, "x", all[k].data, all[k].size, &o, &im))
                oct_image_free(im);
            else
                assert_true(*oct_ctx_error(t->ctx));
            all[k].data[i / 8] ^= (uint8_t)(1 << i % 8);
        }
    }
    free_all(all);
}

static void refuses_too_many_pixels(void **state)
{
    files *t = *state;
    oct_image_options o;
    blob all[3];

    make_all(t, all);
    oct_image_options_init(&o);
    o.max_pixels = 3;
    for (int k = 0; k < 3; k++) {
        oct_image *im = NULL;

        assert_fails(t->ctx, oct_image_decode(t->ctx, "x", all[k].data, all[k].size, &o, &im),
                     OCT_ERR_UNSUPPORTED, "is over the limit of 3 pixels");
    }
    free_all(all);
}

static void names_kinds_that_are_not_read(void **state)
{
    files *t = *state;
    static const struct {
        const char *data, *error;
    } cases[] = {
        {"GIF89a--", "x: GIF is not read; make it a JPEG"},
        {"\0\0\0\x20"
         "ftypheic----",
         "HEIC is not read"},
        {"BMW is a car, not a picture", "no picture: neither JPEG nor PNG"},
    };

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_image *im = NULL;

        assert_fails(t->ctx, oct_image_decode(t->ctx, "x", cases[i].data, 16, NULL, &im),
                     OCT_ERR_FORMAT, cases[i].error);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_files, teardown_files)
    const struct CMUnitTest tests[] = {
        TEST(reads_webp),
        TEST(reads_every_kind_of_bmp),
        TEST(refuses_strange_bmp),
        TEST(reads_tiff),
        TEST(turns_tiff_every_way),
        TEST(matches_labels_with_turned_pictures),
        TEST(turns_png_by_exif),
        TEST(refuses_what_is_cut_off),
        TEST(survives_flipped_bytes),
        TEST(refuses_too_many_pixels),
        TEST(names_kinds_that_are_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
