/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ultralytics' data.yaml: where pictures are and what the classes are called.
 *
 *   path: ../datasets/cells   of the folders below; relative to this file, or to where we are
 *   train: images/train       a folder, a list of pictures (.txt), or several of them
 *   val: images/val
 *   names: {0: cat, 1: dog}   or a list
 *
 * Labels lie where Ultralytics looks for them: the last folder "images" of a path is "labels", the
 * picture's extension .txt. Other keys are for training and are left alone.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/files.h"
#include "data/labels/class_names.h"
#include "data/labels/yolo.h"

typedef struct reader {
    oct_yolo yolo;
    oct_dataset *d;
    const char *file, *root;
    oct_tree *tree;
    oct_class_names *names;
    bool pictures_only;
} reader;

/* --- paths --- */

/* The folder a file lies in. */
static const char *folder_of(oct_dataset *d, const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? oct_arena_strndup(d->arena, path, (size_t)(slash - path) + 1) : ".";
}

/* NAME below FOLDER, or NAME itself if it begins at the root. */
static const char *resolve(oct_dataset *d, const char *folder, const char *name)
{
    return oct_dataset_join(d, *name == '/' ? NULL : folder, name);
}

static bool is_there(const char *path)
{
    return oct_is_folder(path) || oct_is_file(path);
}

static oct_status find_root(reader *r)
{
    const oct_tree *path = oct_tree_get(r->tree, "path");
    const char *text = oct_tree_text(path);

    if (!(r->root = folder_of(r->d, r->file))) return OCT_ERR_MEMORY;
    if (oct_tree_is_null(path) || !*text) return OCT_OK;
    if (!(r->root = resolve(r->d, r->root, text))) return OCT_ERR_MEMORY;
    if (!oct_is_folder(r->root) && oct_is_folder(text) &&
        !(r->root = oct_arena_strdup(r->d->arena, text)))
        return OCT_ERR_MEMORY;
    if (oct_is_folder(r->root)) return OCT_OK;
    return oct_fail(r->d->ctx, OCT_ERR_IO, "%s:%d:%d: path: the folder %s is not there", r->file,
                    path->line, path->column, r->root);
}

/* The path of an entry of train or val. Exports of Roboflow begin with a "../" too many. */
static oct_status find_entry(reader *r, const oct_tree *e, const char **out)
{
    const char *text = oct_tree_text(e), *other;

    if (!*text)
        return oct_fail(r->d->ctx, OCT_ERR_FORMAT, "%s:%d:%d: a folder or a list is wanted",
                        r->file, e->line, e->column);
    if (!(*out = resolve(r->d, r->root, text))) return OCT_ERR_MEMORY;
    if (is_there(*out)) return OCT_OK;
    if (!strncmp(text, "../", 3)) {
        if (!(other = resolve(r->d, r->root, text + 3))) return OCT_ERR_MEMORY;
        if (is_there(other)) {
            *out = other;
            return OCT_OK;
        }
    }
    return oct_fail(r->d->ctx, OCT_ERR_IO, "%s:%d:%d: %s is not there", r->file, e->line, e->column,
                    *out);
}

/* A copy of the path with its last folder "images" called "labels"; without one, as it is. */
static char *label_path(oct_dataset *d, const char *path, size_t len)
{
    static const char from[] = "images", to[] = "labels";
    char *copy = oct_arena_strndup(d->arena, path, len);

    for (size_t i = copy && len >= 6 ? len - 6 + 1 : 0; i-- > 0;) {
        const bool begins = i == 0 || copy[i - 1] == '/';

        if (!begins || strncmp(copy + i, from, 6) != 0 || (copy[i + 6] && copy[i + 6] != '/'))
            continue;
        memcpy(copy + i, to, 6);
        break;
    }
    return copy;
}

/* --- pictures --- */

static oct_status read_folder(reader *r, const char *folder)
{
    size_t len = strlen(folder);
    const char *labels;

    while (len > 1 && folder[len - 1] == '/')
        len--;
    if (r->pictures_only) return oct_read_pictures(r->d, folder);
    if (!(labels = label_path(r->d, folder, len))) return OCT_ERR_MEMORY;
    if (!oct_is_folder(labels))
        return oct_fail(r->d->ctx, OCT_ERR_IO, "%s: the labels of %s are looked for in %s, %s",
                        r->file, folder, labels, "which is not there");
    return oct_yolo_folder(&r->yolo, folder, labels);
}

static oct_status read_listed(reader *r, const char *path)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/'), *stem, *labels;

    if (r->pictures_only) return oct_dataset_add(r->d, path);
    stem = label_path(r->d, path,
                      dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path));
    labels = stem ? oct_arena_printf(r->d->arena, "%s.txt", stem) : NULL;
    return labels ? oct_yolo_picture(&r->yolo, path, labels) : OCT_ERR_MEMORY;
}

/* A text with a picture a line, relative to the text's own folder. */
static oct_status read_list(reader *r, const char *list)
{
    const char *folder = folder_of(r->d, list), *p, *end;
    oct_file *f = NULL;
    oct_status st = OCT_OK;

    if (!folder) return OCT_ERR_MEMORY;
    OCT_TRY(oct_file_map(r->d->ctx, list, &f));
    p = (const char *)oct_file_data(f);
    end = p + oct_file_size(f);
    while (!st && p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end, *name, *path;
        size_t len = (size_t)(stop - p);

        while (len && strchr(" \t\r", p[len - 1]))
            len--;
        if (len && memchr(p, '\0', len)) {
            st = oct_fail(r->d->ctx, OCT_ERR_FORMAT, "%s: not a text", list);
        } else if (len) {
            name = oct_arena_strndup(r->d->arena, p, len);
            path = name ? resolve(r->d, folder, name) : NULL;
            st = path ? read_listed(r, path) : OCT_ERR_MEMORY;
        }
        p = stop + 1;
    }
    oct_file_unref(f);
    return st;
}

static oct_status read_entry(reader *r, const oct_tree *e)
{
    const char *path = NULL;

    OCT_TRY(find_entry(r, e, &path));
    return oct_is_folder(path) ? read_folder(r, path) : read_list(r, path);
}

/* The first of the keys that has a value. */
static oct_status read_split(reader *r, const char *const *keys)
{
    for (int i = 0; keys[i]; i++) {
        const oct_tree *t = oct_tree_get(r->tree, keys[i]);

        if (oct_tree_is_null(t)) continue;
        OCT_TRY(find_root(r));
        if (t->kind == OCT_TREE_SCALAR) return read_entry(r, t);
        for (const oct_tree *e = t->first; e; e = e->next)
            OCT_TRY(read_entry(r, e));
        return OCT_OK;
    }
    return oct_fail(r->d->ctx, OCT_ERR_FORMAT, "%s: there is neither 'val' nor 'train' in it",
                    r->file);
}

/* --- the whole --- */

static oct_status read_names(reader *r)
{
    const oct_tree *names = oct_tree_get(r->tree, "names"), *nc = oct_tree_get(r->tree, "nc");
    const char *text = oct_tree_text(nc);

    if (oct_tree_is_null(names))
        return oct_fail(r->d->ctx, OCT_ERR_FORMAT,
                        "%s: there is no 'names': is it a data.yaml of Ultralytics?", r->file);
    OCT_TRY(oct_class_names_new(r->d->ctx, &r->names));
    OCT_TRY(oct_class_names_tree(r->names, r->file, names));
    r->yolo.n_names = oct_class_names_size(r->names);
    if (*text && strtol(text, NULL, 10) != r->yolo.n_names)
        return oct_fail(r->d->ctx, OCT_ERR_FORMAT, "%s:%d:%d: nc is %.20s, but there are %d names",
                        r->file, nc->line, nc->column, text, (int)r->yolo.n_names);
    return OCT_OK;
}

static oct_status read_tree(reader *r)
{
    oct_file *f = NULL;
    oct_status st;

    OCT_TRY(oct_file_map(r->d->ctx, r->file, &f));
    st = oct_tree_read(r->d->arena, r->file, oct_file_data(f), oct_file_size(f), &r->tree);
    oct_file_unref(f);
    if (st) return st;
    if (r->tree && r->tree->kind == OCT_TREE_MAP) return OCT_OK;
    return oct_fail(r->d->ctx, OCT_ERR_FORMAT, "%s: not a data.yaml of Ultralytics", r->file);
}

oct_status oct_read_data_yaml(oct_dataset *d, const char *images, const char *path)
{
    static const char *const splits[] = {"val", "test", "train", NULL};
    reader r = {.d = d, .file = path};
    oct_status st;

    oct_yolo_init(&r.yolo, d);
    st = read_tree(&r);
    if (!st) st = read_names(&r);
    if (!st) st = images ? read_folder(&r, images) : read_split(&r, splits);
    if (!st) st = oct_yolo_categories(&r.yolo, r.names);
    oct_class_names_free(r.names);
    oct_yolo_fini(&r.yolo);
    return st;
}

oct_status oct_read_data_yaml_pictures(oct_dataset *d, const char *path)
{
    static const char *const splits[] = {"train", "val", "test", NULL};
    reader r = {.d = d, .file = path, .pictures_only = true};

    OCT_TRY(read_tree(&r));
    OCT_TRY(read_split(&r, splits));
    d->kind = "pictures";
    return OCT_OK;
}
