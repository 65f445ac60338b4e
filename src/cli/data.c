/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of a command. */
#include "cli/data.h"

int32_t cli_data_notes(const cli *c, const char *name, const oct_dataset *d, int32_t from)
{
    const char *text;
    int32_t i;

    for (i = from; (text = oct_dataset_note(d, i)); i++)
        cli_note(c, "%s: %s", name, text);
    return i;
}
