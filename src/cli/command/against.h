/* SPDX-License-Identifier: Apache-2.0 */
/* How well a network repeats another one, printed: octet eval --against, verify, the report. */
#ifndef CLI_AGAINST_H
#define CLI_AGAINST_H

#include "cli/cli.h"
#include "cli/term/json.h"

/* The figures, and the noise at each output of `of`, for people. */
void cli_against_print(FILE *out, const oct_compare_result *r, const oct_comparison *of,
                       double sure);

/* kind, images, detections, ap, ap50, repeat, added, top1, top5 (those that the kind has), noise,
 * cosine, outputs. */
void cli_against_json(cli_json *j, const oct_compare_result *r, const oct_comparison *of);

#endif
