/* SPDX-License-Identifier: Apache-2.0 */
/* "did you mean": the names nearest to a mistyped one. */
#ifndef CLI_NEAR_H
#define CLI_NEAR_H

#include <stdbool.h>
#include <stddef.h>

#define CLI_NEAR_MAX 3

typedef struct cli_near {
    const char *want;
    bool inside; /* `want` may be a part of the name: for patterns */
    int n;
    int dist[CLI_NEAR_MAX];
    char name[CLI_NEAR_MAX][256];
    char text[CLI_NEAR_MAX * 260 + 64];
} cli_near;

void cli_near_init(cli_near *near, const char *want, bool inside);
void cli_near_try(cli_near *near, const char *name);

/* "; did you mean 'a', 'b' or 'c'?", or "" if nothing is near. Lives in `near`. */
const char *cli_near_text(cli_near *near);

/* Looks for the nearest name of `path` in its folder; the text as above. */
const char *cli_near_file(cli_near *near, const char *path);

#endif
