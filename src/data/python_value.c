/* SPDX-License-Identifier: Apache-2.0 */
/* Values of Python: literals, names that were set, sums and products of numbers, joined texts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "data/python_parts.h"

/* --- nodes --- */

static oct_status new_node(oct_python *y, oct_tree_kind kind, const oct_token *at, oct_tree **out)
{
    if (++y->n_nodes > OCT_PYTHON_MAX_NODES)
        return oct_python_fail(y, at->line, at->column, "more than %d values",
                               OCT_PYTHON_MAX_NODES);
    if (!(*out = oct_tree_new(y->arena, kind, NULL))) return OCT_ERR_MEMORY;
    (*out)->line = (*out)->key_line = at->line;
    (*out)->column = (*out)->key_column = at->column;
    return OCT_OK;
}

static oct_status new_scalar(oct_python *y, const oct_token *at, const char *text, bool is_plain,
                             oct_tree **out)
{
    OCT_TRY(new_node(y, OCT_TREE_SCALAR, at, out));
    (*out)->text = text;
    (*out)->is_plain = is_plain;
    return OCT_OK;
}

void oct_tree_put(oct_tree *map, const char *key, oct_tree *value)
{
    oct_tree *before = NULL;

    value->key = key;
    for (oct_tree *t = map->first; t; before = t, t = t->next)
        if (!strcmp(t->key, key)) {
            value->next = t->next;
            *(before ? &before->next : &map->first) = value;
            if (map->last == t) map->last = value;
            return;
        }
    value->next = NULL;
    oct_tree_add(map, key, value);
}

static oct_status put(oct_python *y, oct_tree *map, const oct_token *key, oct_tree *value)
{
    if (map->n >= OCT_TREE_MAX_KEYS)
        return oct_python_fail(y, key->line, key->column, "more than %d keys in one place",
                               OCT_TREE_MAX_KEYS);
    value->key_line = key->line;
    value->key_column = key->column;
    oct_tree_put(map, key->text, value);
    return OCT_OK;
}

oct_status oct_python_copy(oct_python *y, const oct_tree *from, int depth, oct_tree **out)
{
    const oct_token at = {.line = from->line, .column = from->column};

    if (depth > OCT_TREE_MAX_DEPTH)
        return oct_python_fail(y, at.line, at.column, "nested too deep");
    OCT_TRY(new_node(y, from->kind, &at, out));
    (*out)->text = from->text;
    (*out)->is_plain = from->is_plain;
    for (const oct_tree *t = from->first; t; t = t->next) {
        oct_tree *copy = NULL;

        OCT_TRY(oct_python_copy(y, t, depth + 1, &copy));
        copy->key_line = t->key_line;
        copy->key_column = t->key_column;
        oct_tree_add(*out, t->key, copy);
    }
    return OCT_OK;
}

/* --- lists and dictionaries --- */

static oct_status sum(oct_python *y, int depth, oct_tree **out);

static oct_status unexpected(oct_python *y, const char *want)
{
    const oct_token *t = &y->at;

    return oct_python_fail(y, t->line, t->column, "%s expected, not %s%.40s%s", want,
                           t->kind == OCT_TOKEN_END || t->kind == OCT_TOKEN_LINE ? "the end of it"
                                                                                 : "'",
                           t->kind == OCT_TOKEN_END || t->kind == OCT_TOKEN_LINE ? "" : t->text,
                           t->kind == OCT_TOKEN_END || t->kind == OCT_TOKEN_LINE ? "" : "'");
}

/* A comma, or the bracket that ends it, behind which *done is true. */
static oct_status separator(oct_python *y, const char *close, bool *done)
{
    if (oct_token_is(&y->at, ","))
        OCT_TRY(oct_python_next(y));
    else if (!oct_token_is(&y->at, close))
        return unexpected(y, "a comma or the closing bracket");
    *done = oct_token_is(&y->at, close);
    return *done ? oct_python_next(y) : OCT_OK;
}

/* Behind the opening bracket. `has_comma` tells (a,) from (a). */
static oct_status list(oct_python *y, const oct_token *at, const char *close, int depth,
                       bool *has_comma, oct_tree **out)
{
    bool done = oct_token_is(&y->at, close);
    oct_tree *t = NULL;

    *has_comma = done;
    OCT_TRY(new_node(y, OCT_TREE_LIST, at, out));
    if (done) return oct_python_next(y);
    while (!done) {
        OCT_TRY(sum(y, depth + 1, &t));
        oct_tree_add(*out, NULL, t);
        if (oct_token_is(&y->at, ",")) *has_comma = true;
        OCT_TRY(separator(y, close, &done));
    }
    return OCT_OK;
}

/* **name: all of another dictionary. */
static oct_status unpack(oct_python *y, oct_tree *map, int depth)
{
    const oct_token at = y->at;
    oct_tree *t = NULL;

    OCT_TRY(oct_python_next(y));
    OCT_TRY(sum(y, depth + 1, &t));
    if (t->kind != OCT_TREE_MAP)
        return oct_python_fail(y, at.line, at.column, "behind ** a dictionary is expected");
    for (oct_tree *e = t->first, *next; e; e = next) {
        const oct_token key = {OCT_TOKEN_NAME, e->key, e->key_line, e->key_column};

        next = e->next;
        OCT_TRY(put(y, map, &key, e));
    }
    return OCT_OK;
}

/* `name=value` in dict(..), `'name': value` in {..}; people mix them, so both are read in both. */
static oct_status entry(oct_python *y, oct_tree *map, int depth)
{
    const oct_token key = y->at;
    oct_tree *t = NULL;

    if (oct_token_is(&y->at, "**")) return unpack(y, map, depth);
    if (key.kind != OCT_TOKEN_NAME && key.kind != OCT_TOKEN_STRING && key.kind != OCT_TOKEN_NUMBER)
        return unexpected(y, "a key");
    OCT_TRY(oct_python_next(y));
    if (!oct_token_is(&y->at, key.kind == OCT_TOKEN_NAME ? "=" : ":"))
        return unexpected(y, key.kind == OCT_TOKEN_NAME ? "'=' behind a key" : "':' behind a key");
    OCT_TRY(oct_python_next(y));
    OCT_TRY(sum(y, depth + 1, &t));
    if (oct_tree_get(map, key.text))
        return oct_python_fail(y, key.line, key.column, "key '%.100s' is given twice", key.text);
    return put(y, map, &key, t);
}

static oct_status dictionary(oct_python *y, const oct_token *at, const char *close, int depth,
                             oct_tree **out)
{
    bool done = oct_token_is(&y->at, close);

    OCT_TRY(new_node(y, OCT_TREE_MAP, at, out));
    if (done) return oct_python_next(y);
    while (!done) {
        OCT_TRY(entry(y, *out, depth));
        OCT_TRY(separator(y, close, &done));
    }
    return OCT_OK;
}

/* --- atoms --- */

static bool is_unset(const oct_python *y, const char *name)
{
    for (const char *const *n = y->o ? y->o->unset : NULL; n && *n; n++)
        if (!strcmp(*n, name)) return true;
    return false;
}

static oct_status name(oct_python *y, const oct_token *at, int depth, oct_tree **out)
{
    static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    const oct_tree *value;

    for (size_t i = 0; i < OCT_COUNT(words); i++)
        if (!strcmp(at->text, words[i][0])) return new_scalar(y, at, words[i][1], true, out);
    if (oct_token_is(&y->at, "(") && !strcmp(at->text, "dict")) {
        OCT_TRY(oct_python_next(y));
        return dictionary(y, at, ")", depth, out);
    }
    if (oct_token_is(&y->at, "(") || oct_token_is(&y->at, ".") || oct_token_is(&y->at, "["))
        return oct_python_fail(y, at->line, at->column,
                               "'%.60s%s' is Python code, which is not run: only dict(..), lists, "
                               "texts, numbers and names set above are read",
                               at->text, y->at.text);
    if ((value = oct_tree_get(y->names, at->text))) {
        OCT_TRY(oct_python_copy(y, value, depth, out));
        (*out)->line = at->line;
        (*out)->column = at->column;
        return OCT_OK;
    }
    if (is_unset(y, at->text)) return new_scalar(y, at, "null", true, out);
    return oct_python_fail(y, at->line, at->column, "the name '%.60s' is not set above", at->text);
}

/* Text that was put together; long ones count as many values. */
static oct_status new_text(oct_python *y, const oct_token *at, const char *text, size_t len,
                           oct_tree **out)
{
    char *copy;

    if (len > OCT_PYTHON_MAX_TEXT)
        return oct_python_fail(y, at->line, at->column, "the text is too long");
    y->n_nodes += (int)len / 64;
    if (!(copy = oct_arena_strndup(y->arena, text, len))) return OCT_ERR_MEMORY;
    return new_scalar(y, at, copy, false, out);
}

/* Strings side by side are one. */
static oct_status strings(oct_python *y, const oct_token *at, oct_tree **out)
{
    oct_status st = OCT_OK;
    oct_str s;

    if (y->at.kind != OCT_TOKEN_STRING) return new_scalar(y, at, at->text, false, out);
    oct_str_init(&s, y->ctx);
    oct_str_puts(&s, at->text);
    while (!st && y->at.kind == OCT_TOKEN_STRING && s.len <= OCT_PYTHON_MAX_TEXT) {
        oct_str_puts(&s, y->at.text);
        st = oct_python_next(y);
    }
    if (!st) st = s.failed ? OCT_ERR_MEMORY : new_text(y, at, s.s ? s.s : "", s.len, out);
    oct_str_fini(&s);
    return st;
}

/* (a) is a; (a, b) is a list. */
static oct_status parentheses(oct_python *y, const oct_token *at, int depth, oct_tree **out)
{
    bool has_comma;

    OCT_TRY(list(y, at, ")", depth, &has_comma, out));
    if (!has_comma) *out = (*out)->first;
    return OCT_OK;
}

static oct_status number_of(oct_python *y, const oct_tree *t, double *out)
{
    char *end = NULL;

    *out = t->kind == OCT_TREE_SCALAR && t->is_plain ? strtod(t->text, &end) : 0;
    if (!end || end == t->text || *end || !isfinite(*out))
        return oct_python_fail(y, t->line, t->column, "a number is expected here");
    return OCT_OK;
}

static oct_status new_number(oct_python *y, const oct_token *at, double v, bool is_whole,
                             oct_tree **out)
{
    const char *text = NULL;

    if (!isfinite(v) || (is_whole && fabs(v) > 9007199254740992.0))
        return oct_python_fail(y, at->line, at->column, "the number is out of range");
    for (int digits = 6; digits <= 17; digits++) {
        text = is_whole ? oct_arena_printf(y->arena, "%.0f", v)
                        : oct_arena_printf(y->arena, "%.*g", digits, v);
        if (!text) return OCT_ERR_MEMORY;
        if (is_whole || strtod(text, NULL) == v) break;
    }
    return new_scalar(y, at, text, true, out);
}

static bool is_whole(const oct_tree *t)
{
    return t->kind == OCT_TREE_SCALAR && !strpbrk(t->text, ".eE");
}

static oct_status atom(oct_python *y, int depth, oct_tree **out)
{
    const oct_token at = y->at;
    bool has_comma;
    double v;

    if (depth > OCT_TREE_MAX_DEPTH)
        return oct_python_fail(y, at.line, at.column, "nested too deep");
    if (at.kind == OCT_TOKEN_END || at.kind == OCT_TOKEN_LINE) return unexpected(y, "a value");
    OCT_TRY(oct_python_next(y));
    if (at.kind == OCT_TOKEN_NAME) return name(y, &at, depth, out);
    if (at.kind == OCT_TOKEN_STRING) return strings(y, &at, out);
    if (at.kind == OCT_TOKEN_NUMBER) {
        OCT_TRY(new_scalar(y, &at, at.text, true, out));
        return number_of(y, *out, &v);
    }
    if (oct_token_is(&at, "[")) return list(y, &at, "]", depth, &has_comma, out);
    if (oct_token_is(&at, "(")) return parentheses(y, &at, depth, out);
    if (oct_token_is(&at, "{")) return dictionary(y, &at, "}", depth, out);
    if (oct_token_is(&at, "-") || oct_token_is(&at, "+")) {
        OCT_TRY(atom(y, depth + 1, out));
        OCT_TRY(number_of(y, *out, &v));
        return new_number(y, &at, oct_token_is(&at, "-") ? -v : v, is_whole(*out), out);
    }
    return oct_python_fail(y, at.line, at.column, "a value expected, not '%.40s'", at.text);
}

/* --- sums and products --- */

static oct_status compute(oct_python *y, const oct_token *sign, const oct_tree *a,
                          const oct_tree *b, oct_tree **out)
{
    const bool whole = is_whole(a) && is_whole(b) && !oct_token_is(sign, "/");
    const bool divides = oct_token_is(sign, "/") || oct_token_is(sign, "//");
    double x, z;

    OCT_TRY(number_of(y, a, &x));
    OCT_TRY(number_of(y, b, &z));
    if (divides && z == 0.0) return oct_python_fail(y, sign->line, sign->column, "division by 0");
    return new_number(y, sign,
                      oct_token_is(sign, "+")    ? x + z
                      : oct_token_is(sign, "-")  ? x - z
                      : oct_token_is(sign, "*")  ? x * z
                      : oct_token_is(sign, "//") ? floor(x / z)
                                                 : x / z,
                      whole, out);
}

static oct_status product(oct_python *y, int depth, oct_tree **out)
{
    OCT_TRY(atom(y, depth, out));
    while (oct_token_is(&y->at, "*") || oct_token_is(&y->at, "/") || oct_token_is(&y->at, "//")) {
        const oct_token sign = y->at;
        oct_tree *b = NULL;

        OCT_TRY(oct_python_next(y));
        OCT_TRY(atom(y, depth, &b));
        OCT_TRY(compute(y, &sign, *out, b, out));
    }
    return OCT_OK;
}

/* Texts are joined, lists follow each other, numbers are added. */
static oct_status add(oct_python *y, const oct_token *sign, oct_tree *a, oct_tree *b,
                      oct_tree **out)
{
    const bool are_lists = a->kind == OCT_TREE_LIST && b->kind == OCT_TREE_LIST;
    const bool are_texts =
        a->kind == OCT_TREE_SCALAR && b->kind == OCT_TREE_SCALAR && !a->is_plain && !b->is_plain;

    if (!oct_token_is(sign, "+") || !(are_lists || are_texts)) return compute(y, sign, a, b, out);
    if (are_texts) {
        const size_t n = strlen(a->text) + strlen(b->text);
        char *text = n <= OCT_PYTHON_MAX_TEXT ? oct_alloc(y->ctx, n + 1) : NULL;
        oct_status st;

        if (!text && n <= OCT_PYTHON_MAX_TEXT) return OCT_ERR_MEMORY;
        if (text) (void)snprintf(text, n + 1, "%s%s", a->text, b->text);
        st = new_text(y, sign, text ? text : "", n, out);
        oct_free(y->ctx, text);
        return st;
    }
    for (oct_tree *t = b->first, *next; t; t = next) {
        next = t->next;
        t->next = NULL;
        oct_tree_add(a, NULL, t);
    }
    *out = a;
    return OCT_OK;
}

static oct_status sum(oct_python *y, int depth, oct_tree **out)
{
    OCT_TRY(product(y, depth, out));
    while (oct_token_is(&y->at, "+") || oct_token_is(&y->at, "-")) {
        const oct_token sign = y->at;
        oct_tree *b = NULL;

        OCT_TRY(oct_python_next(y));
        OCT_TRY(product(y, depth, &b));
        OCT_TRY(add(y, &sign, *out, b, out));
    }
    return OCT_OK;
}

oct_status oct_python_value(oct_python *y, oct_tree **out)
{
    return sum(y, 0, out);
}
