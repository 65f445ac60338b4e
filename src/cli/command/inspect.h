/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of octet inspect. */
#ifndef CLI_INSPECT_H
#define CLI_INSPECT_H

#include "cli/cli.h"
#include "cli/regex.h"

/* --scales: a row for each quantized tensor whose name `re` matches (NULL: all); with a qmap also
 * what was seen in calibration and how the scales came about. */
oct_status cli_inspect_scales(cli *c, const char *path, const oct_graph *g, const char *qmap,
                              const cli_regex *re, const char *filter);

/* --npu: a row for each limit that a node or tensor breaks whose name `re` matches (NULL: all).
 * Fails if there is one. */
oct_status cli_inspect_npu(cli *c, const char *path, const oct_graph *g, const cli_regex *re);

#endif
