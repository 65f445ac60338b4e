/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datasets of pictures without boxes: a folder with all below it, a folder of class folders, a list
 * of "name class" lines. In lists the class is a number from 0, or, if one of them is not a number,
 * a word.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/dataset.h"
#include "data/files.h"

#define MAX_CLASSES 1000000
#define MAX_DEPTH   32 /* of folders in folders */

/* The current folder, and its ancestors: a link may lead back to one of them. */
typedef struct step {
    const struct step *above;
    dev_t device;
    ino_t inode;
    int depth;
} step;

static bool is_above(const step *s, const struct stat *info)
{
    for (; s; s = s->above)
        if (s->device == info->st_dev && s->inode == info->st_ino) return true;
    return false;
}

static oct_status read_files(oct_dataset *d, const char *folder, const oct_names *files)
{
    for (size_t i = 0; i < files->n; i++) {
        const char *path = oct_dataset_join(d, folder, files->items[i]);

        if (!path) return OCT_ERR_MEMORY;
        if (oct_is_picture_file(path))
            OCT_TRY(oct_dataset_add(d, path));
        else
            oct_notes_add(d->notes, OCT_NOTE_NO_PICTURE, files->items[i]);
    }
    return OCT_OK;
}

static oct_status read_folder(oct_dataset *d, const char *folder, const step *above)
{
    oct_listing l = {0};
    struct stat info;
    step here = {.above = above, .depth = above ? above->depth + 1 : 0};
    oct_status st;

    if (above && (here.depth > MAX_DEPTH || stat(folder, &info) || is_above(above, &info)))
        return OCT_OK;
    OCT_TRY(oct_listing_open(d->ctx, folder, &l));
    if (stat(folder, &info) == 0) {
        here.device = info.st_dev;
        here.inode = info.st_ino;
    }
    st = read_files(d, folder, &l.files);
    for (size_t i = 0; !st && i < l.folders.n; i++) {
        const char *path = oct_dataset_join(d, folder, l.folders.items[i]);

        st = path ? read_folder(d, path, &here) : OCT_ERR_MEMORY;
    }
    oct_listing_close(&l);
    return st;
}

oct_status oct_read_pictures(oct_dataset *d, const char *folder)
{
    d->kind = "pictures";
    return read_folder(d, folder, NULL);
}

static oct_status read_class_folder(oct_dataset *d, const char *folder, const char *name)
{
    const char *path = oct_dataset_join(d, folder, name);
    const size_t n_before = d->n_items;

    if (!path || !(name = oct_arena_strdup(d->arena, name))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_read_pictures(d, path));
    OCT_TRY(oct_dataset_add_category(d, name, (int64_t)d->n_categories));
    for (size_t i = n_before; i < d->n_items; i++)
        d->items[i].class_index = (int32_t)d->n_categories - 1;
    return OCT_OK;
}

oct_status oct_read_class_folders(oct_dataset *d, const char *folder)
{
    oct_listing l = {0};
    oct_status st = OCT_OK;

    OCT_TRY(oct_listing_open(d->ctx, folder, &l));
    for (size_t i = 0; !st && i < l.folders.n; i++)
        st = read_class_folder(d, folder, l.folders.items[i]);
    oct_listing_close(&l);
    d->kind = "class folders";
    return st;
}

/* --- lists --- */

/* Class names as written, one for each item; NULL: none. */
typedef oct_names classes;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* "name class" is cut at its last white space, so names may have some. */
static oct_status read_line(oct_dataset *d, const char *images, const char *line, size_t len,
                            classes *c)
{
    size_t name_len, class_at;
    const char *name, *path, *class_name = NULL;

    while (len && is_space(line[len - 1]))
        len--;
    while (len && is_space(*line))
        line++, len--;
    if (!len || *line == '#') return OCT_OK;
    if (memchr(line, '\0', len)) return oct_fail(d->ctx, OCT_ERR_FORMAT, "not a text");
    for (class_at = len; class_at && !is_space(line[class_at - 1]); class_at--)
        ;
    for (name_len = class_at; name_len && is_space(line[name_len - 1]); name_len--)
        ;
    if (!class_at) name_len = len;
    if (!(name = oct_arena_strndup(d->arena, line, name_len))) return OCT_ERR_MEMORY;
    if (class_at && !(class_name = oct_arena_strndup(d->arena, line + class_at, len - class_at)))
        return OCT_ERR_MEMORY;
    if (d->n_items && !c->items[0] != !class_name)
        return oct_fail(d->ctx, OCT_ERR_FORMAT, "\"%.40s\" has %s class, unlike the lines before",
                        name, class_name ? "a" : "no");
    path = oct_dataset_join(d, *name == '/' ? NULL : images, name);
    if (!path) return OCT_ERR_MEMORY;
    OCT_TRY(oct_grow(d->ctx, &c->items, &c->cap, d->n_items + 1, sizeof(*c->items)));
    c->items[d->n_items] = class_name;
    return oct_dataset_add(d, path);
}

static oct_status read_lines(oct_dataset *d, const char *images, const oct_file *f, classes *c)
{
    const char *p = (const char *)oct_file_data(f), *end = p + oct_file_size(f);

    for (int line = 1; p < end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        const oct_status st = read_line(d, images, p, (size_t)(stop - p), c);

        if (st) {
            char where[32];

            snprintf(where, sizeof(where), "line %d", line);
            OCT_TRY(oct_dataset_bad(d, st, where));
        }
        p = stop + 1;
    }
    return OCT_OK;
}

static bool parse_class(const char *text, int32_t *out)
{
    char *end;
    const long v = strtol(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || v < 0 || v >= MAX_CLASSES) return false;
    *out = (int32_t)v;
    return true;
}

/* Numbers are the classes themselves. False: one is not a number. */
static bool set_numbers(oct_dataset *d, const classes *c, int32_t *n_classes)
{
    for (size_t i = 0; i < d->n_items; i++) {
        oct_item *item = &d->items[i];

        if (!parse_class(c->items[i], &item->class_index)) return false;
        *n_classes = OCT_MAX(*n_classes, item->class_index + 1);
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Words are counted in their sorted order. */
static oct_status set_words(oct_dataset *d, const classes *c)
{
    const char **sorted = oct_alloc(d->ctx, d->n_items * sizeof(*sorted));
    oct_status st = OCT_OK;

    if (!sorted) return OCT_ERR_MEMORY;
    memcpy(sorted, c->items, d->n_items * sizeof(*sorted));
    qsort(sorted, d->n_items, sizeof(*sorted), by_name);
    for (size_t i = 0; !st && i < d->n_items; i++) {
        if (!i || strcmp(sorted[i], sorted[i - 1]) != 0)
            st = oct_dataset_add_category(d, sorted[i], (int64_t)d->n_categories);
    }
    for (size_t i = 0; !st && i < d->n_items; i++) {
        size_t lo = 0, hi = d->n_categories;

        while (hi - lo > 1) {
            const size_t middle = lo + (hi - lo) / 2;

            if (strcmp(d->categories[middle].name, c->items[i]) <= 0)
                lo = middle;
            else
                hi = middle;
        }
        d->items[i].class_index = (int32_t)lo;
    }
    oct_free(d->ctx, sorted);
    return st;
}

static oct_status set_classes(oct_dataset *d, const classes *c)
{
    int32_t n_classes = 0;

    if (!d->n_items || !c->items[0]) return OCT_OK;
    if (!set_numbers(d, c, &n_classes)) return set_words(d, c);
    for (int32_t i = 0; i < n_classes; i++) {
        const char *name = oct_arena_printf(d->arena, "%d", i);

        if (!name) return OCT_ERR_MEMORY;
        OCT_TRY(oct_dataset_add_category(d, name, i));
    }
    return OCT_OK;
}

oct_status oct_read_list(oct_dataset *d, const char *images, const char *path)
{
    classes c = {0};
    oct_file *f = NULL;
    oct_status st;

    d->kind = "list";
    OCT_TRY(oct_file_map(d->ctx, path, &f));
    st = read_lines(d, images, f, &c);
    if (!st) st = set_classes(d, &c);
    oct_free(d->ctx, c.items);
    oct_file_unref(f);
    return st ? oct_fail_at(d->ctx, st, path) : OCT_OK;
}
