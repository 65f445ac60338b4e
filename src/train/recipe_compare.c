/* SPDX-License-Identifier: Apache-2.0 */
/* Which setting of a recipe has changed: two texts of "key: value" lines. */
#include <string.h>

#include "train/checkpoint_parts.h"

enum { MAX_DEPTH = 16 };

/* A setting, or a part of a list ("- x"), which belongs to the key above it. */
typedef struct line {
    const char *key;   /* with those around it: "data.train" */
    const char *value; /* without spaces at its ends */
} line;

typedef struct lines {
    line *v;
    size_t n, cap;
} lines;

typedef struct parser {
    oct_arena *arena;
    const char *outer[MAX_DEPTH]; /* keys without a value on their line .. */
    size_t indent[MAX_DEPTH];     /* .. and how far in they are */
    int depth;
    lines *out;
} parser;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static const char *trimmed(oct_arena *a, const char *p, const char *end)
{
    while (p < end && is_space(*p))
        p++;
    while (p < end && is_space(end[-1]))
        end--;
    return oct_arena_strndup(a, p, (size_t)(end - p));
}

/* The colon that ends a key: the first one that is followed by a space or the end. */
static const char *find_colon(const char *p, const char *end)
{
    for (; p < end; p++)
        if (*p == ':' && (p + 1 == end || is_space(p[1]))) return p;
    return NULL;
}

static oct_status parse_line(parser *s, const char *p, const char *end)
{
    oct_ctx *ctx = oct_arena_ctx(s->arena);
    const char *start = p, *colon, *key, *value, *outer;
    size_t indent;

    while (p < end && is_space(*p))
        p++;
    if (p == end || *p == '#') return OCT_OK;
    indent = (size_t)(p - start);
    colon = *p == '-' ? NULL : find_colon(p, end);
    /* A part of a list may be as far in as its key. */
    while (s->depth &&
           (s->indent[s->depth - 1] > indent || (colon && s->indent[s->depth - 1] == indent)))
        s->depth--;
    outer = s->depth ? s->outer[s->depth - 1] : "";
    key = colon ? trimmed(s->arena, p, colon) : NULL;
    value = trimmed(s->arena, colon ? colon + 1 : p, end);
    if (!colon)
        key = outer;
    else if (key && *outer)
        key = oct_arena_printf(s->arena, "%s.%s", outer, key);
    if (!key || !value) return OCT_ERR_MEMORY;
    if (colon && !*value && s->depth < MAX_DEPTH) {
        s->outer[s->depth] = key;
        s->indent[s->depth++] = indent;
    }
    OCT_TRY(oct_grow(ctx, &s->out->v, &s->out->cap, s->out->n + 1, sizeof(line)));
    s->out->v[s->out->n++] = (line){key, value};
    return OCT_OK;
}

static oct_status parse(oct_arena *a, const char *text, lines *out)
{
    parser s = {.arena = a, .out = out};

    while (*text) {
        const char *end = strchr(text, '\n');

        if (!end) end = text + strlen(text);
        OCT_TRY(parse_line(&s, text, end));
        text = *end ? end + 1 : end;
    }
    return OCT_OK;
}

/* The next line of a key from *i on, which moves behind it; NULL: there is none. */
static const line *next_of(const lines *l, const char *key, size_t *i)
{
    while (*i < l->n) {
        const line *at = &l->v[(*i)++];

        if (strcmp(at->key, key) == 0) return at;
    }
    return NULL;
}

/* The first key of `walk` that the two have otherwise. Lists have several lines of one key. */
static void find(const lines *walk, const lines *was, const lines *now, oct_recipe_difference *out)
{
    for (size_t k = 0; k < walk->n && !out->key; k++) {
        const char *key = walk->v[k].key;
        size_t i = 0, j = 0;
        const line *x, *y;

        do {
            x = next_of(was, key, &i);
            y = next_of(now, key, &j);
        } while (x && y && strcmp(x->value, y->value) == 0);
        if (x || y) *out = (oct_recipe_difference){key, x ? x->value : "", y ? y->value : ""};
    }
}

oct_status oct_recipe_compare(oct_arena *a, const char *old_text, const char *new_text,
                              oct_recipe_difference *out)
{
    oct_ctx *ctx = oct_arena_ctx(a);
    lines was = {0}, now = {0};
    oct_status st;

    *out = (oct_recipe_difference){0};
    if (strcmp(old_text, new_text) == 0) return OCT_OK;
    st = parse(a, old_text, &was);
    if (!st) st = parse(a, new_text, &now);
    if (!st) find(&now, &was, &now, out);
    if (!st) find(&was, &was, &now, out);
    oct_free(ctx, was.v);
    oct_free(ctx, now.v);
    return st;
}
