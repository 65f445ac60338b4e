/* SPDX-License-Identifier: Apache-2.0 */
/* Listing folders. */
#include "data/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

bool oct_has_extension(const char *name, const char *extension)
{
    const size_t len = strlen(name), n = strlen(extension);

    return len > n && !strcasecmp(name + len - n, extension);
}

bool oct_is_folder(const char *path)
{
    struct stat info;

    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

bool oct_is_file(const char *path)
{
    struct stat info;

    return !stat(path, &info) && S_ISREG(info.st_mode);
}

size_t oct_file_start(const char *path, void *to, size_t n)
{
    FILE *f = oct_is_file(path) ? fopen(path, "rb") : NULL;
    size_t got;

    if (!f) return 0;
    got = fread(to, 1, n, f);
    (void)fclose(f);
    return got;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort(oct_names *names)
{
    if (names->n) qsort(names->items, names->n, sizeof(*names->items), by_name);
}

static oct_status add(oct_arena *arena, oct_names *names, const char *name)
{
    oct_ctx *ctx = oct_arena_ctx(arena);
    const char *copy;

    OCT_TRY(oct_grow(ctx, &names->items, &names->cap, names->n + 1, sizeof(*names->items)));
    if (!(copy = oct_arena_strdup(arena, name))) return OCT_ERR_MEMORY;
    names->items[names->n++] = copy;
    return OCT_OK;
}

/* What an entry is, asking the file system only where the folder does not say. */
static oct_status add_entry(oct_listing *l, int fd, const struct dirent *e)
{
    struct stat info;
    bool is_folder = e->d_type == DT_DIR, is_file = e->d_type == DT_REG;

    if (e->d_name[0] == '.') return OCT_OK;
    if (!is_folder && !is_file) {
        if (fstatat(fd, e->d_name, &info, 0)) return OCT_OK; /* a link to nowhere */
        is_folder = S_ISDIR(info.st_mode);
        is_file = S_ISREG(info.st_mode);
    }
    if (is_folder) return add(l->arena, &l->folders, e->d_name);
    return is_file ? add(l->arena, &l->files, e->d_name) : OCT_OK;
}

oct_status oct_listing_open(oct_ctx *ctx, const char *folder, oct_listing *out)
{
    oct_listing l = {.arena = oct_arena_new(ctx)};
    oct_status st = OCT_OK;
    struct dirent *e;
    char buf[128];
    DIR *dir;

    if (!l.arena) return OCT_ERR_MEMORY;
    if (!(dir = opendir(folder))) {
        st = oct_fail(ctx, OCT_ERR_IO, "%s: cannot open: %s", folder,
                      strerror_r(errno, buf, sizeof(buf)));
    } else {
        while (!st && (e = readdir(dir)))
            st = add_entry(&l, dirfd(dir), e);
        closedir(dir);
    }
    if (st) {
        oct_listing_close(&l);
        return st;
    }
    sort(&l.files);
    sort(&l.folders);
    *out = l;
    return OCT_OK;
}

void oct_listing_close(oct_listing *l)
{
    oct_ctx *ctx;

    if (!l->arena) return;
    ctx = oct_arena_ctx(l->arena);
    oct_free(ctx, l->files.items);
    oct_free(ctx, l->folders.items);
    oct_arena_free(l->arena);
    *l = (oct_listing){0};
}

size_t oct_listing_count(const oct_listing *l, const char *extension)
{
    size_t n = 0;

    for (size_t i = 0; i < l->files.n; i++)
        n += oct_has_extension(l->files.items[i], extension);
    return n;
}
