/* SPDX-License-Identifier: Apache-2.0 */
/* Which files octet made: recognised by the comments it writes into them. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/guard.h"

enum { ENDS = 8192 }; /* bytes that are looked at, at both ends of a file */

/* The beginning and the end of a file; they overlap in a short one. */
typedef struct ends {
    FILE *f;
    int64_t size;
    char *head, *tail;
    size_t n_head, n_tail;
} ends;

static bool contains(const char *bytes, size_t n, const char *note)
{
    return memmem(bytes, n, note, strlen(note)) != NULL;
}

static bool starts(const ends *e, const char *bytes, size_t n)
{
    return e->n_head >= n && memcmp(e->head, bytes, n) == 0;
}

/* --- ONNX: the producer, or a key of the metadata --- */

/* A varint at *at of n bytes; false: there is none. */
static bool read_varint(const unsigned char *p, size_t n, size_t *at, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && *at < n; shift += 7) {
        const unsigned char b = p[(*at)++];

        *out |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return true;
    }
    return false;
}

/* Does a text field of the model, or a pair of texts, name octet? */
static bool names_octet(const unsigned char *p, size_t n, uint64_t field)
{
    enum { PRODUCER = 2, METADATA = 14, KEY = 0x0a };
    size_t at = 1;
    uint64_t len;

    if (field == PRODUCER) return n == 5 && memcmp(p, "octet", 5) == 0;
    if (field != METADATA || n < 2 || p[0] != KEY || !read_varint(p, n, &at, &len)) return false;
    return len >= 5 && n - at >= 5 && memcmp(p + at, "octet", 5) == 0;
}

/* The fields of a file's outermost message; the graph is skipped. */
static bool is_own_onnx(const ends *e)
{
    enum { MOST_FIELDS = 10000, KEPT = 512 };
    int64_t at = 0;

    for (int i = 0; i < MOST_FIELDS && at < e->size; i++) {
        unsigned char p[KEPT];
        uint64_t tag, len = 0;
        size_t n, k = 0;

        if (fseeko(e->f, (off_t)at, SEEK_SET)) return false;
        n = fread(p, 1, sizeof(p), e->f);
        if (!read_varint(p, n, &k, &tag) || !read_varint(p, n, &k, &len)) return false;
        if ((tag & 7) == 0) { /* a number: it was the value */
            at += (int64_t)k;
            continue;
        }
        if ((tag & 7) != 2 || len > (uint64_t)(e->size - at)) return false;
        if (names_octet(p + k, len < n - k ? (size_t)len : n - k, tag >> 3)) return true;
        at += (int64_t)k + (int64_t)len;
    }
    return false;
}

/* --- the others --- */

/* NumPy ends a header with fewer spaces. */
static bool is_own_npy(const ends *e)
{
    enum { SPACES = 128 };
    const unsigned char *u = (const unsigned char *)e->head;
    const size_t end = e->n_head > 10 ? 10 + (size_t)u[8] + ((size_t)u[9] << 8) : 0;
    size_t n = 0;

    while (end && end <= e->n_head && n + 12 < end && e->head[end - 2 - n] == ' ')
        n++;
    return n >= SPACES;
}

/* SQLite's header has a place for the number of the program that made a file. */
static bool is_own_database(const ends *e)
{
    enum { APPLICATION_ID = 68 };

    return e->n_head >= APPLICATION_ID + 4 && starts(e, "SQLite format 3", 16) &&
           memcmp(e->head + APPLICATION_ID, "octt", 4) == 0;
}

static bool is_own_text(const ends *e)
{
    static const char *const notes[] = {
        "made by octet",                        /* pictures, drawings */
        "name=\"generator\" content=\"octet\"", /* reports */
        "\"made_by\":\"octet",                  /* traces */
        "\"made_by\": \"octet",                 /* scales in PPQ's form */
        "{\"octet_qmap\":",
        "{\"octet.checkpoint\":", /* of a training run */
        "{\"info\":{\"description\":\"octet synth",
    };

    for (size_t i = 0; i < CLI_COUNT(notes); i++)
        if (contains(e->head, e->n_head, notes[i])) return true;
    return contains(e->tail, e->n_tail, "made by octet"); /* PDF */
}

/* COCO results are a bare list: recognised by octet's line breaks. */
static bool is_own_results(const ends *e)
{
    static const char filled[] = "[\n{\"image_id\":", empty[] = "[\n]\n";

    return starts(e, filled, sizeof(filled) - 1) ||
           (e->size == sizeof(empty) - 1 && starts(e, empty, sizeof(empty) - 1));
}

static bool read_ends(ends *e)
{
    const int64_t tail = e->size > ENDS ? e->size - ENDS : 0;

    e->head = cli_alloc(ENDS, 1);
    e->tail = cli_alloc(ENDS, 1);
    e->n_head = fread(e->head, 1, ENDS, e->f);
    if (fseeko(e->f, (off_t)tail, SEEK_SET)) return false;
    e->n_tail = fread(e->tail, 1, ENDS, e->f);
    return !ferror(e->f);
}

/* The external weights of a network belong to it. */
static bool is_own_data(const char *path)
{
    const size_t len = strlen(path);
    char *model;
    bool own;

    if (len < 6 || strcmp(path + len - 5, ".data")) return false;
    model = cli_format("%.*s", (int)len - 5, path);
    own = cli_is_own(model);
    free(model);
    return own;
}

bool cli_is_own(const char *path)
{
    ends e = {0};
    struct stat sb;
    bool own;

    if (stat(path, &sb) || !S_ISREG(sb.st_mode)) return false;
    if (sb.st_size == 0) return true; /* nothing to lose */
    if (!(e.f = fopen(path, "rb"))) return false;
    e.size = sb.st_size;
    own = read_ends(&e) &&
          (starts(&e, "\x93NUMPY", 6)
               ? is_own_npy(&e)
               : is_own_text(&e) || is_own_results(&e) || is_own_database(&e) || is_own_onnx(&e));
    (void)fclose(e.f);
    free(e.head);
    free(e.tail);
    return own || is_own_data(path);
}
