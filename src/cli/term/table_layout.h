/* SPDX-License-Identifier: Apache-2.0 */
/* How a table fits a terminal. */
#ifndef CLI_TABLE_LAYOUT_H
#define CLI_TABLE_LAYOUT_H

#include "cli/term/table.h"

enum { CLI_TABLE_GAP = 2, CLI_TABLE_INDENT = 2 };

typedef struct cli_cell {
    char *text; /* NULL: a rule instead of a whole row */
    cli_hue hue;
} cli_cell;

struct cli_table {
    const cli_column *columns;
    int n_columns;
    cli_cell *cells;
    size_t n_cells, cap;
};

typedef struct cli_layout {
    int *widths;
    bool *shown;
    int n_dropped;
    int stacked; /* the column of names, each on a line of its own above its row; -1: none */
    int head;    /* columns of a name that are kept before its cut */
} cli_layout;

/* For a terminal of so many columns; 0: as wide as it gets. */
void cli_layout_init(cli_layout *l, const cli_table *t, int term);
void cli_layout_fini(cli_layout *l);

#endif
