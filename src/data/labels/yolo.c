/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YOLO's text files, one for each picture: "class cx cy w h" lines, the centre and size as parts of
 * the picture's; the class is the network's own number. Here: a folder of them beside a folder of
 * pictures (data_yaml.c has the other way to say where they are). Pictures are in the order of
 * their names; one without a text file has no boxes. Class names are the lines of classes.txt where
 * there is one, else the numbers. A box is not clipped; one that lies wholly outside its picture is
 * broken, one without any area is left out and counted.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/files.h"
#include "data/labels/class_names.h"
#include "data/labels/yolo.h"

#define N_FIELDS 5

typedef oct_yolo reader;

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

/* Remembers where the largest number is: only the network knows whether it is too large. */
static oct_status see_class(reader *r, int32_t k, int line)
{
    if (k <= r->d->top_class) return OCT_OK;
    r->d->top_class = k;
    r->d->top_where = oct_arena_printf(r->d->arena, "%s: line %d", r->file, line);
    return r->d->top_where ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status read_line(reader *r, const char *line, size_t len, int number)
{
    const int32_t width = r->width, height = r->height;
    double v[N_FIELDS] = {0};
    oct_label l = {0};

    OCT_TRY(parse_fields(r->ctx, line, len, v));
    if (v[0] != floor(v[0]) || v[0] < 0 || v[0] >= OCT_MAX_CLASSES)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "there is no class %g", v[0]);
    if (r->n_names && v[0] >= r->n_names)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "class %g, but only %d classes have names", v[0],
                        (int)r->n_names);
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
    if (oct_label_is_empty(r->d, &l, r->file)) return OCT_OK;
    OCT_TRY(see_class(r, l.category, number));
    return oct_labels_add(r->ctx, &r->labels, &l);
}

static oct_status read_labels(reader *r, const char *path)
{
    oct_file *f = NULL;
    const char *p, *end;
    oct_status st = OCT_OK;

    OCT_TRY(oct_file_map(r->ctx, path, &f));
    r->file = path;
    p = (const char *)oct_file_data(f);
    end = p + oct_file_size(f);
    for (int line = 1; !st && p < end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        size_t blank = 0;

        while (blank < (size_t)(stop - p) && is_space(p[blank]))
            blank++;
        if (p + blank < stop && (st = read_line(r, p, (size_t)(stop - p), line))) {
            const char *where = oct_arena_printf(r->d->arena, "%s: line %d", path, line);

            st = where ? oct_dataset_bad(r->d, st, where) : OCT_ERR_MEMORY;
        }
        p = stop + 1;
    }
    oct_file_unref(f);
    return st;
}

oct_status oct_yolo_picture(oct_yolo *r, const char *path, const char *labels)
{
    oct_status st;

    r->labels.n = 0;
    if (oct_is_file(labels)) {
        /* The picture's header tells its size. */
        if ((st = oct_image_peek(r->ctx, path, &r->width, &r->height)))
            return oct_dataset_bad(r->d, st, NULL);
        OCT_TRY(read_labels(r, labels));
    }
    OCT_TRY(oct_dataset_add(r->d, path));
    return oct_labels_give(r->d, &r->labels, &r->d->items[r->d->n_items - 1]);
}

oct_status oct_yolo_folder(oct_yolo *r, const char *images, const char *folder)
{
    oct_listing l = {0};
    oct_status st = OCT_OK;

    OCT_TRY(oct_listing_open(r->ctx, images, &l));
    for (size_t i = 0; !st && i < l.files.n; i++) {
        const char *name = l.files.items[i], *path, *labels;

        if (!oct_codec_by_name(name)) {
            if (!oct_has_extension(name, ".txt")) /* labels may lie beside them */
                oct_notes_add(r->d->notes, OCT_NOTE_NO_PICTURE, name);
            continue;
        }
        path = oct_dataset_join(r->d, images, name);
        labels = oct_arena_printf(r->d->arena, "%s/%.*s.txt", folder,
                                  (int)(strrchr(name, '.') - name), name);
        st = path && labels ? oct_yolo_picture(r, path, labels) : OCT_ERR_MEMORY;
    }
    oct_listing_close(&l);
    return st;
}

void oct_yolo_init(oct_yolo *r, oct_dataset *d)
{
    *r = (oct_yolo){.d = d, .ctx = d->ctx};
    d->kind = "YOLO";
    d->numbering = OCT_NUMBERED_BY_CLASS;
    d->is_boxes = true;
}

void oct_yolo_fini(oct_yolo *r)
{
    oct_free(r->ctx, r->labels.items);
}

oct_status oct_yolo_categories(oct_yolo *r, const oct_class_names *names)
{
    oct_dataset *d = r->d;
    const int64_t n = OCT_MAX((int64_t)oct_class_names_size(names), (int64_t)d->top_class + 1);

    d->has_names = oct_class_names_size(names) > 0;
    for (int64_t i = 0; i < n; i++) {
        const char *given = oct_class_names_at(names, (int32_t)i);
        const char *name = given ? oct_arena_strdup(d->arena, given)
                                 : oct_arena_printf(d->arena, "%lld", (long long)i);

        if (!name) return OCT_ERR_MEMORY;
        OCT_TRY(oct_dataset_add_category(d, name, i));
    }
    return OCT_OK;
}

static oct_status name_classes(reader *r, const char *folder)
{
    const char *path = oct_dataset_join(r->d, folder, "classes.txt");
    oct_class_names *names = NULL;
    oct_status st = path ? OCT_OK : OCT_ERR_MEMORY;

    if (!st && oct_is_file(path)) st = oct_class_names_load(r->ctx, path, &names);
    if (!st) st = oct_yolo_categories(r, names);
    oct_class_names_free(names);
    return st;
}

oct_status oct_read_yolo(oct_dataset *d, const char *images, const char *folder)
{
    oct_yolo r;
    oct_status st;

    oct_yolo_init(&r, d);
    if (!images)
        return oct_fail(d->ctx, OCT_ERR_ARG,
                        "%s: YOLO's labels are parts of pictures; the pictures must be given",
                        folder);
    st = oct_yolo_folder(&r, images, folder);
    if (!st) st = name_classes(&r, folder);
    oct_yolo_fini(&r);
    return st;
}
