/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PNG through libpng; nothing else sees it. Every kind becomes 8-bit RGB: 16-bit samples keep their
 * upper half, transparency is left out (not blended), gamma is left alone, as OpenCV and Pillow do.
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <png.h>

#include "data/image/image.h"

#define MAX_CHUNK ((png_alloc_size_t)8 << 20) /* of texts, profiles and the like */

typedef struct session {
    png_struct *png;
    png_info *info;
    oct_bytes rest; /* of the file */
    oct_writer *w;
    oct_image *im;
    png_byte **rows; /* interlaced files need all rows at once */
    bool writing;
    oct_status status; /* of the writer */
    char text[128];
} session;

static void leave(png_struct *png, const char *text)
{
    session *s = png_get_error_ptr(png);

    snprintf(s->text, sizeof(s->text), "%s", text);
    png_longjmp(png, 1);
}

static void see_warning(png_struct *png, const char *text)
{
    (void)png;
    (void)text;
}

static void take(png_struct *png, png_byte *dst, size_t size)
{
    session *s = png_get_io_ptr(png);

    if (size > s->rest.size) png_error(png, "the file ends too early");
    memcpy(dst, s->rest.data, size);
    s->rest.data += size;
    s->rest.size -= size;
}

static void put(png_struct *png, png_byte *src, size_t size)
{
    session *s = png_get_io_ptr(png);

    s->status = oct_writer_put(s->w, src, size);
    if (s->status) png_error(png, "cannot write");
}

static void flush(png_struct *png)
{
    (void)png;
}

static oct_status open_session(oct_ctx *ctx, session *s)
{
    s->png = s->writing ? png_create_write_struct(PNG_LIBPNG_VER_STRING, s, leave, see_warning)
                        : png_create_read_struct(PNG_LIBPNG_VER_STRING, s, leave, see_warning);
    s->info = s->png ? png_create_info_struct(s->png) : NULL;
    if (!s->info) return oct_fail(ctx, OCT_ERR_MEMORY, "PNG: out of memory");
    return OCT_OK;
}

static void close_session(oct_ctx *ctx, session *s)
{
    if (s->writing)
        png_destroy_write_struct(&s->png, &s->info);
    else
        png_destroy_read_struct(&s->png, &s->info, NULL);
    oct_free(ctx, s->rows);
    oct_image_free(s->im);
}

static void read_header(session *s)
{
    png_set_read_fn(s->png, s, take);
    png_set_user_limits(s->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_chunk_malloc_max(s->png, MAX_CHUNK);
    png_set_chunk_cache_max(s->png, 128);
    png_read_info(s->png, s->info);
}

/* Whatever it is, to 8-bit RGB. */
static void set_transforms(session *s)
{
    const int color = png_get_color_type(s->png, s->info);

    png_set_expand(s->png); /* palette to RGB, 1 to 4 bits to 8; transparency to alpha */
    png_set_strip_16(s->png);
    if (!(color & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(s->png);
    png_set_strip_alpha(s->png);
    (void)png_set_interlace_handling(s->png);
    png_read_update_info(s->png, s->info);
}

static oct_status decode_inside(oct_ctx *ctx, session *s, int64_t max_pixels)
{
    size_t pitch;

    if (setjmp(png_jmpbuf(s->png))) return oct_fail(ctx, OCT_ERR_FORMAT, "broken PNG: %s", s->text);
    read_header(s);
    OCT_TRY(oct_image_make(ctx, png_get_image_width(s->png, s->info),
                           png_get_image_height(s->png, s->info), max_pixels, &s->im));
    set_transforms(s);
    pitch = (size_t)s->im->width * 3;
    if (png_get_rowbytes(s->png, s->info) != pitch)
        return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "PNG: rows of %zu bytes, not %zu",
                        png_get_rowbytes(s->png, s->info), pitch);
    s->rows = oct_alloc(ctx, (size_t)s->im->height * sizeof(*s->rows));
    if (!s->rows) return OCT_ERR_MEMORY;
    for (int32_t y = 0; y < s->im->height; y++)
        s->rows[y] = s->im->rgb + (size_t)y * pitch;
    png_read_image(s->png, s->rows);
    return OCT_OK; /* what follows the last row does not matter */
}

static int orientation_of(session *s)
{
    png_byte *exif = NULL;
    png_uint_32 size = 0;

    if (!png_get_eXIf_1(s->png, s->info, &size, &exif)) return 1;
    return oct_exif_orientation((oct_bytes){exif, size});
}

static oct_status decode(oct_ctx *ctx, oct_bytes file, int64_t max_pixels, oct_image **out,
                         int *orientation)
{
    session s = {.rest = file};
    oct_status st = open_session(ctx, &s);

    if (!st) st = decode_inside(ctx, &s, max_pixels);
    if (!st) {
        *orientation = orientation_of(&s);
        *out = s.im;
        s.im = NULL;
    }
    close_session(ctx, &s);
    return st;
}

static oct_status size_inside(oct_ctx *ctx, session *s)
{
    if (setjmp(png_jmpbuf(s->png))) return oct_fail(ctx, OCT_ERR_FORMAT, "broken PNG: %s", s->text);
    read_header(s);
    return OCT_OK;
}

static oct_status size(oct_ctx *ctx, oct_bytes file, oct_image_header *out)
{
    session s = {.rest = file};
    oct_status st = open_session(ctx, &s);

    if (!st) st = size_inside(ctx, &s);
    if (!st) {
        out->width = (int32_t)png_get_image_width(s.png, s.info);
        out->height = (int32_t)png_get_image_height(s.png, s.info);
        out->orientation = orientation_of(&s);
    }
    close_session(ctx, &s);
    return st;
}

static oct_status encode_inside(oct_ctx *ctx, session *s, const oct_image *im)
{
    if (setjmp(png_jmpbuf(s->png))) {
        if (s->status) return s->status;
        return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "PNG: %s", s->text);
    }
    png_set_write_fn(s->png, s, put, flush);
    png_set_user_limits(s->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(s->png, s->info, (png_uint_32)im->width, (png_uint_32)im->height, 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_text(s->png, s->info,
                 &(png_text){.compression = PNG_TEXT_COMPRESSION_NONE,
                             .key = (png_charp) "Software",
                             .text = (png_charp)OCT_IMAGE_MADE_BY,
                             .text_length = strlen(OCT_IMAGE_MADE_BY)},
                 1);
    png_write_info(s->png, s->info);
    for (int32_t y = 0; y < im->height; y++)
        png_write_row(s->png, im->rgb + (size_t)y * (size_t)im->width * 3);
    png_write_end(s->png, s->info);
    return OCT_OK;
}

static oct_status encode(oct_ctx *ctx, const oct_image *im, oct_writer *w)
{
    session s = {.w = w, .writing = true};
    oct_status st = open_session(ctx, &s);

    if (!st) st = encode_inside(ctx, &s, im);
    close_session(ctx, &s);
    return st;
}

static bool knows(oct_bytes file)
{
    return file.size >= 8 && !png_sig_cmp(file.data, 0, 8);
}

const oct_codec oct_codec_png = {"PNG", " .png ", knows, size, decode, encode};
