/* SPDX-License-Identifier: Apache-2.0 */
/* EXIF: only the orientation is used. */
#include <string.h>

#include "data/image/image.h"

#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT      3

/* A TIFF block in either byte order. Reads beyond its end give 0, which has no meaning. */
typedef struct tiff {
    oct_bytes bytes;
    bool big_endian;
} tiff;

static uint32_t get(const tiff *t, size_t at, int n_bytes)
{
    uint32_t v = 0;

    if (at > t->bytes.size || t->bytes.size - at < (size_t)n_bytes) return 0;
    for (int i = 0; i < n_bytes; i++) {
        const int shift = 8 * (t->big_endian ? n_bytes - 1 - i : i);

        v |= (uint32_t)t->bytes.data[at + (size_t)i] << shift;
    }
    return v;
}

int oct_exif_orientation(oct_bytes exif)
{
    tiff t = {.bytes = exif};
    size_t at;
    uint32_t n;

    if (exif.size < 8) return 1;
    t.big_endian = exif.data[0] == 'M';
    if (memcmp(exif.data, t.big_endian ? "MM\0*" : "II*\0", 4) != 0) return 1;
    at = get(&t, 4, 4); /* the first directory: a count, then entries of 12 bytes */
    n = get(&t, at, 2);
    for (uint32_t i = 0; i < n; i++) {
        const size_t entry = at + 2 + 12 * (size_t)i;

        if (get(&t, entry, 2) == TAG_ORIENTATION && get(&t, entry + 2, 2) == TYPE_SHORT) {
            const uint32_t v = get(&t, entry + 8, 2);

            return v >= 1 && v <= 8 ? (int)v : 1;
        }
    }
    return 1;
}

/* Where the stored picture's first pixel goes, and the steps in bytes along its rows and columns.
 */
typedef struct turn {
    ptrdiff_t first, along_x, along_y;
} turn;

static turn turn_for(int orientation, ptrdiff_t w, ptrdiff_t h)
{
    /* 1 to 4: upright, mirrored, upside down, both; 5 to 8: rows and columns swapped as well */
    const bool swapped = orientation >= 5;
    const bool flip_x =
        orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    const bool flip_y =
        orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    const ptrdiff_t row = 3 * (swapped ? h : w); /* of the result */
    const ptrdiff_t out_w = swapped ? h : w, out_h = swapped ? w : h;
    const ptrdiff_t dx = flip_x ? -3 : 3, dy = flip_y ? -row : row;

    return (turn){
        .first = (flip_x ? 3 * (out_w - 1) : 0) + (flip_y ? row * (out_h - 1) : 0),
        .along_x = swapped ? dy : dx,
        .along_y = swapped ? dx : dy,
    };
}

oct_status oct_exif_apply(oct_ctx *ctx, int orientation, oct_image **im)
{
    const oct_image *from = *im;
    const turn t = turn_for(orientation, from->width, from->height);
    const uint8_t *src = from->rgb;
    oct_image *to = NULL;

    if (orientation < 2 || orientation > 8) return OCT_OK;
    OCT_TRY(orientation < 5 ? oct_image_make(ctx, from->width, from->height, INT64_MAX, &to)
                            : oct_image_make(ctx, from->height, from->width, INT64_MAX, &to));
    for (int32_t y = 0; y < from->height; y++) {
        uint8_t *dst = to->rgb + t.first + y * t.along_y;

        for (int32_t x = 0; x < from->width; x++, src += 3, dst += t.along_x)
            memcpy(dst, src, 3);
    }
    oct_image_free(*im);
    *im = to;
    return OCT_OK;
}
