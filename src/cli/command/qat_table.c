/* SPDX-License-Identifier: Apache-2.0 */
/* octet qat --table: what calibration, training and an NPU's shifters cost, file by file. */
#include <stdlib.h>
#include <string.h>

#include "cli/command/compare.h"
#include "cli/command/train.h"
#include "cli/guard.h"
#include "cli/model.h"
#include "cli/term/json.h"
#include "cli/term/table.h"

enum { MOST_ROWS = 5, WARMUP_RUNS = 2, ENOUGH_RUNS = 200 };

#define SECONDS 1.0 /* for each network */

typedef struct row {
    const char *name, *file;
    bool is_measured; /* on labelled pictures */
    oct_eval_result result;
    int64_t bytes;
    double ms;
} row;

/* "net_ptq.onnx" beside net.onnx. */
static char *beside(const char *output, const char *what)
{
    const char *dot = strrchr(output, '.');
    const int len = (int)(dot ? (size_t)(dot - output) : strlen(output));

    return cli_format("%.*s_%s%s", len, output, what, dot ? dot : "");
}

oct_status cli_table_files(cli_train_job *j)
{
    oct_quantize_options q;
    oct_status st;

    oct_quantize_options_init(&q);
    oct_recipe_get_quantize(j->recipe, &q);
    j->folded = beside(j->settings.output, "folded");
    if ((st = cli_writes(j->c, "--table", j->folded))) return st;
    j->ptq = beside(j->settings.output, "ptq");
    if ((st = cli_rewrites(j->c, "--table", j->ptq))) return st;
    if (strncmp(q.target, "npu", 3) != 0) return OCT_OK;
    j->unaligned = beside(j->settings.output, "unaligned");
    return cli_rewrites(j->c, "--table", j->unaligned);
}

oct_status cli_table_keep(cli_train_job *j)
{
    oct_graph *g = NULL;
    oct_status st;

    if (!j->unaligned) return OCT_OK;
    st = oct_train_unaligned(j->t.train, &g);
    if (!st) st = cli_model_keep_outputs(j->c, j->settings.outputs, g);
    if (!st) st = oct_onnx_save(g, j->unaligned, NULL);
    oct_graph_free(g);
    return st;
}

/* The float network as it is quantized: branches and BatchNormalization folded. */
static oct_status write_folded(cli_train_job *j)
{
    const cli_list shapes = {(const char **)j->settings.input_shapes, j->settings.n_input_shapes};
    oct_simplify_options o;
    oct_graph *g = NULL;
    oct_status st = cli_model_load(j->c, j->settings.model, &shapes, &g);

    oct_simplify_options_init(&o);
    if (!st) st = cli_model_keep_outputs(j->c, j->settings.outputs, g);
    if (!st) st = oct_graph_simplify(g, &o);
    if (!st) st = oct_onnx_save(g, j->folded, NULL);
    oct_graph_free(g);
    j->c->model = NULL;
    return st;
}

/* The job keeps the calibrated network: outputs are dropped from a copy, which is the file. */
static oct_status write_calibrated(cli_train_job *j)
{
    oct_status st =
        oct_onnx_save(oct_quantized_graph(oct_train_quantized(j->t.train)), j->ptq, NULL);
    oct_graph *g = NULL;

    if (st || !j->settings.outputs) return st;
    st = oct_onnx_load(j->c->ctx, j->ptq, &g);
    if (!st) st = cli_model_keep_outputs(j->c, j->settings.outputs, g);
    if (!st) st = oct_onnx_save(g, j->ptq, NULL);
    oct_graph_free(g);
    return st;
}

/* --- measuring --- */

static oct_status score(cli_train_job *j, row *r)
{
    oct_eval_options o;
    oct_graph *g = NULL;
    oct_status st;

    r->bytes = cli_file_size(r->file);
    if (!j->truth) return OCT_OK;
    oct_eval_options_init(&o);
    o.family = j->options.family;
    o.preprocess = j->options.preprocess;
    o.names = j->names;
    o.loader_threads = oct_ctx_threads(j->c->ctx);
    r->result.struct_size = sizeof(r->result);
    st = cli_model_load(j->c, r->file, NULL, &g);
    j->c->progress_of = r->name;
    if (!st) st = oct_eval_run(g, j->truth, &o, &r->result, NULL);
    cli_progress_end(j->c);
    j->c->progress_of = NULL;
    j->c->model = NULL;
    oct_graph_free(g);
    r->is_measured = !st;
    return st;
}

/* Times of all networks, in turns. */
static oct_status time_all(cli_train_job *j, row *rows, int n)
{
    const cli_list shapes = {(const char **)j->settings.input_shapes, j->settings.n_input_shapes};
    const cli_compare_options o = {.session = {.shapes = &shapes},
                                   .warmup = WARMUP_RUNS,
                                   .seconds = SECONDS,
                                   .enough = ENOUGH_RUNS};
    cli_measured models[MOST_ROWS] = {{0}};
    char *files[MOST_ROWS + 1] = {NULL};
    oct_status st;

    for (int i = 0; i < n; i++)
        files[i] = (char *)(uintptr_t)rows[i].file;
    st = cli_measure_models(j->c, files, n, &o, models);
    cli_progress_end(j->c);
    if (st) return st;
    for (int i = 0; i < n; i++) {
        rows[i].ms = models[i].stats.median_ms;
        cli_measured_close(&models[i]);
    }
    return OCT_OK;
}

/* --- showing --- */

static oct_status print_json(cli_train_job *j, const row *rows, int n)
{
    cli_json *o = cli_json_object(), *list = cli_json_array();
    oct_status st;

    for (int i = 0; i < n; i++) {
        const row *r = &rows[i];
        cli_json *one = cli_json_object();

        cli_json_str(one, "name", r->name);
        cli_json_str(one, "file", r->file);
        if (r->is_measured && j->t.is_classifier) cli_json_num(one, "top1", r->result.top1);
        if (r->is_measured && !j->t.is_classifier) {
            cli_json_num(one, "ap", r->result.box.ap);
            cli_json_num(one, "ap50", r->result.box.ap50);
        }
        cli_json_int(one, "bytes", r->bytes);
        cli_json_round(one, "milliseconds", r->ms, 3);
        cli_json_add(list, NULL, one);
    }
    cli_json_add(o, "table", list);
    st = cli_json_line(j->c, o);
    cli_json_free(o);
    return st;
}

static void print_text(const cli_train_job *j, const row *rows, int n)
{
    const bool top1 = j->t.is_classifier;
    const cli_column columns[] = {{"network", CLI_LEFT},
                                  {top1 ? "top 1" : "AP", CLI_RIGHT},
                                  {top1 ? "top 5" : "AP50", CLI_RIGHT},
                                  {"size", CLI_RIGHT},
                                  {"time", CLI_RIGHT},
                                  {"file", CLI_SHRINK}};
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));
    char text[CLI_UNIT_SIZE];

    for (int i = 0; i < n; i++) {
        const row *r = &rows[i];
        const double first = top1 ? r->result.top1 : r->result.box.ap;
        const double second = top1 ? r->result.top5 : r->result.box.ap50;

        cli_table_cell(t, "%s", r->name);
        cli_table_cell(t, r->is_measured ? "%.4f" : "-", first);
        cli_table_cell(t, r->is_measured && second >= 0 ? "%.4f" : "-", second);
        cli_table_cell(t, "%s", cli_bytes((double)r->bytes, text));
        cli_table_cell(t, "%s", cli_time(r->ms * 1e6, text));
        cli_table_cell(t, "%s", r->file);
    }
    (void)fputc('\n', stdout);
    cli_table_print(t, stdout);
    cli_table_free(t);
}

/* The table in the report of --report. */
static oct_status report(cli_train_job *j, const row *rows, int n)
{
    oct_report_network networks[MOST_ROWS];

    for (int i = 0; i < n; i++) {
        const oct_eval_result *e = &rows[i].result;
        const bool top1 = j->t.is_classifier, is_known = rows[i].is_measured;

        networks[i] = (oct_report_network){.name = rows[i].name,
                                           .file = rows[i].file,
                                           .accuracy = !is_known ? -1
                                                       : top1    ? e->top1
                                                                 : e->box.ap,
                                           .other_accuracy = !is_known ? -1
                                                             : top1    ? e->top5
                                                                       : e->box.ap50,
                                           .bytes = rows[i].bytes,
                                           .ms = rows[i].ms};
    }
    return cli_train_report_networks(j, networks, n);
}

oct_status cli_table_print_all(cli_train_job *j)
{
    row rows[MOST_ROWS] = {{.name = "float", .file = j->settings.model},
                           {.name = "folded", .file = j->folded},
                           {.name = "calibrated", .file = j->ptq}};
    oct_status st = write_folded(j);
    int n = 3;

    if (!st) st = write_calibrated(j);
    if (j->unaligned) rows[n++] = (row){.name = "trained, any shifts", .file = j->unaligned};
    rows[n++] =
        (row){.name = j->unaligned ? "trained, shifts fit" : "trained", .file = j->settings.output};
    for (int i = 0; i < n && !st; i++)
        st = score(j, &rows[i]);
    if (!st) st = time_all(j, rows, n);
    if (!st) st = report(j, rows, n);
    if (st) return st;
    if (j->c->opt.json) return print_json(j, rows, n);
    print_text(j, rows, n);
    return OCT_OK;
}
