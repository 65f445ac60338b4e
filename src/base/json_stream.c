/* SPDX-License-Identifier: Apache-2.0 */
/* Walking through the outer levels of a JSON file. */
#include "base/json_stream.h"

#include <string.h>

#define MAX_DEPTH 512

void oct_json_stream_init(oct_json_stream *s, oct_ctx *ctx, const void *data, size_t size)
{
    *s = (oct_json_stream){.ctx = ctx,
                           .begin = data,
                           .p = data,
                           .end = (const char *)data + size,
                           .counted = data,
                           .line = 1};
    if (size >= 3 && !memcmp(data, "\xef\xbb\xbf", 3)) s->p += 3; /* a byte order mark */
}

/* The line of p, which never lies before an earlier one. */
static long long line_of(oct_json_stream *s, const char *p)
{
    while (s->counted < p) {
        const char *newline = memchr(s->counted, '\n', (size_t)(p - s->counted));

        if (!newline) break;
        s->counted = newline + 1;
        s->line++;
    }
    return s->line;
}

static oct_status fail(oct_json_stream *s, const char *what)
{
    if (s->p >= s->end)
        return oct_fail(s->ctx, OCT_ERR_FORMAT, "line %lld: the file ends too early: %s",
                        line_of(s, s->end), what);
    return oct_fail(s->ctx, OCT_ERR_FORMAT, "line %lld: %s near \"%.*s\"", line_of(s, s->p), what,
                    (int)OCT_MIN(s->end - s->p, 16), s->p);
}

char oct_json_stream_peek(oct_json_stream *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
        s->p++;
    return s->p < s->end ? *s->p : '\0';
}

static bool take(oct_json_stream *s, char ch)
{
    if (oct_json_stream_peek(s) != ch || s->p == s->end) return false;
    s->p++;
    return true;
}

oct_status oct_json_stream_enter(oct_json_stream *s, char open)
{
    if (take(s, open)) return OCT_OK;
    return fail(s, open == '{' ? "an object is expected" : "an array is expected");
}

oct_status oct_json_stream_more(oct_json_stream *s, char close, int64_t *n, bool *more)
{
    const bool closed = take(s, close);

    if (!closed && *n > 0 && !take(s, ','))
        return fail(s, close == '}' ? "',' or '}' is expected" : "',' or ']' is expected");
    *more = !closed;
    *n += !closed;
    return OCT_OK;
}

/* The end of the string that begins at p (a quote); NULL if it has none. */
static const char *string_end(const oct_json_stream *s, const char *p)
{
    for (p++; p < s->end; p++) {
        if (*p == '"') return p + 1;
        if (*p == '\\') p++;
    }
    return NULL;
}

oct_status oct_json_stream_key(oct_json_stream *s, char key[OCT_JSON_KEY_SIZE])
{
    const char *end = oct_json_stream_peek(s) == '"' ? string_end(s, s->p) : NULL;
    const char *begin = s->p + 1;
    size_t len;

    if (!end) return fail(s, "a key is expected");
    s->p = end;
    if (!take(s, ':')) return fail(s, "':' is expected");
    len = OCT_MIN((size_t)(end - 1 - begin), OCT_JSON_KEY_SIZE - 1);
    memcpy(key, begin, len);
    key[len] = '\0';
    return OCT_OK;
}

oct_status oct_json_stream_long_key(oct_json_stream *s, oct_arena *a, const char **key)
{
    const char *end = oct_json_stream_peek(s) == '"' ? string_end(s, s->p) : NULL;
    const char *begin = s->p;
    json_error_t error;
    json_t *text;

    if (!end) return fail(s, "a key is expected");
    s->p = end;
    if (!take(s, ':')) return fail(s, "':' is expected");
    if (!(text = json_loadb(begin, (size_t)(end - begin), JSON_DECODE_ANY, &error)))
        return oct_fail(s->ctx, OCT_ERR_FORMAT, "line %lld: %s", line_of(s, begin), error.text);
    *key = oct_arena_strdup(a, json_string_value(text));
    json_decref(text);
    return *key ? OCT_OK : OCT_ERR_MEMORY;
}

/* Skips a value: brackets are counted, strings skipped, nothing else is checked. */
static const char *value_end(const oct_json_stream *s)
{
    const char *p = s->p;
    int depth = 0;

    while (p < s->end) {
        switch (*p) {
        case '"':
            p = string_end(s, p);
            if (!p || !depth) return p;
            continue;
        case '{':
        case '[':
            if (++depth > MAX_DEPTH) return NULL;
            break;
        case '}':
        case ']':
            if (!depth) return p; /* ends a number or a word */
            if (!--depth) return p + 1;
            break;
        case ',':
        case ' ':
        case '\n':
        case '\r':
        case '\t':
            if (!depth) return p;
            break;
        default:
            break;
        }
        p++;
    }
    return depth ? NULL : p;
}

oct_status oct_json_stream_skip(oct_json_stream *s)
{
    const char first = oct_json_stream_peek(s);
    const char *end = first && !strchr(",:]}", first) ? value_end(s) : NULL;

    if (end) {
        s->p = end;
        return OCT_OK;
    }
    if (first == '{' || first == '[' || first == '"') s->p = s->end; /* it is not closed */
    return fail(s, "a value is expected");
}

oct_status oct_json_stream_value(oct_json_stream *s, json_t **out, bool *ends)
{
    const char *begin;
    json_error_t error;
    json_t *v;

    if (ends) *ends = false;
    (void)oct_json_stream_peek(s);
    begin = s->p;
    OCT_TRY(oct_json_stream_skip(s));
    v = json_loadb(begin, (size_t)(s->p - begin), JSON_DECODE_ANY, &error);
    if (v) {
        *out = v;
        return OCT_OK;
    }
    if (json_error_code(&error) == json_error_out_of_memory)
        return oct_fail(s->ctx, OCT_ERR_MEMORY, "out of memory: JSON");
    if (ends) *ends = true;
    return oct_fail(s->ctx, OCT_ERR_FORMAT, "line %lld: %s",
                    line_of(s, begin) + OCT_MAX(error.line, 1) - 1, error.text);
}

oct_status oct_json_stream_finish(oct_json_stream *s)
{
    (void)oct_json_stream_peek(s);
    return s->p == s->end ? OCT_OK : fail(s, "the end of the file is expected");
}
