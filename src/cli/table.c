/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned tables. */
#include "cli/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/utf8.h"

#define GAP        2  /* spaces between columns */
#define SHRINK_MIN 12 /* a name shorter than this says nothing */

struct cli_table {
    const cli_column *columns;
    int n_columns;
    char **cells; /* n_cells; NULL: a rule instead of a whole row, in its first cell */
    size_t n_cells, cap;
};

cli_table *cli_table_new(const cli_column *columns, int n_columns)
{
    cli_table *t = cli_alloc(1, sizeof(*t));

    t->columns = columns;
    t->n_columns = n_columns;
    return t;
}

void cli_table_free(cli_table *t)
{
    if (!t) return;
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t);
}

static void append(cli_table *t, char *text)
{
    if (t->n_cells == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->cells = cli_realloc(t->cells, t->cap, sizeof(*t->cells));
    }
    t->cells[t->n_cells++] = text;
}

void cli_table_cell(cli_table *t, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0) text = cli_format("?");
    va_end(args);
    cli_text_clean(text);
    append(t, text);
}

void cli_table_rule(cli_table *t)
{
    for (int i = 0; i < t->n_columns; i++)
        append(t, NULL);
}

/* Widths that hold all cells; in a narrow terminal the shrinking columns give way. */
static void measure(const cli_table *t, int *widths, int term)
{
    int total = 0, shrinking = 0;

    for (int i = 0; i < t->n_columns; i++)
        widths[i] = cli_text_width(t->columns[i].title);
    for (size_t k = 0; k < t->n_cells; k++) {
        const int col = (int)(k % (size_t)t->n_columns);
        const int w = t->cells[k] ? cli_text_width(t->cells[k]) : 0;

        if (w > widths[col]) widths[col] = w;
    }
    for (int i = 0; i < t->n_columns; i++) {
        total += widths[i] + (i ? GAP : 0);
        shrinking += t->columns[i].align == CLI_SHRINK;
    }
    for (int i = 0; term && shrinking && total > term && i < t->n_columns; i++) {
        if (t->columns[i].align != CLI_SHRINK) continue;
        const int give = (total - term + shrinking - 1) / shrinking;
        const int w = widths[i] - give < SHRINK_MIN ? SHRINK_MIN : widths[i] - give;

        if (w < widths[i]) {
            total -= widths[i] - w;
            widths[i] = w;
        }
        shrinking--;
    }
}

static void spaces(FILE *out, int n)
{
    if (n > 0) (void)fprintf(out, "%*s", n, "");
}

/* The text in exactly `width` columns, unless it is the last on its line. */
static void put(FILE *out, const char *text, int width, cli_align align, bool last)
{
    const int w = cli_text_width(text);

    if (w > width) {
        cli_utf8_put_middle(out, text, width);
        return;
    }
    if (align == CLI_RIGHT) spaces(out, width - w);
    if (last) { /* no blanks at the end of a line */
        size_t len = strlen(text);

        while (len && text[len - 1] == ' ')
            len--;
        (void)fwrite(text, 1, len, out);
        return;
    }
    (void)fputs(text, out);
    if (align != CLI_RIGHT) spaces(out, width - w);
}

static void rule(const cli_table *t, const int *widths, FILE *out)
{
    for (int i = 0; i < t->n_columns; i++) {
        spaces(out, i ? GAP : 0);
        for (int k = 0; k < widths[i]; k++)
            (void)fputc('-', out);
    }
    (void)fputc('\n', out);
}

void cli_table_print(const cli_table *t, FILE *out)
{
    int *widths = cli_alloc((size_t)t->n_columns, sizeof(*widths));
    const size_t n = (size_t)t->n_columns;

    measure(t, widths, cli_term_width(out));
    for (int i = 0; i < t->n_columns; i++) {
        spaces(out, i ? GAP : 0);
        put(out, t->columns[i].title, widths[i], t->columns[i].align, i + 1 == t->n_columns);
    }
    (void)fputc('\n', out);
    rule(t, widths, out);
    for (size_t k = 0; k + n <= t->n_cells; k += n) {
        if (!t->cells[k]) {
            rule(t, widths, out);
            continue;
        }
        int end = t->n_columns; /* empty cells at the end need no blanks */

        while (end > 1 && t->cells[k + (size_t)end - 1][0] == '\0')
            end--;
        for (int i = 0; i < end; i++) {
            spaces(out, i ? GAP : 0);
            put(out, t->cells[k + (size_t)i], widths[i], t->columns[i].align, i + 1 == end);
        }
        (void)fputc('\n', out);
    }
    free(widths);
}
