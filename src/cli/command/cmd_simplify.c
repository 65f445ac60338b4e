/* SPDX-License-Identifier: Apache-2.0 */
/* octet simplify: the same network with fewer nodes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/guard.h"
#include "cli/model.h"
#include "cli/near.h"
#include "cli/term/table.h"

typedef struct args {
    bool list;
    const char *output, *only, *skip, *outputs;
    cli_list shapes;
} args;

static const cli_opt opts[] = {
    {CLI_STR, "output", offsetof(args, output), "FILE", .letter = 'o', .role = CLI_WRITES,
     .help = "the same as OUT"},
    {CLI_ALONE, "list", offsetof(args, list), .help = "list the passes and what each promises"},
    {CLI_STR, "only", offsetof(args, only), "PASS,..", .help = "run only these passes"},
    {CLI_STR, "skip", offsetof(args, skip), "PASS,..", .help = "leave these passes out"},
    CLI_OPT_OUTPUTS(args),
    CLI_OPT_INPUT_SHAPE(args),
    {0},
};

static const cli_file file_args[] = {
    {"IN", CLI_A_NETWORK, CLI_FILE_IN},
    {"OUT", "the ONNX file to write; or -o", CLI_FILE_OUT | CLI_FILE_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"simplify yolov8n.onnx yolov8n_simple.onnx", "Run all passes and show what changed"},
    {"simplify net.onnx out.onnx --input-shape images:1x3x640x640",
     "Fix an open input shape, so that shape arithmetic folds away"},
    {"simplify net.onnx out.onnx --outputs boxes,scores",
     "Only these outputs, without what only the others need"},
    {"simplify --list", "Show the passes"},
    {"simplify net.onnx out.onnx --skip find-silu", "Leave one pass out"},
    {0},
};

/* --- the list of passes --- */

static oct_status print_passes(cli *c)
{
    static const cli_column columns[] = {
        {"pass", CLI_LEFT}, {"promise", CLI_LEFT}, {"what it does", CLI_WRAP}};
    cli_table *t;
    cli_json *list;
    oct_status st;

    if (!c->opt.json) {
        t = cli_table_new(columns, (int)CLI_COUNT(columns));
        for (int32_t i = 0; oct_pass_name(i); i++) {
            cli_table_cell(t, "%s", oct_pass_name(i));
            cli_table_cell(t, "%s", oct_pass_promise(oct_pass_name(i)));
            cli_table_cell(t, "%s", oct_pass_help(oct_pass_name(i)));
        }
        cli_table_print(t, stdout);
        cli_table_free(t);
        return OCT_OK;
    }
    list = cli_json_array();
    for (int32_t i = 0; oct_pass_name(i); i++) {
        cli_json *j = cli_json_object();

        cli_json_str(j, "name", oct_pass_name(i));
        cli_json_str(j, "promise", oct_pass_promise(oct_pass_name(i)));
        cli_json_str(j, "help", oct_pass_help(oct_pass_name(i)));
        cli_json_add(list, NULL, j);
    }
    st = cli_json_print(c, list);
    cli_json_free(list);
    return st;
}

/* Are all names of a comma-separated list passes? */
static oct_status check_passes(cli *c, const char *option, const char *names)
{
    for (const char *p = names; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        char *name = cli_format("%.*s", (int)strcspn(p, ","), p);
        const bool known = oct_pass_help(name) != NULL;
        cli_near near;

        cli_near_init(&near, name, false);
        for (int32_t i = 0; !known && oct_pass_name(i); i++)
            cli_near_try(&near, oct_pass_name(i));
        if (!known)
            (void)cli_fail(
                c, OCT_ERR_ARG,
                "option --%s: there is no pass '%s'%s; 'octet simplify --list' shows all", option,
                name, cli_near_text(&near));
        free(name);
        if (!known) return OCT_ERR_ARG;
    }
    return OCT_OK;
}

/* --- before and after --- */

static void change_cell(cli_table *t, int64_t before, int64_t after)
{
    if (before == after)
        cli_table_cell(t, "%s", "");
    else
        cli_table_cell(t, "%+lld", (long long)(after - before));
}

static void op_row(cli_table *t, const char *op, const cli_totals *before, const cli_totals *after)
{
    const cli_op_count *b = cli_totals_find(before, op), *a = cli_totals_find(after, op);

    cli_table_cell(t, "%s", op);
    cli_table_cell(t, "%lld", b ? (long long)b->n : 0);
    cli_table_cell(t, "%lld", a ? (long long)a->n : 0);
    change_cell(t, b ? b->n : 0, a ? a->n : 0);
}

/* Millions are shown with units; --json has every digit. */
static void total_row(cli_table *t, const char *what, int64_t before, int64_t after,
                      const char *(*words)(double v, char text[CLI_UNIT_SIZE]))
{
    const int64_t change = after - before;
    char text[CLI_UNIT_SIZE];

    cli_table_cell(t, "%s", what);
    cli_table_cell(t, "%s", words((double)before, text));
    cli_table_cell(t, "%s", words((double)after, text));
    if (change)
        cli_table_cell(t, "%c%s", change < 0 ? '-' : '+', words(fabs((double)change), text));
    else
        cli_table_cell(t, "%s", "");
}

static void print_text(const cli_totals *before, const cli_totals *after, const char *const *files,
                       int64_t bytes_before)
{
    static const cli_column columns[] = {
        {"operator", CLI_LEFT}, {"before", CLI_RIGHT}, {"after", CLI_RIGHT}, {"change", CLI_RIGHT}};
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));

    for (int i = 0; i < before->n_ops; i++)
        op_row(t, before->ops[i].op, before, after);
    for (int i = 0; i < after->n_ops; i++)
        if (!cli_totals_find(before, after->ops[i].op)) op_row(t, after->ops[i].op, before, after);
    cli_table_rule(t);
    cli_table_cell(t, "nodes");
    cli_table_cell(t, "%lld", (long long)before->n_nodes);
    cli_table_cell(t, "%lld", (long long)after->n_nodes);
    change_cell(t, before->n_nodes, after->n_nodes);
    total_row(t, "parameters", before->params, after->params, cli_count);
    total_row(t, "MACs", before->macs, after->macs, cli_count);
    total_row(t, "file", bytes_before, cli_file_size(files[1]), cli_bytes);
    cli_table_print(t, stdout);
    cli_table_free(t);
    (void)printf("\n%s written\n", files[1]);
}

static cli_json *totals_json(const char *path, const cli_totals *total, int64_t bytes)
{
    cli_json *j = cli_json_object(), *ops = cli_json_object();

    for (int i = 0; i < total->n_ops; i++)
        cli_json_int(ops, total->ops[i].op, total->ops[i].n);
    cli_json_str(j, "file", path);
    cli_json_int(j, "nodes", total->n_nodes);
    cli_json_int(j, "params", total->params);
    cli_json_int(j, "macs", total->macs);
    cli_json_int(j, "bytes", bytes);
    cli_json_add(j, "operators", ops);
    return j;
}

static oct_status print_json(cli *c, const cli_totals *before, const cli_totals *after,
                             const char *const *files, int64_t bytes_before)
{
    cli_json *j = cli_json_object();
    oct_status st;

    cli_json_add(j, "before", totals_json(files[0], before, bytes_before));
    cli_json_add(j, "after", totals_json(files[1], after, cli_file_size(files[1])));
    st = cli_json_print(c, j);
    cli_json_free(j);
    return st;
}

static oct_status run(cli *c, const void *argp, char **given)
{
    const args *a = argp;
    const char *const files[] = {given[0], a->output ? a->output : given[1]};
    oct_graph *g = NULL;
    cli_totals before = {0}, after = {0};
    oct_simplify_options o;
    int64_t bytes;
    oct_status st;

    if (a->list) return print_passes(c);
    if (!files[1]) return cli_missing(c, "OUT");
    if (a->output && given[1]) return cli_fail(c, OCT_ERR_ARG, "OUT and --output are the same");
    if ((st = cli_check_model_name(c, NULL, files[1]))) return st;
    if ((st = check_passes(c, "only", a->only))) return st;
    if ((st = check_passes(c, "skip", a->skip))) return st;
    oct_simplify_options_init(&o);
    o.only = a->only;
    o.skip = a->skip;
    bytes = cli_file_size(files[0]);

    if ((st = cli_model_load(c, files[0], &a->shapes, &g))) goto done;
    cli_totals_init(&before, g);
    if ((st = cli_model_keep_outputs(c, a->outputs, g))) goto done;
    if ((st = oct_graph_simplify(g, &o))) goto done;
    cli_totals_init(&after, g);
    c->model = files[1];
    cli_hold_interrupts();
    st = cli_model_save(c, g, files[1], false);
    cli_release_interrupts();
    if (st) goto done;
    if (c->opt.json)
        st = print_json(c, &before, &after, files, bytes);
    else if (!c->opt.quiet)
        print_text(&before, &after, files, bytes);
done:
    cli_totals_fini(&before);
    cli_totals_fini(&after);
    oct_graph_free(g);
    return st;
}

const cli_command cmd_simplify = {
    .name = "simplify",
    .help = "write the same network with fewer nodes",
    .about =
        "Runs the normalisation passes until nothing changes: constants and shapes are folded, "
        "batch normalisation and re-parameterised branches go into the convolutions, copies and "
        "dead nodes go away. A pass that is bit-exact keeps every bit of the outputs, a close one "
        "keeps them up to rounding.\n\n"
        "With --json: before and after, each with file, nodes, params, macs, bytes, operators.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
