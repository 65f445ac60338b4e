/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures: 8-bit RGB in memory, read and written through the codecs. */
#include "data/image/image.h"

#include <string.h>
#include <strings.h>

#include "base/sniff.h"
#include "data/files.h"

#define MAX_PIXELS 178956970 /* where Pillow starts to warn */

static const oct_codec *const codecs[] = {&oct_codec_jpeg, &oct_codec_png, &oct_codec_webp,
                                          &oct_codec_bmp, &oct_codec_tiff};

/* Common formats that octet does not read, by their first bytes. */
static const struct {
    const char *name;
    size_t at, size;
    const char *bytes;
} unread[] = {
    {"GIF", 0, 4, "GIF8"},       {"HEIC", 4, 8, "ftypheic"},    {"HEIC", 4, 8, "ftypmif1"},
    {"AVIF", 4, 8, "ftypavif"},  {"JPEG XL", 0, 2, "\xff\x0a"}, {"JPEG XL", 4, 4, "JXL "},
    {"JPEG 2000", 4, 4, "jP  "}, {"Photoshop", 0, 4, "8BPS"},   {"PDF", 0, 5, "%PDF-"},
    {"SVG", 0, 4, "<svg"},
};

void oct_image_options_init_sized(oct_image_options *o, size_t struct_size)
{
    const oct_image_options all = {.struct_size = struct_size, .exif = 1, .max_pixels = MAX_PIXELS};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

oct_status oct_image_make(oct_ctx *ctx, int64_t width, int64_t height, int64_t max_pixels,
                          oct_image **out)
{
    oct_image *im;
    int64_t n;

    if (width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX)
        return oct_fail(ctx, OCT_ERR_FORMAT, "a picture of %lld x %lld pixels", (long long)width,
                        (long long)height);
    n = width * height;
    if (n > max_pixels)
        return oct_fail(ctx, OCT_ERR_UNSUPPORTED,
                        "a picture of %lld x %lld pixels is over the limit of %lld pixels",
                        (long long)width, (long long)height, (long long)max_pixels);
    im = oct_alloc(ctx, sizeof(*im) + (size_t)n * 3);
    if (!im) return OCT_ERR_MEMORY;
    im->ctx = ctx;
    im->width = (int32_t)width;
    im->height = (int32_t)height;
    *out = im;
    return OCT_OK;
}

oct_status oct_image_new(oct_ctx *ctx, int32_t width, int32_t height, oct_image **out)
{
    OCT_ENTER(ctx);
    oct_image *im = NULL;

    if (width < 1 || height < 1)
        return oct_fail(ctx, OCT_ERR_ARG, "a picture of %d x %d pixels", width, height);
    OCT_TRY(oct_image_make(ctx, width, height, (int64_t)1 << 40, &im));
    memset(im->rgb, 0, (size_t)width * (size_t)height * 3);
    *out = im;
    return OCT_OK;
}

void oct_image_free(oct_image *im)
{
    if (im) oct_free(im->ctx, im);
}

int32_t oct_image_width(const oct_image *im)
{
    return im->width;
}

int32_t oct_image_height(const oct_image *im)
{
    return im->height;
}

uint8_t *oct_image_rgb(oct_image *im)
{
    return im->rgb;
}

const oct_codec *oct_codec_by_bytes(oct_bytes start)
{
    for (size_t i = 0; i < OCT_COUNT(codecs); i++) {
        if (codecs[i]->knows(start)) return codecs[i];
    }
    return NULL;
}

bool oct_is_picture_file(const char *path)
{
    uint8_t start[32];
    const size_t n = oct_codec_by_name(path) ? 0 : oct_file_start(path, start, sizeof(start));

    return oct_codec_by_name(path) || oct_codec_by_bytes((oct_bytes){start, n});
}

static oct_status find_codec(oct_ctx *ctx, oct_bytes file, const oct_codec **out)
{
    const oct_kind *kind;

    if (!file.size) return oct_fail(ctx, OCT_ERR_FORMAT, "the file is empty");
    if ((*out = oct_codec_by_bytes(file))) return OCT_OK;
    for (size_t i = 0; i < OCT_COUNT(unread); i++) {
        if (file.size >= unread[i].at + unread[i].size &&
            !memcmp(file.data + unread[i].at, unread[i].bytes, unread[i].size))
            return oct_fail(ctx, OCT_ERR_FORMAT,
                            "%s is not read; make it a JPEG, PNG, WebP, BMP or TIFF file",
                            unread[i].name);
    }
    kind = oct_sniff(file.data, file.size);
    return oct_fail(ctx, OCT_ERR_FORMAT, "no picture: neither JPEG nor PNG, WebP, BMP or TIFF%s%s",
                    kind ? "; it is " : "", kind ? kind->name : "");
}

static oct_status decode(oct_ctx *ctx, oct_bytes file, const oct_image_options *options,
                         oct_image **out)
{
    oct_image_options o;
    const oct_codec *codec = NULL;
    oct_image *im = NULL;
    oct_status st;
    int orientation = 1;

    oct_image_options_init(&o);
    if (options) memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    OCT_TRY(find_codec(ctx, file, &codec));
    OCT_TRY(codec->decode(ctx, file, o.max_pixels, &im, &orientation));
    if (o.exif && (st = oct_exif_apply(ctx, orientation, &im))) {
        oct_image_free(im);
        return st;
    }
    *out = im;
    return OCT_OK;
}

oct_status oct_image_decode(oct_ctx *ctx, const char *name, const void *data, size_t size,
                            const oct_image_options *options, oct_image **out)
{
    OCT_ENTER(ctx);
    const oct_status st = decode(ctx, (oct_bytes){data, size}, options, out);

    return st ? oct_fail_at(ctx, st, name) : OCT_OK;
}

oct_status oct_image_load(oct_ctx *ctx, const char *path, const oct_image_options *options,
                          oct_image **out)
{
    OCT_ENTER(ctx);
    oct_file *f = NULL;
    oct_status st;

    OCT_TRY(oct_file_map(ctx, path, &f));
    st = oct_image_decode(ctx, path, oct_file_data(f), oct_file_size(f), options, out);
    oct_file_unref(f);
    return st;
}

oct_status oct_image_peek(oct_ctx *ctx, const char *path, int32_t *width, int32_t *height)
{
    oct_image_header h = {.orientation = 1};
    const oct_codec *codec = NULL;
    oct_file *f = NULL;
    oct_bytes bytes;
    oct_status st;

    OCT_TRY(oct_file_map(ctx, path, &f));
    bytes = (oct_bytes){oct_file_data(f), oct_file_size(f)};
    st = find_codec(ctx, bytes, &codec);
    if (!st) st = codec->size(ctx, bytes, &h);
    oct_file_unref(f);
    if (st) return oct_fail_at(ctx, st, path);
    *width = h.orientation < 5 ? h.width : h.height;
    *height = h.orientation < 5 ? h.height : h.width;
    return OCT_OK;
}

const oct_codec *oct_codec_by_name(const char *path)
{
    const char *dot = strrchr(path, '.');
    const size_t len = dot ? strlen(dot) : 0;

    for (size_t i = 0; len > 1 && i < OCT_COUNT(codecs); i++) {
        for (const char *e = strchr(codecs[i]->extensions, '.'); e; e = strchr(e + 1, '.')) {
            if (!strncasecmp(e, dot, len) && e[len] == ' ') return codecs[i];
        }
    }
    return NULL;
}

oct_status oct_image_save(oct_ctx *ctx, const oct_image *im, const char *path)
{
    OCT_ENTER(ctx);
    const oct_codec *codec = oct_codec_by_name(path);
    oct_writer *w = NULL;
    oct_status st;

    if (!codec || !codec->encode)
        return oct_fail(ctx, OCT_ERR_ARG, "%s: pictures are written as .jpg, .jpeg or .png", path);
    OCT_TRY(oct_writer_open(ctx, path, &w));
    if ((st = codec->encode(ctx, im, w))) {
        oct_writer_abort(w);
        return oct_fail_at(ctx, st, path);
    }
    return oct_writer_commit(w);
}
