/* SPDX-License-Identifier: Apache-2.0 */
/* What octet train, qat and prune do to a network: see compress.h. */
#include "cli/command/compress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/guard.h"

/* --- what there is to do --- */

static oct_status read_word(cli_compress *k, const char *word, size_t len)
{
    const struct {
        const char *word;
        bool *to;
    } words[] = {{"prune", &k->prunes}, {"sparsity", &k->sparsifies}, {"quantize", &k->quantizes}};

    for (size_t i = 0; i < CLI_COUNT(words); i++)
        if (strlen(words[i].word) == len && !strncmp(words[i].word, word, len)) {
            *words[i].to = true;
            return OCT_OK;
        }
    return cli_fail(k->c, OCT_ERR_ARG,
                    "recipe: 'compress' has prune, sparsity and quantize, not '%.*s'", (int)len,
                    word);
}

static bool has_target(const oct_prune_options *o)
{
    return o->flops_target > 0 || o->params_target > 0 || o->channels > 0 || o->time_target > 0 ||
           o->zeros;
}

static bool has_sparsity(const oct_sparsity_options *o)
{
    return o->level || o->levels || o->zeros;
}

/* The recipe's jobs must be what the command is for. */
static oct_status check_kind(cli_compress *k)
{
    if (k->kind == CLI_COMPRESS_QAT && !k->quantizes)
        return cli_fail(k->c, OCT_ERR_ARG,
                        "the recipe does not quantize (compress: %s): octet prune or octet train "
                        "does what it says",
                        k->settings.compress);
    if (k->kind == CLI_COMPRESS_PRUNE && !k->prunes && !k->sparsifies && k->settings.compress)
        return cli_fail(k->c, OCT_ERR_ARG,
                        "the recipe does not prune (compress: %s): octet qat or octet train does "
                        "what it says",
                        k->settings.compress);
    if ((k->kind == CLI_COMPRESS_PRUNE && !k->prunes && !k->sparsifies) ||
        (k->prunes && !has_target(&k->prune)))
        return cli_missing(k->c, "how much to prune: --flops-target 0.4, --params-target, "
                                 "--channels, --time-target, --zeros or --sparsity");
    if (k->sparsifies && !has_sparsity(&k->sparsity))
        return cli_missing(k->c, "how many weights are to be zero: --sparsity 0.5");
    return OCT_OK;
}

static oct_status decide(cli_compress *k)
{
    oct_status st;

    if (!k->settings.compress) {
        k->prunes = k->kind == CLI_COMPRESS_PRUNE && has_target(&k->prune);
        k->sparsifies = k->kind == CLI_COMPRESS_PRUNE && has_sparsity(&k->sparsity);
        k->quantizes = k->kind == CLI_COMPRESS_QAT;
        return check_kind(k);
    }
    for (const char *p = k->settings.compress; *p; p += strcspn(p, ","), p += *p == ',')
        if ((st = read_word(k, p, strcspn(p, ",")))) return st;
    return check_kind(k);
}

/* A checkpoint that training begins with: a float one is the network; a compressed one is not
 * compressed anew. */
static oct_status read_load_from(cli_compress *k)
{
    const char *path = k->files.load_from;
    oct_checkpoint_info i = {.struct_size = sizeof(i)};
    oct_status st;

    if (!path || k->resume) return OCT_OK;
    if ((st = oct_checkpoint_describe(k->c->ctx, path, &i))) return st;
    if (i.is_pruned == 2)
        return cli_fail(k->c, OCT_ERR_ARG,
                        "%s was saved before all channels had gone: --resume goes on from it",
                        path);
    if (i.is_quantized) {
        if (!k->quantizes)
            return cli_fail(k->c, OCT_ERR_ARG,
                            "%s is of quantization-aware training, which this job is not", path);
        k->begin_with = path;
        k->prunes = k->sparsifies = false;
        return OCT_OK;
    }
    cli_note(k->c, "%s: %s", path,
             i.is_pruned || i.is_sparse ? "compressed already; it is trained on"
                                        : "the network that is trained");
    k->model = path;
    if (i.is_pruned) k->is_pruned = true;
    if (i.is_sparse) k->sparsity.zeros = 1;
    return OCT_OK;
}

/* Labels give gradients; a network that is compared with itself has none. */
static bool has_gradients(const cli_compress *k)
{
    oct_train_options o;

    oct_train_options_init(&o);
    oct_recipe_get_train(k->recipe, &o);
    return k->files.n_images > 0 && !(o.loss && strcmp(o.loss, "distill") == 0);
}

/*
 * What to prune, by the recipe and what was typed. Pictures tell far more than weights do, and
 * between layers, too; no layer is to lose much more than the whole network.
 */
static void read_pruning(cli_compress *k)
{
    oct_prune_options *o = &k->prune;
    oct_train_pruning *p = &k->pruning;
    double most, target;

    oct_prune_options_init(o);
    most = o->most;
    o->importance = NULL;
    o->most = 0;
    oct_recipe_get_prune(k->recipe, o);
    target = o->flops_target + o->params_target + o->channels; /* one of them */
    if (!o->importance && (k->files.refit || has_gradients(k))) {
        o->importance = k->files.refit ? "reconstruction" : "taylor";
        o->global = 1;
        most = target + .2 < most ? target + .2 : most;
    }
    if (!o->importance) o->importance = "l2";
    if (o->most == 0) o->most = most; /* it was not given */
    *p = (oct_train_pruning){.struct_size = sizeof(*p), .prune = o};
    oct_recipe_get_pruning(k->recipe, p);
    if (!p->schedule) p->schedule = p->steps || p->start ? "exponential" : "baseline";
    if (!p->steps) p->steps = 10;
}

oct_status cli_compress_start(cli_compress *k, char **files)
{
    oct_status st;

    k->settings.struct_size = sizeof(k->settings);
    k->files.struct_size = sizeof(k->files);
    k->float_accuracy = -1;
    if ((st = cli_recipe_read(k->c, &k->a->recipe, files, &k->recipe))) return st;
    oct_recipe_get_job(k->recipe, &k->settings);
    oct_recipe_get_train_job(k->recipe, &k->files);
    if (k->settings.threads) oct_ctx_set_threads(k->c->ctx, k->settings.threads);
    read_pruning(k);
    oct_sparsity_options_init(&k->sparsity);
    oct_recipe_get_sparsity(k->recipe, &k->sparsity);
    if (!k->sparsity.keep) k->sparsity.keep = k->prune.keep;
    if (!k->sparsity.only) k->sparsity.only = k->prune.only;
    k->resume = k->a->resume ? k->a->resume : k->files.resume;
    if ((st = decide(k))) return st;
    return k->a->recipe.print_recipe ? OCT_OK : read_load_from(k);
}

void cli_compress_end(cli_compress *k, oct_status st)
{
    if (st) cli_recipe_keep_reason(k->c, st);
    k->c->model = NULL;
    oct_dataset_close(k->pictures);
    oct_recipe_free(k->recipe);
}

/* --- training --- */

/* Prunes, sets weights to zero, or only trains, in float. */
static oct_status run_float(cli_compress *k, const char *output)
{
    cli_train_job j = {.c = k->c, .a = k->a, .compress = k, .output = output};

    if (k->prunes && k->prune.mask)
        return cli_fail(k->c, OCT_ERR_ARG, "--mask is for pruning without --images");
    j.norm_pictures = k->kind == CLI_COMPRESS_PRUNE ? k->files.prune_bn_adapt : 0;
    /* All at once: the network is cut first, and trains faster. */
    if (k->prunes && !k->is_pruned) {
        if (j.norm_pictures || (strcmp(k->pruning.schedule, "baseline") == 0 && !k->pruning.start))
            j.cut = &k->prune;
        else
            j.prune = &k->pruning;
    }
    if (k->sparsifies) j.sparsity = &k->sparsity;
    j.model = k->model;
    j.resume = k->resume;
    return cli_train_job_run(&j);
}

/* `model`: what was made of the network before; NULL: it is the network itself. */
static oct_status run_qat(cli_compress *k, const char *model, const char *folder)
{
    cli_train_job j = {.c = k->c, .a = k->a, .compress = k, .is_qat = true};
    oct_sparsity_options zeros;

    oct_sparsity_options_init(&zeros);
    zeros.zeros = 1;
    if (k->sparsifies) j.sparsity = &zeros;
    j.model = model ? model : k->model;
    j.resume = k->resume;
    j.begin_with = k->begin_with;
    j.checkpoints = folder;
    j.is_second = model != NULL;
    return cli_train_job_run(&j);
}

/* First in float, into the folder of checkpoints, then for integers. */
static oct_status run_both(cli_compress *k)
{
    oct_checkpoint_info i = {.struct_size = sizeof(i)};
    char *folder = cli_train_folder(&k->settings, &k->files);
    char *between = cli_format("%s/float.onnx", folder), *second = cli_format("%s/qat", folder);
    oct_status st = OCT_OK;

    if (k->resume) st = oct_checkpoint_describe(k->c->ctx, k->resume, &i);
    if (!st && i.is_quantized && access(between, R_OK))
        st = cli_fail(k->c, OCT_ERR_ARG,
                      "%s: the network that %s was trained from is not there; --checkpoints names "
                      "its folder",
                      between, k->resume);
    if (!st && !i.is_quantized) {
        st = run_float(k, between);
        k->resume = NULL;
    }
    if (!st && !k->a->show_batch) st = run_qat(k, between, second);
    free(folder);
    free(between);
    free(second);
    return st;
}

oct_status cli_compress_train(cli_compress *k)
{
    if (k->quantizes && (k->prunes || k->sparsifies)) {
        if (!k->settings.output && !k->a->show_batch)
            return cli_missing(k->c, "option --output (-o OUT.onnx)");
        return run_both(k);
    }
    return k->quantizes ? run_qat(k, NULL, NULL) : run_float(k, NULL);
}

oct_status cli_compress_run(cli *c, const cli_train_args *a, cli_compress_kind kind, char **files)
{
    cli_compress k = {.c = c, .a = a, .kind = kind};
    oct_status st = cli_compress_start(&k, files);

    if (!st) st = a->recipe.print_recipe ? cli_recipe_print(k.recipe) : cli_compress_train(&k);
    cli_compress_end(&k, st);
    return st;
}
