/* SPDX-License-Identifier: Apache-2.0 */
/* What octet prune shows: layers before and after, or JSON. */
#include "cli/command/prune.h"
#include "cli/model.h"
#include "cli/term/table.h"

static double percent(int64_t before, int64_t after)
{
    return before > 0 ? 100.0 * (1.0 - (double)after / (double)before) : 0.0;
}

static void count_cell(cli_table *t, int64_t n)
{
    char text[CLI_UNIT_SIZE];

    cli_table_cell(t, "%s", cli_count((double)n, text));
}

static void print_layers(const oct_prune_result *r)
{
    static const cli_column columns[] = {{"layer", CLI_SHRINK},  {"channels", CLI_RIGHT},
                                         {"left", CLI_RIGHT},    {"MACs", CLI_RIGHT, 3},
                                         {"left", CLI_RIGHT, 2}, {"why it keeps all", CLI_WRAP}};
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));
    oct_prune_layer l = {.struct_size = sizeof(l)};

    for (int32_t i = 0; oct_prune_get_layer(r, i, &l); i++) {
        cli_table_cell(t, "%s", l.name);
        cli_table_cell(t, "%lld", (long long)l.channels);
        cli_table_cell(t, "%lld", (long long)l.channels_left);
        count_cell(t, l.macs);
        count_cell(t, l.macs_left);
        if (l.why && l.at)
            cli_table_cell(t, "%s (%s)", l.why, l.at);
        else
            cli_table_cell(t, "%s", l.why ? l.why : "");
    }
    cli_table_print(t, stdout);
    cli_table_free(t);
}

static void total_row(cli_table *t, const char *what, int64_t before, int64_t after,
                      const char *(*words)(double v, char text[CLI_UNIT_SIZE]))
{
    char text[CLI_UNIT_SIZE];

    cli_table_cell(t, "%s", what);
    cli_table_cell(t, "%s", words((double)before, text));
    cli_table_cell(t, "%s", words((double)after, text));
    cli_table_cell(t, "%.1f %%", percent(before, after));
}

void cli_prune_print(const oct_prune_result *r, const char *in, const char *out)
{
    static const cli_column columns[] = {
        {"", CLI_LEFT}, {"before", CLI_RIGHT}, {"after", CLI_RIGHT}, {"removed", CLI_RIGHT}};
    oct_prune_totals s = {.struct_size = sizeof(s)};
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));

    oct_prune_get_totals(r, &s);
    print_layers(r);
    total_row(t, "channels", s.channels, s.channels_left, cli_count);
    total_row(t, "MACs", s.macs, s.macs_left, cli_count);
    total_row(t, "parameters", s.params, s.params_left, cli_count);
    if (s.time_ms > 0)
        total_row(t, "time", (int64_t)(s.time_ms * 1e6), (int64_t)(s.time_ms_left * 1e6), cli_time);
    total_row(t, "file", cli_file_size(in), cli_file_size(out), cli_bytes);
    (void)printf("\n");
    cli_table_print(t, stdout);
    cli_table_free(t);
    (void)printf("\n%d of %d groups of channels had to stay. %s written\n", (int)s.n_protected,
                 (int)s.n_groups, out);
}

static cli_json *layer_json(const oct_prune_layer *l)
{
    cli_json *j = cli_json_object();

    cli_json_str(j, "name", l->name);
    cli_json_str(j, "op", l->op);
    cli_json_int(j, "channels", l->channels);
    cli_json_int(j, "channels_left", l->channels_left);
    cli_json_int(j, "inputs", l->inputs);
    cli_json_int(j, "inputs_left", l->inputs_left);
    cli_json_int(j, "macs", l->macs);
    cli_json_int(j, "macs_left", l->macs_left);
    cli_json_int(j, "params", l->params);
    cli_json_int(j, "params_left", l->params_left);
    cli_json_str(j, "why", l->why);
    cli_json_str(j, "at", l->at);
    return j;
}

oct_status cli_prune_print_json(cli *c, const oct_prune_result *r, const char *out, bool one_line)
{
    oct_prune_totals s = {.struct_size = sizeof(s)};
    oct_prune_layer l = {.struct_size = sizeof(l)};
    cli_json *j = cli_json_object(), *layers = cli_json_array();
    oct_status st;

    oct_prune_get_totals(r, &s);
    for (int32_t i = 0; oct_prune_get_layer(r, i, &l); i++)
        cli_json_add(layers, NULL, layer_json(&l));
    cli_json_str(j, "output", out);
    cli_json_int(j, "macs", s.macs);
    cli_json_int(j, "macs_left", s.macs_left);
    cli_json_int(j, "params", s.params);
    cli_json_int(j, "params_left", s.params_left);
    cli_json_int(j, "channels", s.channels);
    cli_json_int(j, "channels_left", s.channels_left);
    cli_json_int(j, "groups", s.n_groups);
    cli_json_int(j, "groups_protected", s.n_protected);
    if (s.time_ms > 0) {
        cli_json_round(j, "time_ms", s.time_ms, 3);
        cli_json_round(j, "time_ms_left", s.time_ms_left, 3);
    }
    cli_json_add(j, "layers", layers);
    st = one_line ? cli_json_line(c, j) : cli_json_print(c, j);
    cli_json_free(j);
    return st;
}

oct_status cli_sparsity_print(cli *c, const oct_sparsity_result *r, const char *out)
{
    const double share = r->weights > 0 ? (double)r->zeros / (double)r->weights : 0;
    cli_json *j;
    oct_status st;

    if (!c->opt.json && !c->opt.quiet)
        cli_say(stdout, "%s: %.1f %% of the weights of %d layers are zero, %d layers have none",
                out, 100 * share, (int)r->n_layers, (int)r->n_dense);
    if (!c->opt.json) return OCT_OK;
    j = cli_json_object();
    cli_json_str(j, "output", out);
    cli_json_int(j, "weights", r->weights);
    cli_json_int(j, "zeros", r->zeros);
    cli_json_int(j, "layers", r->n_layers);
    cli_json_int(j, "layers_dense", r->n_dense);
    st = cli_json_line(c, j);
    cli_json_free(j);
    return st;
}
