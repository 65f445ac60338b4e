/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of a command. */
#include "cli/data.h"

void cli_data_notes(const cli *c, const char *name, const oct_dataset *d)
{
    const char *text;

    for (int32_t i = 0; (text = oct_dataset_note(d, i)); i++)
        cli_note(c, "%s: %s", name, text);
}
