/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Items of named tensors. In a .npz file an array NAME holds the items along its first axis (item i
 * is NAME[i:i+1]); arrays NAME0, NAME1, ... whose first axis is 1 hold one item each. An array with
 * a first axis of 1 among longer ones, or without axes, belongs to every item. Arrays of types
 * octet does not know are passed over. A folder holds one item in each file.
 */
#include "data/tensors.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "data/files.h"
#include "data/npz.h"

/* An array of a .npz file, read when first asked for. */
typedef struct array {
    const char *name;
    size_t index; /* in the file */
    oct_type type;
    oct_tensor *data; /* NULL: not read yet */
} array;

/* The files of one input, one for each item. */
typedef struct column {
    const char *name; /* NULL: matches any input */
    oct_names files;
} column;

/* Either npz and arrays, or columns (of .npy), or one column of .npz files. */
struct oct_tensors {
    oct_ctx *ctx;
    oct_npz *npz;
    array *arrays;
    size_t n_arrays, cap_arrays;
    column *columns;
    size_t n_columns, cap_columns;
    bool are_npz;
};

static oct_tensors *new_tensors(oct_dataset *d, const char *kind)
{
    d->kind = kind;
    d->tensors = oct_calloc(d->ctx, 1, sizeof(*d->tensors));
    if (d->tensors) d->tensors->ctx = d->ctx;
    return d->tensors;
}

void oct_tensors_free(oct_tensors *t)
{
    if (!t) return;
    for (size_t i = 0; i < t->n_arrays; i++)
        oct_tensor_unref(t->arrays[i].data);
    for (size_t i = 0; i < t->n_columns; i++)
        oct_free(t->ctx, t->columns[i].files.items);
    oct_npz_close(t->npz);
    oct_free(t->ctx, t->arrays);
    oct_free(t->ctx, t->columns);
    oct_free(t->ctx, t);
}

/* n items without labels; their paths are those of `files`, or one for all. */
static oct_status add_items(oct_dataset *d, int64_t n, const oct_names *files, const char *path)
{
    for (int64_t i = 0; i < n; i++) {
        OCT_TRY(oct_dataset_add(d, files ? files->items[i] : path));
        d->items[i].id = i;
    }
    return OCT_OK;
}

/* --- one .npz --- */

static array *find_array(const oct_tensors *t, const char *name)
{
    for (size_t i = 0; i < t->n_arrays; i++) {
        if (!strcmp(t->arrays[i].name, name)) return &t->arrays[i];
    }
    return NULL;
}

static array *find_numbered(const oct_tensors *t, const char *name, size_t len, int64_t i)
{
    char text[256];
    const int n = snprintf(text, sizeof(text), "%.*s%lld", (int)len, name, (long long)i);

    return n > 0 && (size_t)n < sizeof(text) ? find_array(t, text) : NULL;
}

/* How many arrays NAME0, NAME1, ... of one item each there are; fewer than two are none. */
static int64_t count_numbered(const oct_tensors *t, const char *name, size_t len)
{
    int64_t n = 0;

    for (const array *a; (a = find_numbered(t, name, len, n)); n++) {
        if (a->type.rank < 1 || a->type.dim[0] != 1) return 0;
    }
    return n < 2 ? 0 : n;
}

/* Number of items in an array; 1: it belongs to all. */
static int64_t count_items(const oct_tensors *t, const array *a)
{
    size_t len = strlen(a->name);

    while (len && a->name[len - 1] >= '0' && a->name[len - 1] <= '9')
        len--;
    if (len < strlen(a->name)) {
        const int64_t n = count_numbered(t, a->name, len);

        if (n) return n;
    }
    return a->type.rank < 1 ? 1 : a->type.dim[0];
}

static oct_status list_arrays(oct_dataset *d, oct_tensors *t)
{
    for (size_t i = 0; i < oct_npz_count(t->npz); i++) {
        array a = {.name = oct_npz_name(t->npz, i), .index = i};
        const oct_status st = oct_npz_type(t->npz, i, &a.type);

        if (st == OCT_ERR_UNSUPPORTED) {
            oct_log(d->ctx, OCT_LOG_INFO, "passed over: %s", oct_ctx_error(d->ctx));
            continue;
        }
        if (st) {
            OCT_TRY(oct_dataset_bad(d, st, NULL));
            continue;
        }
        OCT_TRY(oct_grow(t->ctx, &t->arrays, &t->cap_arrays, t->n_arrays + 1, sizeof(a)));
        t->arrays[t->n_arrays++] = a;
    }
    return OCT_OK;
}

oct_status oct_read_npz(oct_dataset *d, const char *path)
{
    oct_tensors *t = new_tensors(d, "npz");
    const char *copy = t ? oct_arena_strdup(d->arena, path) : NULL;
    int64_t n = 0;

    if (!copy) return OCT_ERR_MEMORY;
    OCT_TRY(oct_npz_open(d->ctx, path, &t->npz));
    OCT_TRY(list_arrays(d, t));
    for (size_t i = 0; i < t->n_arrays; i++) { /* the smallest above one */
        const int64_t k = count_items(t, &t->arrays[i]);

        if (k > 1 && (n <= 1 || k < n)) n = k;
        if (k == 1 && n == 0) n = 1;
    }
    if (n > INT32_MAX)
        return oct_fail(d->ctx, OCT_ERR_UNSUPPORTED, "%s: %lld items", path, (long long)n);
    return add_items(d, n, NULL, copy);
}

static oct_status read_array(oct_tensors *t, array *a)
{
    return a->data ? OCT_OK : oct_npz_read(t->npz, a->index, &a->data);
}

/* A copy of row i; the whole where there is only one. */
static oct_status take_row(oct_tensors *t, array *a, int64_t i, oct_tensor **out)
{
    oct_type type = a->type;
    oct_tensor *row = NULL;

    OCT_TRY(read_array(t, a));
    if (type.rank < 1 || type.dim[0] == 1) {
        *out = oct_tensor_ref(a->data);
        return OCT_OK;
    }
    if (i >= type.dim[0])
        return oct_fail(t->ctx, OCT_ERR_ARG, "array '%s' has %lld items, not %lld", a->name,
                        (long long)type.dim[0], (long long)i + 1);
    type.dim[0] = 1;
    OCT_TRY(oct_tensor_make(t->ctx, &type, &row));
    memcpy(row->data, (const char *)a->data->data + (size_t)i * row->size, row->size);
    *out = row;
    return OCT_OK;
}

/* "'a', 'b', 'c'" for the error text. */
static oct_status fail_name(oct_ctx *ctx, const char *name, const char *const *names, size_t n)
{
    oct_status st;
    oct_str s;

    oct_str_init(&s, ctx);
    for (size_t i = 0; i < n && i < 16; i++)
        oct_str_printf(&s, "%s'%s'", i ? ", " : "", names[i]);
    if (n > 16) oct_str_puts(&s, ", ...");
    st = s.failed ? OCT_ERR_MEMORY
                  : oct_fail(ctx, OCT_ERR_ARG, "no tensor for input '%s'; there are %s", name,
                             s.s ? s.s : "none");
    oct_str_fini(&s);
    return st;
}

static oct_status get_array(oct_tensors *t, int64_t i, const char *name, oct_tensor **out)
{
    array *a = find_array(t, name);
    const char *names[17];
    size_t n;

    if (a) return take_row(t, a, i, out);
    if ((a = find_numbered(t, name, strlen(name), i))) {
        OCT_TRY(read_array(t, a));
        *out = oct_tensor_ref(a->data);
        return OCT_OK;
    }
    if (t->n_arrays == 1) return take_row(t, &t->arrays[0], i, out);
    n = OCT_MIN(t->n_arrays, OCT_COUNT(names));
    for (size_t k = 0; k < n; k++)
        names[k] = t->arrays[k].name;
    return fail_name(t->ctx, name, names, n);
}

/* --- folders --- */

static oct_status add_column(oct_dataset *d, const char *name, const char *folder,
                             const char *extension)
{
    oct_tensors *t = d->tensors;
    oct_listing l = {0};
    column c = {.name = name};
    oct_status st;

    OCT_TRY(oct_listing_open(d->ctx, folder, &l));
    st = oct_grow(t->ctx, &t->columns, &t->cap_columns, t->n_columns + 1, sizeof(c));
    for (size_t i = 0; !st && i < l.files.n; i++) {
        const char *path;

        if (!oct_has_extension(l.files.items[i], extension)) continue;
        if ((st = oct_grow(d->ctx, &c.files.items, &c.files.cap, c.files.n + 1,
                           sizeof(*c.files.items))))
            break;
        path = oct_dataset_join(d, folder, l.files.items[i]);
        if (path)
            c.files.items[c.files.n++] = path;
        else
            st = OCT_ERR_MEMORY;
    }
    oct_listing_close(&l);
    if (st)
        oct_free(d->ctx, c.files.items);
    else
        t->columns[t->n_columns++] = c;
    return st;
}

static oct_status read_single(oct_dataset *d, const char *folder, const char *extension)
{
    const column *c;

    OCT_TRY(add_column(d, NULL, folder, extension));
    c = &d->tensors->columns[0];
    return add_items(d, (int64_t)c->files.n, &c->files, NULL);
}

oct_status oct_read_npy_folder(oct_dataset *d, const char *folder)
{
    return new_tensors(d, "npy") ? read_single(d, folder, ".npy") : OCT_ERR_MEMORY;
}

oct_status oct_read_npz_folder(oct_dataset *d, const char *folder)
{
    if (!new_tensors(d, "npz folder")) return OCT_ERR_MEMORY;
    d->tensors->are_npz = true;
    return read_single(d, folder, ".npz");
}

oct_status oct_read_npy_folders(oct_dataset *d, const char *folder)
{
    oct_tensors *t = new_tensors(d, "npy folders");
    oct_listing l = {0};
    oct_status st = OCT_OK;

    if (!t) return OCT_ERR_MEMORY;
    OCT_TRY(oct_listing_open(d->ctx, folder, &l));
    for (size_t i = 0; !st && i < l.folders.n; i++) {
        const char *name = oct_arena_strdup(d->arena, l.folders.items[i]);
        const char *path = oct_dataset_join(d, folder, l.folders.items[i]);

        st = name && path ? add_column(d, name, path, ".npy") : OCT_ERR_MEMORY;
        if (!st && t->columns[i].files.n != t->columns[0].files.n)
            st = oct_fail(d->ctx, OCT_ERR_FORMAT, "%s: %zu files, but %zu in '%s'", path,
                          t->columns[i].files.n, t->columns[0].files.n, t->columns[0].name);
    }
    oct_listing_close(&l);
    if (st) return st;
    return add_items(d, (int64_t)t->columns[0].files.n, &t->columns[0].files, NULL);
}

/* The array of that name of one .npz file; the only one, whatever its name. */
static oct_status get_from_npz(oct_tensors *t, const char *path, const char *name, oct_tensor **out)
{
    oct_npz *z = NULL;
    const char *names[17];
    oct_status st;
    size_t n, i;

    OCT_TRY(oct_npz_open(t->ctx, path, &z));
    n = oct_npz_count(z);
    for (i = 0; i < n && strcmp(oct_npz_name(z, i), name) != 0; i++)
        ;
    if (i == n && n == 1) i = 0;
    if (i < n) {
        st = oct_npz_read(z, i, out);
    } else {
        n = OCT_MIN(n, OCT_COUNT(names));
        for (size_t k = 0; k < n; k++)
            names[k] = oct_npz_name(z, k);
        st = oct_fail_at(t->ctx, fail_name(t->ctx, name, names, n), path);
    }
    oct_npz_close(z);
    return st;
}

oct_status oct_tensors_get(oct_tensors *t, int64_t i, const char *name, oct_tensor **out)
{
    const char *names[17];
    size_t n;

    if (t->npz) return get_array(t, i, name, out);
    if (t->are_npz) return get_from_npz(t, t->columns[0].files.items[i], name, out);
    for (size_t k = 0; k < t->n_columns; k++) {
        const column *c = &t->columns[k];

        if (t->n_columns == 1 || !strcmp(c->name, name))
            return oct_tensor_load_npy(t->ctx, c->files.items[i], out);
    }
    n = OCT_MIN(t->n_columns, OCT_COUNT(names));
    for (size_t k = 0; k < n; k++)
        names[k] = t->columns[k].name;
    return fail_name(t->ctx, name, names, n);
}
