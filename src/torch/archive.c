/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of a zip archive is read here, because libzip does not tell where the bytes of a
 * member lie; libzip inflates those that are compressed, and nothing else of torch/ sees it.
 */
#include "torch/archive.h"

#include <string.h>

#include <zip.h>

#define MAX_MEMBERS ((uint64_t)1 << 20)
#define MAX_DEFLATE 1032 /* no compressed byte can expand to more */

enum {
    END_SIZE = 22,       /* end of central directory, without its comment */
    LOCATOR_SIZE = 20,   /* of the zip64 end of central directory */
    END64_SIZE = 56,     /* zip64 end of central directory */
    ENTRY_SIZE = 46,     /* of the directory, without name, extra field and comment */
    LOCAL_SIZE = 30,     /* header in front of a member */
    MAX_COMMENT = 65535, /* at the end of the file */
};

struct oct_archive {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_file *file;
    oct_span_of bytes;
    oct_member *members;
    size_t n;
    oct_map names;
    zip_t *zip; /* opened when a compressed member is wanted */
};

static uint32_t u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const uint8_t *p)
{
    return u16(p) | u16(p + 2) << 16;
}

static uint64_t u64(const uint8_t *p)
{
    return (uint64_t)u32(p) | (uint64_t)u32(p + 4) << 32;
}

static bool is_signed(const uint8_t *p, uint8_t a, uint8_t b)
{
    return p[0] == 'P' && p[1] == 'K' && p[2] == a && p[3] == b;
}

/* --- the directory --- */

typedef struct directory {
    uint64_t n, size, offset;
} directory;

static oct_status broken(const oct_archive *a, const char *what)
{
    return oct_fail(a->ctx, OCT_ERR_FORMAT, "broken zip archive: %s", what);
}

/* Numbers that do not fit lie in a second record in front of the first. */
static oct_status read_end64(const oct_archive *a, size_t end, directory *d)
{
    const uint8_t *p = a->bytes.p + end - LOCATOR_SIZE;
    uint64_t at;

    if (end < LOCATOR_SIZE || !is_signed(p, 6, 7)) return OCT_OK;
    at = u64(p + 8);
    if (at > end || end - at < END64_SIZE || !is_signed(a->bytes.p + at, 6, 6))
        return broken(a, "its zip64 directory is not where it should be");
    p = a->bytes.p + at;
    *d = (directory){u64(p + 32), u64(p + 40), u64(p + 48)};
    return OCT_OK;
}

static oct_status find_directory(const oct_archive *a, directory *d)
{
    const oct_span_of s = a->bytes;
    size_t at;

    if (s.size < END_SIZE) return broken(a, "it is too short");
    for (at = s.size - END_SIZE;; at--) {
        if (is_signed(s.p + at, 5, 6) && at + END_SIZE + u16(s.p + at + 20) == s.size) break;
        if (at == 0 || s.size - END_SIZE - at >= MAX_COMMENT)
            return broken(a, "no directory at its end; was the download complete?");
    }
    *d = (directory){u16(s.p + at + 10), u32(s.p + at + 12), u32(s.p + at + 16)};
    OCT_TRY(read_end64(a, at, d));
    if (d->offset > at || d->size > at - d->offset)
        return broken(a, "its directory reaches beyond its end");
    if (d->n > d->size / ENTRY_SIZE) return broken(a, "its directory is too short");
    if (d->n > MAX_MEMBERS)
        return oct_fail(a->ctx, OCT_ERR_UNSUPPORTED, "a zip archive of more than %llu members",
                        (unsigned long long)MAX_MEMBERS);
    return OCT_OK;
}

typedef struct entry {
    uint64_t size, stored, local;
} entry;

/* Sizes of 4 GiB and more are in an extra field, those that need it, in this order. */
static oct_status read_extra(const oct_archive *a, const uint8_t *p, size_t len, entry *e)
{
    uint64_t *const wide[] = {&e->size, &e->stored, &e->local};

    while (len >= 4) {
        const size_t size = u16(p + 2);
        const uint8_t *v = p + 4;
        size_t left = size;

        if (size > len - 4) return OCT_OK; /* not a field: some tools put zeros there */
        for (size_t i = 0; i < OCT_COUNT(wide) && u16(p) == 1; i++) {
            if (*wide[i] != UINT32_MAX) continue;
            if (left < 8) return broken(a, "a zip64 field is too short");
            *wide[i] = u64(v);
            v += 8;
            left -= 8;
        }
        p += 4 + size;
        len -= 4 + size;
    }
    return OCT_OK;
}

/* Where the bytes of a member begin: its local header has lengths of its own. */
static oct_status place_member(const oct_archive *a, const entry *e, oct_member *m)
{
    const oct_span_of s = a->bytes;
    const uint8_t *p = s.p + e->local;
    uint64_t at;

    if (e->local > s.size || s.size - e->local < LOCAL_SIZE || !is_signed(p, 3, 4))
        return oct_fail(a->ctx, OCT_ERR_FORMAT,
                        "broken zip archive: '%.200s' is not where its directory says", m->name);
    at = e->local + LOCAL_SIZE + u16(p + 26) + u16(p + 28);
    if (at > s.size || e->stored > s.size - at)
        return oct_fail(a->ctx, OCT_ERR_FORMAT,
                        "broken zip archive: '%.200s' reaches beyond its end", m->name);
    if (!m->is_compressed && e->size != e->stored)
        return oct_fail(a->ctx, OCT_ERR_FORMAT, "broken zip archive: '%.200s' has two sizes",
                        m->name);
    if (m->is_compressed && e->size / MAX_DEFLATE > e->stored)
        return oct_fail(a->ctx, OCT_ERR_FORMAT, "'%.200s': %llu bytes cannot come out of %llu",
                        m->name, (unsigned long long)e->size, (unsigned long long)e->stored);
    m->offset = (size_t)at;
    m->stored = (size_t)e->stored;
    m->size = (size_t)e->size;
    return OCT_OK;
}

static oct_status read_entry(oct_archive *a, const uint8_t **p, const uint8_t *end, oct_member *m)
{
    const uint8_t *at = *p;
    size_t n_name, n_extra, n_all;
    entry e;

    if (end - at < ENTRY_SIZE || !is_signed(at, 1, 2)) return broken(a, "its directory is damaged");
    n_name = u16(at + 28);
    n_extra = u16(at + 30);
    n_all = ENTRY_SIZE + n_name + n_extra + u16(at + 32);
    if ((size_t)(end - at) < n_all) return broken(a, "its directory is damaged");
    e = (entry){u32(at + 24), u32(at + 20), u32(at + 42)};
    if (!(m->name = oct_arena_strndup(a->arena, (const char *)at + ENTRY_SIZE, n_name)))
        return OCT_ERR_MEMORY;
    if (strlen(m->name) != n_name) return broken(a, "a name with a zero byte");
    if (u16(at + 8) & 1)
        return oct_fail(a->ctx, OCT_ERR_UNSUPPORTED, "'%.200s' is encrypted", m->name);
    m->is_compressed = u16(at + 10) != 0;
    OCT_TRY(read_extra(a, at + ENTRY_SIZE + n_name, n_extra, &e));
    *p = at + n_all;
    return place_member(a, &e, m);
}

static oct_status read_directory(oct_archive *a)
{
    const uint8_t *p, *end;
    directory d;

    OCT_TRY(find_directory(a, &d));
    p = a->bytes.p + d.offset;
    end = p + d.size;
    if (!(a->members = oct_arena_array(a->arena, (size_t)d.n + 1, sizeof(*a->members))))
        return OCT_ERR_MEMORY;
    for (uint64_t i = 0; i < d.n; i++) {
        oct_member *m = &a->members[a->n];

        OCT_TRY(read_entry(a, &p, end, m));
        a->n++;
        if (oct_map_get(&a->names, m->name))
            return oct_fail(a->ctx, OCT_ERR_FORMAT, "broken zip archive: '%.200s' is there twice",
                            m->name);
        OCT_TRY(oct_map_put(&a->names, m->name, m));
    }
    return OCT_OK;
}

oct_status oct_archive_open(oct_ctx *ctx, oct_file *file, oct_span_of bytes, oct_archive **out)
{
    oct_archive *a = oct_calloc(ctx, 1, sizeof(*a));
    oct_status st;

    if (!a) return OCT_ERR_MEMORY;
    a->ctx = ctx;
    a->file = file;
    a->bytes = bytes;
    oct_map_init(&a->names, ctx);
    st = (a->arena = oct_arena_new(ctx)) ? read_directory(a) : OCT_ERR_MEMORY;
    if (st)
        oct_archive_close(a);
    else
        *out = a;
    return st;
}

void oct_archive_close(oct_archive *a)
{
    if (!a) return;
    for (size_t i = 0; i < a->n; i++)
        oct_free(a->ctx, (void *)(uintptr_t)a->members[i].inflated);
    if (a->zip) zip_discard(a->zip);
    oct_map_fini(&a->names);
    oct_arena_free(a->arena);
    oct_free(a->ctx, a);
}

size_t oct_archive_count(const oct_archive *a)
{
    return a->n;
}

oct_member *oct_archive_at(oct_archive *a, size_t i)
{
    return &a->members[i];
}

oct_member *oct_archive_find(oct_archive *a, const char *name)
{
    return oct_map_get(&a->names, name);
}

oct_file *oct_archive_file(const oct_archive *a, const oct_member *m)
{
    return m->is_compressed ? NULL : a->file;
}

/* --- compressed members --- */

static oct_status open_zip(oct_archive *a)
{
    zip_error_t e;
    zip_source_t *source;
    oct_status st = OCT_OK;

    if (a->zip) return OCT_OK;
    zip_error_init(&e);
    source = zip_source_buffer_create(a->bytes.p, a->bytes.size, 0, &e);
    if (source) a->zip = zip_open_from_source(source, ZIP_RDONLY, &e);
    if (!a->zip) {
        st = oct_fail(a->ctx, OCT_ERR_FORMAT, "broken zip archive: %s", zip_error_strerror(&e));
        if (source) zip_source_free(source);
    }
    zip_error_fini(&e);
    return st;
}

static oct_status inflate_into(oct_archive *a, const oct_member *m, uint8_t *dst)
{
    zip_file_t *f;
    oct_status st = OCT_OK;
    size_t got = 0;

    OCT_TRY(open_zip(a));
    if (!(f = zip_fopen(a->zip, m->name, 0)))
        return oct_fail(a->ctx, OCT_ERR_FORMAT, "'%.200s': %s", m->name, zip_strerror(a->zip));
    while (got < m->size) {
        const zip_int64_t n = zip_fread(f, dst + got, m->size - got);

        if (n <= 0) break;
        got += (size_t)n;
    }
    if (got < m->size)
        st = oct_fail(a->ctx, OCT_ERR_FORMAT, "'%.200s': %s", m->name, zip_file_strerror(f));
    zip_fclose(f);
    return st;
}

oct_status oct_archive_bytes(oct_archive *a, oct_member *m, oct_span_of *out)
{
    uint8_t *p;
    oct_status st;

    *out = (oct_span_of){m->is_compressed ? m->inflated : a->bytes.p + m->offset, m->size};
    if (out->p) return OCT_OK;
    if (!(p = oct_alloc(a->ctx, OCT_MAX(m->size, 1)))) return OCT_ERR_MEMORY;
    if ((st = inflate_into(a, m, p))) {
        oct_free(a->ctx, p);
        return st;
    }
    m->inflated = out->p = p;
    return OCT_OK;
}
