/* SPDX-License-Identifier: Apache-2.0 */
/* octet train: a network and labelled pictures in, the network with better weights out. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <octet/train.h>

#include "cli/classes.h"
#include "cli/cli.h"
#include "cli/command/recipe.h"
#include "cli/command/train.h"
#include "cli/cpu.h"
#include "cli/data.h"
#include "cli/guard.h"
#include "cli/model.h"

typedef struct args {
    cli_recipe_args recipe; /* first: options of fields lie in it */
    const char *resume, *show_batch;
} args;

static const cli_opt opts[] = {
#define OCT_FIELD           CLI_FIELD_ROW
#define OCT_FIELD_FILE(...) /* not typed, or an option of every command */
#define OCT_FIELD_QUANTIZE(...)
#include <octet/recipe.def>
#undef OCT_FIELD
    CLI_OPT_RECIPE("read settings from a YAML or JSON file; options change what it says"),
    {CLI_STR, "resume", offsetof(args, resume), "FILE",
     .help = "go on from a checkpoint, with the same settings and pictures, as if it had never "
             "stopped"},
    {CLI_STR, "show-batch", offsetof(args, show_batch), "FILE",
     .help = "draw the first batch with its boxes as a JPEG or PNG, and do nothing else"},
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", "an ONNX file; may be left out if a recipe names it", CLI_FILE_IN | CLI_FILE_MAYBE},
    {0},
};

static const cli_example examples[] = {
    {"train net.onnx -o better.onnx --images train --annotations train.json --eval-images val "
     "--eval-annotations val.json",
     "Fine-tune as the network's family is usually trained; keep the best epoch"},
    {"train net.onnx -o new.onnx --images data.yaml --epochs 100 --batch 16 --rate 0.001 "
     "--freeze-name backbone",
     "Only the layers after the backbone"},
    {"train net.onnx --images train --annotations train.json --show-batch batch.jpg",
     "Look at what the network will see"},
    {"train --recipe train.yaml --resume new.train/last.safetensors",
     "Go on after an interruption"},
    {0},
};

/* State of one call. What is opened here is closed by run(). */
typedef struct job {
    cli *c;
    const args *a;
    oct_recipe *recipe;
    oct_recipe_job settings;
    oct_recipe_train_job files;
    oct_graph *g;
    oct_dataset *images, *truth;
    oct_class_names *names;
    oct_preprocess preprocess;
    oct_train_options options;
    cli_training t;
    char *folder, *last, *best;
} job;

/* --- settings --- */

static oct_status read_settings(job *j, char **files)
{
    oct_status st;

    if ((st = cli_recipe_read(j->c, &j->a->recipe, files, &j->recipe))) return st;
    j->settings.struct_size = sizeof(j->settings);
    j->files.struct_size = sizeof(j->files);
    oct_recipe_get_job(j->recipe, &j->settings);
    oct_recipe_get_train_job(j->recipe, &j->files);
    if (j->settings.threads) oct_ctx_set_threads(j->c->ctx, j->settings.threads);
    return OCT_OK;
}

/* "net.train" beside net.onnx. */
static char *default_folder(const char *output)
{
    const char *dot = strrchr(output, '.'), *slash = strrchr(output, '/');
    const size_t len = dot && (!slash || dot > slash) ? (size_t)(dot - output) : strlen(output);

    return cli_format("%.*s.train", (int)len, output);
}

static oct_status check_files(job *j)
{
    oct_status st;

    cli_reads(j->c, j->settings.model);
    cli_reads(j->c, j->a->recipe.recipe);
    for (int32_t i = 0; i < j->files.n_images; i++)
        cli_reads(j->c, j->files.images[i]);
    if (j->a->show_batch) return cli_writes(j->c, "--show-batch", j->a->show_batch);
    if ((st = cli_check_onnx_name(j->c, "--output", j->settings.output))) return st;
    if ((st = cli_writes(j->c, "--output", j->settings.output))) return st;
    j->folder = j->files.checkpoints ? cli_format("%s", j->files.checkpoints)
                                     : default_folder(j->settings.output);
    j->last = cli_format("%s/last.safetensors", j->folder);
    j->best = cli_format("%s/best.safetensors", j->folder);
    if (mkdir(j->folder, 0777) && access(j->folder, W_OK))
        return cli_fail(j->c, OCT_ERR_IO, "%s: the folder for checkpoints cannot be made",
                        j->folder);
    if ((st = cli_rewrites(j->c, "--checkpoints", j->last))) return st;
    return cli_rewrites(j->c, "--checkpoints", j->best);
}

static oct_status check_settings(job *j)
{
    if (!j->settings.model) return cli_missing(j->c, "MODEL");
    if (!j->settings.output && !j->a->show_batch)
        return cli_missing(j->c, "option --output (-o OUT.onnx)");
    if (!j->files.n_images)
        return cli_fail(j->c, OCT_ERR_ARG,
                        "pictures to learn from are missing: --images DIR --annotations FILE");
    if (j->files.eval_annotations && !j->files.eval_images)
        return cli_fail(j->c, OCT_ERR_ARG,
                        "--eval-annotations needs the pictures they are for: --eval-images DIR");
    return check_files(j);
}

/* --- opening --- */

static oct_status open_dataset(job *j, const char *const *images, int32_t n, const char *labels,
                               int32_t limit, oct_dataset **out)
{
    oct_dataset_options d;
    oct_status st;

    oct_dataset_options_init(&d);
    d.images = images[0];
    d.more_images = images + 1;
    d.n_more_images = n - 1;
    d.annotations = labels;
    d.limit = limit;
    d.skip_bad = j->files.skip_bad;
    d.need_files = 1;
    st = cli_dataset_open(j->c, &d, out);
    if (!st) (void)cli_data_notes(j->c, images[0], *out, 0);
    return st;
}

static oct_status open_data(job *j)
{
    const char *model = j->c->model;
    oct_status st;

    j->c->model = NULL; /* errors here are about the data */
    st = open_dataset(j, j->files.images, j->files.n_images, j->files.annotations, j->files.limit,
                      &j->images);
    if (!st && j->files.eval_images)
        st = open_dataset(j, &j->files.eval_images, 1, j->files.eval_annotations,
                          j->files.eval_limit, &j->truth);
    if (!st) st = cli_labels_load(j->c, j->settings.labels, &j->names);
    if (!st) j->c->model = model;
    return st;
}

static oct_status read_preprocess(job *j)
{
    oct_detector *d = NULL;
    oct_status st;

    if ((st = oct_detector_new(j->g, j->options.family, &d))) return st;
    st = cli_labels_set(j->c, d, j->names, j->settings.labels);
    if (!st && oct_dataset_n_categories(j->images) > 0) st = cli_classes_note(j->c, d, j->images);
    j->t.is_classifier = oct_detector_is_classifier(d) != 0;
    oct_preprocess_init(&j->preprocess);
    oct_detector_preprocess(d, &j->preprocess);
    if (!st && j->settings.preprocess)
        st = oct_preprocess_parse(j->c->ctx, &j->preprocess, j->settings.preprocess);
    oct_detector_free(d);
    j->options.preprocess = &j->preprocess;
    return st;
}

static oct_status open_all(job *j)
{
    oct_status st;

    oct_train_options_init(&j->options);
    oct_recipe_get_train(j->recipe, &j->options);
    if ((st = oct_recipe_lines(j->recipe, &j->options.settings))) return st;
    if ((st = cli_recipe_load_model(j->c, &j->settings, &j->g))) return st;
    if ((st = open_data(j))) return st;
    j->options.names = j->names;
    j->options.tensorboard = j->files.tensorboard;
    if ((st = read_preprocess(j))) return st;
    if ((st = oct_train_new(j->g, j->images, &j->options, &j->t.train))) return st;
    return j->a->resume ? oct_train_resume(j->t.train, j->a->resume) : OCT_OK;
}

/* --- epochs --- */

static oct_status measure(job *j, double *accuracy)
{
    oct_eval_options o;
    oct_graph *g = NULL;
    oct_status st;

    oct_eval_options_init(&o);
    o.family = j->options.family;
    o.preprocess = j->options.preprocess;
    o.names = j->names;
    o.loader_threads = oct_ctx_threads(j->c->ctx);
    j->t.result.struct_size = sizeof(j->t.result);
    st = oct_train_graph(j->t.train, &g);
    if (!st) st = oct_eval_run(g, j->truth, &o, &j->t.result, NULL);
    cli_progress_end(j->c);
    oct_graph_free(g);
    if (st) return st;
    j->t.is_measured = true;
    *accuracy = j->t.is_classifier ? j->t.result.top1 : j->t.result.box.ap;
    st = oct_train_log(j->t.train, j->t.is_classifier ? "accuracy/top1" : "accuracy/AP", *accuracy);
    if (!st && !j->t.is_classifier)
        st = oct_train_log(j->t.train, "accuracy/AP50", j->t.result.box.ap50);
    return st;
}

/* Is accuracy measured after this epoch? */
static bool is_due(const job *j)
{
    const int32_t every = j->files.eval_every > 0 ? j->files.eval_every : 1;

    return j->truth && (j->t.epoch.epoch % every == 0 || oct_train_is_done(j->t.train));
}

static oct_status finish_epoch(job *j)
{
    cli_training *t = &j->t;
    double accuracy = -1;
    oct_status st = OCT_OK;

    t->is_measured = t->is_best = false;
    if (is_due(j) && (st = measure(j, &accuracy))) return st;
    if (t->is_measured && accuracy > t->best) {
        t->is_best = true;
        t->best = accuracy;
        t->best_epoch = t->epoch.epoch;
        oct_train_set_best(t->train, t->best_epoch, t->best);
        st = oct_train_save(t->train, j->best);
    }
    if (!st) st = oct_train_save(t->train, j->last);
    return st ? st : cli_train_print_epoch(j->c, t);
}

/* Between two steps everything is whole: what was learned is kept. */
static oct_status stop(job *j)
{
    const oct_status st = oct_train_save(j->t.train, j->last);

    cli_progress_end(j->c);
    if (!st) cli_note(j->c, "stopped; --resume %s goes on from here", j->last);
    return st ? st : OCT_ERR_CANCELLED;
}

static bool is_patient(const job *j)
{
    const int32_t since = j->t.epoch.epoch - j->t.best_epoch;

    return j->files.patience < 1 || !j->t.best_epoch || since < j->files.patience;
}

static oct_status train(job *j)
{
    cli_training *t = &j->t;
    oct_status st = OCT_OK;

    t->best_epoch = oct_train_best(t->train, &t->best);
    if (!t->best_epoch) t->best = -1;
    t->epoch.struct_size = sizeof(t->epoch);
    cli_train_print_start(j->c, t);
    cli_hold_interrupts(); /* a step may be long: what was learned is saved before the end */
    while (!st && !oct_train_is_done(t->train) && is_patient(j)) {
        st = oct_train_run(t->train, &t->epoch);
        cli_progress_end(j->c);
        if (!st) st = finish_epoch(j);
    }
    if (st == OCT_ERR_CANCELLED) st = stop(j);
    cli_release_interrupts();
    return st;
}

/* The best epoch if accuracy was measured, else the last one. */
static oct_status write_network(job *j)
{
    oct_graph *g = NULL;
    oct_status st;

    if (j->t.best_epoch && access(j->best, R_OK)) { /* resumed with another folder */
        cli_note(j->c, "%s is not there: the network of the last epoch is written", j->best);
        j->t.best_epoch = 0;
    }
    st = j->t.best_epoch ? oct_checkpoint_load(j->c->ctx, j->best, &g)
                         : oct_train_graph(j->t.train, &g);
    if (!st) st = oct_onnx_save(g, j->settings.output, NULL);
    oct_graph_free(g);
    return st;
}

static oct_status work(job *j, char **files)
{
    oct_status st;

    if ((st = read_settings(j, files))) return st;
    if (j->a->recipe.print_recipe) return cli_recipe_print(j->recipe);
    if ((st = check_settings(j))) return st;
    if ((st = open_all(j))) return st;
    if (j->a->show_batch) return oct_train_draw_batch(j->t.train, j->a->show_batch);
    if ((st = train(j))) return st;
    if ((st = write_network(j))) return st;
    return cli_train_print_end(j->c, &j->t, j->settings.output, j->folder);
}

static oct_status run(cli *c, const void *argp, char **files)
{
    job j = {.c = c, .a = argp};
    const oct_status st = work(&j, files);

    if (st) cli_recipe_keep_reason(c, st);
    c->model = NULL;
    oct_train_free(j.t.train);
    oct_class_names_free(j.names);
    oct_dataset_close(j.truth);
    oct_dataset_close(j.images);
    oct_graph_free(j.g);
    oct_recipe_free(j.recipe);
    free(j.folder);
    free(j.last);
    free(j.best);
    return st;
}

const cli_command cmd_train = {
    .name = "train",
    .help = "train a network on labelled pictures",
    .about =
        "Trains the ONNX file itself: gradients are found for its operators, the loss of its "
        "family is attached to its raw predictions, and what is written is the same network with "
        "other weights. Settings that are not given are those with which the family's own project "
        "trains (--preset).\n\n"
        "After each epoch the folder for checkpoints gets last.safetensors and, if accuracy is "
        "measured (--eval-images), best.safetensors; octet eval and octet export take them like "
        "networks. Ctrl-C saves and ends; --resume goes on bit for bit. The same seed and threads "
        "give the same bytes.\n\n"
        "With --json: one object a line for each epoch (epoch, step, loss, parts, rate, grad_norm, "
        "seconds, data_seconds, ap, ap50, top1, best), then one with output, best_epoch, best, "
        "checkpoints.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
