/* SPDX-License-Identifier: Apache-2.0 */
/* What octet prune shows. */
#ifndef CLI_PRUNE_H
#define CLI_PRUNE_H

#include <octet/prune.h>

#include "cli/cli.h"

/* Layers and totals; `in` and `out` are the files. */
void cli_prune_print(const oct_prune_result *r, const char *in, const char *out);
oct_status cli_sparsity_print(cli *c, const oct_sparsity_result *r, const char *out);
oct_status cli_prune_print_json(cli *c, const oct_prune_result *r, const char *out, bool one_line);

#endif
