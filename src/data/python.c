/* SPDX-License-Identifier: Apache-2.0 */
/* Python files that only set names: see python.h. */
#include "data/python.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "data/python_parts.h"

oct_status oct_python_fail(const oct_python *y, int line, int column, const char *fmt, ...)
{
    char why[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    return oct_fail(y->ctx, OCT_ERR_FORMAT, "%s:%d:%d: %s", y->name, line, column, why);
}

/* --- statements --- */

static oct_status end_of_line(oct_python *y)
{
    if (y->at.kind == OCT_TOKEN_END) return OCT_OK;
    if (y->at.kind == OCT_TOKEN_LINE) return oct_python_next(y);
    return oct_python_fail(y, y->at.line, y->at.column, "the end of the line expected, not '%.40s'",
                           y->at.text);
}

static oct_status not_run(const oct_python *y, const oct_token *at)
{
    return oct_python_fail(y, at->line, at->column,
                           "'%.60s' begins Python code, which is not run: only 'name = value' is "
                           "read, with dict(..), lists, texts and numbers",
                           at->text);
}

/* Are there only blanks in front of it on its line? */
static bool is_indented(const oct_python *y, const oct_token *t)
{
    const size_t n = (size_t)t->column - 1;

    return n && strspn(y->line_start, " \t") >= n;
}

/* name = value */
static oct_status assign(oct_python *y)
{
    const oct_token key = y->at;
    oct_tree *t = NULL;

    if (is_indented(y, &key))
        return oct_python_fail(y, key.line, key.column, "a line that is indented is not read");
    OCT_TRY(oct_python_next(y));
    if (!oct_token_is(&y->at, "=")) return not_run(y, &key);
    OCT_TRY(oct_python_next(y));
    OCT_TRY(oct_python_value(y, &t));
    if (oct_token_is(&y->at, "=")) return not_run(y, &key);
    if (oct_token_is(&y->at, ","))
        return oct_python_fail(y, y->at.line, y->at.column,
                               "a tuple without parentheses is not read");
    if (y->names->n >= OCT_TREE_MAX_KEYS)
        return oct_python_fail(y, key.line, key.column, "more than %d names", OCT_TREE_MAX_KEYS);
    t->key_line = key.line;
    t->key_column = key.column;
    oct_tree_put(y->names, key.text, t);
    return end_of_line(y);
}

oct_status oct_python_statements(oct_python *y)
{
    OCT_TRY(oct_python_next(y));
    while (y->at.kind != OCT_TOKEN_END) {
        if (y->at.kind == OCT_TOKEN_LINE) {
            OCT_TRY(oct_python_next(y));
        } else if (y->at.kind == OCT_TOKEN_STRING) { /* what the file is about */
            OCT_TRY(oct_python_next(y));
            OCT_TRY(end_of_line(y));
        } else if (y->at.kind == OCT_TOKEN_NAME) {
            OCT_TRY(assign(y));
        } else {
            return not_run(y, &y->at);
        }
    }
    return OCT_OK;
}

oct_status oct_python_read(oct_arena *a, const char *name, const void *data, size_t size,
                           const oct_python_options *options, oct_tree **out)
{
    oct_python y = {.ctx = oct_arena_ctx(a),
                    .arena = a,
                    .name = name,
                    .p = data,
                    .line_start = data,
                    .line = 1,
                    .o = options};

    if (size >= 3 && !memcmp(data, "\xef\xbb\xbf", 3)) { /* a byte order mark */
        y.p = y.line_start = y.p + 3;
        size -= 3;
    }
    y.end = size ? y.p + size : y.p;
    OCT_TRY(oct_tree_check_text(y.ctx, name, y.p, size));
    if (!(y.names = oct_tree_new(a, OCT_TREE_MAP, NULL))) return OCT_ERR_MEMORY;
    y.names->line = y.names->column = 1;
    OCT_TRY(oct_python_statements(&y));
    OCT_TRY(oct_python_merge_bases(&y, 0));
    *out = y.names;
    return OCT_OK;
}

bool oct_python_is(const void *data, size_t size)
{
    const char *p = data, *end = p + size;

    while (p < end && strchr(" \t\r\n#", *p))
        if (*p++ == '#')
            while (p < end && *p != '\n')
                p++;
    if (p == end || !((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_'))
        return false;
    while (p < end && ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_' ||
                       (*p >= '0' && *p <= '9')))
        p++;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p + 1 < end && *p == '=' && p[1] != '=';
}
