/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: aligned tables, widths of UTF-8, human units. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "cli/cli.h"

typedef enum cli_align {
    CLI_LEFT,
    CLI_RIGHT,  /* numbers */
    CLI_SHRINK, /* names: in a narrow terminal cut in the middle, or on lines of their own */
    CLI_WRAP,   /* sentences, the last column: broken at words */
} cli_align;

typedef struct cli_column {
    const char *title;
    cli_align align;
    /*
     * In a narrow terminal the column with the greatest goes first. 0: never; 1: only if names on
     * lines of their own do not help; 2 and more: so that names stay beside their rows.
     */
    int drop;
} cli_column;

typedef struct cli_table cli_table;

/* Columns are borrowed: they outlive the table. */
cli_table *cli_table_new(const cli_column *columns, int n_columns);
void cli_table_free(cli_table *t);

/* Appends the next cell, rows after one another. The text is copied and made safe to print. */
void cli_table_cell(cli_table *t, const char *fmt, ...) CLI_PRINTF(2, 3);
void cli_table_hue(cli_table *t, cli_hue hue); /* of the last cell */
void cli_table_rule(cli_table *t);             /* a line between the rows before and after */
void cli_table_print(const cli_table *t, FILE *out);

/* Makes text from a file safe for a terminal, in place: control characters and broken UTF-8 become
 * '?'. */
void cli_text_clean(char *text);
int cli_text_width(const char *text); /* columns on a terminal */

/* "123", "1.73 k", "44.2 M"; numbers without a unit get two trailing spaces so that columns line
 * up. */
#define CLI_UNIT_SIZE 32
const char *cli_count(double v, char text[CLI_UNIT_SIZE]);
const char *cli_bytes(double v, char text[CLI_UNIT_SIZE]); /* "12.8 MB", powers of 1000 */
const char *cli_time(double ns, char text[CLI_UNIT_SIZE]); /* "1.23 ms" */

/* Writes words of `text` wrapped at `width`, all lines indented; paragraphs are split by '\n'. */
void cli_wrap(FILE *out, const char *text, int indent, int width);
/* The same, with the first word at the cursor, which is in column `at`. */
void cli_wrap_hanging(FILE *out, const char *text, int at, int indent, int width);

#endif
