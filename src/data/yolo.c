/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of YOLO's text files beside a folder of pictures: "class cx cy w h" lines, the centre
 * and size as parts of the picture's. Pictures are in the order of their names; one without a text
 * file has no boxes. Class names are the lines of classes.txt where there is one, else the numbers.
 * A box is not clipped; one that lies wholly outside its picture is broken, one without any area is
 * left out and counted.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "data/files.h"

#define MAX_CLASSES 1000000
#define N_FIELDS    5

typedef struct reader {
    oct_dataset *d;
    oct_ctx *ctx;
    const char *name;  /* the picture at work */
    int32_t n_classes; /* seen */
    oct_labels labels;
} reader;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Five numbers, and nothing else. */
static oct_status parse_fields(oct_ctx *ctx, const char *line, size_t len, double v[N_FIELDS])
{
    char text[256], *p = text;
    int n = 0;

    if (len >= sizeof(text)) return oct_fail(ctx, OCT_ERR_FORMAT, "the line is too long for a box");
    memcpy(text, line, len);
    text[len] = '\0';
    for (;; n++) {
        char *end;
        double x;

        while (is_space(*p))
            p++;
        if (!*p) break;
        x = strtod(p, &end);
        if (end == p || (*end && !is_space(*end)) || !isfinite(x))
            return oct_fail(ctx, OCT_ERR_FORMAT, "\"%.20s\" is not a number", p);
        if (n < N_FIELDS) v[n] = x;
        p = end;
    }
    if (n != N_FIELDS || strlen(text) != len)
        return oct_fail(ctx, OCT_ERR_FORMAT, "%d numbers; a box has 5: class cx cy w h", n);
    return OCT_OK;
}

static oct_status read_line(reader *r, const char *line, size_t len, int32_t width, int32_t height)
{
    double v[N_FIELDS] = {0};
    oct_label l = {0};

    OCT_TRY(parse_fields(r->ctx, line, len, v));
    if (v[0] != floor(v[0]) || v[0] < 0 || v[0] >= MAX_CLASSES)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "there is no class %g", v[0]);
    if (fabs(v[1]) > 2 || fabs(v[2]) > 2)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "the centre %g, %g is not a part of the picture",
                        v[1], v[2]);
    l = (oct_label){.x = (v[1] - v[3] / 2) * width,
                    .y = (v[2] - v[4] / 2) * height,
                    .width = v[3] * width,
                    .height = v[4] * height,
                    .category = (int32_t)v[0]};
    l.area = l.width * l.height;
    OCT_TRY(oct_label_check(r->ctx, &l));
    OCT_TRY(oct_label_check_inside(r->ctx, &l, width, height));
    if (oct_label_is_empty(r->d, &l, r->name)) return OCT_OK;
    r->n_classes = OCT_MAX(r->n_classes, l.category + 1);
    return oct_labels_add(r->ctx, &r->labels, &l);
}

static oct_status read_labels(reader *r, const char *path, int32_t width, int32_t height)
{
    oct_file *f = NULL;
    const char *p, *end;
    oct_status st = OCT_OK;

    OCT_TRY(oct_file_map(r->ctx, path, &f));
    p = (const char *)oct_file_data(f);
    end = p + oct_file_size(f);
    for (int line = 1; !st && p < end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        size_t blank = 0;

        while (blank < (size_t)(stop - p) && is_space(p[blank]))
            blank++;
        if (p + blank < stop && (st = read_line(r, p, (size_t)(stop - p), width, height))) {
            const char *where = oct_arena_printf(r->d->arena, "%s: line %d", path, line);

            st = where ? oct_dataset_bad(r->d, st, where) : OCT_ERR_MEMORY;
        }
        p = stop + 1;
    }
    oct_file_unref(f);
    return st;
}

/* One picture and its text file. The picture's header tells its size. */
static oct_status read_picture(reader *r, const char *images, const char *name, const char *folder)
{
    const int stem = (int)(strrchr(name, '.') - name);
    const char *path = oct_dataset_join(r->d, images, name);
    char *labels = oct_arena_printf(r->d->arena, "%s/%.*s.txt", folder, stem, name);
    int32_t width = 0, height = 0;
    oct_status st;

    if (!path || !labels) return OCT_ERR_MEMORY;
    r->labels.n = 0;
    r->name = name;
    if (oct_is_file(labels)) {
        if ((st = oct_image_peek(r->ctx, path, &width, &height)))
            return oct_dataset_bad(r->d, st, NULL);
        OCT_TRY(read_labels(r, labels, width, height));
    }
    OCT_TRY(oct_dataset_add(r->d, path));
    return oct_labels_give(r->d, &r->labels, &r->d->items[r->d->n_items - 1]);
}

static oct_status read_names(oct_dataset *d, const char *path)
{
    oct_file *f = NULL;
    const char *p, *end;
    oct_status st = OCT_OK;

    OCT_TRY(oct_file_map(d->ctx, path, &f));
    p = (const char *)oct_file_data(f);
    end = p + oct_file_size(f);
    while (!st && p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end, *name;
        size_t len = (size_t)(stop - p);

        while (len && is_space(p[len - 1]))
            len--;
        if (len || newline) {
            name = oct_arena_strndup(d->arena, p, len);
            st =
                name ? oct_dataset_add_category(d, name, (int64_t)d->n_categories) : OCT_ERR_MEMORY;
        }
        p = stop + 1;
    }
    oct_file_unref(f);
    return st;
}

static oct_status name_classes(reader *r, const char *folder)
{
    const char *path = oct_dataset_join(r->d, folder, "classes.txt");

    if (!path) return OCT_ERR_MEMORY;
    if (oct_is_file(path)) OCT_TRY(read_names(r->d, path));
    while ((int64_t)r->d->n_categories < r->n_classes) {
        const char *name = oct_arena_printf(r->d->arena, "%zu", r->d->n_categories);

        if (!name) return OCT_ERR_MEMORY;
        OCT_TRY(oct_dataset_add_category(r->d, name, (int64_t)r->d->n_categories));
    }
    return OCT_OK;
}

oct_status oct_read_yolo(oct_dataset *d, const char *images, const char *folder)
{
    reader r = {.d = d, .ctx = d->ctx};
    oct_listing l = {0};
    oct_status st = OCT_OK;

    d->kind = "YOLO";
    if (!images)
        return oct_fail(d->ctx, OCT_ERR_ARG,
                        "%s: YOLO's labels are parts of pictures; the pictures must be given",
                        folder);
    OCT_TRY(oct_listing_open(d->ctx, images, &l));
    for (size_t i = 0; !st && i < l.files.n; i++) {
        if (oct_codec_by_name(l.files.items[i]))
            st = read_picture(&r, images, l.files.items[i], folder);
        else if (!oct_has_extension(l.files.items[i], ".txt")) /* labels may lie beside them */
            oct_notes_add(d->notes, OCT_NOTE_NO_PICTURE, l.files.items[i]);
    }
    if (!st) st = name_classes(&r, folder);
    oct_free(d->ctx, r.labels.items);
    oct_listing_close(&l);
    return st;
}
