/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that alone made most of the error, and what was done about them. */
#include "cli/command/quantize.h"
#include "cli/term/json.h"

void cli_quantize_print_mends(const cli_quantize_report *r, int column)
{
    oct_quantize_mend m = {.struct_size = sizeof(m)};

    for (int32_t i = 0; oct_quantized_mend(r->q, i, &m); i++)
        cli_fact(stdout, column, i ? "" : "mended", "%s", m.text);
}

void cli_quantize_mends_json(cli_json *j, const cli_quantize_report *r)
{
    oct_quantize_mend m = {.struct_size = sizeof(m)};
    cli_json *list = cli_json_array();

    for (int32_t i = 0; oct_quantized_mend(r->q, i, &m); i++) {
        cli_json *row = cli_json_object();

        cli_json_str(row, "node", m.node);
        cli_json_str(row, "kind", m.kind);
        cli_json_str(row, "text", m.text);
        if (m.error_share >= 0) cli_json_num(row, "error_share", m.error_share);
        cli_json_num(row, "work_share", m.work_share);
        if (m.before >= 0) cli_json_num(row, "noise_before", m.before);
        if (m.after >= 0) cli_json_num(row, "noise_after", m.after);
        cli_json_add(list, NULL, row);
    }
    cli_json_add(j, "mends", list);
}
