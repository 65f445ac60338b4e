/* SPDX-License-Identifier: Apache-2.0 */
/* The form of progress output; cli.h has what commands call. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "cli/cli.h"

typedef struct cli_progress_state {
    const char *what;
    int64_t done, total;
    double seconds; /* since it began */
} cli_progress_state;

/* "calibrating [####----]  50%  16/32  0:08 left" in fewer than `width` columns. */
void cli_progress_bar(const cli_progress_state *p, int width, char *text, size_t size);

/* "octet: calibrating: 50%, 16 of 32, 0:08 left": for files and notebooks. */
void cli_progress_line(const cli_progress_state *p, char *text, size_t size);

#endif
