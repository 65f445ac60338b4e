/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned tables: their cells and how they are printed. */
#include "cli/term/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/term/table_layout.h"
#include "cli/term/utf8.h"

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
        free(t->cells[i].text);
    free(t->cells);
    free(t);
}

static void append(cli_table *t, char *text)
{
    if (t->n_cells == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->cells = cli_realloc(t->cells, t->cap, sizeof(*t->cells));
    }
    t->cells[t->n_cells++] = (cli_cell){text, CLI_PLAIN};
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

void cli_table_hue(cli_table *t, cli_hue hue)
{
    if (t->n_cells) t->cells[t->n_cells - 1].hue = hue;
}

void cli_table_rule(cli_table *t)
{
    for (int i = 0; i < t->n_columns; i++)
        append(t, NULL);
}

/* --- printing --- */

static void spaces(FILE *out, int n)
{
    if (n > 0) (void)fprintf(out, "%*s", n, "");
}

/* The text without blanks at its end. */
static void put_trimmed(FILE *out, const char *text)
{
    size_t len = strlen(text);

    while (len && text[len - 1] == ' ')
        len--;
    (void)fwrite(text, 1, len, out);
}

static void put_hued(FILE *out, const cli_cell *c, const char *text, bool last)
{
    const bool hued = c->hue != CLI_PLAIN && *cli_color(out, c->hue);

    if (hued) (void)fputs(cli_color(out, c->hue), out);
    if (last)
        put_trimmed(out, text);
    else
        (void)fputs(text, out);
    if (hued) (void)fputs(cli_color(out, CLI_PLAIN), out);
}

/* The text in exactly the column's width, unless it is the last on its line. */
static void put(FILE *out, const cli_table *t, const cli_layout *l, int col, const cli_cell *c,
                bool last)
{
    const cli_align align = t->columns[col].align;
    const int w = cli_text_width(c->text), width = l->widths[col];
    char *cut = w > width && align == CLI_SHRINK ? cli_utf8_shorten(c->text, width, l->head) : NULL;

    if (align == CLI_RIGHT) spaces(out, width - w);
    put_hued(out, c, cut ? cut : c->text, last);
    if (align != CLI_RIGHT && !last) spaces(out, width - w);
    free(cut);
}

/* The last column, broken at words under itself. */
static void put_wrapped(FILE *out, const char *text, int indent, int width)
{
    cli_wrap_hanging(out, text, indent, indent, indent + width);
}

static void put_row(FILE *out, const cli_table *t, const cli_layout *l, const cli_cell *row)
{
    int end = t->n_columns, at = 0, wide = -1; /* empty cells at the end need no blanks */
    bool first = true;

    while (end > 1 && (!l->shown[end - 1] || row[end - 1].text[0] == '\0'))
        end--;
    if (l->stacked >= 0) {
        put_hued(out, &row[l->stacked], row[l->stacked].text, true);
        if (end - 1 > l->stacked || l->stacked > 0) (void)fputc('\n', out);
        at = CLI_TABLE_INDENT;
        spaces(out, at);
    }
    for (int i = 0; i < end && wide < 0; i++) {
        if (!l->shown[i] || i == l->stacked) continue;
        spaces(out, first ? 0 : CLI_TABLE_GAP);
        at += first ? 0 : CLI_TABLE_GAP;
        first = false;
        if (t->columns[i].align == CLI_WRAP && cli_text_width(row[i].text) > l->widths[i])
            wide = i;
        else
            put(out, t, l, i, &row[i], i + 1 == end);
        at += wide < 0 ? l->widths[i] : 0;
    }
    if (wide >= 0)
        put_wrapped(out, row[wide].text, at, l->widths[wide]);
    else
        (void)fputc('\n', out);
}

static void put_titles(FILE *out, const cli_table *t, const cli_layout *l)
{
    cli_cell *titles = cli_alloc((size_t)t->n_columns, sizeof(*titles));

    for (int i = 0; i < t->n_columns; i++)
        titles[i] = (cli_cell){(char *)t->columns[i].title, CLI_BOLD};
    put_row(out, t, l, titles);
    free(titles);
}

static void put_rule(FILE *out, const cli_table *t, const cli_layout *l)
{
    bool first = true;

    if (l->stacked >= 0) spaces(out, CLI_TABLE_INDENT);
    for (int i = 0; i < t->n_columns; i++) {
        if (!l->shown[i] || i == l->stacked) continue;
        spaces(out, first ? 0 : CLI_TABLE_GAP);
        first = false;
        for (int k = 0; k < l->widths[i]; k++)
            (void)fputc('-', out);
    }
    (void)fputc('\n', out);
}

void cli_table_print(const cli_table *t, FILE *out)
{
    const size_t n = (size_t)t->n_columns;
    cli_layout l;

    cli_layout_init(&l, t, cli_term_width(out));
    put_titles(out, t, &l);
    put_rule(out, t, &l);
    for (size_t k = 0; k + n <= t->n_cells; k += n)
        if (t->cells[k].text)
            put_row(out, t, &l, &t->cells[k]);
        else
            put_rule(out, t, &l);
    if (l.n_dropped)
        cli_say(out, "(%d column%s left out: the terminal is narrow)", l.n_dropped,
                l.n_dropped == 1 ? "" : "s");
    cli_layout_fini(&l);
}
