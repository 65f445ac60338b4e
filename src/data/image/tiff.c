/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TIFF through libtiff; nothing else sees it. The first picture of the file, whatever its colours,
 * becomes 8-bit RGB. Its error texts are kept, none is printed; blocks of memory are limited by the
 * size of the picture, which is known before anything is decoded.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tiffio.h>

#include "data/image/image.h"

#define SMALL_BLOCK ((int64_t)64 << 20) /* tables and buffers of small pictures */

typedef struct session {
    oct_bytes file;
    uint64_t at;
    TIFF *tif;
    char text[256]; /* the first error */
} session;

/* --- a file in memory --- */

static tmsize_t take(thandle_t h, void *to, tmsize_t n)
{
    session *s = h;
    const uint64_t left = s->at < s->file.size ? s->file.size - s->at : 0;
    const size_t size = n < 0 ? 0 : (size_t)OCT_MIN((uint64_t)n, left);

    if (size) memcpy(to, s->file.data + s->at, size);
    s->at += size;
    return (tmsize_t)size;
}

static tmsize_t put(thandle_t h, void *from, tmsize_t n)
{
    (void)h;
    (void)from;
    (void)n;
    return -1;
}

static toff_t seek(thandle_t h, toff_t offset, int whence)
{
    session *s = h;

    s->at = offset + (whence == SEEK_CUR ? s->at : whence == SEEK_END ? s->file.size : 0);
    return s->at;
}

static int close_nothing(thandle_t h)
{
    (void)h;
    return 0;
}

static toff_t size_of(thandle_t h)
{
    return ((session *)h)->file.size;
}

/* The library only reads what is mapped. */
static int map(thandle_t h, void **base, toff_t *size)
{
    const session *s = h;

    *base = (void *)s->file.data;
    *size = s->file.size;
    return 1;
}

static void unmap(thandle_t h, void *base, toff_t size)
{
    (void)h;
    (void)base;
    (void)size;
}

/* --- errors --- */

static int see_error(TIFF *tif, void *user, const char *module, const char *fmt, va_list args)
{
    session *s = user;

    (void)tif;
    (void)module;
    if (!*s->text) (void)vsnprintf(s->text, sizeof(s->text), fmt, args);
    return 1; /* handled: nothing is printed */
}

static int see_warning(TIFF *tif, void *user, const char *module, const char *fmt, va_list args)
{
    (void)tif;
    (void)user;
    (void)module;
    (void)fmt;
    (void)args;
    return 1;
}

static oct_status broken(oct_ctx *ctx, const session *s)
{
    return oct_fail(ctx, OCT_ERR_FORMAT, "broken TIFF: %s",
                    *s->text ? s->text : "its data make no sense");
}

/* --- reading --- */

static oct_status open_session(oct_ctx *ctx, session *s, int64_t max_block)
{
    TIFFOpenOptions *o = TIFFOpenOptionsAlloc();

    if (!o) return oct_fail(ctx, OCT_ERR_MEMORY, "TIFF: out of memory");
    TIFFOpenOptionsSetMaxSingleMemAlloc(o, (tmsize_t)max_block);
    TIFFOpenOptionsSetErrorHandlerExtR(o, see_error, s);
    TIFFOpenOptionsSetWarningHandlerExtR(o, see_warning, s);
    s->tif = TIFFClientOpenExt("picture", "r", s, take, put, seek, close_nothing, size_of, map,
                               unmap, o);
    TIFFOpenOptionsFree(o);
    return s->tif ? OCT_OK : broken(ctx, s);
}

static oct_status read_header(oct_ctx *ctx, session *s, oct_image_header *h)
{
    uint32_t width = 0, height = 0;
    uint16_t orientation = 1;

    if (!TIFFGetField(s->tif, TIFFTAG_IMAGEWIDTH, &width) ||
        !TIFFGetField(s->tif, TIFFTAG_IMAGELENGTH, &height))
        return broken(ctx, s);
    if (!width || !height || width > INT32_MAX || height > INT32_MAX)
        return oct_fail(ctx, OCT_ERR_FORMAT, "a picture of %u x %u pixels", (unsigned)width,
                        (unsigned)height);
    (void)TIFFGetFieldDefaulted(s->tif, TIFFTAG_ORIENTATION, &orientation);
    *h = (oct_image_header){(int32_t)width, (int32_t)height,
                            orientation >= 1 && orientation <= 8 ? orientation : 1};
    return OCT_OK;
}

/* A strip or a tile may be declared far larger than the picture it is a part of. */
static oct_status check_blocks(oct_ctx *ctx, session *s, const oct_image *im)
{
    const uint64_t size = TIFFIsTiled(s->tif) ? TIFFTileSize64(s->tif) : TIFFStripSize64(s->tif);
    const uint64_t most = (uint64_t)SMALL_BLOCK + (uint64_t)im->width * (uint64_t)im->height * 16;

    if (!size) return broken(ctx, s);
    if (size <= most) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_FORMAT,
                    "broken TIFF: blocks of %llu bytes in a picture of %d x %d",
                    (unsigned long long)size, im->width, im->height);
}

/* Pixels in stored order; the orientation is applied later. */
static oct_status read_pixels(oct_ctx *ctx, session *s, uint32_t *pixels, oct_image *im)
{
    char why[1024] = "";
    TIFFRGBAImage reader;
    int done;

    if (!TIFFRGBAImageOK(s->tif, why) || !TIFFRGBAImageBegin(&reader, s->tif, 1, why))
        return oct_fail(ctx, OCT_ERR_FORMAT, "TIFF: %s", *why ? why : s->text);
    reader.req_orientation = reader.orientation;
    done = TIFFRGBAImageGet(&reader, pixels, (uint32_t)im->width, (uint32_t)im->height);
    TIFFRGBAImageEnd(&reader);
    if (!done || *s->text) return broken(ctx, s);
    for (size_t i = 0; i < (size_t)im->width * (size_t)im->height; i++) {
        im->rgb[3 * i] = TIFFGetR(pixels[i]);
        im->rgb[3 * i + 1] = TIFFGetG(pixels[i]);
        im->rgb[3 * i + 2] = TIFFGetB(pixels[i]);
    }
    return OCT_OK;
}

static oct_status decode_session(oct_ctx *ctx, session *s, int64_t max_pixels, oct_image **out,
                                 int *orientation)
{
    oct_image_header h = {0};
    oct_image *im = NULL;
    uint32_t *pixels;
    oct_status st;

    OCT_TRY(read_header(ctx, s, &h));
    OCT_TRY(oct_image_make(ctx, h.width, h.height, max_pixels, &im));
    st = check_blocks(ctx, s, im);
    if (!st) {
        pixels = oct_calloc(ctx, (size_t)h.width * (size_t)h.height, sizeof(*pixels));
        st = pixels ? read_pixels(ctx, s, pixels, im) : OCT_ERR_MEMORY;
        oct_free(ctx, pixels);
    }
    if (st) {
        oct_image_free(im);
        return st;
    }
    *orientation = h.orientation;
    *out = im;
    return OCT_OK;
}

static oct_status decode(oct_ctx *ctx, oct_bytes file, int64_t max_pixels, oct_image **out,
                         int *orientation)
{
    const int64_t most = OCT_MIN(max_pixels, INT64_MAX / 32) * 16 + SMALL_BLOCK;
    session s = {.file = file};
    oct_status st = open_session(ctx, &s, most);

    if (!st) st = decode_session(ctx, &s, max_pixels, out, orientation);
    if (s.tif) TIFFClose(s.tif);
    return st;
}

static oct_status size(oct_ctx *ctx, oct_bytes file, oct_image_header *out)
{
    session s = {.file = file};
    oct_status st = open_session(ctx, &s, SMALL_BLOCK);

    if (!st) st = read_header(ctx, &s, out);
    if (s.tif) TIFFClose(s.tif);
    return st;
}

static bool knows(oct_bytes file)
{
    return file.size >= 4 && (!memcmp(file.data, "II*\0", 4) || !memcmp(file.data, "MM\0*", 4) ||
                              !memcmp(file.data, "II+\0", 4) || !memcmp(file.data, "MM\0+", 4));
}

const oct_codec oct_codec_tiff = {"TIFF", " .tif .tiff ", knows, size, decode, NULL};
