/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows bitmaps: headers of all versions, 1, 4, 8 (with a palette), 16, 24 and 32 bits, plain or
 * with masks. Transparency is left out. Run-length coded ones are refused.
 */
#include <string.h>

#include "data/image/image.h"

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40 };
enum { PLAIN = 0, MASKS = 3, MASKS_WITH_ALPHA = 6 }; /* the kinds of storage that are read */

typedef struct bitmap {
    oct_bytes file;
    size_t header, pixels; /* size of the header; where the pixels begin */
    int64_t width, height;
    bool top_down;
    uint32_t bits, storage;
    size_t palette, n_colors, color_size; /* where it is */
    uint32_t mask[3];                     /* red, green, blue; 16 and 32 bits */
} bitmap;

/* The caller has seen that they are there. */
static uint32_t get16(const bitmap *b, size_t at)
{
    return (uint32_t)b->file.data[at] | (uint32_t)b->file.data[at + 1] << 8;
}

static uint32_t get32(const bitmap *b, size_t at)
{
    return get16(b, at) | get16(b, at + 2) << 16;
}

static bool has(const bitmap *b, size_t at, size_t n)
{
    return at <= b->file.size && n <= b->file.size - at;
}

static oct_status cut_off(oct_ctx *ctx)
{
    return oct_fail(ctx, OCT_ERR_FORMAT, "broken BMP: the file ends too early");
}

static oct_status read_sizes(oct_ctx *ctx, bitmap *b)
{
    const bool core = b->header == CORE_HEADER;

    if (!has(b, FILE_HEADER, b->header)) return cut_off(ctx);
    b->width = core ? (int64_t)get16(b, 18) : (int32_t)get32(b, 18);
    b->height = core ? (int64_t)get16(b, 20) : (int32_t)get32(b, 22);
    b->top_down = b->height < 0;
    if (b->top_down) b->height = -b->height;
    b->bits = get16(b, core ? 24 : 28);
    b->storage = core ? PLAIN : get32(b, 30);
    b->n_colors = core ? 0 : get32(b, 46);
    if (b->storage == 1 || b->storage == 2)
        return oct_fail(ctx, OCT_ERR_FORMAT, "BMP: run-length coded ones are not read");
    if (b->storage != PLAIN && b->storage != MASKS && b->storage != MASKS_WITH_ALPHA)
        return oct_fail(ctx, OCT_ERR_FORMAT, "BMP: pixels stored in way %u are not read",
                        (unsigned)b->storage);
    return OCT_OK;
}

/* After the header come masks, if it is too old to hold them, and then the palette. */
static oct_status read_colors(oct_ctx *ctx, bitmap *b)
{
    const bool with_masks = b->storage != PLAIN;
    size_t at = FILE_HEADER + b->header;

    switch (b->bits) {
    case 1:
    case 4:
    case 8:
        if (with_masks) break;
        if (!b->n_colors) b->n_colors = (size_t)1 << b->bits;
        b->color_size = b->header == CORE_HEADER ? 3 : 4;
        b->palette = at;
        if (b->n_colors > 256)
            return oct_fail(ctx, OCT_ERR_FORMAT, "broken BMP: a palette of %zu colours",
                            b->n_colors);
        return has(b, at, b->n_colors * b->color_size) ? OCT_OK : cut_off(ctx);
    case 24:
        if (with_masks) break;
        return OCT_OK;
    case 16:
    case 32:
        b->mask[0] = b->bits == 16 ? 0x7c00 : 0xff0000;
        b->mask[1] = b->bits == 16 ? 0x3e0 : 0xff00;
        b->mask[2] = b->bits == 16 ? 0x1f : 0xff;
        if (!with_masks) return OCT_OK;
        if (b->header > INFO_HEADER) at = FILE_HEADER + INFO_HEADER;
        if (!has(b, at, 12)) return cut_off(ctx);
        for (size_t c = 0; c < 3; c++)
            b->mask[c] = get32(b, at + 4 * c);
        return OCT_OK;
    default:
        break;
    }
    return oct_fail(ctx, OCT_ERR_FORMAT, "BMP: %u bits for a pixel%s are not read",
                    (unsigned)b->bits, with_masks ? " with masks" : "");
}

static oct_status read_header(oct_ctx *ctx, oct_bytes file, bitmap *b)
{
    *b = (bitmap){.file = file};
    if (!has(b, 0, FILE_HEADER + 4)) return cut_off(ctx);
    b->pixels = get32(b, 10);
    b->header = get32(b, FILE_HEADER);
    OCT_TRY(read_sizes(ctx, b));
    return read_colors(ctx, b);
}

/* A masked part of a pixel as 8 bits. */
static uint8_t part(uint32_t pixel, uint32_t mask)
{
    const uint32_t unit = mask & (~mask + 1); /* its lowest bit */

    if (!mask) return 0;
    return (uint8_t)(((uint64_t)(pixel & mask) / unit * 255 + mask / unit / 2) / (mask / unit));
}

static void read_pixel(const bitmap *b, size_t row, int64_t x, uint8_t *rgb)
{
    const size_t i = (size_t)x;
    size_t at;
    uint32_t v;

    if (b->bits == 24) {
        at = row + 3 * i;
        for (size_t c = 0; c < 3; c++)
            rgb[c] = b->file.data[at + 2 - c];
        return;
    }
    if (b->bits > 8) {
        v = b->bits == 16 ? get16(b, row + 2 * i) : get32(b, row + 4 * i);
        for (int c = 0; c < 3; c++)
            rgb[c] = part(v, b->mask[c]);
        return;
    }
    v = b->file.data[row + i * b->bits / 8];
    v = v >> (8 - b->bits - i * b->bits % 8) & ((1u << b->bits) - 1);
    if (v >= b->n_colors) { /* outside the palette: black, as in other readers */
        memset(rgb, 0, 3);
        return;
    }
    at = b->palette + v * b->color_size;
    for (size_t c = 0; c < 3; c++)
        rgb[c] = b->file.data[at + 2 - c];
}

static oct_status decode(oct_ctx *ctx, oct_bytes file, int64_t max_pixels, oct_image **out,
                         int *orientation)
{
    oct_image *im = NULL;
    size_t pitch;
    bitmap b;

    OCT_TRY(read_header(ctx, file, &b));
    OCT_TRY(oct_image_make(ctx, b.width, b.height, max_pixels, &im));
    pitch = ((size_t)b.width * b.bits + 31) / 32 * 4; /* below 2^37: no overflow */
    if (b.pixels > file.size || (file.size - b.pixels) / pitch < (size_t)b.height) {
        oct_image_free(im);
        return cut_off(ctx);
    }
    for (int64_t y = 0; y < b.height; y++) {
        const int64_t from = b.top_down ? y : b.height - 1 - y;
        uint8_t *rgb = im->rgb + (size_t)(y * b.width) * 3;

        for (int64_t x = 0; x < b.width; x++, rgb += 3)
            read_pixel(&b, b.pixels + (size_t)from * pitch, x, rgb);
    }
    *orientation = 1;
    *out = im;
    return OCT_OK;
}

static oct_status size(oct_ctx *ctx, oct_bytes file, oct_image_header *out)
{
    bitmap b;

    OCT_TRY(read_header(ctx, file, &b));
    if (b.width > INT32_MAX || b.height > INT32_MAX)
        return oct_fail(ctx, OCT_ERR_FORMAT, "a picture of %lld x %lld pixels", (long long)b.width,
                        (long long)b.height);
    *out = (oct_image_header){(int32_t)b.width, (int32_t)b.height, 1};
    return OCT_OK;
}

/* Many texts begin with BM: the size of the header must be one of the known ones. */
static bool knows(oct_bytes file)
{
    static const uint32_t sizes[] = {CORE_HEADER, INFO_HEADER, 52, 56, 64, 108, 124};
    const bitmap b = {.file = file};

    if (file.size < FILE_HEADER + 4 || memcmp(file.data, "BM", 2) != 0) return false;
    for (size_t i = 0; i < OCT_COUNT(sizes); i++) {
        if (get32(&b, FILE_HEADER) == sizes[i]) return true;
    }
    return false;
}

const oct_codec oct_codec_bmp = {"BMP", " .bmp .dib ", knows, size, decode, NULL};
