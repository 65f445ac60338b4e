/* SPDX-License-Identifier: Apache-2.0 */
/* Names of classes: from a text with a name a line, a data.yaml, or a literal of Python or JSON. */
#include "data/labels/class_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/files.h"
#include "data/image/image.h"

oct_status oct_class_names_new(oct_ctx *ctx, oct_class_names **out)
{
    oct_class_names *c = oct_calloc(ctx, 1, sizeof(*c));

    if (!c) return OCT_ERR_MEMORY;
    c->ctx = ctx;
    if (!(c->arena = oct_arena_new(ctx))) {
        oct_free(ctx, c);
        return OCT_ERR_MEMORY;
    }
    *out = c;
    return OCT_OK;
}

void oct_class_names_free(oct_class_names *c)
{
    if (!c) return;
    oct_free(c->ctx, c->items);
    oct_arena_free(c->arena);
    oct_free(c->ctx, c);
}

int32_t oct_class_names_size(const oct_class_names *c)
{
    return c ? (int32_t)c->n : 0;
}

const char *oct_class_names_at(const oct_class_names *c, int32_t i)
{
    return c && i >= 0 && (size_t)i < c->n ? c->items[i] : NULL;
}

oct_status oct_class_names_set(oct_class_names *c, int64_t i, const char *name, size_t len)
{
    if (i < 0 || i >= OCT_MAX_CLASSES)
        return oct_fail(c->ctx, OCT_ERR_FORMAT, "a name for class %lld; classes are 0 to %d",
                        (long long)i, OCT_MAX_CLASSES - 1);
    OCT_TRY(oct_grow(c->ctx, &c->items, &c->cap, (size_t)i + 1, sizeof(*c->items)));
    while (c->n <= (size_t)i)
        c->items[c->n++] = NULL;
    if (c->items[i])
        return oct_fail(c->ctx, OCT_ERR_FORMAT, "class %lld has two names", (long long)i);
    if (len && !(c->items[i] = oct_arena_strndup(c->arena, name, len))) return OCT_ERR_MEMORY;
    return OCT_OK;
}

oct_status oct_class_names_copy(oct_ctx *ctx, const oct_class_names *from, oct_class_names **out)
{
    oct_class_names *c = NULL;
    oct_status st = oct_class_names_new(ctx, &c);

    for (size_t i = 0; !st && i < from->n; i++) {
        const char *name = from->items[i] ? from->items[i] : "";

        st = oct_class_names_set(c, (int64_t)i, name, strlen(name));
    }
    if (st)
        oct_class_names_free(c);
    else
        *out = c;
    return st;
}

/* --- a literal --- */

typedef struct literal {
    oct_class_names *names;
    const char *what, *p;
    char *text; /* of the string read last: as long as the whole at most */
} literal;

static oct_status fail_literal(const literal *l, const char *why)
{
    return oct_fail(l->names->ctx, OCT_ERR_FORMAT, "%s: %s at \"%.20s\"", l->what, why, l->p);
}

static void skip_blanks(literal *l)
{
    l->p += strspn(l->p, " \t\r\n");
}

static char *put_utf8(char *to, uint32_t code)
{
    const int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    if (n == 1)
        *to++ = (char)code;
    else
        *to++ = (char)((0xf00u >> n & 0xffu) | code >> 6 * (n - 1));
    for (int i = n - 2; i >= 0; i--)
        *to++ = (char)(0x80u | (code >> 6 * i & 0x3fu));
    return to;
}

/* An escape after a backslash: *to gets the character. */
static oct_status read_escape(literal *l, char **to)
{
    static const char from[] = "ntr\\'\"/", plain[] = "\n\t\r\\'\"/";
    const char kind = *l->p, *found = kind ? strchr(from, kind) : NULL;
    const int n = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    uint32_t code = 0;

    if (found) {
        *(*to)++ = plain[found - from];
        l->p++;
        return OCT_OK;
    }
    for (int i = 1; i <= n; i++) {
        const char c = l->p[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;

        if (digit < 0) return fail_literal(l, "a broken escape");
        code = code << 4 | (uint32_t)digit;
    }
    if (!n || !code || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return fail_literal(l, "an escape that is not read");
    *to = put_utf8(*to, code);
    l->p += n + 1;
    return OCT_OK;
}

/* A string in quotes of either kind. An escape is longer than its character. */
static oct_status read_string(literal *l, size_t *len)
{
    const char quote = *l->p;
    char *to = l->text;

    if (quote != '\'' && quote != '"') return fail_literal(l, "no text in quotes");
    for (l->p++; *l->p != quote;) {
        if (!*l->p) return fail_literal(l, "a text without an end");
        if (*l->p == '\\') {
            l->p++;
            OCT_TRY(read_escape(l, &to));
        } else {
            *to++ = *l->p++;
        }
    }
    l->p++;
    *to = '\0';
    *len = (size_t)(to - l->text);
    return OCT_OK;
}

static bool parse_number(const char *text, int64_t *out)
{
    char *end = NULL;

    if (*text < '0' || *text > '9' || strlen(text) > 9) return false;
    *out = strtol(text, &end, 10);
    return *end == '\0';
}

/* 0 or '0', and the colon. */
static oct_status read_key(literal *l, int64_t *out)
{
    size_t len = 0;

    if (*l->p >= '0' && *l->p <= '9') {
        len = strspn(l->p, "0123456789");
        memcpy(l->text, l->p, len);
        l->text[len] = '\0';
        if (!parse_number(l->text, out)) return fail_literal(l, "no number of a class");
        l->p += len;
    } else {
        OCT_TRY(read_string(l, &len));
        if (!parse_number(l->text, out)) return fail_literal(l, "a key that is no number");
    }
    skip_blanks(l);
    if (*l->p != ':') return fail_literal(l, "no ':'");
    l->p++;
    skip_blanks(l);
    return OCT_OK;
}

static oct_status read_entries(literal *l, bool is_map, char close)
{
    for (int64_t i = 0;; i++) {
        size_t len = 0;

        skip_blanks(l);
        if (*l->p == close) break;
        if (is_map) OCT_TRY(read_key(l, &i));
        OCT_TRY(read_string(l, &len));
        OCT_TRY(oct_class_names_set(l->names, i, l->text, len));
        skip_blanks(l);
        if (*l->p == ',')
            l->p++;
        else if (*l->p != close)
            return fail_literal(l, "neither ',' nor the end");
    }
    l->p++;
    skip_blanks(l);
    return *l->p ? fail_literal(l, "something after the end") : OCT_OK;
}

oct_status oct_class_names_literal(oct_class_names *c, const char *what, const char *text)
{
    literal l = {.names = c, .what = what, .p = text};
    oct_status st;
    char open;

    skip_blanks(&l);
    open = *l.p;
    if (open != '{' && open != '[' && open != '(')
        return fail_literal(&l, "neither a list nor a map of names");
    if (!(l.text = oct_alloc(c->ctx, strlen(text) + 1))) return OCT_ERR_MEMORY;
    l.p++;
    st = read_entries(&l, open == '{', open == '{' ? '}' : open == '[' ? ']' : ')');
    oct_free(c->ctx, l.text);
    return st;
}

/* --- a file --- */

oct_status oct_class_names_tree(oct_class_names *c, const char *file, const oct_tree *t)
{
    int64_t i = 0;

    if (t->kind == OCT_TREE_SCALAR)
        return oct_fail(c->ctx, OCT_ERR_FORMAT, "%s:%d:%d: names are a list or a map", file,
                        t->line, t->column);
    for (const oct_tree *e = t->first; e; e = e->next, i++) {
        if (e->kind != OCT_TREE_SCALAR)
            return oct_fail(c->ctx, OCT_ERR_FORMAT, "%s:%d:%d: a name is one text", file, e->line,
                            e->column);
        if (t->kind == OCT_TREE_MAP && !parse_number(e->key, &i))
            return oct_fail(c->ctx, OCT_ERR_FORMAT, "%s:%d:%d: '%.40s' is no number of a class",
                            file, e->key_line, e->key_column, e->key);
        OCT_TRY(oct_class_names_set(c, i, e->text, strlen(e->text)));
    }
    return OCT_OK;
}

oct_status oct_class_names_lines(oct_class_names *c, const char *text, size_t size)
{
    const char *end = text + size;

    if (memchr(text, '\0', size)) return oct_fail(c->ctx, OCT_ERR_FORMAT, "not a text");
    for (int64_t i = 0; text < end; i++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline : end;
        size_t len = (size_t)(stop - text);

        while (len && strchr(" \t\r", text[len - 1]))
            len--;
        while (len && strchr(" \t", *text))
            text++, len--;
        if (len) OCT_TRY(oct_class_names_set(c, i, text, len));
        text = stop + 1;
    }
    return OCT_OK;
}

static oct_status read_tree(oct_class_names *c, const char *path, oct_bytes file)
{
    oct_tree *root = NULL, *names;

    OCT_TRY(oct_tree_read(c->arena, path, file.data, file.size, &root));
    names = root && root->kind == OCT_TREE_MAP ? oct_tree_get(root, "names") : root;
    if (root && !names && parse_number(root->first ? root->first->key : "", &(int64_t){0}))
        names = root;
    if (oct_tree_is_null(names))
        return oct_fail(c->ctx, OCT_ERR_FORMAT,
                        "%s: there is no 'names' (a list, or a map from numbers)", path);
    return oct_class_names_tree(c, path, names);
}

static oct_status read_file(oct_class_names *c, const char *path, const oct_file *f)
{
    const oct_bytes all = {oct_file_data(f), oct_file_size(f)};
    const bool is_tree = oct_has_extension(path, ".yaml") || oct_has_extension(path, ".yml") ||
                         oct_has_extension(path, ".json");
    const char *text = (const char *)all.data;
    const size_t bom = all.size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
    oct_status st;

    if (all.size > OCT_TREE_MAX_BYTES)
        return oct_fail(c->ctx, OCT_ERR_FORMAT, "%s: too large for a list of names", path);
    if (is_tree) {
        OCT_TRY(read_tree(c, path, all));
    } else if ((st = oct_class_names_lines(c, text + bom, all.size - bom))) {
        return oct_fail_at(c->ctx, st, path);
    }
    if (!c->n) return oct_fail(c->ctx, OCT_ERR_FORMAT, "%s: no names are in it", path);
    return OCT_OK;
}

oct_status oct_class_names_load(oct_ctx *ctx, const char *path, oct_class_names **out)
{
    OCT_ENTER(ctx);
    oct_class_names *c = NULL;
    oct_file *f = NULL;
    oct_status st;

    OCT_TRY(oct_file_map(ctx, path, &f));
    if (!(st = oct_class_names_new(ctx, &c))) st = read_file(c, path, f);
    oct_file_unref(f);
    if (st)
        oct_class_names_free(c);
    else
        *out = c;
    return st;
}
