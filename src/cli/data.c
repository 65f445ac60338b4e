/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of a command. */
#include "cli/data.h"

void cli_data_images(oct_dataset_options *o, const char *const *paths, int n)
{
    o->images = paths[0];
    o->more_images = paths + 1;
    o->n_more_images = n - 1;
}

int32_t cli_data_notes(const cli *c, const char *name, const oct_dataset *d, int32_t from)
{
    const char *text;
    int32_t i;

    for (i = from; (text = oct_dataset_note(d, i)); i++)
        cli_note(c, "%s: %s", name, text);
    return i;
}
