/* SPDX-License-Identifier: Apache-2.0 */
/* octet verify: does a quantized network keep what its file promises? */
#include <math.h>
#include <string.h>

#include "cli/classes.h"
#include "cli/cli.h"
#include "cli/command/quantize.h"
#include "cli/data.h"
#include "cli/model.h"
#include "cli/term/json.h"

typedef struct args {
    const char *images, *annotations, *against, *labels, *family, *preprocess;
    int64_t limit;
    bool skip_bad;
} args;

static const cli_opt opts[] = {
    {CLI_STR, "images", offsetof(args, images), "DIR", .role = CLI_READS,
     .help = "the pictures to measure on (required)"},
    {CLI_STR, "annotations", offsetof(args, annotations), "FILE|DIR", .role = CLI_READS,
     .help = "their labels, for a promise of AP or top-1, as octet eval takes them"},
    {CLI_STR, "against", offsetof(args, against), "FILE", .role = CLI_READS,
     .help = "the float network: needed for a promise of repeat or noise; with labels it is "
             "measured too, instead of taking what the file says of it"},
    CLI_OPT_LABELS(args),
    {CLI_STR, "family", offsetof(args, family), "FAMILY",
     .help = "how to read the outputs; auto: from their shapes", .def = "auto"},
    {CLI_STR, "preprocess", offsetof(args, preprocess), "WORDS",
     .help = "changes to the family's preprocessing, as in octet eval"},
    {CLI_INT, "limit", offsetof(args, limit), "N", .help = "only the first N pictures", .min = 1},
    {CLI_FLAG, "skip-bad", offsetof(args, skip_bad),
     .help = "leave broken pictures and labels out, and count them"},
    {0},
};

static const cli_file file_args[] = {
    {"FILE", "a network that octet quantize made with a promise", CLI_FILE_IN},
    {0},
};

static const cli_example examples[] = {
    {"verify yolov8n_int8.onnx --images val --annotations val.json",
     "Is AP where it was promised to be? The float network's is taken from the file"},
    {"verify yolov8n_int8.onnx --images other --annotations other.json --against yolov8n.onnx",
     "On other pictures, where the float network has to be measured too"},
    {"verify int8.onnx --images pictures --against float.onnx", "A promise without labels"},
    {0},
};

typedef struct job {
    cli *c;
    const args *a;
    oct_graph *g, *exact; /* exact NULL: not given */
    oct_dataset *d;
    oct_class_names *names;
    oct_preprocess preprocess;
    oct_promise promise;
    double float_score, score, need;
} job;

static bool is_of_labels(const oct_promise *p)
{
    return strcmp(p->measure, "AP") == 0 || strcmp(p->measure, "top-1") == 0;
}

static bool is_of_float(const oct_promise *p)
{
    return strcmp(p->measure, "repeat") == 0 || strcmp(p->measure, "noise") == 0;
}

static oct_status check(job *j, const char *path)
{
    cli *c = j->c;
    const oct_promise *p = &j->promise;

    if (!oct_graph_promise(j->g, &j->promise))
        return cli_fail(c, OCT_ERR_ARG,
                        "%s promises nothing: octet quantize --max-drop makes files that do; octet "
                        "eval measures any",
                        path);
    if (!is_of_labels(p) && !is_of_float(p))
        return cli_fail(c, OCT_ERR_UNSUPPORTED,
                        "%s promises '%.60s', which a program measured with its own function", path,
                        p->measure);
    if (!j->a->images) return cli_missing(c, "option --images");
    if (is_of_labels(p) && !j->a->annotations)
        return cli_fail(c, OCT_ERR_ARG, "%s promises %s: option --annotations is missing", path,
                        p->measure);
    if (is_of_float(p) && !j->exact)
        return cli_fail(c, OCT_ERR_ARG,
                        "%s promises %s, as to the float network: option --against is missing",
                        path, p->measure);
    return OCT_OK;
}

static oct_status open_data(job *j)
{
    const args *a = j->a;
    oct_dataset_options o;

    oct_dataset_options_init(&o);
    o.images = a->images;
    o.annotations = is_of_labels(&j->promise) ? a->annotations : NULL;
    o.limit = (int32_t)(a->limit > INT32_MAX ? INT32_MAX : a->limit);
    o.skip_bad = a->skip_bad;
    o.need_files = 1;
    return cli_dataset_open(j->c, &o, &j->d);
}

static oct_status measure_labels(job *j, const oct_preprocess *prep)
{
    oct_accuracy_measure m = {.truth = j->d};
    oct_eval_options o;
    oct_status st = OCT_OK;

    oct_eval_options_init(&o);
    o.family = j->a->family;
    o.preprocess = prep;
    o.names = j->names;
    o.loader_threads = oct_ctx_threads(j->c->ctx);
    m.options = &o;
    if (j->exact && (st = oct_measure_accuracy(&m, j->exact, &j->float_score))) return st;
    return oct_measure_accuracy(&m, j->g, &j->score);
}

static oct_status measure_float(job *j, const oct_preprocess *prep)
{
    oct_comparison *of = NULL;
    oct_compare_options o;
    oct_status st;

    oct_compare_options_init(&o);
    o.family = j->a->family;
    o.preprocess = prep;
    if ((st = oct_comparison_new(j->exact, j->d, &o, &of))) return st;
    if (strcmp(j->promise.measure, "repeat") == 0)
        st = oct_measure_repeat(of, j->g, &j->score);
    else
        st = oct_measure_noise(of, j->g, &j->score);
    oct_comparison_free(of);
    return st;
}

static oct_status measure(job *j)
{
    const oct_preprocess *prep = NULL;
    oct_status st;

    if (j->a->preprocess) {
        if (oct_graph_preprocess(j->g, j->a->family, j->a->preprocess, &j->preprocess))
            return cli_fail(j->c, OCT_ERR_ARG, "option --preprocess: %s", oct_ctx_error(j->c->ctx));
        prep = &j->preprocess;
    }
    j->float_score = j->promise.float_score;
    st = is_of_labels(&j->promise) ? measure_labels(j, prep) : measure_float(j, prep);
    cli_progress_end(j->c);
    if (st) return st;
    j->need = oct_promise_need(j->promise.kind, j->promise.limit, j->float_score);
    return OCT_OK;
}

static bool holds(const job *j)
{
    return j->promise.kind == OCT_PROMISE_MOST ? j->score <= j->need : j->score >= j->need;
}

static oct_status print(job *j, const char *path)
{
    char text[256];
    cli_json *o;
    oct_status st;

    if (!j->c->opt.json) {
        cli_say(stdout, "promised  %s", oct_graph_promise_text(j->g, text, sizeof(text)));
        cli_say(stdout, "measured  %s %.4f on %lld pictures; %.4f or %s keeps it: %s",
                j->promise.measure, j->score, (long long)oct_dataset_size(j->d), j->need,
                j->promise.kind == OCT_PROMISE_MOST ? "less" : "more",
                holds(j) ? "kept" : "broken");
        return OCT_OK;
    }
    o = cli_json_object();
    cli_json_str(o, "file", path);
    cli_json_str(o, "measure", j->promise.measure);
    cli_json_num(o, "promised", j->promise.score);
    cli_json_num(o, "float", j->float_score);
    cli_json_num(o, "score", j->score);
    cli_json_num(o, "need", j->need);
    cli_json_int(o, "images", oct_dataset_size(j->d));
    cli_json_bool(o, "holds", holds(j));
    st = cli_json_print(j->c, o);
    cli_json_free(o);
    return st;
}

static oct_status verify(job *j, const char *path)
{
    cli *c = j->c;
    oct_status st;

    if ((st = cli_labels_load(c, j->a->labels, &j->names))) return st;
    if ((st = cli_model_load(c, path, NULL, &j->g))) return st;
    if (j->a->against && (st = cli_model_load(c, j->a->against, NULL, &j->exact))) return st;
    c->model = path;
    if ((st = check(j, path))) return st;
    if ((st = open_data(j))) return st;
    if ((st = measure(j))) return st;
    (void)cli_data_notes(c, j->a->images, j->d, 0);
    if ((st = print(j, path))) return st;
    if (holds(j)) return OCT_OK;
    return cli_fail(c, OCT_ERR_STATE, "the promise does not hold: %s %.4f, needed %.4f",
                    j->promise.measure, j->score, j->need);
}

static oct_status run(cli *c, const void *argp, char **files)
{
    job j = {.c = c, .a = argp, .promise = {.struct_size = sizeof(j.promise)}};
    const oct_status st = verify(&j, files[0]);

    oct_dataset_close(j.d);
    oct_graph_free(j.exact);
    oct_graph_free(j.g);
    oct_class_names_free(j.names);
    return st;
}

const cli_command cmd_verify = {
    .name = "verify",
    .help = "measure again what a quantized network promises",
    .about =
        "octet quantize --max-drop (or --min-repeat, --max-noise) writes into the file what was "
        "promised and what was measured. This measures it again: exit status 0 if the promise "
        "holds, 1 if not. A drop of AP or top-1 is counted from the float network's score, which "
        "the file has; it is of the pictures that the file was made with, so on others give the "
        "float network with --against.\n\n"
        "With --json: file, measure, promised (the score then), float, score, need, images, holds.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
