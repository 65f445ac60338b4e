/* SPDX-License-Identifier: Apache-2.0 */
/* octet inspect --npu: the limits of NPUs with power-of-two scales that a file breaks. */
#include <stdio.h>
#include <stdlib.h>

#include <octet/quant.h>

#include "cli/command/inspect.h"
#include "cli/term/json.h"
#include "cli/term/table.h"

enum { NUMBER_SIZE = 32, FAR = 1000000 /* a bound that only seems to be one */ };

static bool get(const oct_limit_list *all, int32_t i, oct_limit_info *l)
{
    *l = (oct_limit_info){.struct_size = sizeof(*l)};
    return oct_limit_list_at(all, i, l) != 0;
}

static bool is_shown(const cli_regex *re, const oct_limit_info *l)
{
    return !re || cli_regex_match(re, l->what);
}

/* "8", "0..16", "at least 7". */
static const char *allowed(const oct_limit_info *l, char text[NUMBER_SIZE])
{
    if (l->high > FAR)
        (void)snprintf(text, NUMBER_SIZE, "at least %d", (int)l->low);
    else if (l->low == l->high)
        (void)snprintf(text, NUMBER_SIZE, "%d", (int)l->low);
    else
        (void)snprintf(text, NUMBER_SIZE, "%d..%d", (int)l->low, (int)l->high);
    return text;
}

static void print_table(const oct_limit_list *all, const cli_regex *re)
{
    static const cli_column columns[] = {{"layer or tensor", CLI_SHRINK, 0},
                                         {"limit", CLI_LEFT, 0},
                                         {"of", CLI_LEFT, 1},
                                         {"is", CLI_RIGHT, 0},
                                         {"may be", CLI_RIGHT, 0},
                                         {"right", CLI_WRAP, 0}};
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));
    oct_limit_info l;

    for (int32_t i = 0; get(all, i, &l); i++) {
        char text[NUMBER_SIZE];

        if (!is_shown(re, &l)) continue;
        cli_table_cell(t, "%s", l.what);
        cli_table_cell(t, "%s", l.limit);
        cli_table_cell(t, "%s", l.quantity);
        cli_table_cell(t, "%d", (int)l.value);
        cli_table_cell(t, "%s", allowed(&l, text));
        cli_table_cell(t, "%s", l.right);
    }
    cli_table_print(t, stdout);
    cli_table_free(t);
}

static oct_status print_json(cli *c, const char *path, const oct_limit_list *all,
                             const cli_regex *re)
{
    cli_json *j = cli_json_object(), *list = cli_json_array();
    oct_limit_info l;
    oct_status st;

    cli_json_str(j, "file", path);
    for (int32_t i = 0; get(all, i, &l); i++) {
        cli_json *row;

        if (!is_shown(re, &l)) continue;
        row = cli_json_object();
        cli_json_str(row, "what", l.what);
        cli_json_str(row, "limit", l.limit);
        cli_json_str(row, "quantity", l.quantity);
        cli_json_int(row, "value", l.value);
        cli_json_int(row, "low", l.low);
        if (l.high > FAR)
            cli_json_null(row, "high");
        else
            cli_json_int(row, "high", l.high);
        cli_json_str(row, "right", l.right);
        cli_json_add(list, NULL, row);
    }
    cli_json_add(j, "broken", list);
    st = cli_json_print(c, j);
    cli_json_free(j);
    return st;
}

oct_status cli_inspect_npu(cli *c, const char *path, const oct_graph *g, const cli_regex *re)
{
    oct_limit_list *all = NULL;
    oct_limit_info l;
    oct_status st = oct_graph_npu_check(g, &all);
    int n = 0;

    for (int32_t i = 0; !st && get(all, i, &l); i++)
        n += is_shown(re, &l);
    if (!st && c->opt.json) st = print_json(c, path, all, re);
    if (!st && !c->opt.json && n && !c->opt.quiet) print_table(all, re);
    if (!st && !c->opt.json && !n && !c->opt.quiet)
        (void)printf("%s keeps all limits of NPUs with power-of-two scales\n", path);
    oct_limit_list_free(all);
    if (!st && n)
        st = cli_fail(c, OCT_ERR_UNSUPPORTED, "%s: breaks limits of NPUs in %d place%s", path, n,
                      n == 1 ? "" : "s");
    return st;
}
