/* SPDX-License-Identifier: Apache-2.0 */
/* Puts pictures of one size side by side, row by row, into one: to compare what networks found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <octet/octet.h>

#define GAP   6 /* pixels between pictures */
#define WHITE 0xff

enum { MAX_COLUMNS = 64, MAX_SIDE = 1 << 14 };

static oct_status put(oct_ctx *ctx, oct_image *grid, const oct_image *cell, const char *path,
                      int32_t x, int32_t y)
{
    const int32_t w = oct_image_width(cell), h = oct_image_height(cell);
    const size_t pitch = (size_t)oct_image_width(grid) * 3, row = (size_t)w * 3;
    oct_image *im = NULL;
    oct_status st;

    if ((st = oct_image_load(ctx, path, NULL, &im))) return st;
    if (oct_image_width(im) != w || oct_image_height(im) != h) {
        fprintf(stderr, "picture_grid: %s has another size than the first\n", path);
        st = OCT_ERR_ARG;
    }
    for (int32_t i = 0; i < h && !st; i++)
        memcpy(oct_image_rgb(grid) + (size_t)(y + i) * pitch + (size_t)x * 3,
               oct_image_rgb(im) + (size_t)i * row, row);
    oct_image_free(im);
    return st;
}

static oct_status make(oct_ctx *ctx, const char *out, int32_t columns, char **paths, int32_t n)
{
    const int32_t rows = (n + columns - 1) / columns;
    oct_image *first = NULL, *grid = NULL;
    int32_t w, h;
    oct_status st;

    if ((st = oct_image_load(ctx, paths[0], NULL, &first))) return st;
    w = oct_image_width(first) + GAP;
    h = oct_image_height(first) + GAP;
    if (w > MAX_SIDE || h > MAX_SIDE || rows > MAX_SIDE / h || columns > MAX_SIDE / w) {
        fprintf(stderr, "picture_grid: too large\n");
        oct_image_free(first);
        return OCT_ERR_ARG;
    }
    st = oct_image_new(ctx, columns * w - GAP, rows * h - GAP, &grid);
    if (!st)
        memset(oct_image_rgb(grid), WHITE,
               (size_t)oct_image_width(grid) * (size_t)oct_image_height(grid) * 3);
    for (int32_t i = 0; i < n && !st; i++)
        st = put(ctx, grid, first, paths[i], i % columns * w, i / columns * h);
    if (!st) st = oct_image_save(ctx, grid, out);
    oct_image_free(first);
    oct_image_free(grid);
    return st;
}

int main(int argc, char **argv)
{
    const long columns = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    oct_ctx *ctx;
    oct_status st;

    if (argc < 4 || columns < 1 || columns > MAX_COLUMNS) {
        fprintf(stderr, "usage: picture_grid OUT.jpg COLUMNS PICTURE...\n");
        return 2;
    }
    if (!(ctx = oct_ctx_new(NULL))) return 1;
    st = make(ctx, argv[1], (int32_t)columns, argv + 3, argc - 3);
    if (st) fprintf(stderr, "picture_grid: %s\n", oct_ctx_error(ctx));
    oct_ctx_free(ctx);
    return st != OCT_OK;
}
