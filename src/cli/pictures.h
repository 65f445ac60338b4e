/* SPDX-License-Identifier: Apache-2.0 */
/* The pictures a command processes one by one, and the names of its results. */
#ifndef CLI_PICTURES_H
#define CLI_PICTURES_H

#include "cli/cli.h"

typedef struct cli_pictures {
    cli *c;
    oct_dataset *d;   /* NULL: one picture, from standard input */
    oct_image *typed; /* that one, until it is taken */
    char **names;     /* of the results in a folder: one for each, all different */
    int64_t n, n_names;
    bool skip_bad;
    int64_t n_broken; /* left out so far */
} cli_pictures;

/* What was typed for them. */
typedef struct cli_pictures_words {
    char **files;           /* ends with NULL; "-" alone is a picture on standard input */
    const cli_list *images; /* --images; "-" is a list of names there */
    int64_t every;          /* of a video */
    bool skip_bad;
} cli_pictures_words;

/* Reports what was skipped. Pictures are registered as inputs (guard.h). */
oct_status cli_pictures_open(cli *c, const cli_pictures_words *words, cli_pictures *out);
void cli_pictures_close(cli_pictures *p);

/* Picture i, in order; *out NULL: it is broken and was left out. */
oct_status cli_pictures_load(cli_pictures *p, int64_t i, oct_image **out);

const char *cli_pictures_path(const cli_pictures *p, int64_t i);
int64_t cli_pictures_frame(const cli_pictures *p, int64_t i); /* of a video; -1: none */

#endif
