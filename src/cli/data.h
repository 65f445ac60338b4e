/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of a command. */
#ifndef CLI_DATA_H
#define CLI_DATA_H

#include "cli/cli.h"

/* The pictures to open, n of them. */
void cli_data_images(oct_dataset_options *o, const char *const *paths, int n);

/* Opens it. A path that does not exist is a usage error (exit 2). */
oct_status cli_dataset_open(cli *c, const oct_dataset_options *o, oct_dataset **out);

/*
 * Reports what was skipped, a line each: "calib: 2 files are no pictures and were left out (...)".
 * Begins with sentence `from` and returns how many there are: call it again with that number after
 * the pictures were processed, when more may have been found broken.
 */
int32_t cli_data_notes(const cli *c, const char *name, const oct_dataset *d, int32_t from);

#endif
