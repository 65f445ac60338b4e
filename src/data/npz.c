/* SPDX-License-Identifier: Apache-2.0 */
/* .npz files through libzip; nothing else sees it. */
#include "data/npz.h"

#include <string.h>

#include <zip.h>

#include "tensor/npy.h"

#define MAX_HEADER  ((size_t)64 << 10) /* of a .npy file; NumPy's own have some hundred bytes */
#define MAX_ARRAYS  100000
#define MAX_DEFLATE 1032 /* no compressed byte can expand to more */

typedef struct array {
    const char *name;
    zip_uint64_t index, size;
} array;

struct oct_npz {
    oct_ctx *ctx;
    oct_arena *arena;
    const char *path;
    zip_t *zip;
    array *arrays;
    size_t n, cap;
};

static oct_status fail_zip(oct_ctx *ctx, const char *path, const char *what, zip_error_t *e)
{
    return oct_fail(ctx, OCT_ERR_FORMAT, "%s: %s: %s", path, what, zip_error_strerror(e));
}

static oct_status add_entry(oct_npz *z, zip_uint64_t index)
{
    zip_stat_t info;
    const char *name;
    size_t len;

    zip_stat_init(&info);
    if (zip_stat_index(z->zip, index, 0, &info) || !(info.valid & ZIP_STAT_NAME) ||
        !(info.valid & ZIP_STAT_SIZE) || !(info.valid & ZIP_STAT_COMP_SIZE))
        return oct_fail(z->ctx, OCT_ERR_FORMAT, "%s: entry %llu is broken", z->path,
                        (unsigned long long)index);
    len = strlen(info.name);
    if (len < 4 || strcmp(info.name + len - 4, ".npy") != 0) return OCT_OK; /* not an array */
    if (info.size / MAX_DEFLATE > info.comp_size)
        return oct_fail(z->ctx, OCT_ERR_FORMAT, "%s: %s: %llu bytes cannot come out of %llu",
                        z->path, info.name, (unsigned long long)info.size,
                        (unsigned long long)info.comp_size);
    if (!(name = oct_arena_strndup(z->arena, info.name, len - 4))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_grow(z->ctx, &z->arrays, &z->cap, z->n + 1, sizeof(*z->arrays)));
    z->arrays[z->n++] = (array){name, index, info.size};
    return OCT_OK;
}

static oct_status open_zip(oct_npz *z, const char *path)
{
    zip_int64_t n;
    int error = 0;

    if (!(z->arena = oct_arena_new(z->ctx))) return OCT_ERR_MEMORY;
    if (!(z->path = oct_arena_strdup(z->arena, path))) return OCT_ERR_MEMORY;
    z->zip = zip_open(path, ZIP_RDONLY | ZIP_CHECKCONS, &error);
    if (!z->zip) {
        zip_error_t e;
        oct_status st;

        zip_error_init_with_code(&e, error);
        st = fail_zip(z->ctx, path, "not a .npz file", &e);
        zip_error_fini(&e);
        return st;
    }
    n = zip_get_num_entries(z->zip, 0);
    if (n > MAX_ARRAYS)
        return oct_fail(z->ctx, OCT_ERR_UNSUPPORTED, "%s: more than %d arrays", path, MAX_ARRAYS);
    for (zip_int64_t i = 0; i < n; i++)
        OCT_TRY(add_entry(z, (zip_uint64_t)i));
    if (!z->n) return oct_fail(z->ctx, OCT_ERR_FORMAT, "%s: there are no arrays in it", path);
    return OCT_OK;
}

oct_status oct_npz_open(oct_ctx *ctx, const char *path, oct_npz **out)
{
    oct_npz *z = oct_calloc(ctx, 1, sizeof(*z));
    oct_status st;

    if (!z) return OCT_ERR_MEMORY;
    z->ctx = ctx;
    if ((st = open_zip(z, path))) {
        oct_npz_close(z);
        return st;
    }
    *out = z;
    return OCT_OK;
}

void oct_npz_close(oct_npz *z)
{
    if (!z) return;
    if (z->zip) zip_discard(z->zip);
    oct_free(z->ctx, z->arrays);
    oct_arena_free(z->arena);
    oct_free(z->ctx, z);
}

size_t oct_npz_count(const oct_npz *z)
{
    return z->n;
}

const char *oct_npz_name(const oct_npz *z, size_t i)
{
    return z->arrays[i].name;
}

/* The first `size` bytes of array i. */
static oct_status read_bytes(oct_npz *z, size_t i, void *dst, size_t size)
{
    zip_file_t *f = zip_fopen_index(z->zip, z->arrays[i].index, 0);
    oct_status st = OCT_OK;
    size_t got = 0;

    if (!f) return fail_zip(z->ctx, z->path, z->arrays[i].name, zip_get_error(z->zip));
    while (got < size) {
        const zip_int64_t n = zip_fread(f, (char *)dst + got, size - got);

        if (n <= 0) break;
        got += (size_t)n;
    }
    if (got < size) st = fail_zip(z->ctx, z->path, z->arrays[i].name, zip_file_get_error(f));
    zip_fclose(f);
    return st;
}

/* Prefixes the reason with the file and the array. */
static oct_status fail_array(oct_npz *z, size_t i, oct_status st)
{
    oct_fail_at(z->ctx, st, z->arrays[i].name);
    return oct_fail_at(z->ctx, st, z->path);
}

oct_status oct_npz_type(oct_npz *z, size_t i, oct_type *out)
{
    const size_t size = (size_t)OCT_MIN(z->arrays[i].size, MAX_HEADER);
    uint8_t *head = oct_alloc(z->ctx, size);
    oct_status st;

    if (!head) return OCT_ERR_MEMORY;
    st = read_bytes(z, i, head, size);
    if (!st && (st = oct_npy_peek(z->ctx, head, size, out))) fail_array(z, i, st);
    oct_free(z->ctx, head);
    return st;
}

oct_status oct_npz_read(oct_npz *z, size_t i, oct_tensor **out)
{
    const zip_uint64_t size = z->arrays[i].size;
    uint8_t *bytes;
    oct_status st;

    if (size > SIZE_MAX / 2)
        return oct_fail(z->ctx, OCT_ERR_MEMORY, "out of memory: %llu bytes",
                        (unsigned long long)size);
    if (!(bytes = oct_alloc(z->ctx, (size_t)size))) return OCT_ERR_MEMORY;
    st = read_bytes(z, i, bytes, (size_t)size);
    if (!st && (st = oct_npy_decode(z->ctx, bytes, (size_t)size, out))) fail_array(z, i, st);
    oct_free(z->ctx, bytes);
    return st;
}
