/* SPDX-License-Identifier: Apache-2.0 */
/* octet prune: a network with fewer channels. */
#include <octet/prune.h>

#include "cli/cli.h"
#include "cli/guard.h"
#include "cli/model.h"
#include "cli/term/table.h"

typedef struct args {
    const char *output, *importance, *keep;
    double flops, params, channels, time, most;
    int64_t multiple;
    bool global, mask;
    cli_list shapes;
} args;

static const cli_opt opts[] = {
    {CLI_STR, "output", offsetof(args, output), "FILE", .help = "the ONNX file to write",
     .letter = 'o', .role = CLI_WRITES},
    {CLI_F64, "flops-target", offsetof(args, flops), "SHARE", .max = 1,
     .help = "remove this share of the multiply-adds: 0.4"},
    {CLI_F64, "params-target", offsetof(args, params), "SHARE", .max = 1,
     .help = "remove this share of the weights"},
    {CLI_F64, "channels", offsetof(args, channels), "SHARE", .max = 1,
     .help = "remove this share of the channels of each layer"},
    {CLI_F64, "time-target", offsetof(args, time), "SHARE", .max = 1,
     .help = "remove this share of the time of a run, measured on this machine"},
    {CLI_STR, "importance", offsetof(args, importance), "IMPORTANCE", .def = "l2",
     .help = "what tells how much a channel matters"},
    {CLI_FLAG, "global", offsetof(args, global),
     .help = "let all layers compete, instead of taking the same share of each"},
    {CLI_F64, "most", offsetof(args, most), "SHARE", .def = "0.9", .max = 1,
     .help = "take at most this share of a layer's channels"},
    {CLI_INT, "multiple", offsetof(args, multiple), "N", .def = "8", .min = 1,
     .help = "leave a multiple of N channels: kernels like 8 or 16"},
    {CLI_STR, "keep", offsetof(args, keep), "REGEX",
     .help = "layers whose name matches keep their channels"},
    {CLI_FLAG, "mask", offsetof(args, mask),
     .help = "set channels to zero instead of cutting them out"},
    CLI_OPT_INPUT_SHAPE(args),
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", "an ONNX file", CLI_FILE_IN},
    {0},
};

static const cli_example examples[] = {
    {"prune net.onnx -o small.onnx --flops-target 0.4",
     "40 % fewer multiply-adds; train small.onnx afterwards (octet train)"},
    {"prune net.onnx -o small.onnx --channels 0.5 --importance l1 --multiple 16",
     "Half of the channels of each layer"},
    {"prune net.onnx -o small.onnx --flops-target 0.3 --global --keep head",
     "Where it hurts least, but not in the head"},
    {"prune net.onnx -o small.onnx --time-target 0.25", "A quarter faster on this machine"},
    {0},
};

/* --- what is shown --- */

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

static void print_text(const oct_prune_result *r, const char *in, const char *out)
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

static oct_status print_json(cli *c, const oct_prune_result *r, const char *out)
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
    st = cli_json_print(c, j);
    cli_json_free(j);
    return st;
}

/* --- the command --- */

static oct_status check(cli *c, const args *a)
{
    if (!a->output) return cli_missing(c, "option --output (-o OUT.onnx)");
    if (!(a->flops > 0) && !(a->params > 0) && !(a->channels > 0) && !(a->time > 0))
        return cli_missing(c, "how much to prune: --flops-target 0.4, --params-target, --channels "
                              "or --time-target");
    return cli_check_model_name(c, "--output", a->output);
}

static void fill_options(const args *a, oct_prune_options *o)
{
    oct_prune_options_init(o);
    o->flops_target = a->flops;
    o->params_target = a->params;
    o->channels = a->channels;
    o->time_target = a->time;
    o->importance = a->importance;
    o->global = a->global;
    o->most = a->most;
    o->multiple = (int32_t)(a->multiple > 1 << 20 ? 1 << 20 : a->multiple);
    o->keep = a->keep;
    o->mask = a->mask;
}

static oct_status run(cli *c, const void *argp, char **files)
{
    const args *a = argp;
    oct_graph *g = NULL, *small = NULL;
    oct_prune_result *r = NULL;
    oct_prune_options o;
    oct_status st;

    if ((st = check(c, a))) return st;
    fill_options(a, &o);
    if ((st = cli_model_load(c, files[0], &a->shapes, &g))) return st;
    st = oct_prune_run(g, &o, &small, &r);
    cli_progress_end(c);
    cli_hold_interrupts();
    if (!st) st = cli_model_save(c, small, a->output, false);
    cli_release_interrupts();
    if (!st && c->opt.json)
        st = print_json(c, r, a->output);
    else if (!st && !c->opt.quiet)
        print_text(r, files[0], a->output);
    oct_prune_result_free(r);
    oct_graph_free(small);
    oct_graph_free(g);
    return st;
}

const cli_command cmd_prune = {
    .name = "prune",
    .help = "remove channels that matter least",
    .about =
        "Cuts whole channels out of the network: filters, biases, norms, and the weights that read "
        "them. Channels that can only go together go together: through additions, concatenations, "
        "splits, reshapes, channel shuffles, grouped and depthwise convolutions, gates and heads "
        "of "
        "attention. What is an output, or cannot be followed, stays, and the table says why.\n\n"
        "A pruned network has to be trained again (octet train) before it is as good as it was; "
        "prune before quantizing.\n\n"
        "With --json: output, macs, params and channels with what is left of each, groups, "
        "groups_protected, layers (name, op, channels, inputs, macs, params with what is left, "
        "why, "
        "at).",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
