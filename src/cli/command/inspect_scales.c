/* SPDX-License-Identifier: Apache-2.0 */
/* octet inspect --scales: type, scale and zero point of each quantized tensor. */
#include <stdio.h>

#include "cli/command/inspect.h"
#include "cli/near.h"
#include "cli/term/json.h"
#include "cli/term/table.h"

enum { NUMBER_SIZE = 48 };

static bool is_shown(const cli_regex *re, const oct_scale_info *s)
{
    return !re || cli_regex_match(re, s->value) || (s->node && cli_regex_match(re, s->node));
}

static bool get(const oct_scale_list *all, int32_t i, oct_scale_info *s)
{
    *s = (oct_scale_info){.struct_size = sizeof(*s)};
    return oct_scale_list_at(all, i, s) != 0;
}

/* "0.25", or "0.01..0.25" where channels have their own. */
static const char *range_text(double low, double high, char text[NUMBER_SIZE])
{
    if (low < high)
        (void)snprintf(text, NUMBER_SIZE, "%.3g..%.3g", low, high);
    else
        (void)snprintf(text, NUMBER_SIZE, "%.4g", low);
    return text;
}

static void add_row(cli_table *t, const oct_scale_info *s, bool has_qmap)
{
    char text[NUMBER_SIZE];

    cli_table_cell(t, "%s", s->value);
    cli_table_cell(t, "%s", s->kind);
    cli_table_cell(t, "%s", oct_dtype_name(s->type));
    cli_table_cell(t, "%s", range_text(s->scale_min, s->scale_max, text));
    cli_table_cell(t, "%s", range_text(s->zero_min, s->zero_max, text));
    /* What 32 bits could hold of a bias is of no interest. */
    cli_table_cell(t, "%s", s->type == OCT_DTYPE_I32 ? "" : range_text(s->low, s->high, text));
    if (!has_qmap) return;
    cli_table_cell(t, "%s", s->has_seen ? range_text(s->seen_low, s->seen_high, text) : "");
    cli_table_cell(t, "%s", s->scale_by ? s->scale_by : "");
}

static void print_table(const oct_scale_list *all, const cli_regex *re, bool has_qmap)
{
    static const cli_column columns[] = {{"value", CLI_SHRINK, 0}, {"kind", CLI_LEFT, 3},
                                         {"type", CLI_LEFT, 2},    {"scale", CLI_RIGHT, 0},
                                         {"zero", CLI_RIGHT, 0},   {"range", CLI_RIGHT, 0},
                                         {"seen", CLI_RIGHT, 1},   {"set by", CLI_WRAP, 0}};
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns) - (has_qmap ? 0 : 2));
    int shown = 0, i = 0;
    oct_scale_info s;

    for (; get(all, i, &s); i++) {
        if (!is_shown(re, &s)) continue;
        add_row(t, &s, has_qmap);
        shown++;
    }
    cli_table_print(t, stdout);
    cli_table_free(t);
    if (re) (void)printf("%d of %d quantized tensors\n", shown, i);
}

static void put_text(cli_json *j, const char *key, const char *text)
{
    if (text)
        cli_json_str(j, key, text);
    else
        cli_json_null(j, key);
}

static cli_json *pair_json(double low, double high)
{
    cli_json *j = cli_json_array();

    cli_json_num(j, NULL, low);
    cli_json_num(j, NULL, high);
    return j;
}

static cli_json *scale_json(const oct_scale_info *s)
{
    cli_json *j = cli_json_object();

    cli_json_str(j, "value", s->value);
    put_text(j, "node", s->node);
    cli_json_str(j, "kind", s->kind);
    cli_json_str(j, "type", oct_dtype_name(s->type));
    cli_json_int(j, "n_scales", s->n_scales);
    cli_json_add(j, "scale", pair_json(s->scale_min, s->scale_max));
    cli_json_add(j, "zero", pair_json(s->zero_min, s->zero_max));
    cli_json_add(j, "range", pair_json(s->low, s->high));
    if (s->has_seen)
        cli_json_add(j, "seen", pair_json(s->seen_low, s->seen_high));
    else
        cli_json_null(j, "seen");
    put_text(j, "observer", s->observer);
    put_text(j, "scale_by", s->scale_by);
    return j;
}

static oct_status print_json(cli *c, const char *path, const oct_scale_list *all,
                             const cli_regex *re)
{
    cli_json *j = cli_json_object(), *list = cli_json_array();
    oct_scale_info s;
    oct_status st;

    cli_json_str(j, "file", path);
    for (int32_t i = 0; get(all, i, &s); i++)
        if (is_shown(re, &s)) cli_json_add(list, NULL, scale_json(&s));
    cli_json_add(j, "scales", list);
    st = cli_json_print(c, j);
    cli_json_free(j);
    return st;
}

/* A file without scales, or a filter that matches none, is a mistake. */
static oct_status check(cli *c, const char *path, const oct_scale_list *all, const cli_regex *re,
                        const char *filter)
{
    oct_scale_info s;
    cli_near near;

    if (!get(all, 0, &s)) return cli_fail(c, OCT_ERR_ARG, "%s: no tensor of it is quantized", path);
    if (!re) return OCT_OK;
    cli_near_init(&near, filter, true);
    for (int32_t i = 0; get(all, i, &s); i++) {
        if (is_shown(re, &s)) return OCT_OK;
        cli_near_try(&near, s.value);
    }
    return cli_fail(c, OCT_ERR_ARG, "%s: no quantized tensor matches '%s'%s", path, filter,
                    cli_near_text(&near));
}

oct_status cli_inspect_scales(cli *c, const char *path, const oct_graph *g, const char *qmap,
                              const cli_regex *re, const char *filter)
{
    oct_scale_list *all = NULL;
    oct_status st = oct_graph_scales(g, qmap, &all);

    if (!st) st = check(c, path, all, re, filter);
    if (!st && c->opt.json)
        st = print_json(c, path, all, re);
    else if (!st)
        print_table(all, re, qmap != NULL);
    oct_scale_list_free(all);
    return st;
}
