/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a picture, and what a decoder of one file format offers. */
#ifndef OCT_DATA_IMAGE_IMAGE_H
#define OCT_DATA_IMAGE_IMAGE_H

#include <octet/data.h>

#include "base/file.h"
#include "base/mem.h"

struct oct_image {
    oct_ctx *ctx;
    int32_t width, height;
    uint8_t rgb[];
};

/* A new picture whose bytes are not set. Refuses sizes that are not positive or too large. */
oct_status oct_image_make(oct_ctx *ctx, int64_t width, int64_t height, int64_t max_pixels,
                          oct_image **out);

/* Bytes of a file in memory. */
typedef struct oct_bytes {
    const uint8_t *data;
    size_t size;
} oct_bytes;

/* Facts from a file's header. */
typedef struct oct_image_header {
    int32_t width, height; /* as stored */
    int orientation;       /* EXIF's, 1 to 8; 1 if there is none */
} oct_image_header;

/*
 * One file format. `decode` also reads the EXIF orientation (1 to 8; 1 if there is none). A
 * truncated file is broken: no partial pictures.
 */
typedef struct oct_codec {
    const char *name;
    const char *extensions;        /* " .jpg .jpeg " */
    bool (*knows)(oct_bytes file); /* by its first bytes, of which there may be few */
    oct_status (*size)(oct_ctx *ctx, oct_bytes file, oct_image_header *out);
    oct_status (*decode)(oct_ctx *ctx, oct_bytes file, int64_t max_pixels, oct_image **out,
                         int *orientation);
    oct_status (*encode)(oct_ctx *ctx, const oct_image *im, oct_writer *w); /* NULL: only read */
} oct_codec;

/* A comment in every picture that is written: octet replaces only files that it made itself. */
#define OCT_IMAGE_MADE_BY "made by octet"

extern const oct_codec oct_codec_jpeg; /* jpeg.c, the only place that sees libjpeg */
extern const oct_codec oct_codec_png;  /* png.c, the only place that sees libpng */
extern const oct_codec oct_codec_webp; /* webp.c, the only place that sees libwebp */
extern const oct_codec oct_codec_bmp;  /* bmp.c */
extern const oct_codec oct_codec_tiff; /* tiff.c, the only place that sees libtiff */

/* The codec that a file name's extension stands for; NULL: none. */
const oct_codec *oct_codec_by_name(const char *path);

/* The codec that knows the file by its first bytes; NULL: none. */
const oct_codec *oct_codec_by_bytes(oct_bytes start);

/* By its name, or else by its first bytes. */
bool oct_is_picture_file(const char *path);

/* Width and height of the upright picture as the file's header says; decodes nothing. */
oct_status oct_image_peek(oct_ctx *ctx, const char *path, int32_t *width, int32_t *height);

/* The orientation in an EXIF block ("II*\0..." or "MM\0*..."); 1 if it says none. */
int oct_exif_orientation(oct_bytes exif);

/* Rotates and mirrors the picture so that it is upright; *im is replaced. */
oct_status oct_exif_apply(oct_ctx *ctx, int orientation, oct_image **im);

#endif
