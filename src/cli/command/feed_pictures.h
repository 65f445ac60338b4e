/* SPDX-License-Identifier: Apache-2.0 */
/* What the runs of a session are fed with: pictures in turns, or random numbers. */
#ifndef CLI_FEED_PICTURES_H
#define CLI_FEED_PICTURES_H

#include "cli/command/measure.h"

typedef struct cli_feed {
    cli *c;
    const cli_session *session;
    oct_dataset *images; /* NULL: none were asked for */
} cli_feed;

oct_status cli_feed_open(cli *c, const cli_session *s, const char *images, cli_feed *out);
void cli_feed_close(cli_feed *f);

/* The pictures of run i into its input; after the last comes the first again. Without pictures, the
 * first run gets random numbers, which stay. */
oct_status cli_feed_fill(const cli_feed *f, oct_run *r, int64_t i);

#endif
