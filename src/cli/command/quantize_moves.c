/* SPDX-License-Identifier: Apache-2.0 */
/* What was changed to fit an NPU: a list, and what it cost. */
#include "cli/command/quantize.h"
#include "cli/term/json.h"

enum { N_SHOWN = 6 };

int cli_quantize_print_moves(const cli_quantize_report *r, int column)
{
    oct_quantize_move m = {.struct_size = sizeof(m)};
    int32_t n = 0;

    while (oct_quantized_move(r->q, n, &m))
        n++;
    if (n)
        cli_fact(stdout, column, "fitted", "%d scale%s to the shifters of an NPU:", (int)n,
                 n == 1 ? "" : "s");
    for (int32_t i = 0; i < n && i < N_SHOWN && oct_quantized_move(r->q, i, &m); i++)
        cli_fact(stdout, column, "", "%s 2^%d -> 2^%d: %s of %s", m.value, -(int)m.from, -(int)m.to,
                 m.limit, m.node);
    if (n > N_SHOWN) cli_fact(stdout, column, "", ".. (--json has all of them)");
    return n;
}

void cli_quantize_moves_json(cli_json *j, const cli_quantize_report *r)
{
    oct_quantize_move m = {.struct_size = sizeof(m)};
    cli_json *list = cli_json_array();

    for (int32_t i = 0; oct_quantized_move(r->q, i, &m); i++) {
        cli_json *row = cli_json_object();

        cli_json_str(row, "value", m.value);
        cli_json_str(row, "node", m.node);
        cli_json_str(row, "limit", m.limit);
        cli_json_int(row, "from", m.from);
        cli_json_int(row, "to", m.to);
        cli_json_add(list, NULL, row);
    }
    cli_json_add(j, "moved", list);
}
