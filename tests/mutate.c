/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks protobuf files: blindly, and in ways that keep the wire format whole. */
#include "tests/mutate.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"

typedef void (*mutation)(bytes *b, oct_rng *r);

static size_t below(oct_rng *r, size_t n)
{
    return n ? (size_t)oct_rng_below(r, n) : 0;
}

static const uint64_t telling[] = {
    0,          1,          2,           3,          0x7f,
    255,        0xffff,     65537,       0x7fffffff, 0x80000000,
    0xffffffff, UINT64_MAX, 1ull << 40,  1ull << 62, UINT64_MAX >> 1,
    1000000007, 0x20000000, 0x100000001, 16,         (uint64_t)INT64_MIN,
};

static size_t put_varint(unsigned char *p, uint64_t v)
{
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        p[n++] = (unsigned char)(v | 0x80);
    p[n++] = (unsigned char)v;
    return n;
}

/* [at, at + n_old) becomes `with`. */
static void replace(bytes *b, size_t at, size_t n_old, const unsigned char *with, size_t n)
{
    memmove(b->p + at + n, b->p + at + n_old, b->n - at - n_old);
    if (n) memcpy(b->p + at, with, n);
    b->n = b->n - n_old + n;
}

/* --- blind --- */

static void truncate_it(bytes *b, oct_rng *r)
{
    b->n = below(r, b->n);
}

static void flip_bits(bytes *b, oct_rng *r)
{
    for (size_t i = 1 + below(r, 8); i > 0 && b->n; i--)
        b->p[below(r, b->n)] ^= (unsigned char)(1u << below(r, 8));
}

static void set_bytes(bytes *b, oct_rng *r)
{
    for (size_t i = 1 + below(r, 4); i > 0 && b->n; i--)
        b->p[below(r, b->n)] = (unsigned char)telling[below(r, OCT_COUNT(telling))];
}

static void insert_noise(bytes *b, oct_rng *r)
{
    unsigned char noise[16];
    const size_t n = 1 + below(r, sizeof(noise));

    for (size_t i = 0; i < n; i++)
        noise[i] = (unsigned char)oct_rng_u64(r);
    replace(b, below(r, b->n), 0, noise, n);
}

static void remove_range(bytes *b, oct_rng *r)
{
    const size_t at = below(r, b->n);

    replace(b, at, below(r, OCT_MIN(b->n - at, (size_t)64)), NULL, 0);
}

static void splice(bytes *b, oct_rng *r)
{
    const size_t n = 1 + below(r, OCT_MIN(b->n_other, b->n)), at = below(r, b->n - n + 1);

    memcpy(b->p + at, b->other + below(r, b->n_other - n + 1), n);
}

/* --- structural: a field deep inside is changed, the lengths around it are mended --- */

#define MAX_DEPTH 8
#define MAX_PART  1024 /* of a field copied elsewhere */

/* A field in its message: tag at `at`, what it holds in [body, end). */
typedef struct field {
    size_t at, body, end;
    int wire;
    size_t len_at; /* wire type 2: where its length stands */
} field;

static bool get_varint(const bytes *b, size_t *at, size_t end, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        const unsigned char c = b->p[(*at)++];

        *v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80)) return true;
    }
    return false;
}

/* Reads the field at `at`; false if there is none. */
static bool get_field(const bytes *b, size_t at, size_t end, field *f)
{
    uint64_t tag, len;

    f->at = at;
    if (!get_varint(b, &at, end, &tag) || tag >> 3 == 0 || tag >> 3 > 100) return false;
    f->wire = (int)(tag & 7);
    f->len_at = at;
    f->body = at;
    switch (f->wire) {
    case 0:
        if (!get_varint(b, &at, end, &len)) return false;
        break;
    case 1:
        at += 8;
        break;
    case 2:
        if (!get_varint(b, &at, end, &len) || len > end - at) return false;
        f->body = at;
        at += (size_t)len;
        break;
    case 5:
        at += 4;
        break;
    default:
        return false;
    }
    f->end = at;
    return at <= end;
}

/* How many fields [at, end) holds; 0 if it is not a message. */
static size_t count_fields(const bytes *b, size_t at, size_t end)
{
    size_t n = 0;
    field f;

    for (; at < end; at = f.end, n++)
        if (!get_field(b, at, end, &f)) return 0;
    return n;
}

static bool nth_field(const bytes *b, size_t at, size_t end, size_t n, field *f)
{
    do {
        if (!get_field(b, at, end, f)) return false;
        at = f->end;
    } while (n-- > 0);
    return true;
}

/* A random field, with the fields around it in path[]; the number of those, or -1. */
static int find_field(const bytes *b, oct_rng *r, field *path, field *f)
{
    size_t at = 0, end = b->n;

    for (int depth = 0; depth < MAX_DEPTH; depth++) {
        const size_t n = count_fields(b, at, end);

        if (n == 0 || !nth_field(b, at, end, below(r, n), f)) return -1;
        if (f->wire != 2 || !count_fields(b, f->body, f->end) || below(r, 6) == 0) return depth;
        path[depth] = *f;
        at = f->body;
        end = f->end;
    }
    return -1;
}

/* Replaces [at, at + n_old) inside the fields of path[] and mends their lengths. */
static void edit(bytes *b, const field *path, int depth, size_t at, size_t n_old,
                 const unsigned char *with, size_t n)
{
    size_t grown = n - n_old; /* modulo 2^64, as are the sums below */

    replace(b, at, n_old, with, n);
    for (int i = depth - 1; i >= 0; i--) {
        unsigned char len[10];
        const size_t n_len = put_varint(len, path[i].end - path[i].body + grown);
        const size_t n_before = path[i].body - path[i].len_at;

        replace(b, path[i].len_at, n_before, len, n_len);
        grown += n_len - n_before;
    }
}

/* Dimensions, axes, types, lengths: one becomes another number. */
static void change_number(bytes *b, oct_rng *r)
{
    field path[MAX_DEPTH], f;

    for (int attempt = 0; attempt < 20; attempt++) {
        const int depth = find_field(b, r, path, &f);
        unsigned char number[10];
        size_t at = depth < 0 ? 0 : f.body;
        uint64_t v;

        if (depth < 0 || f.wire != 0 || !get_varint(b, &at, f.end, &v)) continue;
        v = below(r, 2) ? telling[below(r, OCT_COUNT(telling))] : v + below(r, 5) - 2;
        edit(b, path, depth, f.body, f.end - f.body, number, put_varint(number, v));
        return;
    }
}

/* A name, a string or packed numbers become those of another field: dangling names, cycles,
 * duplicates, other operators, data of the wrong length. */
static void change_content(bytes *b, oct_rng *r)
{
    field path[MAX_DEPTH + 1], other_path[MAX_DEPTH], f, other;

    for (int attempt = 0; attempt < 20; attempt++) {
        const int depth = find_field(b, r, path, &f);
        unsigned char part[MAX_PART];
        size_t n;

        if (depth < 0 || f.wire != 2 || find_field(b, r, other_path, &other) < 0) continue;
        n = other.end - other.body;
        if (other.wire != 2 || n > sizeof(part)) continue;
        memcpy(part, b->p + other.body, n);
        if (n && below(r, 8) == 0) n = below(r, n);
        path[depth] = f; /* its own length is one more to mend */
        edit(b, path, depth + 1, f.body, f.end - f.body, part, n);
        return;
    }
}

static void remove_field(bytes *b, oct_rng *r)
{
    field path[MAX_DEPTH], f;
    const int depth = find_field(b, r, path, &f);

    if (depth >= 0) edit(b, path, depth, f.at, f.end - f.at, NULL, 0);
}

/* A node, a value, an operand twice, or in another place. */
static void copy_field(bytes *b, oct_rng *r)
{
    field path[MAX_DEPTH], other_path[MAX_DEPTH], f, other;
    unsigned char part[MAX_PART];
    const int depth = find_field(b, r, path, &f);

    if (depth < 0 || find_field(b, r, other_path, &other) < 0) return;
    if (below(r, 2)) other = f;
    if (other.end - other.at > sizeof(part)) return;
    memcpy(part, b->p + other.at, other.end - other.at);
    edit(b, path, depth, f.at, 0, part, other.end - other.at);
}

static const mutation blind[] = {
    truncate_it, flip_bits, set_bytes, insert_noise, remove_range, splice,
};

static const mutation structural[] = {
    change_number,  change_number,  change_number, change_content,
    change_content, change_content, remove_field,  copy_field,
};

void mutate(bytes *b, oct_rng *r)
{
    const bool keep_wire = below(r, 4) != 0;

    for (size_t i = 1 + below(r, 3); i > 0 && b->n > 1; i--)
        if (keep_wire)
            structural[below(r, OCT_COUNT(structural))](b, r);
        else
            blind[below(r, OCT_COUNT(blind))](b, r);
}
