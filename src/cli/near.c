/* SPDX-License-Identifier: Apache-2.0 */
/* Nearest names by edit distance. */
#include "cli/near.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_LEN 200 /* longer names are compared by their first part */

static int min2(int a, int b)
{
    return a < b ? a : b;
}

/*
 * Edits (insert, delete, change, swap neighbours; case is free) that make `a` from `b`. With
 * `inside`, characters before and after the best match in `b` are free.
 */
static int distance(const char *a, const char *b, bool inside)
{
    const int n = (int)strnlen(a, MAX_LEN), m = (int)strnlen(b, MAX_LEN);
    int row[3][MAX_LEN + 1] = {{0}};
    int best;

    for (int j = 0; j <= m; j++)
        row[0][j] = inside ? 0 : j;
    for (int i = 1; i <= n; i++) {
        int *cur = row[i % 3];
        const int *prev = row[(i + 2) % 3], *before = row[(i + 1) % 3];

        cur[0] = i;
        for (int j = 1; j <= m; j++) {
            const int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);

            cur[j] = min2(prev[j - 1] + (x != y), min2(prev[j], cur[j - 1]) + 1);
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                y == tolower((unsigned char)a[i - 2]))
                cur[j] = min2(cur[j], before[j - 2] + 1);
        }
    }
    best = row[n % 3][m];
    for (int j = 0; inside && j <= m; j++)
        best = min2(best, row[n % 3][j]);
    return best;
}

void cli_near_init(cli_near *near, const char *want, bool inside)
{
    memset(near, 0, sizeof(*near));
    near->want = want;
    near->inside = inside;
}

void cli_near_try(cli_near *near, const char *name)
{
    const size_t dashes = strspn(near->want, "-"); /* of an option: they are always right */
    const int len = (int)strnlen(near->want + dashes, MAX_LEN);
    const int limit = len / 3;
    int d = distance(near->want, name, near->inside), at;

    if (len == 0 || *name == '\0') return;
    /* A prefix of a longer name is a common way of typing it. */
    if (len >= 2 && d > 0 && strncasecmp(near->want, name, (size_t)len + dashes) == 0)
        d = 1;
    else if (d > limit)
        return;

    for (at = near->n; at > 0 && near->dist[at - 1] > d; at--)
        continue;
    if (at == CLI_NEAR_MAX) return;
    if (near->n < CLI_NEAR_MAX) near->n++;
    for (int i = near->n - 1; i > at; i--) {
        near->dist[i] = near->dist[i - 1];
        memcpy(near->name[i], near->name[i - 1], sizeof(near->name[i]));
    }
    near->dist[at] = d;
    (void)snprintf(near->name[at], sizeof(near->name[at]), "%s", name);
}

const char *cli_near_text(cli_near *near)
{
    size_t at = 0;

    while (near->n > 1 && near->dist[near->n - 1] > near->dist[0] + 1)
        near->n--; /* much farther than the best: would only confuse */
    near->text[0] = '\0';
    for (int i = 0; i < near->n; i++) {
        const char *sep = i == 0 ? "; did you mean" : i + 1 < near->n ? "," : " or";

        at += (size_t)snprintf(near->text + at, sizeof(near->text) - at, "%s '%s'", sep,
                               near->name[i]);
    }
    if (near->n) (void)snprintf(near->text + at, sizeof(near->text) - at, "?");
    return near->text;
}

const char *cli_near_file(cli_near *near, const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t dir_len = slash ? (size_t)(slash - path) + 1 : 0;
    char dir[4096], full[4352];
    DIR *d;

    cli_near_init(near, path, false);
    if (dir_len >= sizeof(dir)) return "";
    memcpy(dir, path, dir_len);
    dir[dir_len] = '\0';
    d = opendir(dir_len ? dir : ".");
    if (!d) {
        (void)snprintf(near->text, sizeof(near->text), "; its folder does not exist either");
        return near->text;
    }
    near->want = path + dir_len;
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') cli_near_try(near, e->d_name);
    (void)closedir(d);
    for (int i = 0; i < near->n; i++) { /* names as they must be typed */
        (void)snprintf(full, sizeof(full), "%s%s", dir, near->name[i]);
        if (strlen(full) < sizeof(near->name[i])) strcpy(near->name[i], full);
    }
    return cli_near_text(near);
}
