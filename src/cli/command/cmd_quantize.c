/* SPDX-License-Identifier: Apache-2.0 */
/* octet quantize: a float network and some pictures in, an INT8 network out. */
#include <stdlib.h>
#include <string.h>

#include <octet/quant.h>

#include "cli/classes.h"
#include "cli/cli.h"
#include "cli/command/measure.h"
#include "cli/command/quantize.h"
#include "cli/command/recipe.h"
#include "cli/cpu.h"
#include "cli/data.h"
#include "cli/guard.h"
#include "cli/model.h"
#include "cli/report/report.h"

/* --- options: the fields of a recipe, and what is about recipes --- */

static const cli_opt opts[] = {
#define OCT_FIELD           CLI_FIELD_ROW
#define OCT_FIELD_FILE(...) /* not typed, or an option of every command */
#define OCT_FIELD_TRAIN(...)
#define OCT_FIELD_QAT(...)
#define OCT_FIELD_PRUNE(...)
#include <octet/recipe.def>
#undef OCT_FIELD
    CLI_OPT_RECIPE(
        "read settings from a YAML or JSON file; options change what it says. Configs of NNCF "
        "and quantization parameters of SuperGradients are read too"),
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", CLI_A_NETWORK "; may be left out if a recipe names it", CLI_FILE_IN | CLI_FILE_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"quantize yolov8n.onnx -o yolov8n_int8.onnx --images calib",
     "Calibrate on up to 300 pictures, with the settings that are best for most networks"},
    {"quantize yolov8n.onnx -o out.onnx --images calib --target ort --annotations val.json "
     "--eval-images val",
     "For ONNX Runtime; measure accuracy before and after"},
    {"quantize yolov8n.onnx -o out.onnx --images calib --annotations val.json --eval-images val "
     "--report report",
     "And look at what it cost, layer by layer: open report/index.html"},
    {"quantize yolov8n.onnx -o out.onnx --images calib --annotations val.json --eval-images val "
     "--max-drop 0.002",
     "Restore layers to float until AP drops by at most .002, and no more than needed"},
    {"quantize net.onnx -o out.onnx --images calib --min-repeat 0.98",
     "Without labels: until it finds 98 % of what the float network finds"},
    {"quantize net.onnx -o out.onnx --images calib --ignore-name heads.head1.reg_convs "
     "--ignore-type "
     "Softmax",
     "Keep some layers float"},
    {"quantize net.onnx -o out.onnx --images calib --ranges kl --print-recipe > net.yaml",
     "Write down the settings"},
    {"quantize --recipe net.yaml --target tensorrt", "Use them, with one change"},
    {"quantize yolo_nas.onnx -o whole.onnx --images calib --attach-preprocess auto --nms onnx",
     "An INT8 network that takes bytes and gives boxes, as octet attach makes it"},
    {"quantize int8.onnx -o int8.xml --target openvino",
     "A network that is quantized already, for another runtime: its own scales, no pictures"},
    {"quantize yolo_nas.onnx -o npu.onnx --images calib --target npu-pow2 --outputs boxes,scores",
     "For NPUs that shift, without the outputs that only training needs"},
    {0},
};

/* --- settings --- */

/* State of one call. What is opened here is closed by run(). */
typedef struct job {
    cli *c;
    const cli_recipe_args *a;
    oct_recipe *recipe;
    oct_recipe_job settings;
    oct_graph *g;
    oct_dataset *images, *truth;
    const char *images_name;
    int32_t n_notes;        /* that were said about them */
    oct_class_names *names; /* of --labels; NULL: none */
    oct_preprocess preprocess;
    oct_quantize_options options;
    oct_quantized *q;
    bool is_classifier; /* known if there are labels */
    cli_quantize_report report;
} job;

static oct_status read_settings(job *j, char **files)
{
    oct_status st;

    if ((st = cli_recipe_read(j->c, j->a, files, &j->recipe))) return st;
    j->settings.struct_size = sizeof(j->settings);
    oct_recipe_get_job(j->recipe, &j->settings);
    if (j->settings.compress && strcmp(j->settings.compress, "quantize") != 0)
        return cli_fail(j->c, OCT_ERR_ARG,
                        "the recipe asks for more than quantization (compress: %s): octet prune or "
                        "octet train does what it says",
                        j->settings.compress);
    if (j->settings.threads) oct_ctx_set_threads(j->c->ctx, j->settings.threads);
    return OCT_OK;
}

/* --- checks before the expensive part --- */

/* All inputs, by option or recipe, and then all outputs: no file may be both. */
static oct_status check_files(job *j, const oct_dataset_options *d)
{
    const oct_recipe_job *s = &j->settings;
    oct_dataset_options truth;
    char *cfg;
    oct_status st;

    oct_dataset_options_init(&truth);
    oct_recipe_get_eval_data(j->recipe, &truth);
    cli_reads(j->c, s->model);
    cli_reads(j->c, j->a->recipe);
    cli_reads(j->c, d->images);
    cli_reads(j->c, d->annotations);
    if (s->eval) cli_reads(j->c, truth.images), cli_reads(j->c, truth.annotations);
    if ((st = cli_check_model_name(j->c, "--output", s->output))) return st;
    if ((st = cli_writes(j->c, "--output", s->output))) return st;
    if (s->save_qmap && (st = cli_writes(j->c, "--save-qmap", s->save_qmap))) return st;
    if (s->calibration_cache &&
        (st = cli_writes(j->c, "--calibration-cache", s->calibration_cache)))
        return st;
    cfg = cli_quantize_cfg_path(s);
    if (cfg) st = cli_writes(j->c, "--quant-cfg", cfg);
    free(cfg);
    return st;
}

static oct_status check_settings(job *j)
{
    const oct_recipe_job *s = &j->settings;
    oct_dataset_options d;
    oct_status st;

    oct_dataset_options_init(&d);
    oct_recipe_get_data(j->recipe, &d);
    if (!s->model) return cli_missing(j->c, "MODEL");
    if (!s->output) return cli_missing(j->c, "option --output (-o OUT.onnx)");
    if (!d.images && s->report)
        return cli_fail(j->c, OCT_ERR_ARG, "--report shows pictures: give it some with --images");
    if (!d.images && cli_promise_wanted(s))
        return cli_fail(j->c, OCT_ERR_ARG, "a promise is kept on pictures: --images DIR");
    if ((st = cli_promise_check(j->c, s))) return st;
    if ((st = check_files(j, &d))) return st;
    return s->report ? cli_report_check(j->c, s->report, false) : OCT_OK;
}

/* --- opening --- */

/* NULL stays NULL: the library's choice. */
static oct_status read_preprocess(job *j)
{
    const char *words = j->settings.preprocess;
    oct_status st;

    j->report.c = j->c;
    if (!j->images) return OCT_OK;
    st = cli_quantize_assume(&j->report, j->g, j->options.family, words, j->images, &j->preprocess);
    if (!st && words) j->options.preprocess = &j->preprocess;
    return st;
}

/* Are there pictures of their own to measure a promise on, without labels? */
static bool is_apart(const job *j, const oct_dataset_options *d, const oct_dataset_options *truth)
{
    return cli_promise_wanted(&j->settings) && truth->images && d->images &&
           strcmp(truth->images, d->images) != 0;
}

static oct_status open_data(job *j)
{
    const char *model = j->c->model;
    oct_dataset_options d, truth;
    oct_status st;

    oct_dataset_options_init(&d);
    oct_dataset_options_init(&truth);
    oct_recipe_get_data(j->recipe, &d);
    oct_recipe_get_eval_data(j->recipe, &truth);
    d.need_files = truth.need_files = 1;
    j->c->model = NULL; /* errors here are about the data */
    j->images_name = d.images;
    st = d.images ? cli_dataset_open(j->c, &d, &j->images) : OCT_OK;
    if (!st && d.images) j->n_notes = cli_data_notes(j->c, d.images, j->images, 0);
    if (!st && (j->settings.eval || is_apart(j, &d, &truth)))
        st = cli_dataset_open(j->c, &truth, &j->truth);
    if (!st) st = cli_labels_load(j->c, j->settings.labels, &j->names);
    if (!st) j->c->model = model;
    return st;
}

static void warn_of_device(const job *j)
{
    if (j->options.target_device && strcmp(j->options.target, "openvino") != 0)
        cli_note(j->c,
                 "note: target_device %s has no effect for target %s; --target says what "
                 "computes",
                 j->options.target_device, j->options.target);
}

/* Pictures may be left out if the file has scales of its own. */
static oct_status check_scales(const job *j)
{
    oct_quant_info info = {.struct_size = sizeof(info)};
    oct_dataset_options d;

    oct_dataset_options_init(&d);
    oct_recipe_get_data(j->recipe, &d);
    oct_graph_quant_info(j->g, &info);
    if (info.layers_quantized)
        cli_note(j->c,
                 "note: %d of %d layers of %s are quantized already: their scales and codes are "
                 "kept where target %s can hold them",
                 (int)info.layers_quantized, (int)info.layers_total, j->settings.model,
                 j->options.target);
    else if (!d.images)
        return cli_fail(j->c, OCT_ERR_ARG,
                        "pictures to calibrate on are missing: --images DIR, or --data FILE.npz");
    return OCT_OK;
}

/* Before minutes of work: can the network be scored on these labels? */
static oct_status check_labels(job *j)
{
    oct_detector *d = NULL;
    oct_status st;

    if (!j->truth || !j->settings.eval) return OCT_OK;
    if ((st = oct_detector_new(j->g, j->options.family, &d))) return st;
    j->is_classifier = oct_detector_is_classifier(d) != 0;
    st = cli_labels_set(j->c, d, j->names, j->settings.labels);
    if (!st) st = cli_classes_note(j->c, d, j->truth);
    oct_detector_free(d);
    return st;
}

static oct_status open_all(job *j)
{
    oct_status st;

    oct_quantize_options_init(&j->options);
    oct_recipe_get_quantize(j->recipe, &j->options);
    if ((st = oct_recipe_line(j->recipe, &j->options.settings))) return st;
    j->options.source = j->settings.model;
    warn_of_device(j);
    if ((st = cli_recipe_load_model(j->c, &j->settings, &j->g))) return st;
    if ((st = cli_model_keep_outputs(j->c, j->settings.outputs, j->g))) return st;
    if ((st = check_scales(j))) return st;
    if ((st = open_data(j))) return st;
    if ((st = check_labels(j))) return st;
    return read_preprocess(j);
}

/* --- the report --- */

/* What is left of the network that --unpruned names. */
static oct_status compare_pruned(job *j, const cli_list *shapes, oct_prune_result **out)
{
    oct_graph *before = NULL;
    oct_status st;

    if (!j->settings.unpruned) return OCT_OK;
    cli_reads(j->c, j->settings.unpruned);
    st = cli_model_load(j->c, j->settings.unpruned, shapes, &before);
    if (!st) st = oct_prune_compare(before, j->g, out);
    oct_graph_free(before);
    return st;
}

static oct_status write_report(job *j)
{
    const oct_recipe_job *s = &j->settings;
    const cli_list shapes = {(const char **)s->input_shapes, s->n_input_shapes};
    cli_report r = {.c = j->c,
                    .dir = s->report,
                    .float_path = s->model,
                    .int8_path = s->output,
                    .shapes = &shapes,
                    .exact = j->g,
                    .quantized = oct_quantized_graph(j->q),
                    .images = j->images,
                    .truth = j->truth,
                    .names = j->names,
                    .preprocess = j->options.preprocess,
                    .family = j->options.family,
                    .q = j->q,
                    .before = j->report.has_accuracy ? &j->report.before : NULL,
                    .after = j->report.has_accuracy ? &j->report.after : NULL,
                    .is_classifier = j->report.is_classifier,
                    .boxes = {j->report.boxes[0], j->report.boxes[1]},
                    .noise = j->report.has_accuracy ? &j->report.noise : NULL};
    oct_prune_result *pruned = NULL;
    oct_status st;

    if (!s->report) return OCT_OK;
    st = oct_recipe_text(j->recipe, &r.recipe);
    if (!st) st = compare_pruned(j, &shapes, &pruned);
    r.pruned = pruned;
    if (!st) st = cli_report_write(&r);
    oct_prune_result_free(pruned);
    if (st) return st;
    j->report.report = cli_report_path(s->report);
    return OCT_OK;
}

/* --- the command --- */

static oct_status quantize(job *j)
{
    const int64_t start = cli_time_ns();
    cli_quantize_report *r = &j->report;
    cli_quantize_work w;
    oct_status st;

    if ((st = open_all(j))) return st;
    w = (cli_quantize_work){.c = j->c,
                            .g = j->g,
                            .images = j->images,
                            .truth = j->truth,
                            .names = j->names,
                            .options = &j->options,
                            .settings = &j->settings,
                            .is_classifier = j->is_classifier};
    r->bytes_before = cli_file_size(j->settings.model);
    if (cli_promise_wanted(&j->settings))
        st = cli_promise_quantize(&w, r, &j->q);
    else
        st = oct_quantize(j->g, j->images, &j->options, &j->q);
    cli_progress_end(j->c);
    if (st) return st;
    if (j->images) (void)cli_data_notes(j->c, j->images_name, j->images, j->n_notes);
    if (j->options.int8_io) cli_model_codes_note(j->c, oct_quantized_graph(j->q));
    if ((st = cli_quantize_write(j->c, j->q, &j->settings, j->options.family))) return st;
    r->seconds = (double)(cli_time_ns() - start) * 1e-9;
    r->peak_rss_mb = cli_peak_rss_mb();
    r->bytes_after = cli_file_size(j->settings.output);
    if ((st = cli_quantize_accuracy(&w, j->q, r))) return st;
    return write_report(j);
}

static oct_status work(job *j, char **files)
{
    cli_quantize_report *r = &j->report;
    oct_status st;

    if ((st = read_settings(j, files))) return st;
    if (j->a->print_recipe) return cli_recipe_print(j->recipe);
    if ((st = check_settings(j))) return st;
    if ((st = quantize(j))) return st;
    r->c = j->c;
    r->q = j->q;
    r->model = j->settings.model;
    r->output = j->settings.output;
    r->target = j->options.target;
    r->seed = j->options.seed;
    if (j->c->opt.json) {
        const oct_status st_json = cli_quantize_print_json(r);

        return st_json ? st_json : cli_promise_verdict(r);
    }
    cli_quantize_print(r);
    cli_note_busy(j->c);
    return cli_promise_verdict(r);
}

static oct_status run(cli *c, const void *argp, char **files)
{
    job j = {.c = c, .a = argp};
    const oct_status st = work(&j, files);

    if (st) cli_recipe_keep_reason(c, st);
    c->model = NULL;
    free(j.report.report);
    oct_box_eval_free(j.report.boxes[0]);
    oct_box_eval_free(j.report.boxes[1]);
    oct_control_free(j.report.control);
    oct_quantized_free(j.q);
    oct_class_names_free(j.names);
    oct_dataset_close(j.truth);
    oct_dataset_close(j.images);
    oct_graph_free(j.g);
    oct_recipe_free(j.recipe);
    return st;
}

const cli_command cmd_quantize = {
    .name = "quantize",
    .help = "make an INT8 network from a float one and some pictures",
    .about =
        "Runs the network over the pictures once, finds ranges, places integers where the target "
        "computes in them, and writes an ONNX file with QuantizeLinear and DequantizeLinear. The "
        "tail of a detector (boxes, scores, suppression) is found and stays float. Beside OUT.onnx "
        "goes OUT.quant_cfg.json, with all scales in PPQ's form. The same inputs and settings give "
        "the "
        "same bytes.\n\n"
        "A network that is quantized already, by octet or another tool, is made for another target "
        "with its own scales and the codes of its weights, where the target can hold them; it "
        "needs no pictures. With pictures, activations that the file has in float are calibrated "
        "for the target; without, they stay float.\n\n"
        "Recipe and command line use the same words; docs/recipe.md lists them. A list that is "
        "typed replaces the recipe's. Which nodes a pattern takes, 'octet inspect MODEL --filter "
        "^PATTERN' shows.\n\n"
        "A promise (--max-drop with labels; --min-repeat or --max-noise without) is kept by "
        "restoring layers to float: those that cost most alone come first, in groups that double; "
        "then all that is not needed goes back to integers. The file says what was promised and "
        "measured, and octet verify measures it again. If it cannot be kept, the best network is "
        "written, and the exit status is 1.\n\n"
        "With --json: layers_total, layers_quantized, macs_quantized_share, "
        "weights_quantized_share, float_layers (name, reason), tail, bytes_before, bytes_after, "
        "seconds, float_pass_seconds, peak_rss_mb, ap_before, ap_after (null: not measured), "
        "ap_unaligned (before scales were fitted to an NPU; null: none was), moved (value, node, "
        "limit, from, to: exponents that were), mends (node, kind, text, error_share, work_share, "
        "noise_before, noise_after: of --heal), "
        "ap_before_noise, ap_after_noise, ap_change_noise (half the 95 % interval, by "
        "bootstrap over the pictures), "
        "worst_layers (name, operator, noise), and output, target, best_for, images, top1_before, "
        "top1_after, seed, report (null: none), family, preprocess (null: not known), left_out "
        "(pictures), equalized, smoothed, aligned, hardened (places that were "
        "changed; null: not asked for), learned (layers; null: not asked for), blocks (first, "
        "last, layers, noise_before, noise_after, put_back, undone: of --adaround and --lsq), "
        "learned_before, learned_after (noise / signal of what the last layers give), scales_kept, "
        "scales_fitted, scales_missing (of a network that was quantized already; null: it was "
        "float), promise "
        "(null: none asked for; kind, limit, measure, float, first, score, need, held, restored, "
        "layers, scores, seconds, steps).",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(cli_recipe_args),
    .examples = examples,
    .run = run,
};
