/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures without labels, given in many ways at once: files, folders, patterns ("shots/?*.jpg"),
 * lists of names, videos, and "-" for a list of names on standard input. What was given first comes
 * first; what a pattern or a folder gives is in the order of bytes.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "data/files.h"
#include "data/image/video.h"

#define MAX_LIST ((size_t)64 << 20)

static bool is_pattern(const char *path)
{
    return strpbrk(path, "*?[") && !oct_is_folder(path) && !oct_is_file(path);
}

bool oct_is_inputs(const char *path)
{
    return !strcmp(path, "-") || is_pattern(path) || oct_is_video_file(path);
}

static oct_status add_picture(oct_dataset *d, const char *path)
{
    const char *copy = oct_dataset_join(d, NULL, path);

    return copy ? oct_dataset_add(d, copy) : OCT_ERR_MEMORY;
}

/* One item for every n-th picture of it. */
static oct_status add_video(oct_dataset *d, const char *path)
{
    const char *copy = oct_dataset_join(d, NULL, path);
    oct_video *v = NULL;
    int64_t n = 0;
    oct_status st;

    if (!copy) return OCT_ERR_MEMORY;
    OCT_TRY(oct_video_open(d->ctx, path, &v));
    st = oct_video_count(v, &n);
    oct_video_close(v);
    d->has_video = true;
    for (int64_t i = 0; !st && i < n; i += d->every) {
        if (!(st = oct_dataset_add(d, copy))) d->items[d->n_items - 1].frame = i;
    }
    return st;
}

static oct_status add_names(oct_dataset *d, const char *folder, oct_bytes text);

/* Names in a list are relative to it. */
static oct_status add_list(oct_dataset *d, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *folder =
        slash ? oct_arena_strndup(d->arena, path, (size_t)(slash - path) + 1) : NULL;
    oct_file *f = NULL;
    oct_status st;

    if (slash && !folder) return OCT_ERR_MEMORY;
    OCT_TRY(oct_file_map(d->ctx, path, &f));
    st = add_names(d, folder, (oct_bytes){oct_file_data(f), oct_file_size(f)});
    oct_file_unref(f);
    return st;
}

/* A folder, a video, a list (.txt), or else a picture: decoding shows whether it is one. */
static oct_status add_path(oct_dataset *d, const char *path)
{
    if (oct_is_folder(path)) return oct_read_pictures(d, path);
    if (oct_is_video_file(path)) return add_video(d, path);
    if (oct_has_extension(path, ".npy") || oct_has_extension(path, ".npz"))
        return oct_fail(d->ctx, OCT_ERR_ARG, "%s: tensors cannot be given together with pictures",
                        path);
    if (oct_has_extension(path, ".txt") && !oct_is_picture_file(path)) return add_list(d, path);
    return add_picture(d, path);
}

/* A name of a list: a folder or a video too, but no list again. */
static oct_status add_name(oct_dataset *d, const char *folder, const char *name)
{
    const char *path = oct_dataset_join(d, *name == '/' ? NULL : folder, name);

    if (!path) return OCT_ERR_MEMORY;
    return oct_is_folder(path) || oct_is_video_file(path) ? add_path(d, path)
                                                          : oct_dataset_add(d, path);
}

/* One name a line; blank lines and those that begin with # do not count. */
static oct_status add_names(oct_dataset *d, const char *folder, oct_bytes text)
{
    const char *p = (const char *)text.data, *end = p + text.size;

    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        size_t len = (size_t)(stop - p);
        char *name;

        while (len && strchr(" \t\r", p[len - 1]))
            len--;
        while (len && strchr(" \t", *p))
            p++, len--;
        if (len && *p != '#') {
            if (memchr(p, '\0', len))
                return oct_fail(d->ctx, OCT_ERR_FORMAT, "a list of names that is no text");
            if (!(name = oct_arena_strndup(d->arena, p, len))) return OCT_ERR_MEMORY;
            OCT_TRY(add_name(d, folder, name));
        }
        p = stop + 1;
    }
    return OCT_OK;
}

static oct_status add_standard_input(oct_dataset *d)
{
    uint8_t *text = NULL;
    size_t n = 0, cap = 0;
    oct_status st = OCT_OK;

    for (;;) {
        size_t got;

        if ((st = oct_grow(d->ctx, &text, &cap, n + 65536, 1))) break;
        got = fread(text + n, 1, cap - n, stdin);
        n += got;
        if (!got) break;
        if (n > MAX_LIST) {
            st = oct_fail(d->ctx, OCT_ERR_UNSUPPORTED,
                          "-: more than 64 MB of names on standard input");
            break;
        }
    }
    if (!st && !n) st = oct_fail(d->ctx, OCT_ERR_FORMAT, "-: no names on standard input");
    if (!st && oct_codec_by_bytes((oct_bytes){text, n}))
        st = oct_fail(d->ctx, OCT_ERR_FORMAT, "-: a picture, where names of files are wanted");
    if (!st) st = add_names(d, NULL, (oct_bytes){text, n});
    oct_free(d->ctx, text);
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A pattern may match other files than pictures: those are reported, and no error. */
static oct_status add_pattern(oct_dataset *d, const char *pattern)
{
    glob_t found = {0};
    const int code = glob(pattern, GLOB_NOSORT, NULL, &found);
    oct_status st = OCT_OK;

    if (code == GLOB_NOMATCH)
        st = oct_fail(d->ctx, OCT_ERR_IO, "%s: no file has such a name", pattern);
    else if (code)
        st = oct_fail(d->ctx, OCT_ERR_IO, "%s: the files cannot be listed", pattern);
    else
        qsort(found.gl_pathv, found.gl_pathc, sizeof(char *), by_name);
    for (size_t i = 0; !st && i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];

        if (oct_is_folder(path) || oct_is_picture_file(path) || oct_is_video_file(path))
            st = add_path(d, path);
        else
            oct_notes_add(d->notes, OCT_NOTE_NO_PICTURE, path);
    }
    globfree(&found);
    return st;
}

oct_status oct_read_input(oct_dataset *d, const char *path)
{
    d->kind = "pictures";
    if (!strcmp(path, "-")) return add_standard_input(d);
    return is_pattern(path) ? add_pattern(d, path) : add_path(d, path);
}
