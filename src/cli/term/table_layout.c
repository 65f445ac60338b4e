/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits a table into a terminal: names are cut in their middle as long as they stay different, then
 * columns that can be spared go, then names get lines of their own.
 */
#include "cli/term/table_layout.h"

#include <stdlib.h>
#include <string.h>

#include "cli/term/utf8.h"

enum {
    NAME_EASY = 24,  /* a name cut to this is still easy to read */
    NAME_LEAST = 12, /* a name shorter than this says nothing */
    WRAP_LEAST = 16, /* of text that is broken at words */
};

static void measure(const cli_table *t, int *widths)
{
    for (int i = 0; i < t->n_columns; i++)
        widths[i] = cli_text_width(t->columns[i].title);
    for (size_t k = 0; k < t->n_cells; k++) {
        const int col = (int)(k % (size_t)t->n_columns);
        const int w = t->cells[k].text ? cli_text_width(t->cells[k].text) : 0;

        if (w > widths[col]) widths[col] = w;
    }
}

/* Columns of a row without column `but`. */
static int total(const cli_layout *l, int n_columns, int but)
{
    int sum = 0, n = 0;

    for (int i = 0; i < n_columns; i++)
        if (l->shown[i] && i != but) sum += l->widths[i], n++;
    return sum + (n > 1 ? (n - 1) * CLI_TABLE_GAP : 0);
}

/* --- names --- */

/* A name and what is left of it. */
typedef struct shortened {
    const char *whole;
    char *text;
} shortened;

static int by_text(const void *a, const void *b)
{
    const shortened *x = a, *y = b;

    return strcmp(x->text, y->text);
}

/* Do all names of a column stay different if this much of them is left? */
static bool stay_different(const cli_table *t, int col, int width, int head)
{
    const size_t n = t->n_cells / (size_t)t->n_columns;
    shortened *all = cli_alloc(n + 1, sizeof(*all));
    bool different = true;
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        const char *whole = t->cells[i * (size_t)t->n_columns + (size_t)col].text;

        if (whole) all[used++] = (shortened){whole, cli_utf8_shorten(whole, width, head)};
    }
    qsort(all, used, sizeof(*all), by_text);
    for (size_t i = 1; i < used && different; i++)
        different = strcmp(all[i].text, all[i - 1].text) || !strcmp(all[i].whole, all[i - 1].whole);
    for (size_t i = 0; i < used; i++)
        free(all[i].text);
    free(all);
    return different;
}

/* Looks for a place to cut, from the middle outwards: ends tell names apart more often. */
static bool find_cut(cli_layout *l, const cli_table *t, int col, int width)
{
    const int middle = (width - 2) / 2;

    for (int d = 0; d <= middle; d++) {
        const int heads[] = {middle - d, middle + d};

        for (int k = 0; k < (d ? 2 : 1); k++) {
            if (heads[k] > width - 4 || !stay_different(t, col, width, heads[k])) continue;
            l->head = heads[k];
            l->widths[col] = width;
            return true;
        }
    }
    return false;
}

/* --- columns --- */

/* The column that can be spared most easily, at least as easily as `least`; -1: none. */
static int find_spare(const cli_layout *l, const cli_table *t, int least)
{
    int best = -1;

    for (int i = 0; i < t->n_columns; i++)
        if (l->shown[i] && t->columns[i].drop >= least &&
            (best < 0 || t->columns[i].drop > t->columns[best].drop))
            best = i;
    return best;
}

static bool drop_one(cli_layout *l, const cli_table *t, int least)
{
    const int i = find_spare(l, t, least);

    if (i < 0) return false;
    l->shown[i] = false;
    l->n_dropped++;
    return true;
}

static int find_column(const cli_table *t, cli_align align)
{
    for (int i = 0; i < t->n_columns; i++)
        if (t->columns[i].align == align) return i;
    return -1;
}

/* Names on lines of their own; then all other columns have the whole line. */
static void stack(cli_layout *l, const cli_table *t, int name, int term)
{
    l->stacked = name;
    for (int i = 0; i < t->n_columns; i++)
        l->shown[i] = true;
    l->n_dropped = 0;
    while (total(l, t->n_columns, name) > term - CLI_TABLE_INDENT && drop_one(l, t, 1))
        continue;
}

static void fit_names(cli_layout *l, const cli_table *t, int name, int term)
{
    for (;;) {
        const int room = term - total(l, t->n_columns, name) - CLI_TABLE_GAP;
        const int easy = l->widths[name] < NAME_EASY ? l->widths[name] : NAME_EASY;

        if (room >= l->widths[name]) return;
        if (room >= easy && find_cut(l, t, name, room)) return;
        if (drop_one(l, t, 2)) continue;
        if (room >= NAME_LEAST && room >= easy / 2 && find_cut(l, t, name, room)) return;
        break;
    }
    stack(l, t, name, term);
}

static void fit_text(cli_layout *l, const cli_table *t, int text, int term)
{
    const int room = term - total(l, t->n_columns, text) - CLI_TABLE_GAP;

    if (room < l->widths[text]) l->widths[text] = room < WRAP_LEAST ? WRAP_LEAST : room;
}

void cli_layout_init(cli_layout *l, const cli_table *t, int term)
{
    const int name = find_column(t, CLI_SHRINK), text = find_column(t, CLI_WRAP);

    *l = (cli_layout){.widths = cli_alloc((size_t)t->n_columns, sizeof(*l->widths)),
                      .shown = cli_alloc((size_t)t->n_columns, sizeof(*l->shown)),
                      .stacked = -1};
    measure(t, l->widths);
    for (int i = 0; i < t->n_columns; i++)
        l->shown[i] = true;
    if (!term || total(l, t->n_columns, -1) <= term) return;
    if (text >= 0) fit_text(l, t, text, term);
    if (name >= 0) fit_names(l, t, name, term);
    while (name < 0 && total(l, t->n_columns, -1) > term && drop_one(l, t, 1))
        continue;
}

void cli_layout_fini(cli_layout *l)
{
    free(l->widths);
    free(l->shown);
}
