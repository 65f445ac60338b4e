/* SPDX-License-Identifier: Apache-2.0 */
/* What octet quantize tells when it is done. */
#ifndef CLI_QUANTIZE_REPORT_H
#define CLI_QUANTIZE_REPORT_H

#include <octet/quant.h>
#include <octet/recipe.h>

#include "cli/cli.h"

typedef struct cli_quantize_report {
    cli *c;
    const oct_quantized *q;
    const oct_recipe *recipe;
    const char *model, *output, *target;
    int64_t bytes_before, bytes_after;
    double seconds, peak_rss_mb; /* from the start until the file was written */
    uint64_t seed;
    bool has_accuracy, is_classifier;
    oct_eval_result before, after; /* if has_accuracy */
} cli_quantize_report;

void cli_quantize_print(const cli_quantize_report *r);
oct_status cli_quantize_print_json(const cli_quantize_report *r);

#endif
