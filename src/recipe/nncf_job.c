/* SPDX-License-Identifier: Apache-2.0 */
/* NNCF's config as a job: its algorithms in their order, and what counts for all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "recipe/recipe.h"

/* How many pictures a batch has: batch_size, or the first of input_info's sample_size above 1. */
long oct_nncf_batch(const oct_adapter *a, const oct_tree *config)
{
    const oct_tree *info = oct_tree_get(config, "input_info"), *size;
    long n = strtol(oct_tree_text(oct_tree_get(config, "batch_size")), NULL, 10);

    if (n > 0 || a->batch > 0) return n > 0 ? n : a->batch;
    if (info && info->kind == OCT_TREE_LIST) info = info->first;
    size = oct_tree_get(info, "sample_size");
    if (size && size->kind == OCT_TREE_LIST && size->first) {
        n = strtol(oct_tree_text(size->first), NULL, 10);
        if (n > 1) return n;
    }
    return OCT_ADAPTER_BATCH;
}

/* Statistics of norms are estimated anew before training. Old files count in batches. */
oct_status oct_nncf_adaptation(oct_adapter *a, const oct_tree *init, const oct_tree *config)
{
    const oct_tree *bn = oct_tree_get(init, "batchnorm_adaptation");
    const oct_tree *samples = oct_tree_get(bn, "num_bn_adaptation_samples");
    const oct_tree *steps = oct_tree_get(bn, "num_bn_adaptation_steps");
    const oct_tree *t = oct_tree_is_null(samples) ? steps : samples;
    const long n = strtol(oct_tree_text(t), NULL, 10);
    const long batch = t == samples ? 1 : oct_nncf_batch(a, config);
    char text[32], meaning[96];

    if (oct_tree_is_null(t)) return OCT_OK;
    if (n < 0 || n > 1000000 || batch > 1000)
        return oct_recipe_fail(a->r, a->source, t, "'%s' wants a number from 0", t->key);
    if (!n) return OCT_OK;
    (void)snprintf(text, sizeof(text), "%ld", n * batch);
    (void)snprintf(meaning, sizeof(meaning), "qat.bn_adapt %s, before training", text);
    OCT_TRY(oct_adapter_set(a, t, "qat.bn_adapt", text));
    return oct_adapter_done(a, "initializer.batchnorm_adaptation", NULL, meaning);
}

/* The shape of the only input: others have to be named. */
static oct_status read_input(oct_adapter *a, const oct_tree *info)
{
    if (oct_tree_is_null(info)) return OCT_OK;
    if (info->kind == OCT_TREE_LIST && info->n > 1)
        return oct_adapter_left_out(a, "input_info", "of several inputs; --input-shape names them");
    if (info->kind == OCT_TREE_LIST) info = info->first;
    return oct_adapter_shape(a, oct_tree_get(info, "sample_size"), "input_info.sample_size");
}

/* Of the keys beside "compression", those that need no more than a word. */
static oct_status tell_top(oct_adapter *a, const oct_tree *config)
{
    if (oct_tree_get(config, "disable_shape_matching"))
        OCT_TRY(oct_adapter_left_out(a, "disable_shape_matching", "shapes are not matched"));
    return OCT_OK;
}

/* MMDetection's switch: are the nodes after the last layers with weights quantized, too? */
static oct_status read_postprocessing(oct_adapter *a, const oct_tree *map)
{
    const oct_tree *t = oct_tree_get(map, "nncf_compress_postprocessing");
    const bool all = !strcasecmp(oct_tree_text(t), "true");

    if (oct_tree_is_null(t)) return OCT_OK;
    if (!all && strcasecmp(oct_tree_text(t), "false") != 0)
        return oct_recipe_fail(a->r, a->source, t, "'%s' is true or false", t->key);
    OCT_TRY(oct_adapter_set(a, t, "tail", all ? "off" : "auto"));
    return oct_adapter_done(a, t->key, t, all ? "tail off" : "tail auto");
}

/* Of NNCF's samples, which train by themselves. */
static oct_status read_training(oct_adapter *a, const oct_tree *config)
{
    static const char *const words[][2] = {{"epochs", "train.epochs"},
                                           {"batch_size", "train.batch"},
                                           {"log_dir", "train.tensorboard"}};

    for (size_t i = 0; i < OCT_COUNT(words); i++) {
        const oct_tree *t = oct_tree_get(config, words[i][0]);

        if (oct_tree_is_null(t)) continue;
        OCT_TRY(oct_adapter_set(a, t, words[i][1], oct_tree_text(t)));
        OCT_TRY(oct_adapter_done(a, words[i][0], t, words[i][1]));
    }
    return oct_training_optimizer(a, oct_tree_get(config, "optimizer"));
}

/* Scopes and so on that stand beside "compression" count for all algorithms. */
static oct_status read_top(oct_adapter *a, const oct_tree *config)
{
    const oct_tree *device = oct_tree_get(config, "target_device");

    OCT_TRY(oct_adapter_scopes(a, oct_tree_get(config, "ignored_scopes"), "ignored_scopes",
                               "ignored_scope"));
    OCT_TRY(oct_adapter_scopes(a, oct_tree_get(config, "target_scopes"), "target_scopes",
                               "only_scope"));
    if (!oct_tree_is_null(device)) {
        OCT_TRY(oct_adapter_set(a, device, "target_device", oct_tree_text(device)));
        OCT_TRY(oct_adapter_done(a, "target_device", device, "target_device"));
    }
    OCT_TRY(read_input(a, oct_tree_get(config, "input_info")));
    OCT_TRY(read_postprocessing(a, config));
    OCT_TRY(oct_nncf_accuracy_aware(a, oct_tree_get(config, "accuracy_aware_training")));
    OCT_TRY(read_training(a, config));
    return tell_top(a, config);
}

/* Keys of a config inside another file that nothing here knows. */
static oct_status tell_others(oct_adapter *a, const oct_tree *config)
{
    static const char *const known[] = {"compression",
                                        "ignored_scopes",
                                        "target_scopes",
                                        "target_device",
                                        "accuracy_aware_training",
                                        "input_info",
                                        "log_dir",
                                        "disable_shape_matching",
                                        "batch_size",
                                        "epochs",
                                        "optimizer",
                                        "nncf_compress_postprocessing"};

    for (const oct_tree *t = config->first; t; t = t->next) {
        size_t i = 0;

        while (i < OCT_COUNT(known) && strcmp(known[i], t->key) != 0)
            i++;
        if (i == OCT_COUNT(known)) OCT_TRY(oct_adapter_left_out(a, t->key, "of no meaning here"));
    }
    return OCT_OK;
}

typedef oct_status (*read_algorithm)(oct_adapter *a, const oct_tree *q, const oct_tree *config);

static const struct {
    const char *name;
    read_algorithm read;
} algorithms[] = {
    {"quantization", oct_nncf_quantization},
    {"filter_pruning", oct_nncf_pruning},
    {"magnitude_sparsity", oct_nncf_sparsity},
    {"const_sparsity", oct_nncf_sparsity},
};

/* `seen`: by row of the table. What was asked for and cannot be done must not look done. */
static oct_status read_one(oct_adapter *a, const oct_tree *t, const oct_tree *config, bool *seen)
{
    const char *name = oct_tree_text(oct_tree_get(t, "algorithm"));

    if (t->kind != OCT_TREE_MAP || !*name)
        return oct_recipe_fail(a->r, a->source, t, "a compression wants an 'algorithm'");
    for (size_t i = 0; i < OCT_COUNT(algorithms); i++)
        if (!strcmp(algorithms[i].name, name)) {
            if (seen[i]) return oct_recipe_fail(a->r, a->source, t, "'%s' is there twice", name);
            seen[i] = true;
            return algorithms[i].read(a, t, config);
        }
    return oct_recipe_fail(a->r, a->source, oct_tree_get(t, "algorithm"),
                           "octet has no compression algorithm '%.80s', but quantization, "
                           "filter_pruning, magnitude_sparsity, const_sparsity",
                           name);
}

oct_status oct_nncf_read(oct_adapter *a, const oct_tree *map)
{
    const oct_tree *inner = oct_tree_get(map, "nncf_config");
    const oct_tree *config = inner ? inner : map;
    const oct_tree *all = oct_tree_get(config, "compression");
    bool seen[OCT_COUNT(algorithms)] = {false};

    if (all->kind == OCT_TREE_LIST && !all->n)
        return oct_recipe_fail(a->r, a->source, all, "the list of compressions is empty");
    for (const oct_tree *t = all->kind == OCT_TREE_LIST ? all->first : all; t;
         t = all->kind == OCT_TREE_LIST ? t->next : NULL)
        OCT_TRY(read_one(a, t, config, seen));
    if (inner) {
        OCT_TRY(tell_others(a, inner));
        OCT_TRY(read_postprocessing(a, map));
    }
    return read_top(a, config);
}
