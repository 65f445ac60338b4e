/* SPDX-License-Identifier: Apache-2.0 */
/* Training settings of MMDetection's configs and of NNCF's samples, beside what is compressed. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "data/files.h"
#include "recipe/recipe.h"

static oct_status give(oct_adapter *a, const oct_tree *t, const char *what, const char *path)
{
    if (oct_tree_is_null(t)) return OCT_OK;
    if (t->kind != OCT_TREE_SCALAR)
        return oct_recipe_fail(a->r, a->source, t, "'%s' wants a single value", what);
    OCT_TRY(oct_adapter_set(a, t, path, oct_tree_text(t)));
    return oct_adapter_done(a, what, t, path);
}

/* --- optimizer and schedule --- */

oct_status oct_training_optimizer(oct_adapter *a, const oct_tree *o)
{
    const oct_tree *type = oct_tree_get(o, "type"), *clip;
    char name[16] = "";

    if (oct_tree_is_null(o)) return OCT_OK;
    if (o->kind != OCT_TREE_MAP)
        return oct_recipe_fail(a->r, a->source, o, "'optimizer' wants keys with values");
    for (size_t i = 0; i + 1 < sizeof(name) && oct_tree_text(type)[i]; i++) {
        const char c = oct_tree_text(type)[i];

        name[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        name[i + 1] = '\0';
    }
    if (*name) {
        OCT_TRY(oct_adapter_set(a, type, "train.optimizer", name));
        OCT_TRY(oct_adapter_done(a, "optimizer.type", type, "train.optimizer"));
    }
    OCT_TRY(give(a, oct_tree_get(o, "lr"), "optimizer.lr", "train.rate"));
    OCT_TRY(give(a, oct_tree_get(o, "base_lr"), "optimizer.base_lr", "train.rate"));
    OCT_TRY(give(a, oct_tree_get(o, "momentum"), "optimizer.momentum", "train.momentum"));
    OCT_TRY(
        give(a, oct_tree_get(o, "weight_decay"), "optimizer.weight_decay", "train.weight_decay"));
    clip = oct_tree_get(o, "grad_clip");
    return give(a, oct_tree_get(clip, "max_norm"), "grad_clip.max_norm", "train.clip_norm");
}

static oct_status read_rates(oct_adapter *a, const oct_tree *map)
{
    const oct_tree *lr = oct_tree_get(map, "lr_config"), *policy = oct_tree_get(lr, "policy");
    const oct_tree *clip = oct_tree_get(oct_tree_get(map, "optimizer_config"), "grad_clip");
    const char *name = oct_tree_text(policy);
    const char *ours = !strcasecmp(name, "CosineAnnealing") ? "cosine"
                       : !strcasecmp(name, "fixed")         ? "constant"
                                                            : NULL;

    OCT_TRY(oct_training_optimizer(a, oct_tree_get(map, "optimizer")));
    OCT_TRY(give(a, oct_tree_get(clip, "max_norm"), "grad_clip.max_norm", "train.clip_norm"));
    if (oct_tree_is_null(lr)) return OCT_OK;
    if (!ours) return oct_adapter_left_out(a, "lr_config", "the rate falls as the preset says");
    OCT_TRY(oct_adapter_set(a, policy, "train.schedule", ours));
    return oct_adapter_done(a, "lr_config.policy", policy, "train.schedule");
}

/* --- data --- */

/* RepeatDataset and others have the dataset inside. */
static const oct_tree *innermost(const oct_tree *t)
{
    for (int i = 0; i < 4 && oct_tree_get(t, "dataset"); i++)
        t = oct_tree_get(t, "dataset");
    return t;
}

static bool is_name(const oct_tree *t)
{
    return t && t->kind == OCT_TREE_SCALAR && !t->is_plain && *t->text;
}

/* COCO's labels with the folder of pictures; lists of names of VOC are not taken over. */
static oct_status read_set(oct_adapter *a, const oct_tree *set, const char *what,
                           const char *images, const char *labels, bool is_list)
{
    const oct_tree *prefix = oct_tree_get(innermost(set), "img_prefix");
    const oct_tree *file = oct_tree_get(innermost(set), "ann_file");

    if (oct_tree_is_null(set)) return OCT_OK;
    if (!is_name(prefix) || !is_name(file) || !oct_has_extension(file->text, ".json"))
        return oct_adapter_left_out(a, what,
                                    "only a folder with COCO's labels is taken over: give "
                                    "--images and --annotations");
    if (is_list)
        OCT_TRY(oct_adapter_append(a, prefix, images, prefix->text));
    else
        OCT_TRY(oct_adapter_set(a, prefix, images, prefix->text));
    OCT_TRY(oct_adapter_set(a, file, labels, file->text));
    return oct_recipe_add_note(a->r, "%s: %s %.100s, %s %.100s", what, images, prefix->text, labels,
                               file->text);
}

static oct_status read_data(oct_adapter *a, const oct_tree *data)
{
    const oct_tree *val = oct_tree_get(data, "val");

    OCT_TRY(give(a, oct_tree_get(data, "samples_per_gpu"), "data.samples_per_gpu", "train.batch"));
    OCT_TRY(give(a, oct_tree_get(data, "workers_per_gpu"), "data.workers_per_gpu",
                 "train.loader_threads"));
    OCT_TRY(read_set(a, oct_tree_get(data, "train"), "data.train", "train.images",
                     "train.annotations", true));
    return read_set(a, val, "data.val", "train.eval_images", "train.eval_annotations", false);
}

/* --- networks and checkpoints --- */

static oct_status read_load_from(oct_adapter *a, const oct_tree *t)
{
    static const char *const networks[] = {".onnx", ".pt2", ".xml"};

    if (!is_name(t)) return OCT_OK;
    for (size_t i = 0; i < OCT_COUNT(networks); i++)
        if (oct_has_extension(t->text, networks[i])) return give(a, t, "load_from", "model");
    if (oct_has_extension(t->text, ".safetensors"))
        return give(a, t, "load_from", "train.load_from");
    return oct_adapter_left_out(a, "load_from",
                                "weights of PyTorch are not read: export the network "
                                "to ONNX, and name that");
}

static oct_status read_resume_from(oct_adapter *a, const oct_tree *t)
{
    if (!is_name(t)) return OCT_OK;
    if (!oct_has_extension(t->text, ".safetensors"))
        return oct_recipe_fail(a->r, a->source, t,
                               "'resume_from' names '%.200s', which is no checkpoint of octet's: "
                               "those end in .safetensors",
                               t->text);
    return give(a, t, "resume_from", "train.resume");
}

/* All else of the file in one note. */
static oct_status tell_others(oct_adapter *a, const oct_tree *map)
{
    static const char *const known[] = {"_base_",       "nncf_config",
                                        "total_epochs", "runner",
                                        "optimizer",    "optimizer_config",
                                        "lr_config",    "data",
                                        "load_from",    "resume_from",
                                        "work_dir",     "seed",
                                        "evaluation",   "nncf_compress_postprocessing"};
    oct_status st = OCT_OK;
    oct_str b;

    oct_str_init(&b, a->r->ctx);
    for (const oct_tree *t = map->first; t; t = t->next) {
        size_t i = 0;

        while (i < OCT_COUNT(known) && strcmp(known[i], t->key) != 0)
            i++;
        if (i == OCT_COUNT(known) && b.len < 300)
            oct_str_printf(&b, "%s%.40s", b.len ? ", " : "", t->key);
    }
    if (b.failed) st = OCT_ERR_MEMORY;
    if (!st && b.len) st = oct_adapter_left_out(a, b.s, "of no meaning here");
    oct_str_fini(&b);
    return st;
}

oct_status oct_mmdetection_read(oct_adapter *a, const oct_tree *map)
{
    const oct_tree *runner = oct_tree_get(map, "runner");

    OCT_TRY(give(a, oct_tree_get(map, "total_epochs"), "total_epochs", "train.epochs"));
    OCT_TRY(give(a, oct_tree_get(runner, "max_epochs"), "runner.max_epochs", "train.epochs"));
    OCT_TRY(read_rates(a, map));
    OCT_TRY(read_data(a, oct_tree_get(map, "data")));
    OCT_TRY(give(a, oct_tree_get(oct_tree_get(map, "evaluation"), "interval"),
                 "evaluation.interval", "train.eval_every"));
    OCT_TRY(give(a, oct_tree_get(map, "seed"), "seed", "seed"));
    OCT_TRY(read_load_from(a, oct_tree_get(map, "load_from")));
    OCT_TRY(read_resume_from(a, oct_tree_get(map, "resume_from")));
    OCT_TRY(give(a, oct_tree_get(map, "work_dir"), "work_dir", "train.checkpoints"));
    return tell_others(a, map);
}
