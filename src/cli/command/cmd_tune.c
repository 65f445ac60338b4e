/* SPDX-License-Identifier: Apache-2.0 */
/* octet tune: tries settings of quantize, and keeps the best. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/classes.h"
#include "cli/command/quantize.h"
#include "cli/command/recipe.h"
#include "cli/command/tune.h"
#include "cli/data.h"
#include "cli/guard.h"
#include "cli/model.h"
#include "cli/report/report.h"
#include "cli/term/table.h"

typedef struct args {
    cli_recipe_args recipe; /* first: options of a recipe are offsets into it */
    int64_t trials, score_limit;
    const char *time, *targets, *database, *save_recipe;
    double max_drop, max_ms, max_mb;
    bool slow;
} args;

static const cli_opt opts[] = {
    {CLI_INT, "trials", offsetof(args, trials), "N", .def = "24", .min = 1,
     .help = "settings to try; the best third of them goes on to more pictures, and again"},
    {CLI_STR, "time", offsetof(args, time), "TIME",
     .help = "begin no more trials after this time, as 10m, 90s or 2h"},
    {CLI_F64, "max-drop", offsetof(args, max_drop), "D", .max = 1,
     .help = "the score may be so much below the float network's: the fastest such network is "
             "chosen, not the most accurate"},
    {CLI_F64, "max-ms", offsetof(args, max_ms), "MS",
     .help = "a picture may take so long, in octet on this machine"},
    {CLI_F64, "max-mb", offsetof(args, max_mb), "MB", .help = "the file may be so large"},
    {CLI_STR, "targets", offsetof(args, targets), "TARGET,..",
     .help = "try these targets too; times are octet's for all"},
    {CLI_FLAG, "slow", offsetof(args, slow),
     .help =
         "try --adaround, --lsq and full bias correction too, which take minutes for each trial"},
    {CLI_INT, "score-limit", offsetof(args, score_limit), "N", .def = "128", .min = 1,
     .help = "score on at most N pictures, picked evenly"},
    {CLI_STR, "database", offsetof(args, database), "FILE",
     .help = "the trials, an SQLite file: a search that was interrupted goes on, and several "
             "processes may work on one; by default OUT.tune.db"},
    {CLI_STR, "save-recipe", offsetof(args, save_recipe), "FILE",
     .help = "the recipe that repeats the best; by default OUT.tune.yaml"},
#define OCT_FIELD              CLI_FIELD_ROW
#define OCT_FIELD_FILE(...)    /* not typed, or an option of every command */
#define OCT_FIELD_PROMISE(...) /* tune has budgets of its own */
#define OCT_FIELD_TRAIN(...)
#define OCT_FIELD_QAT(...)
#define OCT_FIELD_PRUNE(...)
#include <octet/recipe.def>
#undef OCT_FIELD
    CLI_OPT_RECIPE("read settings from a YAML or JSON file; what it sets is not varied"),
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", CLI_A_NETWORK "; may be left out if a recipe names it", CLI_FILE_IN | CLI_FILE_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"tune yolov8n.onnx -o best.onnx --images tuning --annotations tuning.json --time 30m",
     "The most accurate INT8 network that half an hour finds"},
    {"tune yolov8n.onnx -o best.onnx --images tuning",
     "Without labels: the one that repeats most of what the float network finds"},
    {"tune net.onnx -o fast.onnx --images tuning --annotations tuning.json --max-drop 0.005 "
     "--max-mb 3",
     "The fastest that loses at most .005 AP and has at most 3 MB"},
    {"tune net.onnx --target ort --ranges mse --images tuning --report page",
     "What is given is not varied; look at page/index.html"},
    {"quantize --recipe best.tune.yaml -o again.onnx", "Make the best network again"},
    {0},
};

/* State of one call. What is opened here is closed by run(). */
typedef struct job {
    cli *c;
    const args *a;
    oct_recipe *recipe, *best;
    oct_recipe_job settings;
    oct_graph *g;
    oct_dataset *images;
    oct_class_names *names;
    oct_preprocess preprocess;
    bool has_preprocess;
    char *database, *save_recipe, *label;
    oct_tune_options o;
    oct_tuned *t;
    int64_t start_ns;
} job;

/* --- settings --- */

/* "90", "90s", "10m", "2h". */
static oct_status read_time(job *j)
{
    const char *text = j->a->time;
    char *end = NULL;
    double v;

    if (!text) return OCT_OK;
    v = strtod(text, &end);
    if (end != text && (*end == 's' || *end == 'm' || *end == 'h') && !end[1])
        v *= *end == 'h' ? 3600 : *end == 'm' ? 60 : 1;
    else if (end == text || *end)
        v = -1;
    if (!(v > 0 && v < 1e9))
        return cli_fail(j->c, OCT_ERR_ARG, "option --time: '%s' is no time; write 90s, 10m or 2h",
                        text);
    j->o.seconds = v;
    return OCT_OK;
}

static oct_status read_targets(job *j)
{
    char *words, *rest, *word;
    oct_status st = OCT_OK;

    if (!j->a->targets) return OCT_OK;
    words = cli_format("%s", j->a->targets);
    for (word = strtok_r(words, ",", &rest); word && !st; word = strtok_r(NULL, ",", &rest))
        if (!oct_target_help(word))
            st = cli_fail(j->c, OCT_ERR_ARG, "option --targets: there is no target '%s'", word);
    free(words);
    return st;
}

/* The report is the search's, not that of a network: it does not belong to the recipe. */
static oct_status read_settings(job *j, char **files)
{
    cli_recipe_args words = j->a->recipe;
    oct_status st;

    words.words[CLI_FIELD_REPORT].n = 0;
    if ((st = cli_recipe_read(j->c, &words, files, &j->recipe))) return st;
    j->settings.struct_size = sizeof(j->settings);
    oct_recipe_get_job(j->recipe, &j->settings);
    if (j->settings.threads) oct_ctx_set_threads(j->c->ctx, j->settings.threads);
    oct_tune_options_init(&j->o);
    if ((st = read_time(j))) return st;
    if ((st = read_targets(j))) return st;
    j->o.trials = (int32_t)(j->a->trials > INT32_MAX ? INT32_MAX : j->a->trials);
    j->o.images = j->a->score_limit;
    if (j->a->max_drop > 0) j->o.max_drop = j->a->max_drop;
    j->o.max_ms = j->a->max_ms;
    j->o.max_mb = j->a->max_mb;
    j->o.targets = j->a->targets;
    j->o.slow = j->a->slow;
    j->o.seed = (uint64_t)j->c->opt.seed;
    return OCT_OK;
}

static const char *report_of(const job *j)
{
    const cli_list *l = &j->a->recipe.words[CLI_FIELD_REPORT];

    return l->n ? l->items[l->n - 1] : NULL;
}

/* Beside the network that is written, or in the current folder under the model's name. */
static char *beside(const job *j, const char *given, const char *end)
{
    const char *of = j->settings.output;
    char *title, *path;

    if (given) return cli_format("%s", given);
    if (of && cli_has_suffix(of, ".onnx"))
        return cli_format("%.*s%s", (int)strlen(of) - 5, of, end);
    title = cli_report_title(j->settings.model);
    path = cli_format("%s%s", title, end);
    free(title);
    return path;
}

static oct_status check_files(job *j, const oct_dataset_options *d)
{
    const oct_recipe_job *s = &j->settings;
    oct_dataset_options truth;
    oct_status st = OCT_OK;
    char *cfg;

    oct_dataset_options_init(&truth);
    oct_recipe_get_eval_data(j->recipe, &truth);
    cli_reads(j->c, s->model);
    cli_reads(j->c, j->a->recipe.recipe);
    cli_reads(j->c, d->images);
    cli_reads(j->c, d->annotations);
    if (s->eval) cli_reads(j->c, truth.images), cli_reads(j->c, truth.annotations);
    if (s->output) {
        if ((st = cli_check_model_name(j->c, "--output", s->output))) return st;
        if ((st = cli_writes(j->c, "--output", s->output))) return st;
        cfg = cli_quantize_cfg_path(s);
        if (cfg) st = cli_writes(j->c, "--quant-cfg", cfg);
        free(cfg);
    }
    if (!st) st = cli_rewrites(j->c, "--database", j->database);
    if (!st) st = cli_writes(j->c, "--save-recipe", j->save_recipe);
    if (!st && report_of(j)) st = cli_report_check(j->c, report_of(j), false);
    return st;
}

static oct_status check_settings(job *j)
{
    oct_dataset_options d;

    oct_dataset_options_init(&d);
    oct_recipe_get_data(j->recipe, &d);
    if (!j->settings.model) return cli_missing(j->c, "MODEL");
    if (cli_promise_wanted(&j->settings))
        return cli_fail(
            j->c, OCT_ERR_ARG,
            "the recipe has a promise to keep (max_drop, min_repeat or max_noise), which "
            "only octet quantize does; take it out, and use --max-drop");
    if (!d.images)
        return cli_fail(j->c, OCT_ERR_ARG,
                        "pictures to tune on are missing: --images DIR, or --data FILE.npz");
    if (strcmp(d.images, "-") == 0)
        return cli_fail(j->c, OCT_ERR_ARG,
                        "option --images: a search reads the names more than once; write them "
                        "into a file");
    j->database = beside(j, j->a->database, ".tune.db");
    j->save_recipe = beside(j, j->a->save_recipe, ".tune.yaml");
    return check_files(j, &d);
}

/* --- opening --- */

static oct_status read_preprocess(job *j)
{
    oct_quantize_options q;
    oct_status st;

    if (!j->settings.preprocess) return OCT_OK;
    oct_quantize_options_init(&q);
    oct_recipe_get_quantize(j->recipe, &q);
    st = oct_graph_preprocess(j->g, q.family, j->settings.preprocess, &j->preprocess);
    if (st) return cli_fail(j->c, OCT_ERR_ARG, "preprocess: %s", oct_ctx_error(j->c->ctx));
    j->o.preprocess = &j->preprocess;
    return OCT_OK;
}

/* Opened as the library will open them, so that a wrong path is said in the program's words. */
static oct_status open_data(job *j)
{
    oct_dataset_options d, truth;
    oct_dataset *labelled = NULL;
    const char *model = j->c->model;
    oct_status st;

    oct_dataset_options_init(&d);
    oct_dataset_options_init(&truth);
    oct_recipe_get_data(j->recipe, &d);
    oct_recipe_get_eval_data(j->recipe, &truth);
    d.need_files = truth.need_files = 1;
    j->c->model = NULL; /* errors here are about the data */
    st = cli_dataset_open(j->c, &d, &j->images);
    if (!st) (void)cli_data_notes(j->c, d.images, j->images, 0);
    if (!st && j->settings.eval) st = cli_dataset_open(j->c, &truth, &labelled);
    oct_dataset_close(labelled);
    if (!st) st = cli_labels_load(j->c, j->settings.labels, &j->names);
    if (!st) j->c->model = model;
    return st;
}

static oct_status open_all(job *j)
{
    oct_status st;

    if ((st = cli_recipe_load_model(j->c, &j->settings, &j->g))) return st;
    if ((st = cli_model_keep_outputs(j->c, j->settings.outputs, j->g))) return st;
    if ((st = open_data(j))) return st;
    return read_preprocess(j);
}

/* --- the search --- */

static void show_result(const job *j, const oct_tune_progress *p)
{
    const oct_tuned_trial *t = p->trial;
    char *settings;

    if (!t->is_done) {
        settings = cli_tune_settings(t->settings);
        cli_note(j->c, "%lld: %s: %s", (long long)t->id, settings, t->error);
    } else {
        settings = t->is_float ? cli_format("float") : cli_tune_settings(t->settings);
        cli_note(j->c, "%lld: %.4f on %lld pictures, %.2f ms, %.2f MB: %s", (long long)t->id,
                 t->score, (long long)t->images, t->ms, (double)t->bytes / 1e6, settings);
    }
    free(settings);
}

static void on_progress(void *user, const oct_tune_progress *p)
{
    job *j = user;
    char left[64] = "";

    cli_progress_end(j->c);
    if (p->has_ended && p->trial) show_result(j, p);
    free(j->label);
    if (p->seconds_left >= 0)
        (void)snprintf(left, sizeof(left), ", %.0f:%02.0f left",
                       (double)(int)(p->seconds_left / 60), (double)((int)p->seconds_left % 60));
    j->label = p->trial ? cli_format("trial %d of %d%s", (int)p->done + 1, (int)p->total, left)
                        : cli_format("deciding what to try");
    j->c->progress_of = j->label;
}

static oct_status search(job *j)
{
    oct_status st;

    j->o.database = j->database;
    j->o.names = j->names;
    j->o.progress = on_progress;
    j->o.user = j;
    st = oct_tune(j->g, j->recipe, &j->o, &j->t);
    cli_progress_end(j->c);
    j->c->progress_of = NULL;
    if (st == OCT_ERR_CANCELLED)
        cli_note(j->c, "the trials are kept in %s: the same command goes on", j->database);
    return st;
}

/* --- results --- */

/* As octet quantize with the recipe does, to the byte. */
static oct_status write_network(job *j)
{
    oct_recipe_job s = {.struct_size = sizeof(s)};
    oct_quantize_options o;
    oct_quantized *q = NULL;
    oct_status st;

    oct_recipe_get_job(j->best, &s);
    if (!s.output) return OCT_OK;
    oct_quantize_options_init(&o);
    oct_recipe_get_quantize(j->best, &o);
    if ((st = oct_recipe_line(j->best, &o.settings))) return st;
    o.source = s.model;
    o.preprocess = j->o.preprocess;
    st = oct_quantize(j->g, j->images, &o, &q);
    cli_progress_end(j->c);
    if (!st) st = cli_quantize_write(j->c, q, &s, o.family);
    oct_quantized_free(q);
    return st;
}

static oct_status write_recipe(job *j, const char *text)
{
    oct_tuned_trial best = {.struct_size = sizeof(best)};
    char *all;
    oct_status st;

    (void)oct_tuned_trial_at(j->t, oct_tuned_best(j->t), &best);
    all = cli_format("# made by octet tune: trial %lld, %s %.4f on %lld pictures\n%s",
                     (long long)best.id, oct_tuned_score_name(j->t), best.score,
                     (long long)best.images, text);
    j->c->model = NULL;
    st = oct_write_file(j->c->ctx, j->save_recipe, all, strlen(all));
    free(all);
    return st;
}

static oct_status show(job *j, const char *text)
{
    const cli_tune_report r = {.c = j->c,
                               .t = j->t,
                               .model = j->settings.model,
                               .output = text ? j->settings.output : NULL,
                               .database = j->database,
                               .recipe = j->save_recipe,
                               .recipe_text = text,
                               .report = report_of(j),
                               .seconds = (double)(cli_time_ns() - j->start_ns) * 1e-9};
    oct_status st = OCT_OK;

    if (r.report) st = cli_tune_write_page(&r);
    if (st) return st;
    if (j->c->opt.json) return cli_tune_print_json(&r);
    cli_tune_print(&r);
    return OCT_OK;
}

static oct_status work(job *j, char **files)
{
    const char *text = NULL;
    int32_t best;
    oct_status st;

    if ((st = read_settings(j, files))) return st;
    if (j->a->recipe.print_recipe) return cli_recipe_print(j->recipe);
    if ((st = check_settings(j))) return st;
    if ((st = open_all(j))) return st;
    if ((st = search(j))) return st;
    best = oct_tuned_best(j->t);
    if (best >= 0) {
        if ((st = oct_tuned_recipe(j->t, best, &j->best))) return st;
        if ((st = oct_recipe_text(j->best, &text))) return st;
        if ((st = write_network(j))) return st;
        if ((st = write_recipe(j, text))) return st;
    }
    if ((st = show(j, text))) return st;
    return best >= 0 ? OCT_OK
                     : cli_fail(j->c, OCT_ERR_STATE,
                                "none of the settings that were tried keeps the budgets; nothing "
                                "was written");
}

static oct_status run(cli *c, const void *argp, char **files)
{
    job j = {.c = c, .a = argp, .start_ns = cli_time_ns()};
    const oct_status st = work(&j, files);

    if (st) cli_recipe_keep_reason(c, st);
    c->model = NULL;
    c->progress_of = NULL;
    free(j.label);
    free(j.database);
    free(j.save_recipe);
    oct_tuned_free(j.t);
    oct_recipe_free(j.best);
    oct_class_names_free(j.names);
    oct_dataset_close(j.images);
    oct_graph_free(j.g);
    oct_recipe_free(j.recipe);
    return st;
}

const cli_command cmd_tune = {
    .name = "tune",
    .help = "search for the settings that quantize a network best",
    .about =
        "Tries settings of octet quantize: ranges, corrections, equalization, presets, bits of "
        "weights and activations, and mixed precision by what each layer alone does to the "
        "outputs. The default settings are among them, so the result is never worse than theirs "
        "on these pictures. Many settings are tried on few pictures, the best third on more, and "
        "again a third of these on all. What is given by option or recipe is not varied.\n\n"
        "The score is AP or top-1 with --annotations; without, how much of what the float network "
        "finds is found again. --images is what is tuned on: measure accuracy on others "
        "afterwards. Times are medians in octet on this machine, in turns with the float "
        "network.\n\n"
        "Each trial is kept in a database as soon as it is finished. After Ctrl-C, a crash or a "
        "kill the same command goes on, and comes to the same result as without; several "
        "processes of a machine with the same command share the work.\n\n"
        "With --json: score (what it is), seconds, database, recipe (the file; null: no settings "
        "keep the budgets), output, best (id), trials (id, round, images, float, settings, score, "
        "ms, bytes, seconds, done, front, best, error).",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
