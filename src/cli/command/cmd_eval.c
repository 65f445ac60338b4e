/* SPDX-License-Identifier: Apache-2.0 */
/* octet eval: how well a network does on labelled pictures, or how well it repeats another. */
#include <string.h>
#include <unistd.h>

#include "cli/classes.h"
#include "cli/cli.h"
#include "cli/command/against.h"
#include "cli/command/measure.h"
#include "cli/command/score.h"
#include "cli/data.h"
#include "cli/model.h"
#include "cli/term/json.h"
#include "cli/term/table.h"

typedef struct args {
    const char *images, *annotations, *labels, *family, *preprocess, *results, *qmap, *against;
    int64_t limit, batch, max_det;
    double score, iou, sure;
    bool in_float, skip_bad;
} args;

static const cli_opt opts[] = {
    {CLI_STR, "images", offsetof(args, images), "DIR", .role = CLI_READS,
     .help = "folder of pictures; with a folder for each class, these are the labels. Required, "
             "unless --annotations is a data.yaml: then its val"},
    {CLI_STR, "annotations", offsetof(args, annotations), "FILE|DIR", .role = CLI_READS,
     .help = "labels: COCO .json, folder of VOC .xml or YOLO .txt, Ultralytics' data.yaml, or a "
             "list 'name class'"},
    {CLI_STR, "against", offsetof(args, against), "FILE", .role = CLI_READS,
     .help = "without labels: the float network whose answers are the truth"},
    {CLI_F64, "sure", offsetof(args, sure), "S", .max = 1,
     .help = "with --against: detections of the float network with a higher score are the truth",
     .def = "0.3"},
    CLI_OPT_LABELS(args),
    {CLI_STR, "family", offsetof(args, family), "FAMILY",
     .help = "how to read the outputs; auto: from their shapes", .def = "auto"},
    {CLI_STR, "preprocess", offsetof(args, preprocess), "WORDS",
     .help = "changes to the family's preprocessing, as in size=640x640,fit=stretch,scale=1"},
    {CLI_INT, "limit", offsetof(args, limit), "N", .help = "only the first N pictures", .min = 1},
    {CLI_INT, "batch", offsetof(args, batch), "N", .help = "pictures in one run", .def = "1",
     .min = 1},
    {CLI_STR, "results", offsetof(args, results), "FILE", .role = CLI_WRITES,
     .help = "write the detections as a COCO results file"},
    {CLI_F64, "score", offsetof(args, score), "S", .max = 1,
     .help = "keep detections with a higher score", .def = "0.01"},
    {CLI_F64, "iou", offsetof(args, iou), "I", .max = 1,
     .help = "of boxes of one class that overlap more than this, keep the best", .def = "0.65"},
    {CLI_INT, "max-det", offsetof(args, max_det), "N", .help = "detections of a picture, at most",
     .def = "100", .min = 1},
    {CLI_STR, "qmap", offsetof(args, qmap), "FILE", .role = CLI_READS,
     .help = "with the quantization that octet quantize --save-qmap wrote for this model"},
    {CLI_FLAG, "in-float", offsetof(args, in_float),
     .help = "compute quantized layers in float on rounded numbers, as other tools simulate them: "
             "slower, and sums are not exact"},
    {CLI_FLAG, "skip-bad", offsetof(args, skip_bad),
     .help = "leave broken pictures and labels out, and count them"},
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", CLI_A_NETWORK, CLI_FILE_IN},
    {0},
};

static const cli_example examples[] = {
    {"eval yolov8n.onnx --images val2017 --annotations instances_val2017.json",
     "COCO's twelve numbers, worst classes, where the time went"},
    {"eval mobilenet.onnx --images val --annotations labels.txt --json",
     "Top-1 and top-5 for other programs; a line of labels.txt is 'picture class'"},
    {"eval net.onnx --images img --annotations voc --family yolox --preprocess "
     "size=416x416,color=rgb",
     "Say how outputs are read and pictures prepared"},
    {"eval cells.onnx --images img --annotations voc --labels names.txt",
     "A network with own classes, and VOC's labels: matched by name"},
    {"eval best.onnx --annotations data.yaml", "The pictures and labels of Ultralytics' val"},
    {"eval yolov8n.onnx --qmap yolov8n.qmap.json --images val2017 --annotations val2017.json",
     "What the INT8 network will score, to the last digit, without writing it"},
    {"eval yolov8n_int8.onnx --against yolov8n.onnx --images pictures",
     "Without labels: how much of what the float network finds is found by this one too"},
    {0},
};

/* --- the report --- */

/* What is reported on. */
typedef struct report {
    cli *c;
    const oct_dataset *d;
    const oct_detector *detector;
    oct_class_names *names; /* of --labels; NULL: none */
    oct_eval_result r;
    oct_box_eval *eval; /* NULL: a classifier */
    oct_box_noise noise;
} report;

static oct_status print_json(const report *p)
{
    cli_json *j = cli_json_object();
    oct_status st;

    if (p->eval) {
        cli_score_json(j, &p->r.box, p->eval, p->d, false);
        cli_score_noise_json(j, &p->noise);
        cli_score_curves_json(j, p->eval);
    } else {
        cli_json_num(j, "top1", p->r.top1);
        if (p->r.top5 >= 0)
            cli_json_num(j, "top5", p->r.top5);
        else
            cli_json_null(j, "top5");
    }
    cli_json_int(j, "images", p->r.images);
    cli_json_round(j, "seconds", p->r.seconds, 4);
    cli_json_round(j, "peak_rss_mb", cli_peak_rss_mb(), 2);
    cli_json_str(j, "family", oct_detector_family(p->detector));
    cli_classes_json(j, p->detector, p->d);
    st = cli_json_print(p->c, j);
    cli_json_free(j);
    return st;
}

static void print_times(const report *p)
{
    static const cli_column columns[] = {
        {"time of all threads", CLI_LEFT}, {"s", CLI_RIGHT}, {"ms/image", CLI_RIGHT}};
    const oct_eval_result *r = &p->r;
    const struct {
        const char *name;
        double seconds;
    } rows[] = {{"decode", r->decode_seconds},
                {"preprocess", r->preprocess_seconds},
                {"network", r->network_seconds},
                {"post-process", r->post_seconds},
                {"scoring", r->score_seconds}};
    cli_table *t = cli_table_new(columns, CLI_COUNT(columns));

    for (size_t i = 0; i < CLI_COUNT(rows); i++) {
        cli_table_cell(t, "%s", rows[i].name);
        cli_table_cell(t, "%.3f", rows[i].seconds);
        cli_table_cell(t, "%.2f", r->images ? rows[i].seconds * 1e3 / (double)r->images : 0);
    }
    (void)putchar('\n');
    cli_table_print(t, stdout);
    cli_table_free(t);
}

static void print_text(const report *p)
{
    enum { WORST = 5 };
    const oct_eval_result *r = &p->r;

    if (p->eval) {
        cli_score_print(stdout, &r->box);
        cli_score_print_noise(stdout, &r->box, &p->noise);
        cli_score_print_classes(stdout, p->eval, p->d, WORST);
    } else {
        (void)printf("top-1 %.4f", r->top1);
        if (r->top5 >= 0) (void)printf("   top-5 %.4f", r->top5);
        (void)putchar('\n');
    }
    print_times(p);
    (void)printf("\n%lld images in %.2f s, %.1f images/s; %.0f MB peak resident\n",
                 (long long)r->images, r->seconds, (double)r->images / r->seconds,
                 cli_peak_rss_mb());
}

/* --- the work --- */

static oct_status open_dataset(cli *c, const args *a, oct_dataset **out)
{
    oct_dataset_options o;

    oct_dataset_options_init(&o);
    o.images = a->images;
    o.annotations = a->annotations;
    o.limit = (int32_t)(a->limit > INT32_MAX ? INT32_MAX : a->limit);
    o.skip_bad = a->skip_bad;
    o.need_files = 1;
    return cli_dataset_open(c, &o, out);
}

/* Preprocessing and decoding: what was recognised, with the changes asked for. */
static oct_status recognise(cli *c, const args *a, const oct_graph *g, oct_preprocess *p,
                            oct_detector **out)
{
    char text[256];
    oct_status st;

    if ((st = oct_detector_new(g, a->family, out)) == OCT_ERR_SHAPE)
        return cli_fail(c, st,
                        "%s: %s. Labels are scored with a family only; --against FLOAT.onnx "
                        "compares networks of any kind",
                        c->model, oct_ctx_error(c->ctx));
    if (st) return st;
    oct_preprocess_init(p);
    oct_detector_preprocess(*out, p);
    if (a->preprocess && (st = oct_preprocess_parse(c->ctx, p, a->preprocess)))
        return cli_fail(c, OCT_ERR_ARG, "option --preprocess: %s", oct_ctx_error(c->ctx));
    cli_note(c, "family %s: %s", oct_detector_family(*out), oct_detector_why(*out));
    cli_note(c, "preprocess %s", oct_preprocess_text(p, text, sizeof(text)));
    return OCT_OK;
}

static void read_options(const args *a, oct_plan_options *plan, oct_nms_options *nms)
{
    oct_plan_options_init(plan);
    plan->simulate = a->in_float;
    oct_nms_options_init(nms);
    nms->score = (float)a->score;
    nms->iou = (float)a->iou;
    nms->max_detections = (int32_t)(a->max_det > INT16_MAX ? INT16_MAX : a->max_det);
}

static oct_status evaluate(const args *a, const oct_graph *g, const oct_preprocess *prep, report *p)
{
    cli *c = p->c;
    oct_plan_options plan;
    oct_nms_options nms;
    oct_eval_options o;
    oct_status st;

    read_options(a, &plan, &nms);
    oct_eval_options_init(&o);
    o.plan = &plan;
    o.family = a->family;
    o.preprocess = prep;
    o.batch = (int32_t)(a->batch > INT16_MAX ? INT16_MAX : a->batch);
    o.loader_threads = oct_ctx_threads(c->ctx); /* they only work while they lag behind */
    o.results = a->results;
    o.names = p->names;
    o.nms = &nms;
    p->r.struct_size = sizeof(p->r);
    st = oct_eval_run(g, p->d, &o, &p->r, &p->eval);
    cli_progress_end(c);
    if (!st && p->eval) st = cli_score_noise(p->eval, NULL, &p->noise);
    return st;
}

/* Applies the quantization of a qmap file to the network. */
static oct_status apply_qmap(cli *c, const char *path, oct_graph **g)
{
    const char *model = c->model;
    oct_graph *with = NULL;
    oct_status st;

    c->model = path; /* errors here are about the file */
    if ((st = oct_qmap_apply(*g, path, &with))) return st;
    c->model = model;
    oct_graph_free(*g);
    *g = with;
    return OCT_OK;
}

/* --- without labels --- */

static oct_status print_against(cli *c, const args *a, const oct_compare_result *r,
                                const oct_comparison *of, bool tensors)
{
    cli_json *j;
    oct_status st;

    if (!c->opt.json) {
        cli_against_print(stdout, r, of, a->sure);
        (void)printf("\n%lld %s\n", (long long)r->images, tensors ? "items" : "images");
        return OCT_OK;
    }
    j = cli_json_object();
    cli_against_json(j, r, of);
    st = cli_json_print(c, j);
    cli_json_free(j);
    return st;
}

static oct_status compare(cli *c, const args *a, const oct_graph *exact, const oct_graph *g,
                          const oct_dataset *d)
{
    oct_compare_result r = {.struct_size = sizeof(r)};
    oct_comparison *of = NULL;
    oct_compare_options o;
    oct_plan_options plan;
    oct_nms_options nms;
    oct_preprocess prep;
    oct_status st;

    oct_compare_options_init(&o);
    read_options(a, &plan, &nms);
    o.plan = &plan;
    o.nms = &nms;
    o.family = a->family;
    o.sure = a->sure;
    if (a->preprocess) {
        if (oct_graph_preprocess(exact, a->family, a->preprocess, &prep))
            return cli_fail(c, OCT_ERR_ARG, "option --preprocess: %s", oct_ctx_error(c->ctx));
        o.preprocess = &prep;
    }
    st = oct_comparison_new(exact, d, &o, &of);
    if (!st) st = oct_comparison_run(of, g, &r);
    cli_progress_end(c);
    if (!st) (void)cli_data_notes(c, a->images, d, 0);
    if (!st) st = print_against(c, a, &r, of, oct_dataset_is_tensors(d));
    oct_comparison_free(of);
    return st;
}

/* The network against the one it was made from. */
static oct_status run_against(cli *c, const args *a, const char *model)
{
    oct_graph *exact = NULL, *g = NULL;
    oct_dataset *d = NULL;
    oct_status st;

    if (!a->images) return cli_missing(c, "option --images");
    if (a->annotations)
        return cli_fail(c, OCT_ERR_ARG,
                        "give --annotations or --against, not both: labels or the float network "
                        "are the truth");
    if (a->results)
        return cli_fail(c, OCT_ERR_ARG, "option --results needs --annotations, not --against");
    if ((st = cli_model_load(c, a->against, NULL, &exact))) return st;
    if (!(st = cli_model_load(c, model, NULL, &g)) && a->qmap) st = apply_qmap(c, a->qmap, &g);
    if (!st) st = open_dataset(c, a, &d);
    if (!st) st = compare(c, a, exact, g, d);
    oct_dataset_close(d);
    oct_graph_free(g);
    oct_graph_free(exact);
    return st;
}

static bool is_yaml(const char *path)
{
    const char *dot = path ? strrchr(path, '.') : NULL;

    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static oct_status run(cli *c, const void *argp, char **files)
{
    const args *a = argp;
    report p = {.c = c};
    oct_graph *g = NULL;
    oct_dataset *d = NULL;
    oct_detector *detector = NULL;
    oct_preprocess prep;
    oct_status st;

    if (a->against) return run_against(c, a, files[0]);
    if (!a->images && !is_yaml(a->annotations)) return cli_missing(c, "option --images");
    if ((st = cli_labels_load(c, a->labels, &p.names))) goto done;
    if ((st = cli_model_load(c, files[0], NULL, &g))) goto done;
    if ((st = cli_model_drop_unknown(c, g))) goto done;
    if ((st = cli_model_open_codes(c, &g))) goto done;
    cli_diagnose(c, g);
    if ((st = cli_model_fit_words(g, a->family, a->preprocess, a->batch))) goto done;
    if ((st = recognise(c, a, g, &prep, &detector))) goto done;
    if ((st = cli_labels_set(c, detector, p.names, a->labels))) goto done;
    if ((st = open_dataset(c, a, &d))) goto done;
    if ((st = cli_classes_note(c, detector, d))) goto done;
    if (a->qmap && (st = apply_qmap(c, a->qmap, &g))) goto done;
    p.d = d;
    p.detector = detector;
    if ((st = evaluate(a, g, &prep, &p))) goto done;
    (void)cli_data_notes(c, a->images ? a->images : a->annotations, d, 0);
    if (c->opt.json)
        st = print_json(&p);
    else
        print_text(&p);
done:
    oct_class_names_free(p.names);
    oct_box_eval_free(p.eval);
    oct_dataset_close(d);
    oct_detector_free(detector);
    oct_graph_free(g);
    return st;
}

const cli_command cmd_eval = {
    .name = "eval",
    .help = "measure a model's accuracy on labelled pictures, or against another model",
    .about =
        "Detectors get COCO's twelve box metrics, classifiers top-1 and top-5. What kind a model "
        "is, how pictures are prepared for it and how its outputs are read is recognised from its "
        "outputs; --family and --preprocess override that. Words of --preprocess: size=WxH, "
        "fit=letterbox|letterbox_top_left|stretch|crop, pad=N, color=rgb|bgr|gray, scale=N, "
        "mean=R:G:B, std=R:G:B, interpolation=linear|antialias, layout=nchw|nhwc, crop_resize=N, "
        "inner=WxH; "
        "a value is (pixel / scale - mean) / std.\n\n"
        "Which class is which category: YOLO's labels have the network's own numbers. Others are "
        "matched by name, with the names of --labels, of the model's metadata ('names', as "
        "Ultralytics writes them), or COCO's if the network has 80 classes. Without names, COCO's "
        "ids are taken in their order if there are as many; VOC's names say nothing of an order, "
        "so they need --labels. Where names differ, a table shows which is which.\n\n"
        "Times are sums over the threads that did the work: decoding and scoring run "
        "beside the network.\n\n"
        "Without labels, --against names the float network: its detections above --sure are the "
        "truth. Repeated is one that this network finds too, of the same class, with an overlap "
        "of at least .5 and half the score. AP is taken with all boxes in one list, classes "
        "apart. Classifiers: how often the best class is the same. Any network, also one that "
        "no family reads or that is fed with tensors: error power over signal power at each "
        "output.\n\n"
        "With --json: ap, ap50, ap75, ap_small, ap_medium, ap_large, ar1, ar10, ar100, ar_small, "
        "ar_medium, ar_large, voc_map50, per_class, ap_noise (half the 95 % interval of AP, by "
        "bootstrap over the pictures), resamples, precision50 and precision (mean of the classes "
        "at 101 "
        "points of recall, at IoU 0.5 and over all IoUs) for detectors, top1 and "
        "top5 (null: no more than five classes) for classifiers; images, seconds, peak_rss_mb, "
        "family, matched, classes (class, "
        "name, "
        "category, category_id). With --against: kind (boxes, classes, outputs), images, "
        "detections, repeat, added, ap, ap50, top1, top5, noise, cosine, outputs (name, noise, "
        "cosine, mse). null: nothing to measure.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
