/* SPDX-License-Identifier: Apache-2.0 */
/* Data outside the model file: a path that stays in the model's folder, an offset, a length. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/read.h"

typedef struct place {
    const char *location;
    uint64_t offset, length;
    bool has_length;
} place;

static oct_status read_number(oct_reader *r, const char *key, const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "external data %s '%s' is not a number", key, text);
    return OCT_OK;
}

static oct_status read_place(oct_reader *r, const oct_pb_tensor *pb, place *out)
{
    *out = (place){0};
    for (size_t i = 0; i < pb->external.n; i++) {
        oct_pb_pair e;
        const char *value;

        OCT_TRY(oct_wire_prop(&r->wire, pb->external.v[i], &e));
        OCT_TRY(oct_read_text(r, r->wire.arena, e.value, "external data", &value));
        if (oct_span_is(e.key, "location")) out->location = value;
        if (oct_span_is(e.key, "offset")) OCT_TRY(read_number(r, "offset", value, &out->offset));
        if (oct_span_is(e.key, "length")) {
            OCT_TRY(read_number(r, "length", value, &out->length));
            out->has_length = true;
        }
    }
    if (!out->location || !out->location[0])
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "external data without a location");
    return OCT_OK;
}

/* By its text alone: relative, and no part of it is "..". */
static oct_status check_location(oct_reader *r, const char *location)
{
    const char *part = location;

    if (location[0] == '/' || location[0] == '\\' || (location[0] && location[1] == ':'))
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "external data path '%s' is absolute", location);
    while (*part) {
        const size_t len = strcspn(part, "/\\");

        if (len == 2 && part[0] == '.' && part[1] == '.')
            return oct_fail(r->ctx, OCT_ERR_FORMAT,
                            "external data path '%s' leaves the model's folder with '..'",
                            location);
        part += len;
        part += *part != 0;
    }
    return OCT_OK;
}

/* And by what is on the disk: symbolic links may not lead out of the folder either. */
static oct_status map_inside(oct_reader *r, const char *location, oct_file **out)
{
    const char *path = oct_arena_printf(r->wire.arena, "%s/%s", r->folder, location);
    char *folder = NULL, *file = NULL;
    oct_status st = OCT_OK;
    size_t len;

    if (!path) return OCT_ERR_MEMORY;
    folder = realpath(r->folder, NULL);
    file = realpath(path, NULL);
    if (!folder || !file) {
        st = oct_fail(r->ctx, OCT_ERR_IO, "external data file '%s' cannot be opened", path);
        goto done;
    }
    len = strlen(folder);
    if (len == 1) len = 0; /* "/": everything is inside */
    if (strncmp(file, folder, len) != 0 || file[len] != '/') {
        st = oct_fail(r->ctx, OCT_ERR_FORMAT,
                      "external data path '%s' leaves the model's folder by a symbolic link",
                      location);
        goto done;
    }
    st = oct_file_ask_read(r->ctx, path);
    if (!st) st = oct_file_map(r->ctx, file, out);
done:
    free(folder);
    free(file);
    return st;
}

static oct_status find_file(oct_reader *r, const char *location, oct_file **out)
{
    oct_external *e = oct_map_get(&r->files, location);

    if (!r->folder)
        return oct_fail(r->ctx, OCT_ERR_UNSUPPORTED,
                        "external data in '%s', but a model in memory has no folder", location);
    if (!e) {
        OCT_TRY(check_location(r, location));
        if (!(e = oct_arena_alloc(r->wire.arena, sizeof(*e)))) return OCT_ERR_MEMORY;
        OCT_TRY(map_inside(r, location, &e->file));
        e->next = r->externals;
        r->externals = e; /* the reader lets go of it at the end */
        OCT_TRY(oct_map_put(&r->files, location, e));
    }
    *out = e->file;
    return OCT_OK;
}

oct_status oct_external_find(oct_reader *r, const oct_pb_tensor *pb, size_t size, oct_file **file,
                             size_t *offset)
{
    oct_file *f = NULL;
    size_t have;
    place at;

    OCT_TRY(read_place(r, pb, &at));
    OCT_TRY(find_file(r, at.location, &f));
    have = oct_file_size(f);
    if (at.offset > have)
        return oct_fail(r->ctx, OCT_ERR_FORMAT,
                        "external data begin at byte %llu of '%s', which has only %zu",
                        (unsigned long long)at.offset, at.location, have);
    have -= (size_t)at.offset;
    if (!at.has_length) at.length = size; /* all the file from there, says the format */
    if (at.length != size)
        return oct_fail(r->ctx, OCT_ERR_FORMAT,
                        "external data are %llu bytes long, its type needs %zu",
                        (unsigned long long)at.length, size);
    if (at.length > have)
        return oct_fail(r->ctx, OCT_ERR_FORMAT,
                        "external data reach beyond the end of '%s' (%zu bytes needed, %zu there)",
                        at.location, size, have);
    *file = f;
    *offset = (size_t)at.offset;
    return OCT_OK;
}
