/* SPDX-License-Identifier: Apache-2.0 */
/* octet analyze: where a quantized network loses accuracy, and what to do about it. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command/analyze.h"
#include "cli/data.h"
#include "cli/model.h"
#include "cli/report/report.h"

typedef struct args {
    cli_list images;
    const char *family, *preprocess, *qmap, *report, *sort;
    int64_t limit, top, every;
    bool no_layerwise, no_graphwise, no_statistics, plain_loop, skip_bad;
} args;

static const cli_opt opts[] = {
    {CLI_LIST, "images", offsetof(args, images), "DIR|FILE",
     .help = "pictures: folders, files, videos, lists, patterns in quotes, or - for names on "
             "standard input; or tensors (.npy, .npz) for all inputs (required)"},
    {CLI_INT, "every", offsetof(args, every), "N", .help = "of a video, take every N-th frame",
     .def = "1", .min = 1},
    {CLI_STR, "qmap", offsetof(args, qmap), "FILE", .role = CLI_READS,
     .help = "instead of QUANTIZED: what octet quantize --save-qmap wrote for MODEL"},
    {CLI_INT, "limit", offsetof(args, limit), "N", .help = "only the first N pictures", .def = "16",
     .min = 1},
    {CLI_INT, "top", offsetof(args, top), "N", .help = "rows of each table", .def = "12", .min = 1},
    {CLI_STR, "sort", offsetof(args, sort), "alone|all|weights|depth",
     .help = "order of layers: alone (error at the outputs with only this layer quantized), all "
             "(error at the layer with everything quantized), weights or depth",
     .def = "alone"},
    {CLI_STR, "family", offsetof(args, family), "FAMILY",
     .help = "how to feed the network, as in octet eval", .def = "auto"},
    {CLI_STR, "preprocess", offsetof(args, preprocess), "WORDS",
     .help = "changes to the family's preprocessing, as in octet eval"},
    {CLI_STR, "report", offsetof(args, report), "DIR",
     .help = "write all of it as DIR/index.html, to look at in a browser"},
    {CLI_FLAG, "skip-bad", offsetof(args, skip_bad),
     .help = "leave broken pictures out, and name them"},
    {CLI_FLAG, "no-layerwise", offsetof(args, no_layerwise),
     .help = "leave out quantizing one layer at a time, which takes most of the time"},
    {CLI_FLAG, "no-graphwise", offsetof(args, no_graphwise),
     .help = "leave out comparing inner values with everything quantized"},
    {CLI_FLAG, "no-statistics", offsetof(args, no_statistics),
     .help = "leave out ranges, clipping and codes in use"},
    {CLI_FLAG, "plain-loop", offsetof(args, plain_loop),
     .help = "layerwise without sharing work: to check the result, many times slower"},
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", "the float network: " CLI_A_NETWORK, CLI_FILE_IN},
    {"QUANTIZED", "what was made from it, by octet or another tool; or --qmap",
     CLI_FILE_IN | CLI_FILE_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"analyze yolov8n.onnx yolov8n_int8.onnx --images calib",
     "The layers that hurt, points that clip or waste codes, and options that would help"},
    {"analyze yolov8n.onnx --qmap yolov8n.qmap.json --images calib --json",
     "All figures of all layers and points, for other programs"},
    {"analyze yolov8n.onnx yolov8n_int8.onnx --images calib --no-layerwise --sort all",
     "The quick part only: errors add up along the network"},
    {"analyze yolov8n.onnx yolov8n_int8.onnx --images calib --report report",
     "All of it as a page: open report/index.html"},
    {0},
};

/* --- the work --- */

typedef struct job {
    cli *c;
    const args *a;
    oct_graph *exact, *quantized;
    oct_dataset *images;
    oct_preprocess preprocess;
    oct_analyze_options options;
    oct_analysis *result;
} job;

static oct_status check(job *j, char **files)
{
    cli *c = j->c;
    const bool has_file = files[0] && files[1];
    oct_status st;

    if (!j->a->images.n) return cli_missing(c, "option --images");
    if (has_file && j->a->qmap)
        return cli_fail(c, OCT_ERR_ARG, "give QUANTIZED or --qmap, not both");
    if (!has_file && !j->a->qmap)
        return cli_fail(c, OCT_ERR_ARG,
                        "QUANTIZED is missing: the file that was made from MODEL, or --qmap FILE");
    if (j->a->report && (st = cli_report_check(c, j->a->report, false))) return st;
    return cli_analyze_check_sort(c, j->a->sort);
}

static oct_status load(job *j, char **files)
{
    cli *c = j->c;
    oct_status st;

    if ((st = cli_model_load(c, files[0], NULL, &j->exact))) return st;
    if (!j->a->qmap) return cli_model_load(c, files[1], NULL, &j->quantized);
    c->model = j->a->qmap; /* errors here are about the file */
    return oct_qmap_apply(j->exact, j->a->qmap, &j->quantized);
}

static oct_status open_images(job *j)
{
    oct_dataset_options o;

    oct_dataset_options_init(&o);
    cli_data_images(&o, j->a->images.items, j->a->images.n);
    o.every = (int32_t)(j->a->every > INT32_MAX ? INT32_MAX : j->a->every);
    o.skip_bad = j->a->skip_bad;
    o.need_files = 1;
    return cli_dataset_open(j->c, &o, &j->images);
}

/* The family's preprocessing with the changes asked for. */
static oct_status read_preprocess(job *j)
{
    j->options.family = j->a->family;
    if (!j->a->preprocess) return OCT_OK;
    if (oct_graph_preprocess(j->exact, j->a->family, j->a->preprocess, &j->preprocess))
        return cli_fail(j->c, OCT_ERR_ARG, "option --preprocess: %s", oct_ctx_error(j->c->ctx));
    j->options.preprocess = &j->preprocess;
    return OCT_OK;
}

static oct_status analyze(job *j, char **files)
{
    oct_analyze_options *o = &j->options;
    oct_status st;

    oct_analyze_options_init(o);
    if ((st = load(j, files))) return st;
    if ((st = open_images(j))) return st;
    if ((st = read_preprocess(j))) return st;
    o->images = j->a->limit;
    o->layerwise = !j->a->no_layerwise;
    o->graphwise = !j->a->no_graphwise;
    o->statistics = !j->a->no_statistics;
    o->plain_loop = j->a->plain_loop;
    oct_ctx_set_progress(j->c->ctx, cli_progress, j->c);
    st = oct_analyze(j->exact, j->quantized, j->images, o, &j->result);
    cli_progress_end(j->c);
    if (!st) (void)cli_data_notes(j->c, j->a->images.items[0], j->images, 0);
    return st;
}

static oct_status write_report(job *j, char **files)
{
    const cli_report r = {.c = j->c,
                          .dir = j->a->report,
                          .float_path = files[0],
                          .int8_path = j->a->qmap ? NULL : files[1],
                          .exact = j->exact,
                          .quantized = j->quantized,
                          .images = j->images,
                          .preprocess = j->options.preprocess,
                          .family = j->options.family,
                          .analysis = j->result};
    char *path;
    oct_status st;

    if (!j->a->report) return OCT_OK;
    if ((st = cli_report_write(&r))) return st;
    path = cli_report_path(j->a->report);
    cli_note(j->c, "%s written", path);
    free(path);
    return OCT_OK;
}

static oct_status run(cli *c, const void *argp, char **files)
{
    job j = {.c = c, .a = argp};
    /* What was not measured cannot be sorted by. */
    const char *sort = j.a->no_layerwise && strcmp(j.a->sort, "alone") == 0 ? "all" : j.a->sort;
    oct_status st = check(&j, files);

    if (!st) st = analyze(&j, files);
    if (!st) st = write_report(&j, files);
    if (!st) {
        const cli_analyze_view view = {.result = j.result,
                                       .model = files[0],
                                       .quantized = j.a->qmap ? j.a->qmap : files[1],
                                       .sort = sort,
                                       .top = j.a->top,
                                       .brief = c->opt.quiet,
                                       .tensors = oct_dataset_is_tensors(j.images)};

        if (c->opt.json)
            st = cli_analyze_print_json(c, &view);
        else
            cli_analyze_print(c, &view);
    }
    oct_analysis_free(j.result);
    oct_dataset_close(j.images);
    oct_graph_free(j.quantized);
    oct_graph_free(j.exact);
    return st;
}

const cli_command cmd_analyze = {
    .name = "analyze",
    .help = "find out where a quantized network loses accuracy, and what would help",
    .about =
        "Runs the float and the quantized network side by side on a few pictures; labels are not "
        "needed. Three things are measured. alone: the error at the network's outputs when only "
        "this layer is quantized. all: the error at the layer's own output when everything is. "
        "And at each place with integers, what codes can hold against what is there: numbers "
        "beyond the range, codes that are never used, channels of very different ranges.\n\n"
        "Errors are powers of noise over signal: 0.01 is 1 %, or 20 dB. What follows from them is "
        "said at the end, best first, with the options of octet quantize that do it.\n\n"
        "Files of any tool will do, as long as the names of values were kept: QDQ and QOperator "
        "of ONNX Runtime, NNCF, OpenVINO's and octet's own.\n\n"
        "With --json: images, layerwise_seconds, outputs, layers, points and advice, with all "
        "measures: noise, cosine, mse and kl. null: not measured.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
