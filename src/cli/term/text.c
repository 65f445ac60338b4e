/* SPDX-License-Identifier: Apache-2.0 */
/* Text for a terminal: UTF-8 made safe, measured, shortened and wrapped; numbers with units. */
#include <math.h>
#include <string.h>

#include "cli/term/table.h"
#include "cli/term/utf8.h"

int cli_utf8_next(const char *s, uint32_t *code)
{
    const unsigned char *u = (const unsigned char *)s;
    const int len = u[0] < 0x80   ? 1
                    : u[0] < 0xc2 ? -1
                    : u[0] < 0xe0 ? 2
                    : u[0] < 0xf0 ? 3
                    : u[0] < 0xf5 ? 4
                                  : -1;

    if (u[0] == 0) return 0;
    if (len < 0) return -1;
    *code = len == 1 ? u[0] : u[0] & (0x7fu >> len);
    for (int i = 1; i < len; i++) {
        if ((u[i] & 0xc0) != 0x80) return -1; /* also stops at the terminator */
        *code = *code << 6 | (u[i] & 0x3f);
    }
    if ((len == 3 && *code < 0x800) || (len == 4 && *code < 0x10000) || *code > 0x10ffff ||
        (*code >= 0xd800 && *code < 0xe000))
        return -1;
    return len;
}

int cli_utf8_width(uint32_t code)
{
    static const struct {
        uint32_t lo, hi;
        int width;
    } ranges[] = {
        {0x0300, 0x036f, 0},   {0x1ab0, 0x1aff, 0},   {0x200b, 0x200f, 0},   {0x20d0, 0x20ff, 0},
        {0xfe00, 0xfe0f, 0},   {0xfe20, 0xfe2f, 0},   {0x1100, 0x115f, 2},   {0x2e80, 0xa4cf, 2},
        {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},
        {0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1f9ff, 2},
        {0x20000, 0x3fffd, 2},
    };

    for (size_t i = 0; i < CLI_COUNT(ranges); i++)
        if (code >= ranges[i].lo && code <= ranges[i].hi) return ranges[i].width;
    return 1;
}

void cli_text_clean(char *text)
{
    uint32_t code = 0;

    for (char *p = text; *p;) {
        const int len = cli_utf8_next(p, &code);
        /* C0, DEL, C1, and the marks that reverse what is read */
        const bool bad = len < 0 || code < 0x20 || (code >= 0x7f && code < 0xa0) ||
                         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);

        if (bad) memset(p, '?', (size_t)(len < 1 ? 1 : len));
        p += len < 1 ? 1 : len;
    }
}

int cli_text_width(const char *text)
{
    uint32_t code = 0;
    int w = 0;

    for (int len; (len = cli_utf8_next(text, &code)) > 0; text += len)
        w += cli_utf8_width(code);
    return w;
}

char *cli_utf8_shorten(const char *text, int width, int head)
{
    const int all = cli_text_width(text), tail_from = all - (width - 2 - head);
    char *copy = cli_alloc(strlen(text) + 4, 1), *to = copy;
    uint32_t code = 0;
    int at = 0;
    bool cut = false;

    if (all <= width) return strcpy(copy, text);
    for (int len; (len = cli_utf8_next(text, &code)) > 0; text += len) {
        const int w = cli_utf8_width(code);

        if (at + w <= head || at >= tail_from) {
            memcpy(to, text, (size_t)len);
            to += len;
        } else {
            /* A wide character on the edge leaves a column: filled with one more dot. */
            if (!cut)
                to = stpcpy(to, at < head ? "..." : "..");
            else if (at < tail_from && at + w > tail_from)
                *to++ = '.';
            cut = true;
        }
        at += w;
    }
    *to = '\0';
    return copy;
}

static const char *with_unit(double v, double base, const char *const *units, int n_units,
                             const char *plain, char text[CLI_UNIT_SIZE])
{
    int u = -1;

    /* 999.5 would be printed as 1000 */
    for (; v >= 999.5 && u + 1 < n_units; u++)
        v /= base;
    if (u < 0) {
        (void)snprintf(text, CLI_UNIT_SIZE, "%.0f%s", v, plain);
    } else {
        const int digits = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;

        (void)snprintf(text, CLI_UNIT_SIZE, "%.*f %s", digits, v, units[u]);
    }
    return text;
}

const char *cli_count(double v, char text[CLI_UNIT_SIZE])
{
    static const char *const units[] = {"k", "M", "G", "T", "P"};

    return with_unit(v, 1000, units, (int)CLI_COUNT(units), "  ", text);
}

const char *cli_bytes(double v, char text[CLI_UNIT_SIZE])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB"};

    return with_unit(v, 1000, units, (int)CLI_COUNT(units), " B", text);
}

const char *cli_time(double ns, char text[CLI_UNIT_SIZE])
{
    static const char *const units[] = {"us", "ms", "s"};

    return with_unit(ns, 1000, units, (int)CLI_COUNT(units), " ns", text);
}

/* Columns of the first n bytes. */
static int part_width(const char *text, size_t n)
{
    uint32_t code = 0;
    int w = 0;

    for (size_t at = 0; at < n;) {
        const int len = cli_utf8_next(text + at, &code);

        if (len == 0) break;
        w += len < 0 ? 1 : cli_utf8_width(code);
        at += len < 0 ? 1 : (size_t)len;
    }
    return w;
}

void cli_wrap_hanging(FILE *out, const char *text, int at, int indent, int width)
{
    bool is_first = true, is_cut = false; /* the word of its line; from the one before it */
    int blanks = 0, col = at;

    while (*text) {
        size_t len = strcspn(text, " \n");
        const int gap = is_cut ? 0 : 1;
        int w = part_width(text, len);

        if (is_cut || indent + w > width) { /* too long for a line: break such lists after a
                                             * comma */
            const char *comma = memchr(text, ',', len);

            is_cut = comma && comma + 1 < text + len;
            if (is_cut) w = part_width(text, len = (size_t)(comma + 1 - text));
        }
        if (len && !is_first && col + gap + w > width) {
            (void)fputc('\n', out);
            is_first = true;
            blanks = col = indent;
        }
        if (len) {
            (void)fprintf(out, "%*s%.*s", is_first ? blanks : gap, "", (int)len, text);
            col += (is_first ? 0 : gap) + w;
            is_first = false;
        }
        text += len;
        if (*text == '\n') {
            (void)fputc('\n', out);
            is_first = true;
            blanks = col = indent;
        }
        if (*text && !is_cut) text++;
    }
    if (!is_first) (void)fputc('\n', out);
}

void cli_wrap(FILE *out, const char *text, int indent, int width)
{
    if (*text && *text != '\n') (void)fprintf(out, "%*s", indent, "");
    cli_wrap_hanging(out, text, indent, indent, width);
}
