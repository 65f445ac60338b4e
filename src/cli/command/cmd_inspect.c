/* SPDX-License-Identifier: Apache-2.0 */
/* octet inspect: what is in a model. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command/inspect.h"
#include "cli/command/quantize.h"
#include "cli/model.h"
#include "cli/near.h"
#include "cli/regex.h"
#include "cli/term/table.h"

typedef struct args {
    const char *graph, *filter, *qmap;
    bool scales, npu;
    cli_list shapes;
} args;

static const cli_opt opts[] = {
    {CLI_STR, "graph", offsetof(args, graph), "FILE", .role = CLI_WRITES,
     .help = "draw the whole model into FILE: .svg, .png, .pdf or .dot"},
    {CLI_STR, "filter", offsetof(args, filter), "REGEX",
     .help = "list only nodes in whose name or operator the pattern (PCRE) is found; ^ and $ "
             "anchor it. With ^ in front, what octet quantize --ignore-pattern would keep float"},
    {CLI_FLAG, "scales", offsetof(args, scales), NULL,
     .help = "of a quantized model: only its scales, a row for each quantized tensor. --filter "
             "takes tensors by the name of the value or of the node that reads it"},
    {CLI_STR, "qmap", offsetof(args, qmap), "FILE", .role = CLI_READS,
     .help = "with --scales: what octet quantize --save-qmap wrote with the model; shows also the "
             "range that calibration saw, and how each scale came about"},
    {CLI_FLAG, "npu", offsetof(args, npu), NULL,
     .help = "of a quantized model, by whomever: only the limits of NPUs with power-of-two scales "
             "that it breaks, and what would be right; exit status 1 if there are any"},
    CLI_OPT_INPUT_SHAPE(args),
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", CLI_A_NETWORK, CLI_FILE_IN},
    {0},
};

static const cli_example examples[] = {
    {"inspect yolov8n.onnx", "Inputs, outputs, all nodes with shapes, parameters and MACs"},
    {"inspect yolov8n.onnx --filter 'model.22/.*Conv$'", "Only the convolutions of the head"},
    {"inspect yolov8n.onnx --filter '^/model.22/cv2'",
     "What octet quantize --ignore-pattern '/model.22/cv2' keeps float"},
    {"inspect yolov8n.onnx --graph yolov8n.svg --quiet",
     "Only the drawing, with types and shapes on the edges"},
    {"inspect yolov8n_int8.onnx --scales --qmap yolov8n.qmap.json --filter model.22",
     "Scales of the head, and how they came about"},
    {"inspect yolo_nas_npu.onnx --npu", "Would its shifts fit an NPU?"},
    {"inspect net.onnx --input-shape 1x3x416x416 --json",
     "A network with open dimensions, at one size, for other programs"},
    {0},
};

static bool shown(const cli_regex *re, const oct_node *n)
{
    return !re || cli_regex_match(re, cli_node_label(n)) || cli_regex_match(re, oct_node_op(n));
}

/* A filter that matches nothing is a mistake: suggests near names. */
static oct_status check_filter(cli *c, const oct_graph *g, const cli_regex *re, const char *filter)
{
    cli_near near;

    if (!re) return OCT_OK;
    cli_near_init(&near, filter, true);
    for (const oct_node *n = oct_graph_first_node(g); n; n = oct_node_next(n)) {
        if (shown(re, n)) return OCT_OK;
        cli_near_try(&near, cli_node_label(n));
    }
    return cli_fail(c, OCT_ERR_ARG, "%s: no node's name or operator matches '%s'%s", c->model,
                    filter, cli_near_text(&near));
}

/* If octet cannot read the integers of a file, inspect still shows the rest. */
static void find_faults(const cli *c, const oct_graph *g, oct_fault_list **f)
{
    if (oct_graph_diagnose(g, f))
        cli_note(c, "note: the integers of this file were not checked: %s", oct_ctx_error(c->ctx));
}

/* --- for people --- */

static void print_values(const char *title, const oct_graph *g, int32_t n,
                         const oct_value *(*get)(const oct_graph *g, int32_t i))
{
    const cli_column columns[] = {{title, CLI_SHRINK}, {"type", CLI_LEFT}, {"shape", CLI_LEFT}};
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));
    char shape[CLI_SHAPE_SIZE];

    for (int32_t i = 0; i < n; i++) {
        cli_table_cell(t, "%s", oct_value_name(get(g, i)));
        cli_table_cell(t, "%s", oct_dtype_name(oct_value_dtype(get(g, i))));
        cli_table_cell(t, "%s", cli_shape_text(get(g, i), shape));
    }
    cli_table_print(t, stdout);
    cli_table_free(t);
    (void)puts("");
}

/* An empty cell reads better than a zero. */
static void count_cell(cli_table *t, int64_t v)
{
    char text[CLI_UNIT_SIZE];

    cli_table_cell(t, "%s", v ? cli_count((double)v, text) : "");
}

static void print_nodes(const oct_graph *g, const cli_regex *re)
{
    static const cli_column columns[] = {
        {"#", CLI_RIGHT, 2},     {"node", CLI_SHRINK, 0}, {"operator", CLI_LEFT, 0},
        {"output", CLI_LEFT, 0}, {"type", CLI_LEFT, 3},   {"params", CLI_RIGHT, 0},
        {"MACs", CLI_RIGHT, 0},
    };
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));
    char shape[CLI_SHAPE_SIZE];
    int i = 0, n_shown = 0;

    for (const oct_node *n = oct_graph_first_node(g); n; n = oct_node_next(n), i++) {
        const oct_value *v = NULL;

        if (!shown(re, n)) continue;
        n_shown++;
        for (int32_t k = 0; !v && k < oct_node_n_out(n); k++)
            v = oct_node_output(n, k);
        cli_table_cell(t, "%d", i);
        cli_table_cell(t, "%s", cli_node_label(n));
        cli_table_cell(t, "%s%s%s", oct_node_domain(n), *oct_node_domain(n) ? "." : "",
                       oct_node_op(n));
        cli_table_cell(t, "%s%s", v ? cli_shape_text(v, shape) : "",
                       oct_node_n_out(n) > 1 ? " ..." : "");
        cli_table_cell(t, "%s", v ? oct_dtype_name(oct_value_dtype(v)) : "");
        count_cell(t, oct_node_params(n));
        count_cell(t, oct_node_macs(n));
    }
    cli_table_print(t, stdout);
    cli_table_free(t);
    if (re) (void)printf("%d of %d nodes; of the whole model:\n", n_shown, i);
    (void)puts("");
}

static void print_operators(const cli_totals *total)
{
    static const cli_column columns[] = {
        {"operator", CLI_LEFT},
        {"nodes", CLI_RIGHT},
        {"params", CLI_RIGHT},
        {"MACs", CLI_RIGHT},
    };
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));

    for (int i = 0; i < total->n_ops; i++) {
        const cli_op_count *op = &total->ops[i];

        cli_table_cell(t, "%s", op->op);
        cli_table_cell(t, "%lld", (long long)op->n);
        count_cell(t, op->params);
        count_cell(t, op->macs);
    }
    cli_table_rule(t);
    cli_table_cell(t, "total");
    cli_table_cell(t, "%lld", (long long)total->n_nodes);
    count_cell(t, total->params);
    count_cell(t, total->macs);
    cli_table_print(t, stdout);
    cli_table_free(t);
}

static void print_faults(const oct_fault_list *f)
{
    for (int32_t i = 0; f && oct_fault_list_at(f, i); i++) {
        char *text = cli_format("%s", oct_fault_list_at(f, i));

        cli_text_clean(text);
        (void)puts(i ? "" : "\nWhat is wrong with it:");
        cli_wrap(stdout, text, 2, cli_text_columns(stdout));
        free(text);
    }
}

static void print_text(const char *path, const oct_graph *g, const cli_regex *re,
                       const oct_fault_list *f)
{
    const char *producer = oct_graph_producer(g);
    char size[CLI_UNIT_SIZE], weights[CLI_UNIT_SIZE], head[1024], what[512];
    cli_totals total;

    cli_totals_init(&total, g);
    (void)snprintf(head, sizeof(head), "%s: graph '%s', made by %s, opset %lld, IR version %lld",
                   path, oct_graph_name(g), *producer ? producer : "an unknown tool",
                   (long long)oct_graph_opset(g), (long long)oct_graph_ir_version(g));
    (void)oct_graph_quant_text(g, what, sizeof(what));
    cli_say(stdout, "%s", head);
    cli_say(stdout, "%s", what);
    if (*oct_graph_promise_text(g, what, sizeof(what))) cli_say(stdout, "promise: %s", what);
    cli_say(stdout, "file %s, weights %s", cli_bytes((double)cli_file_size(path), size),
            cli_bytes((double)total.weight_bytes, weights));
    (void)putchar('\n');
    print_values("input", g, oct_graph_n_inputs(g), oct_graph_input);
    print_values("output", g, oct_graph_n_outputs(g), oct_graph_output);
    print_nodes(g, re);
    print_operators(&total);
    print_faults(f);
    cli_totals_fini(&total);
}

/* --- for machines --- */

static cli_json *values_json(const oct_graph *g, int32_t n,
                             const oct_value *(*get)(const oct_graph *g, int32_t i))
{
    cli_json *list = cli_json_array();

    for (int32_t i = 0; i < n; i++)
        cli_json_add(list, NULL, cli_value_json(get(g, i)));
    return list;
}

static cli_json *node_json(const oct_node *n)
{
    cli_json *j = cli_json_object(), *in = cli_json_array(), *out = cli_json_array();

    cli_json_str(j, "name", oct_node_name(n));
    cli_json_str(j, "operator", oct_node_op(n));
    cli_json_str(j, "domain", oct_node_domain(n));
    for (int32_t i = 0; i < oct_node_n_in(n); i++) {
        const oct_value *v = oct_node_input(n, i);

        cli_json_str(in, NULL, v ? oct_value_name(v) : NULL);
    }
    for (int32_t i = 0; i < oct_node_n_out(n); i++) {
        const oct_value *v = oct_node_output(n, i);

        if (v) cli_json_add(out, NULL, cli_value_json(v));
    }
    cli_json_add(j, "inputs", in);
    cli_json_add(j, "outputs", out);
    cli_json_int(j, "params", oct_node_params(n));
    cli_json_int(j, "macs", oct_node_macs(n));
    return j;
}

static cli_json *operators_json(const cli_totals *total)
{
    cli_json *list = cli_json_array();

    for (int i = 0; i < total->n_ops; i++) {
        cli_json *j = cli_json_object();

        cli_json_str(j, "operator", total->ops[i].op);
        cli_json_int(j, "nodes", total->ops[i].n);
        cli_json_int(j, "params", total->ops[i].params);
        cli_json_int(j, "macs", total->ops[i].macs);
        cli_json_add(list, NULL, j);
    }
    return list;
}

/* What of it is quantized, and what octet wrote into the file (null: nothing). */
static cli_json *quantization_json(const oct_graph *g)
{
    oct_quant_info q = {.struct_size = sizeof(q)};
    oct_promise promise = {.struct_size = sizeof(promise)};
    cli_json *j = cli_json_object();
    char text[512];

    oct_graph_quant_info(g, &q);
    cli_json_str(j, "text", oct_graph_quant_text(g, text, sizeof(text)));
    cli_json_int(j, "quantizing_nodes", q.quantizers);
    cli_json_int(j, "layers_total", q.layers_total);
    cli_json_int(j, "layers_quantized", q.layers_quantized);
    cli_json_str(j, "octet_version", q.version);
    cli_json_str(j, "target", q.target);
    cli_json_str(j, "settings", q.settings);
    cli_json_str(j, "source", q.source);
    cli_json_str(j, "source_sha256", q.source_sha256);
    cli_json_str(j, "original_producer", q.original_producer);
    if (oct_graph_promise(g, &promise)) {
        cli_json *k = cli_json_object();

        cli_promise_file_json(k, g);
        cli_json_str(k, "layers", promise.layers);
        cli_json_add(j, "promise", k);
    } else {
        cli_json_null(j, "promise");
    }
    return j;
}

static oct_status print_json(cli *c, const char *path, const oct_graph *g, const cli_regex *re,
                             const oct_fault_list *f)
{
    cli_json *j = cli_json_object(), *nodes = cli_json_array(), *warnings = cli_json_array();
    cli_totals total;
    oct_status st;

    cli_totals_init(&total, g);
    cli_json_str(j, "file", path);
    cli_json_int(j, "file_bytes", cli_file_size(path));
    cli_json_str(j, "graph", oct_graph_name(g));
    cli_json_str(j, "producer", oct_graph_producer(g));
    cli_json_add(j, "quantization", quantization_json(g));
    cli_json_int(j, "opset", oct_graph_opset(g));
    cli_json_int(j, "ir_version", oct_graph_ir_version(g));
    cli_json_add(j, "inputs", values_json(g, oct_graph_n_inputs(g), oct_graph_input));
    cli_json_add(j, "outputs", values_json(g, oct_graph_n_outputs(g), oct_graph_output));
    for (const oct_node *n = oct_graph_first_node(g); n; n = oct_node_next(n))
        if (shown(re, n)) cli_json_add(nodes, NULL, node_json(n));
    cli_json_add(j, "nodes", nodes);
    cli_json_add(j, "operators", operators_json(&total));
    cli_json_int(j, "n_nodes", total.n_nodes);
    cli_json_int(j, "params", total.params);
    cli_json_int(j, "macs", total.macs);
    cli_json_int(j, "weight_bytes", total.weight_bytes);
    for (int32_t i = 0; f && oct_fault_list_at(f, i); i++)
        cli_json_str(warnings, NULL, oct_fault_list_at(f, i));
    cli_json_add(j, "warnings", warnings);
    st = cli_json_print(c, j);
    cli_json_free(j);
    cli_totals_fini(&total);
    return st;
}

static oct_status run(cli *c, const void *argp, char **files)
{
    const args *a = argp;
    oct_graph *g = NULL;
    cli_regex *re = NULL;
    oct_fault_list *f = NULL;
    oct_status st = OCT_OK;

    if (a->qmap && !a->scales)
        return cli_fail(c, OCT_ERR_ARG, "--qmap says where scales come from: give --scales too");
    if (a->npu && a->scales)
        return cli_fail(c, OCT_ERR_ARG, "--npu and --scales are two lists: give one of them");
    if (a->filter && (st = cli_regex_new(c, "filter", a->filter, &re))) return st;
    if ((st = cli_model_load(c, files[0], &a->shapes, &g))) goto done;
    if (a->npu) {
        st = cli_inspect_npu(c, files[0], g, re);
        goto done;
    }
    if (a->scales) {
        st = cli_inspect_scales(c, files[0], g, a->qmap, re, a->filter);
        goto done;
    }
    if ((st = check_filter(c, g, re, a->filter))) goto done;
    if (a->graph) {
        c->model = a->graph;
        cli_hold_interrupts();
        st = oct_graph_draw(g, a->graph);
        cli_release_interrupts();
        if (st) goto done;
    }
    find_faults(c, g, &f);
    if (c->opt.json)
        st = print_json(c, files[0], g, re, f);
    else if (!(c->opt.quiet && a->graph))
        print_text(files[0], g, re, f);
done:
    oct_fault_list_free(f);
    oct_graph_free(g);
    cli_regex_free(re);
    return st;
}

const cli_command cmd_inspect = {
    .name = "inspect",
    .help = "show what is in a model: inputs, nodes, shapes, parameters, work",
    .about =
        "MACs are multiply-adds of one inference at the shapes shown; they are known where "
        "shapes are. Dimensions without a size are shown by name, as <batch>, or as ?. A network "
        "that is quantized already is checked: what its scales make impossible is said at the "
        "end.\n\n"
        "With --json: file, file_bytes, graph, producer, opset, ir_version, inputs, outputs "
        "(name, type, shape), nodes (name, operator, domain, inputs, outputs, params, macs), "
        "operators (operator, nodes, params, macs), n_nodes, params, macs, weight_bytes, "
        "warnings (sentences). With --scales: file, scales (value, node, kind, type, n_scales, "
        "scale, zero, range, seen: smallest and largest; observer, scale_by; null: not known). "
        "With "
        "--npu: file, broken (what, limit, quantity, value, low, high (null: none), right).",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
