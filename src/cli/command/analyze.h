/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of octet analyze. */
#ifndef CLI_ANALYZE_H
#define CLI_ANALYZE_H

#include <octet/analyze.h>

#include "cli/cli.h"

typedef struct cli_analyze_view {
    const oct_analysis *result;
    const char *model, *quantized; /* the files */
    const char *sort;
    int64_t top;  /* rows of a table */
    bool brief;   /* columns are not explained */
    bool tensors; /* were given instead of pictures */
} cli_analyze_view;

/* A layer, and by what it is sorted. */
typedef struct cli_analyze_row {
    oct_analyzed_layer layer;
    int32_t index;
    double key;
} cli_analyze_row;

/* All layers in the order asked for, to be freed. */
cli_analyze_row *cli_analyze_sort(const cli_analyze_view *v, int32_t *n);

oct_status cli_analyze_check_sort(cli *c, const char *sort);
void cli_analyze_print(const cli *c, const cli_analyze_view *v);
oct_status cli_analyze_print_json(cli *c, const cli_analyze_view *v);

#endif
