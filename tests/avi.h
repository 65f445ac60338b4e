/* SPDX-License-Identifier: Apache-2.0 */
/* A small video made by hand: an AVI file whose frames are JPEG files (MJPEG). */
#ifndef OCT_TESTS_AVI_H
#define OCT_TESTS_AVI_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <octet/data.h>

typedef struct avi {
    uint8_t *data;
    size_t size;
} avi;

static inline void avi_put(avi *a, const void *data, size_t size)
{
    a->data = realloc(a->data, a->size + size);
    if (!a->data) abort();
    memcpy(a->data + a->size, data, size);
    a->size += size;
}

static inline void avi_put32(avi *a, uint32_t v)
{
    const uint8_t bytes[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
                              (uint8_t)(v >> 24)};

    avi_put(a, bytes, 4);
}

/* "LIST" or "RIFF" of a kind; its size is set by avi_end(). */
static inline size_t avi_begin(avi *a, const char *list, const char *kind)
{
    avi_put(a, list, 4);
    avi_put32(a, 0);
    avi_put(a, kind, 4);
    return a->size - 8;
}

static inline void avi_end(avi *a, size_t at)
{
    const uint32_t size = (uint32_t)(a->size - at - 4);

    for (int i = 0; i < 4; i++)
        a->data[at + (size_t)i] = (uint8_t)(size >> 8 * i);
}

static inline void avi_headers(avi *a, uint32_t n, uint32_t width, uint32_t height)
{
    const size_t hdrl = avi_begin(a, "LIST", "hdrl");
    size_t strl;

    avi_put(a, "avih", 4);
    avi_put32(a, 56);
    for (int i = 0; i < 14; i++) /* 25 pictures a second; an index; one stream */
        avi_put32(a, (uint32_t[14]){40000, 0, 0, 0x10, n, 0, 1, 0, width, height}[i]);
    strl = avi_begin(a, "LIST", "strl");
    avi_put(a, "strh", 4);
    avi_put32(a, 56);
    avi_put(a, "vidsMJPG", 8);
    for (int i = 0; i < 12; i++)
        avi_put32(a, (uint32_t[12]){0, 0, 0, 1, 25, 0, n}[i]);
    avi_put(a, "strf", 4);
    avi_put32(a, 40);
    avi_put32(a, 40);
    avi_put32(a, width);
    avi_put32(a, height);
    avi_put32(a, 1 | 24u << 16);
    avi_put(a, "MJPG", 4);
    for (int i = 0; i < 5; i++)
        avi_put32(a, 0);
    avi_end(a, strl);
    avi_end(a, hdrl);
}

/* The bytes of a picture as JPEG, by way of a file. */
static inline avi avi_jpeg(oct_ctx *ctx, const oct_image *im, const char *scratch)
{
    uint8_t block[4096];
    avi jpeg = {0};
    FILE *f;
    size_t n;

    if (oct_image_save(ctx, im, scratch) || !(f = fopen(scratch, "rb"))) abort();
    while ((n = fread(block, 1, sizeof(block), f)) > 0)
        avi_put(&jpeg, block, n);
    (void)fclose(f);
    (void)remove(scratch);
    return jpeg;
}

/* n pictures of one size; frame i has brightness 20 * i + 10 everywhere. `scratch` ends in .jpg. */
static inline avi make_avi(oct_ctx *ctx, int n, int width, int height, const char *scratch)
{
    avi a = {0}, index = {0};
    oct_image *im = NULL;
    size_t riff, movi;

    if (oct_image_new(ctx, width, height, &im)) abort();
    riff = avi_begin(&a, "RIFF", "AVI ");
    avi_headers(&a, (uint32_t)n, (uint32_t)width, (uint32_t)height);
    movi = avi_begin(&a, "LIST", "movi");
    for (int i = 0; i < n; i++) {
        avi jpeg;

        memset(oct_image_rgb(im), 20 * i + 10, (size_t)width * (size_t)height * 3);
        jpeg = avi_jpeg(ctx, im, scratch);
        avi_put(&index, "00dc", 4);
        avi_put32(&index, 0x10);
        avi_put32(&index, (uint32_t)(a.size - movi - 4));
        avi_put32(&index, (uint32_t)jpeg.size);
        avi_put(&a, "00dc", 4);
        avi_put32(&a, (uint32_t)jpeg.size);
        avi_put(&a, jpeg.data, jpeg.size);
        if (jpeg.size % 2) avi_put(&a, "", 1);
        free(jpeg.data);
    }
    avi_end(&a, movi);
    avi_put(&a, "idx1", 4);
    avi_put32(&a, (uint32_t)index.size);
    avi_put(&a, index.data, index.size);
    avi_end(&a, riff);
    free(index.data);
    oct_image_free(im);
    return a;
}

#endif
