/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of octet tune: the search, and how its result is shown. */
#ifndef CLI_TUNE_H
#define CLI_TUNE_H

#include <octet/tune.h>

#include "cli/cli.h"

/* What is shown when a search is over. */
typedef struct cli_tune_report {
    cli *c;
    const oct_tuned *t;
    const char *model, *output;    /* the second NULL: none was asked for */
    const char *database, *recipe; /* files */
    const char *recipe_text;       /* of the best; NULL: none is within the budgets */
    const char *report;            /* a folder; NULL: none */
    double seconds;                /* of this call */
} cli_tune_report;

void cli_tune_print(const cli_tune_report *r);
oct_status cli_tune_print_json(const cli_tune_report *r);
oct_status cli_tune_write_page(const cli_tune_report *r); /* DIR/index.html */

/* "ranges.activations=mse, equalize=true": settings in one line, to be freed. */
char *cli_tune_settings(const char *settings);

#endif
