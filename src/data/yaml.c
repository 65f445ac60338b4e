/* SPDX-License-Identifier: Apache-2.0 */
/* YAML and JSON into a tree with positions, through libfyaml's events; nothing else sees it. */
#include <stdlib.h>
#include <string.h>

#include <libfyaml.h>

#include "data/tree.h"

/* State of the parser. Trees are built from events, so that depth, size and aliases can be
 * limited. */
typedef struct reader {
    oct_ctx *ctx;
    oct_arena *arena;
    const char *name, *source;
    size_t size;
    struct fy_parser *parser;
    struct fy_diag *diag;
    oct_tree *stack[OCT_TREE_MAX_DEPTH];
    int depth;
    oct_tree *root;
    const char *key; /* of the entry that comes next; NULL: a key comes next, in a map */
    int key_line, key_column;
} reader;

static oct_status fail_at(reader *r, int line, int column, const char *why)
{
    return oct_fail(r->ctx, OCT_ERR_FORMAT, "%s:%d:%d: %s", r->name, line, column, why);
}

/* --- trees --- */

oct_tree *oct_tree_get(const oct_tree *map, const char *key)
{
    if (!map || map->kind != OCT_TREE_MAP) return NULL;
    for (oct_tree *t = map->first; t; t = t->next)
        if (!strcmp(t->key, key)) return t;
    return NULL;
}

bool oct_tree_is_null(const oct_tree *t)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};

    if (!t) return true;
    if (t->kind != OCT_TREE_SCALAR || !t->is_plain) return false;
    for (size_t i = 0; i < OCT_COUNT(words); i++)
        if (!strcmp(t->text, words[i])) return true;
    return false;
}

const char *oct_tree_text(const oct_tree *t)
{
    return t && t->kind == OCT_TREE_SCALAR ? t->text : "";
}

oct_tree *oct_tree_new(oct_arena *a, oct_tree_kind kind, const oct_tree *at)
{
    oct_tree *t = oct_arena_alloc(a, sizeof(*t));

    if (!t) return NULL;
    t->kind = kind;
    if (at) {
        t->line = t->key_line = at->line;
        t->column = t->key_column = at->column;
    }
    return t;
}

oct_tree *oct_tree_scalar(oct_arena *a, const oct_tree *at, const char *text)
{
    oct_tree *t = oct_tree_new(a, OCT_TREE_SCALAR, at);

    if (!t || !(t->text = oct_arena_strdup(a, text))) return NULL;
    t->is_plain = true;
    return t;
}

void oct_tree_add(oct_tree *parent, const char *key, oct_tree *child)
{
    child->key = key;
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->n++;
}

/* --- events --- */

static oct_status check_key(reader *r, const oct_tree *map, const char *key, int line, int column)
{
    char why[160];

    if (map->n == OCT_TREE_MAX_KEYS)
        return fail_at(r, line, column, "more than 4096 keys in one place");
    if (!oct_tree_get(map, key)) return OCT_OK;
    (void)snprintf(why, sizeof(why), "key '%.100s' is given twice", key);
    (void)fail_at(r, line, column, why);
    return OCT_ERR_ARG; /* well-formed: what was written is wrong */
}

/* Appends a new node at its place. */
static oct_status attach(reader *r, oct_tree *t)
{
    oct_tree *parent = r->depth ? r->stack[r->depth - 1] : NULL;

    if (!parent) {
        r->root = t;
        return OCT_OK;
    }
    if (parent->kind == OCT_TREE_MAP && !r->key)
        return fail_at(r, t->line, t->column, "a key must be a single word");
    t->key_line = r->key ? r->key_line : t->line;
    t->key_column = r->key ? r->key_column : t->column;
    oct_tree_add(parent, r->key, t);
    r->key = NULL;
    return OCT_OK;
}

/* libfyaml 0.7 loses what follows a '' directly after another '' in single quotes. */
static bool is_misread(const reader *r, struct fy_event *e)
{
    const struct fy_mark *start = fy_event_start_mark(e), *end = fy_event_end_mark(e);

    if (fy_token_scalar_style(e->scalar.value) != FYSS_SINGLE_QUOTED || !start || !end)
        return false;
    if (start->input_pos > end->input_pos || end->input_pos > r->size) return false;
    return memmem(r->source + start->input_pos, end->input_pos - start->input_pos, "''''", 4);
}

static oct_status see_scalar(reader *r, struct fy_event *e, int line, int column)
{
    oct_tree *parent = r->depth ? r->stack[r->depth - 1] : NULL, *t;
    const char *text;
    size_t len = 0;
    char *copy;

    if (e->scalar.tag) return fail_at(r, line, column, "tags (!..) are not read");
    if (is_misread(r, e))
        return fail_at(r, line, column, "two quotes in a row: write this text in double quotes");
    text = fy_token_get_text(e->scalar.value, &len);
    if (!text) len = 0;
    if (len && memchr(text, '\0', len)) return fail_at(r, line, column, "a zero byte in a text");
    if (!(copy = oct_arena_strndup(r->arena, text ? text : "", len))) return OCT_ERR_MEMORY;
    if (parent && parent->kind == OCT_TREE_MAP && !r->key) {
        OCT_TRY(check_key(r, parent, copy, line, column));
        r->key = copy;
        r->key_line = line;
        r->key_column = column;
        return OCT_OK;
    }
    if (!(t = oct_tree_new(r->arena, OCT_TREE_SCALAR, NULL))) return OCT_ERR_MEMORY;
    t->line = line;
    t->column = column;
    t->text = copy;
    t->is_plain = fy_token_scalar_style(e->scalar.value) == FYSS_PLAIN;
    return attach(r, t);
}

static oct_status see_start(reader *r, oct_tree_kind kind, bool has_tag, int line, int column)
{
    oct_tree *t;

    if (has_tag) return fail_at(r, line, column, "tags (!..) are not read");
    if (r->depth == OCT_TREE_MAX_DEPTH) return fail_at(r, line, column, "nested too deep");
    if (!(t = oct_tree_new(r->arena, kind, NULL))) return OCT_ERR_MEMORY;
    t->line = line;
    t->column = column;
    OCT_TRY(attach(r, t));
    r->stack[r->depth++] = t;
    return OCT_OK;
}

/* A quote or a star precedes the marked position. */
static bool is_marked(struct fy_event *e)
{
    enum fy_scalar_style style = FYSS_PLAIN;

    if (e->type == FYET_SCALAR) style = fy_token_scalar_style(e->scalar.value);
    return e->type == FYET_ALIAS || style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
}

static oct_status see(reader *r, struct fy_event *e)
{
    const struct fy_mark *mark = fy_event_start_mark(e);
    const int line = mark ? mark->line + 1 : 1, column = mark ? mark->column + 1 - is_marked(e) : 1;

    switch (e->type) {
    case FYET_DOCUMENT_START:
        if (r->root) return fail_at(r, line, column, "a second document; only one is read");
        return OCT_OK;
    case FYET_MAPPING_START:
        return see_start(r, OCT_TREE_MAP, e->mapping_start.tag != NULL, line, column);
    case FYET_SEQUENCE_START:
        return see_start(r, OCT_TREE_LIST, e->sequence_start.tag != NULL, line, column);
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END:
        r->depth--;
        return OCT_OK;
    case FYET_SCALAR:
        return see_scalar(r, e, line, column);
    case FYET_ALIAS: /* a few of them, nested, would expand beyond any memory */
        return fail_at(r, line, column, "aliases (*..) are not read: write it out");
    default:
        return OCT_OK;
    }
}

/* Why the parser stopped. */
static oct_status syntax_error(reader *r)
{
    void *at = NULL;
    const struct fy_diag_error *e = fy_diag_errors_iterate(r->diag, &at);
    char why[256];

    (void)snprintf(why, sizeof(why), "%s", e && e->msg ? e->msg : "cannot be read as YAML or JSON");
    return fail_at(r, e && e->line > 0 ? e->line : 1, e && e->column > 0 ? e->column : 1, why);
}

/* The library's own messages are not printed: its errors are collected. */
static void drop(struct fy_diag *diag, void *user, const char *text, size_t len)
{
    (void)diag;
    (void)user;
    (void)text;
    (void)len;
}

static oct_status read_events(reader *r, const char *text, size_t size)
{
    struct fy_diag_cfg diag;
    struct fy_parse_cfg cfg = {0};
    struct fy_event *e;
    oct_status st = OCT_OK;

    r->source = text;
    r->size = size;
    fy_diag_cfg_default(&diag);
    diag.fp = NULL;
    diag.output_fn = drop;
    if (!(r->diag = fy_diag_create(&diag))) return oct_fail(r->ctx, OCT_ERR_MEMORY, "no memory");
    fy_diag_set_collect_errors(r->diag, true);
    cfg.flags = (enum fy_parse_cfg_flags)(
        FYPCF_QUIET | FYPCF_JSON_NONE | FYPCF_SLOPPY_FLOW_INDENTATION | FYPCF_DEFAULT_VERSION_1_2);
    cfg.diag = r->diag;
    if (!(r->parser = fy_parser_create(&cfg)) || fy_parser_set_string(r->parser, text, size))
        return oct_fail(r->ctx, OCT_ERR_MEMORY, "no memory");
    while (!st && (e = fy_parser_parse(r->parser))) {
        st = see(r, e);
        fy_parser_event_free(r->parser, e);
    }
    if (!st && fy_parser_get_stream_error(r->parser)) st = syntax_error(r);
    return st;
}

/* --- the text --- */

/* Text a file may hold: UTF-8 without control characters. libfyaml stops at others silently. */
static const uint8_t *first_bad(const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        const int n = *p < 0x80   ? 1
                      : *p < 0xc2 ? 0
                      : *p < 0xe0 ? 2
                      : *p < 0xf0 ? 3
                      : *p < 0xf5 ? 4
                                  : 0;
        uint32_t code = *p;

        if (n == 0 || end - p < n) return p;
        if (n == 1 &&
            ((code < 0x20 && code != '\t' && code != '\n' && code != '\r') || code == 0x7f))
            return p;
        if (n > 1) code &= 0x7fu >> n;
        for (int i = 1; i < n; i++) {
            if ((p[i] & 0xc0) != 0x80) return p;
            code = code << 6 | (p[i] & 0x3fu);
        }
        if ((n == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000) || code >= 0xfffe)) ||
            (n == 4 && (code < 0x10000 || code > 0x10ffff)) || (code >= 0x80 && code < 0xa0))
            return p;
        p += n;
    }
    return NULL;
}

oct_status oct_tree_check_text(oct_ctx *ctx, const char *name, const void *data, size_t size)
{
    const uint8_t *text = data, *bad;
    int line = 1, column = 1;

    if (size > OCT_TREE_MAX_BYTES)
        return oct_fail(ctx, OCT_ERR_FORMAT, "%s: %zu bytes; at most %d are read", name, size,
                        OCT_TREE_MAX_BYTES);
    if (!(bad = first_bad(text, text + size))) return OCT_OK;
    for (const uint8_t *p = text; p < bad; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    return oct_fail(ctx, OCT_ERR_FORMAT,
                    "%s:%d:%d: this is no text (UTF-8 without control characters)", name, line,
                    column);
}

/*
 * NNCF's JSON files hold comments in the way of C: "//" to the end of a line becomes blanks, so
 * that positions stay. Only in text that begins as a JSON object does, and not inside strings.
 */
static void blank_comments(char *text, size_t size)
{
    size_t i = 0;
    bool quoted = false;

    while (i < size && strchr(" \t\r\n", text[i]))
        i++;
    if (i == size || text[i] != '{') return;
    for (i++; i < size && strchr(" \t\r\n/", text[i]);)
        if (text[i] == '/')
            while (i < size && text[i] != '\n')
                i++;
        else
            i++;
    if (i == size || text[i] != '"') return;
    for (i = 0; i < size; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && text[i] == '/' && i + 1 < size && text[i + 1] == '/')
            for (; i < size && text[i] != '\n'; i++)
                text[i] = ' ';
    }
}

oct_status oct_tree_read(oct_arena *a, const char *name, const void *data, size_t size,
                         oct_tree **out)
{
    reader r = {.ctx = oct_arena_ctx(a), .arena = a, .name = name};
    char *text = NULL;
    oct_status st;

    if (size >= 3 && !memcmp(data, "\xef\xbb\xbf", 3)) { /* a byte order mark */
        data = (const char *)data + 3;
        size -= 3;
    }
    if ((st = oct_tree_check_text(r.ctx, name, data, size))) return st;
    if (!(text = oct_alloc(r.ctx, size + 1))) return OCT_ERR_MEMORY;
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    blank_comments(text, size);
    if (text[strspn(text, " \t\r\n")] != '\0') st = read_events(&r, text, size);
    if (r.parser) fy_parser_destroy(r.parser);
    if (r.diag) fy_diag_destroy(r.diag);
    oct_free(r.ctx, text);
    if (!st) *out = r.root;
    return st;
}
