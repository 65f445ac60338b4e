/* SPDX-License-Identifier: Apache-2.0 */
/* What a training is asked for: settings, files, pictures and the network, checked and opened. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/classes.h"
#include "cli/command/compress.h"
#include "cli/command/train.h"
#include "cli/data.h"
#include "cli/guard.h"
#include "cli/model.h"
#include "cli/report/report.h"

/* --- settings --- */

void cli_train_read(cli_train_job *j)
{
    j->recipe = j->compress->recipe;
    j->settings = j->compress->settings;
    j->files = j->compress->files;
    if (j->model) j->settings.model = j->model;
    if (j->output) j->settings.output = j->output;
    if (j->checkpoints) j->files.checkpoints = j->checkpoints;
}

/* "net.train" beside net.onnx. */
static char *default_folder(const char *output)
{
    const char *dot = strrchr(output, '.'), *slash = strrchr(output, '/');
    const size_t len = dot && (!slash || dot > slash) ? (size_t)(dot - output) : strlen(output);

    return cli_format("%.*s.train", (int)len, output);
}

char *cli_train_folder(const oct_recipe_job *s, const oct_recipe_train_job *files)
{
    return files->checkpoints ? cli_format("%s", files->checkpoints)
                              : default_folder(s->output ? s->output : "");
}

/* With those around it, as tools whose configs are read make theirs. */
static oct_status make_folder(cli *c, char *path)
{
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(path, 0777);
            *p = '/';
        }
    if (mkdir(path, 0777) && access(path, W_OK))
        return cli_fail(c, OCT_ERR_IO, "%s: the folder for checkpoints cannot be made", path);
    return OCT_OK;
}

/* The network: of a job of two parts the first one writes its own, between them. */
static oct_status check_output(cli_train_job *j)
{
    const char *final = j->compress->settings.output;
    oct_status st = OCT_OK;

    if (!j->is_second && (st = cli_check_model_name(j->c, "--output", final))) return st;
    if (!j->is_second && (st = cli_writes(j->c, "--output", final))) return st;
    return j->output ? cli_rewrites(j->c, "--checkpoints", j->output) : OCT_OK;
}

static oct_status check_files(cli_train_job *j)
{
    oct_status st;

    cli_reads(j->c, j->settings.model);
    cli_reads(j->c, j->a->recipe.recipe);
    for (int32_t i = 0; i < j->files.n_images; i++)
        cli_reads(j->c, j->files.images[i]);
    if (j->a->show_batch) return cli_writes(j->c, "--show-batch", j->a->show_batch);
    j->folder = cli_train_folder(j->output ? &j->compress->settings : &j->settings, &j->files);
    if ((st = make_folder(j->c, j->folder))) return st;
    if ((st = check_output(j))) return st;
    if (j->a->table && j->is_qat && (st = cli_table_files(j))) return st;
    if (j->a->report && !j->output && (st = cli_report_check(j->c, j->a->report, true))) return st;
    j->last = cli_format("%s/last.safetensors", j->folder);
    j->best = cli_format("%s/best.safetensors", j->folder);
    if ((st = cli_rewrites(j->c, "--checkpoints", j->last))) return st;
    return cli_rewrites(j->c, "--checkpoints", j->best);
}

oct_status cli_train_check(cli_train_job *j)
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

static oct_status open_dataset(cli_train_job *j, const char *const *images, int32_t n,
                               const char *labels, int32_t limit, oct_dataset **out)
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

/* Pictures to calibrate on: by default those to learn from, of which labels are not needed. */
static oct_status open_calibration(cli_train_job *j)
{
    oct_dataset_options d;

    oct_dataset_options_init(&d);
    oct_recipe_get_data(j->recipe, &d);
    if (!d.images) {
        d.images = j->files.images[0];
        d.more_images = j->files.images + 1;
        d.n_more_images = j->files.n_images - 1;
        d.annotations = j->files.annotations;
        d.limit = j->files.limit;
    }
    d.skip_bad = d.skip_bad || j->files.skip_bad;
    d.need_files = 1;
    return cli_dataset_open(j->c, &d, &j->calibration);
}

static oct_status open_data(cli_train_job *j)
{
    const char *model = j->c->model;
    oct_status st;

    j->c->model = NULL; /* errors here are about the data */
    st = open_dataset(j, j->files.images, j->files.n_images, j->files.annotations, j->files.limit,
                      &j->images);
    if (!st && j->files.eval_images)
        st = open_dataset(j, &j->files.eval_images, 1, j->files.eval_annotations,
                          j->files.eval_limit, &j->truth);
    if (!st && j->is_qat) st = open_calibration(j);
    if (!st) st = cli_labels_load(j->c, j->settings.labels, &j->names);
    if (!st) j->c->model = model;
    return st;
}

static oct_status read_preprocess(cli_train_job *j)
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

static oct_status set_quantize(cli_train_job *j)
{
    oct_quantize_options_init(&j->quantize);
    oct_recipe_get_quantize(j->recipe, &j->quantize);
    j->quantize.source = j->settings.model;
    j->options.quantize = &j->quantize;
    j->options.calibration = j->calibration;
    return oct_recipe_line(j->recipe, &j->quantize.settings);
}

/* Gradients are those of a job on the network as it is. */
static oct_status cut_by_gradients(cli_train_job *j, oct_graph **small)
{
    oct_prune_options cut = *j->cut;
    oct_train_options o = j->options;
    oct_train *t = NULL;
    oct_status st;

    o.tensorboard = NULL;
    st = oct_train_new(j->g, j->images, &o, &t);
    if (!st) st = oct_train_measure_gradients(t, 0);
    cut.gradient = oct_train_gradient;
    cut.gradient_user = t;
    if (!st) st = oct_prune_run(j->g, &cut, small, &j->pruned);
    oct_train_free(t);
    return st;
}

static oct_status cut_first(cli_train_job *j)
{
    oct_graph *small = NULL;
    oct_status st;

    if (!j->cut) return OCT_OK;
    if ((st = cli_compress_open_pictures(j->compress, j->g))) return st;
    st = strcmp(j->cut->importance, "taylor") == 0
             ? cut_by_gradients(j, &small)
             : oct_prune_run(j->g, j->cut, &small, &j->pruned);
    j->uncut = j->g;
    j->g = small;
    return st;
}

/* A network that is pruned learns from what it was, or from the one that --teacher names. */
static oct_status open_teacher(cli_train_job *j)
{
    const cli_list none = {0};
    oct_status st = OCT_OK;

    if (j->norm_pictures > 0) return OCT_OK;
    if (j->cut || j->prune) j->options.teacher = j->cut ? j->uncut : j->g;
    if (!j->files.teacher) return OCT_OK;
    cli_reads(j->c, j->files.teacher);
    st = cli_model_load(j->c, j->files.teacher, &none, &j->teacher);
    j->options.teacher = j->teacher;
    return st;
}

/* Of quantization-aware training after another one. */
static int32_t epochs_of_second(const cli_train_job *j)
{
    const int32_t n = j->options.epochs;

    if (j->files.qat_epochs) return j->files.qat_epochs;
    return n > 0 && n < 10 ? n : 10;
}

/* Channels must all have gone when the last epoch begins: the file would not be what was asked for.
 */
static oct_status check_epochs(const cli_train_job *j)
{
    oct_train_info i = {.struct_size = sizeof(i)};

    oct_train_describe(j->t.train, &i);
    if (!j->prune || j->prune->start + j->prune->steps <= i.epochs) return OCT_OK;
    return cli_fail(j->c, OCT_ERR_ARG,
                    "channels go until epoch %d (prune.start and prune.epochs), but only %d epochs "
                    "are trained: --epochs or --prune-epochs",
                    (int)(j->prune->start + j->prune->steps), (int)i.epochs);
}

static oct_status begin(cli_train_job *j)
{
    oct_status st = check_epochs(j);

    if (!st && j->resume) return oct_train_resume(j->t.train, j->resume);
    return !st && j->begin_with ? oct_train_begin_with(j->t.train, j->begin_with) : st;
}

oct_status cli_train_open(cli_train_job *j)
{
    oct_status st;

    oct_train_options_init(&j->options);
    oct_recipe_get_train(j->recipe, &j->options);
    if (j->is_second) j->options.epochs = epochs_of_second(j);
    if ((st = oct_recipe_lines(j->recipe, &j->options.settings))) return st;
    if ((st = cli_recipe_load_model(j->c, &j->settings, &j->g))) return st;
    if ((st = cli_model_check_outputs(j->c, j->settings.outputs, j->g))) return st;
    if ((st = open_data(j))) return st;
    j->options.names = j->names;
    if (j->norm_pictures > 0) j->options.norm_pictures = j->norm_pictures;
    j->options.prune = j->prune;
    j->options.tensorboard = j->files.tensorboard;
    j->options.sparsity = j->sparsity;
    if ((st = read_preprocess(j))) return st;
    if ((st = cli_train_goal(j))) return st;
    if ((st = cut_first(j))) return st;
    if ((st = open_teacher(j))) return st;
    if (j->is_qat && (st = set_quantize(j))) return st;
    st = oct_train_new(j->g, j->images, &j->options, &j->t.train);
    cli_progress_end(j->c);
    return st ? st : begin(j);
}
