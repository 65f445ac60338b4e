/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of a command. */
#include "cli/data.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/near.h"

void cli_data_images(oct_dataset_options *o, const char *const *paths, int n)
{
    o->images = paths[0];
    o->more_images = paths + 1;
    o->n_more_images = n - 1;
}

static bool is_missing(const char *path)
{
    return path && strcmp(path, "-") != 0 && access(path, F_OK) && errno == ENOENT;
}

oct_status cli_dataset_open(cli *c, const oct_dataset_options *o, oct_dataset **out)
{
    const char *model = c->model, *missing;
    cli_near near;
    oct_status st;

    c->model = NULL; /* errors here are about the data */
    if (!(st = oct_dataset_open(c->ctx, o, out))) {
        c->model = model;
        return OCT_OK;
    }
    missing = is_missing(o->annotations) ? o->annotations
              : is_missing(o->images)    ? o->images
                                         : NULL;
    if (!missing || c->error[0]) return st;
    return cli_fail(c, OCT_ERR_ARG, "%s: no such file or folder%s", missing,
                    cli_near_file(&near, missing));
}

int32_t cli_data_notes(const cli *c, const char *name, const oct_dataset *d, int32_t from)
{
    const char *text;
    int32_t i;

    for (i = from; (text = oct_dataset_note(d, i)); i++)
        cli_note(c, "%s: %s", name, text);
    return i;
}
