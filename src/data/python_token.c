/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of Python: names, numbers, strings, signs, ends of lines. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "data/python_parts.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek(const oct_python *y, size_t i)
{
    return (size_t)(y->end - y->p) > i ? y->p[i] : '\0';
}

static void new_line(oct_python *y)
{
    y->line++;
    y->line_start = y->p;
}

/* Blanks, comments, continued lines, and inside brackets the ends of lines. */
static void skip(oct_python *y)
{
    while (y->p < y->end) {
        const char c = *y->p;

        if (c == ' ' || c == '\t' || c == '\r' || (c == '\n' && y->depth > 0)) {
            y->p++;
            if (c == '\n') new_line(y);
        } else if (c == '#') {
            while (y->p < y->end && *y->p != '\n')
                y->p++;
        } else if (c == '\\' &&
                   (peek(y, 1) == '\n' || (peek(y, 1) == '\r' && peek(y, 2) == '\n'))) {
            y->p += peek(y, 1) == '\n' ? 2 : 3;
            new_line(y);
        } else {
            return;
        }
    }
}

static oct_status take(oct_python *y, oct_token_kind kind, size_t n)
{
    y->at.kind = kind;
    y->at.text = oct_arena_strndup(y->arena, y->p, n);
    y->p += n;
    return y->at.text ? OCT_OK : OCT_ERR_MEMORY;
}

/* --- strings --- */

static int hex(char c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The character of \xhh, \uhhhh or \Uhhhhhhhh, as UTF-8. */
static oct_status put_code(oct_python *y, oct_str *s, int digits)
{
    uint32_t code = 0;

    for (int i = 0; i < digits; i++, y->p++) {
        const int v = hex(peek(y, 0));

        if (v < 0) return oct_python_fail(y, y->at.line, y->at.column, "a broken escape in a text");
        code = code << 4 | (uint32_t)v;
    }
    if (code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0xd800 && code < 0xe000) ||
        code > 0x10ffff || (code & 0xfffe) == 0xfffe)
        return oct_python_fail(y, y->at.line, y->at.column, "a text with control characters");
    if (code < 0x80) {
        oct_str_put(s, (char[]){(char)code}, 1);
    } else if (code < 0x800) {
        oct_str_put(s, (char[]){(char)(0xc0 | code >> 6), (char)(0x80 | (code & 0x3f))}, 2);
    } else if (code < 0x10000) {
        oct_str_put(s,
                    (char[]){(char)(0xe0 | code >> 12), (char)(0x80 | (code >> 6 & 0x3f)),
                             (char)(0x80 | (code & 0x3f))},
                    3);
    } else {
        oct_str_put(s,
                    (char[]){(char)(0xf0 | code >> 18), (char)(0x80 | (code >> 12 & 0x3f)),
                             (char)(0x80 | (code >> 6 & 0x3f)), (char)(0x80 | (code & 0x3f))},
                    4);
    }
    return OCT_OK;
}

/* What follows a backslash. One that means nothing stays, as in Python. */
static oct_status escape(oct_python *y, oct_str *s)
{
    static const char known[] = "\\\\''\"\"n\nt\tr\r";
    const char c = peek(y, 0);

    if (y->p == y->end) return OCT_OK; /* the caller tells that the text does not end */
    y->p++;
    for (size_t i = 0; i + 1 < sizeof(known); i += 2)
        if (known[i] == c) {
            oct_str_put(s, &known[i + 1], 1);
            return OCT_OK;
        }
    if (c == '\n') {
        new_line(y);
        return OCT_OK;
    }
    if (c == 'x' || c == 'u' || c == 'U') return put_code(y, s, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    if (is_digit(c) || c == 'N')
        return oct_python_fail(y, y->at.line, y->at.column, "'\\%c' in a text is not read", c);
    oct_str_put(s, "\\", 1);
    oct_str_put(s, &c, 1);
    return OCT_OK;
}

static bool ends(const oct_python *y, char quote, bool is_long)
{
    return peek(y, 0) == quote && (!is_long || (peek(y, 1) == quote && peek(y, 2) == quote));
}

/* From behind the first quote to behind the last one. */
static oct_status read_string(oct_python *y, oct_str *s, char quote, bool is_long, bool is_raw)
{
    while (y->p < y->end && !ends(y, quote, is_long)) {
        const char c = *y->p++;

        if (c == '\\' && !is_raw) {
            OCT_TRY(escape(y, s));
            continue;
        }
        if (c == '\n' && !is_long) break;
        oct_str_put(s, &c, 1);
        if (c == '\n') new_line(y);
        if (c == '\\' && y->p < y->end && *y->p != '\n') oct_str_put(s, y->p++, 1);
    }
    if (!ends(y, quote, is_long))
        return oct_python_fail(y, y->at.line, y->at.column, "a text without its closing quote");
    y->p += is_long ? 3 : 1;
    return OCT_OK;
}

static oct_status string(oct_python *y, bool is_raw)
{
    const char quote = *y->p;
    const bool is_long = peek(y, 1) == quote && peek(y, 2) == quote;
    oct_status st;
    oct_str s;

    oct_str_init(&s, y->ctx);
    y->p += is_long ? 3 : 1;
    st = read_string(y, &s, quote, is_long, is_raw);
    y->at.kind = OCT_TOKEN_STRING;
    if (!st && s.len > OCT_PYTHON_MAX_TEXT)
        st = oct_python_fail(y, y->at.line, y->at.column, "the text is too long");
    if (!st && (s.failed || !(y->at.text = oct_arena_strndup(y->arena, s.s ? s.s : "", s.len))))
        st = OCT_ERR_MEMORY;
    oct_str_fini(&s);
    return st;
}

/* --- the others --- */

static bool is_quote(char c)
{
    return c == '\'' || c == '"';
}

/* A name, or the letters in front of a string: r'..' */
static oct_status word(oct_python *y)
{
    size_t n = 1;

    while (is_letter(peek(y, n)) || is_digit(peek(y, n)))
        n++;
    if (!is_quote(peek(y, n)) || n > 2) return take(y, OCT_TOKEN_NAME, n);
    if (n == 1 && strchr("rRuU", *y->p)) {
        const bool is_raw = *y->p == 'r' || *y->p == 'R';

        y->p++;
        return string(y, is_raw);
    }
    return oct_python_fail(y, y->at.line, y->at.column, "a text with '%.*s' in front is not read",
                           (int)n, y->p);
}

static oct_status number(oct_python *y)
{
    char text[64];
    size_t n = 0, at = 0;

    for (;; n++) {
        const char c = peek(y, n), before = n ? y->p[n - 1] : '\0';

        if (!is_letter(c) && !is_digit(c) && c != '.' &&
            !((c == '+' || c == '-') && (before == 'e' || before == 'E')))
            break;
        if (c == '_') continue;
        if (!strchr("0123456789.eE+-", c) || at + 1 == sizeof(text))
            return oct_python_fail(y, y->at.line, y->at.column, "this number is not read");
        text[at++] = c;
    }
    y->p += n;
    y->at.kind = OCT_TOKEN_NUMBER;
    y->at.text = oct_arena_strndup(y->arena, text, at);
    return y->at.text ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status sign(oct_python *y)
{
    static const char *const two[] = {"**", "//", "==", "+=", "-=", "*=", "/="};

    for (size_t i = 0; i < OCT_COUNT(two); i++)
        if (peek(y, 0) == two[i][0] && peek(y, 1) == two[i][1]) return take(y, OCT_TOKEN_SIGN, 2);
    if (strchr("([{", *y->p)) y->depth++;
    if (strchr(")]}", *y->p) && y->depth > 0) y->depth--;
    return take(y, OCT_TOKEN_SIGN, 1);
}

oct_status oct_python_next(oct_python *y)
{
    skip(y);
    y->at = (oct_token){OCT_TOKEN_END, "", y->line, (int)(y->p - y->line_start) + 1};
    if (y->p == y->end) return OCT_OK;
    if (*y->p == '\n' || *y->p == ';') {
        const bool is_line = *y->p++ == '\n';

        y->at.kind = OCT_TOKEN_LINE;
        if (is_line) new_line(y);
        return OCT_OK;
    }
    if (is_quote(*y->p)) return string(y, false);
    if (is_digit(*y->p) || (*y->p == '.' && is_digit(peek(y, 1)))) return number(y);
    return is_letter(*y->p) ? word(y) : sign(y);
}
