/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of a safetensors file: JSON of one fixed form, read without building a tree, so that
 * no more memory is taken than names and numbers need.
 */
#include <string.h>

#include "base/utf8.h"
#include "tensor/safetensors_parts.h"

typedef struct cursor {
    oct_safetensors *s;
    const char *begin, *p, *end;
} cursor;

static oct_status fail(const cursor *c, const char *what)
{
    return oct_fail(c->s->ctx, OCT_ERR_FORMAT, "safetensors header, byte %zu: %s",
                    (size_t)(c->p - c->begin), what);
}

static void skip_space(cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r'))
        c->p++;
}

/* Takes `ch` if it is the next character after white space. */
static bool take(cursor *c, char ch)
{
    skip_space(c);
    if (c->p == c->end || *c->p != ch) return false;
    c->p++;
    return true;
}

/* --- strings --- */

static int hex_digit(char ch)
{
    if (ch >= '0' && ch <= '9') return ch - '0';
    if (ch >= 'a' && ch <= 'f') return ch - 'a' + 10;
    return ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

/* Four hexadecimal digits; -1: there are none. The text is terminated. */
static long parse_hex(const char *p)
{
    long v = 0;

    for (int i = 0; i < 4; i++) {
        const int d = hex_digit(p[i]);

        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

static char *put_utf8(char *out, long code)
{
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *out++ = (char)(0xe0 | code >> 12);
        } else {
            *out++ = (char)(0xf0 | code >> 18);
            *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        }
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *out++ = (char)(0x80 | (code & 0x3f));
    return out;
}

/* What follows \u, with the second half of a pair; moves *p behind it. -1: no character. */
static long parse_unicode(const char **p)
{
    long code = parse_hex(*p), low;

    if (code < 0) return -1;
    *p += 4;
    if (code < 0xd800 || code > 0xdfff) return code ? code : -1; /* a zero would end the text */
    if (code > 0xdbff || (*p)[0] != '\\' || (*p)[1] != 'u') return -1;
    low = parse_hex(*p + 2);
    if (low < 0xdc00 || low > 0xdfff) return -1;
    *p += 6;
    return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

/* Replaces escapes in place; false: it is no JSON string, or no UTF-8. */
static bool unescape(char *text)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *p = text;
    char *out = text;

    while (*p) {
        if (*p != '\\') {
            int len = *p == 0x7f ? 1 : oct_utf8_len(p); /* DEL is allowed in JSON */

            if (!len) return false;
            while (len--)
                *out++ = *p++;
            continue;
        }
        if (p[1] == 'u') {
            long code;

            p += 2;
            if ((code = parse_unicode(&p)) < 0) return false;
            out = put_utf8(out, code);
            continue;
        }
        const char *found = p[1] ? strchr(from, p[1]) : NULL;

        if (!found) return false;
        *out++ = to[found - from];
        p += 2;
    }
    *out = '\0';
    return true;
}

/* A string, into the arena. */
static oct_status parse_string(cursor *c, const char **out)
{
    const char *start;
    char *text;

    if (!take(c, '"')) return fail(c, "a quoted text is missing");
    start = c->p;
    while (c->p < c->end && *c->p != '"')
        c->p += *c->p == '\\' && c->end - c->p > 1 ? 2 : 1;
    if (c->p >= c->end) {
        c->p = start;
        return fail(c, "a quote is not closed");
    }
    if (memchr(start, '\0', (size_t)(c->p - start))) return fail(c, "a zero byte in a text");
    text = oct_arena_strndup(c->s->arena, start, (size_t)(c->p - start));
    if (!text) return OCT_ERR_MEMORY;
    if (!unescape(text)) {
        c->p = start;
        return fail(c, "a text that is not valid JSON");
    }
    c->p++;
    *out = text;
    return OCT_OK;
}

/* --- numbers --- */

static oct_status parse_number(cursor *c, int64_t *out)
{
    const char *start;
    int64_t v = 0;

    skip_space(c);
    start = c->p;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++) {
        if (!oct_mul_i64(v, 10, &v) || !oct_add_i64(v, *c->p - '0', &v))
            return fail(c, "a number is too large");
    }
    if (c->p == start) return fail(c, "a number that is not negative is missing");
    if (*start == '0' && c->p - start > 1) return fail(c, "a number with a leading zero");
    *out = v;
    return OCT_OK;
}

/* "[1, 2]": at most `most` numbers. */
static oct_status parse_list(cursor *c, int64_t *v, int32_t most, int32_t *n)
{
    *n = 0;
    if (!take(c, '[')) return fail(c, "a list of numbers is missing");
    if (take(c, ']')) return OCT_OK;
    do {
        if (*n == most) return fail(c, "a list with too many numbers");
        OCT_TRY(parse_number(c, &v[*n]));
        ++*n;
    } while (take(c, ','));
    return take(c, ']') ? OCT_OK : fail(c, "a list is not closed");
}

/* --- entries --- */

/* Inside an object: steps to the next key; *more is false at its end. */
static oct_status next_key(cursor *c, bool first, bool *more, const char **key)
{
    *more = !take(c, '}');
    if (!*more) return OCT_OK;
    if (!first && !take(c, ',')) return fail(c, "a comma or a closing brace is missing");
    OCT_TRY(parse_string(c, key));
    return take(c, ':') ? OCT_OK : fail(c, "a colon is missing");
}

static oct_status parse_field(cursor *c, oct_safetensors_item *item, const char *key,
                              unsigned *seen)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    int64_t offset[2];
    const char *word = NULL;
    int32_t n = 0;
    unsigned k = 0;

    while (k < OCT_COUNT(keys) && strcmp(keys[k], key) != 0)
        k++;
    if (k == OCT_COUNT(keys)) return fail(c, "an unknown key of a tensor");
    if (*seen & 1u << k) return fail(c, "a key of a tensor is there twice");
    *seen |= 1u << k;
    if (k == 0) {
        OCT_TRY(parse_string(c, &word));
        item->dtype = oct_safetensors_dtype_named(word);
        if (!item->dtype)
            return oct_fail(c->s->ctx, OCT_ERR_UNSUPPORTED, "tensor '%s': type %.40s is not read",
                            item->name, word);
        item->type.dtype = item->dtype->dtype;
        return OCT_OK;
    }
    if (k == 1) return parse_list(c, item->type.dim, OCT_MAX_RANK, &item->type.rank);
    OCT_TRY(parse_list(c, offset, 2, &n));
    if (n != 2) return fail(c, "data_offsets needs two numbers");
    item->begin = (uint64_t)offset[0];
    item->end = (uint64_t)offset[1];
    return OCT_OK;
}

static oct_status parse_item(cursor *c, const char *name)
{
    oct_safetensors *s = c->s;
    oct_safetensors_item *item;
    const char *key = NULL;
    unsigned seen = 0;
    bool more = true;

    if (oct_map_get(&s->items, name))
        return oct_fail(s->ctx, OCT_ERR_FORMAT, "tensor '%.200s' is there twice", name);
    if (!(item = oct_arena_alloc(s->arena, sizeof(*item)))) return OCT_ERR_MEMORY;
    item->name = name;
    if (!take(c, '{')) return fail(c, "the description of a tensor is missing");
    for (bool first = true;; first = false) {
        OCT_TRY(next_key(c, first, &more, &key));
        if (!more) break;
        OCT_TRY(parse_field(c, item, key, &seen));
    }
    if (seen != 7u) return fail(c, "a tensor lacks dtype, shape or data_offsets");
    if (s->n == INT32_MAX) return fail(c, "too many tensors");
    OCT_TRY(oct_grow(s->ctx, &s->item, &s->cap, (size_t)s->n + 1, sizeof(*s->item)));
    s->item[s->n++] = item;
    return oct_map_put(&s->items, name, item);
}

static oct_status parse_notes(cursor *c)
{
    oct_safetensors *s = c->s;
    oct_safetensors_text note = {0};
    bool more = true;

    if (s->has_metadata) return fail(c, OCT_SAFETENSORS_METADATA " is there twice");
    s->has_metadata = true;
    if (!take(c, '{')) return fail(c, OCT_SAFETENSORS_METADATA " is not an object");
    for (bool first = true;; first = false) {
        OCT_TRY(next_key(c, first, &more, &note.key));
        if (!more) return OCT_OK;
        OCT_TRY(parse_string(c, &note.text));
        if (oct_map_get(&s->notes, note.key))
            return fail(c, "a key of " OCT_SAFETENSORS_METADATA " is there twice");
        if (s->n_notes == INT32_MAX) return fail(c, "too many notes");
        OCT_TRY(oct_grow(s->ctx, &s->note, &s->cap_notes, (size_t)s->n_notes + 1, sizeof(note)));
        s->note[s->n_notes++] = note;
        OCT_TRY(oct_map_put(&s->notes, note.key, (void *)(uintptr_t)note.text));
    }
}

oct_status oct_safetensors_read_header(oct_safetensors *s, const char *text, size_t size)
{
    cursor c = {s, text, text, text + size};
    const char *key = NULL;
    bool more = true;

    if (!size || *text != '{') return fail(&c, "it does not start with a brace");
    c.p++;
    for (bool first = true;; first = false) {
        OCT_TRY(next_key(&c, first, &more, &key));
        if (!more) break;
        if (strcmp(key, OCT_SAFETENSORS_METADATA) == 0)
            OCT_TRY(parse_notes(&c));
        else
            OCT_TRY(parse_item(&c, key));
    }
    skip_space(&c);
    return c.p == c.end ? OCT_OK : fail(&c, "there is more after the closing brace");
}
