/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SuperGradients' qat_params: divisors of a float training's settings. That training is the one the
 * same file describes (training_hyperparams), or else the usual one of YOLO-NAS.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "recipe/recipe.h"

typedef enum change { DIVIDE, MULTIPLY, TAKE } change;

static const struct rule {
    const char *key;  /* theirs, of qat_params */
    const char *base; /* theirs, of training_hyperparams; NULL: none */
    double usual;     /* of base */
    change change;
    bool is_whole;
    const char *path; /* ours */
} rules[] = {
    {"batch_size_divisor", "batch_size", 8, DIVIDE, true, "train.batch"},
    {"max_epochs_divisor", "max_epochs", 300, DIVIDE, true, "train.epochs"},
    {"lr_decay_factor", "initial_lr", 2e-4, MULTIPLY, false, "train.rate"},
    {"warmup_epochs_divisor", "lr_warmup_epochs", 1, DIVIDE, false, "train.warmup_epochs"},
    {"cosine_final_lr_ratio", NULL, 0, TAKE, false, "train.final_rate"},
};

static oct_status read_number(oct_adapter *a, const oct_tree *t, double *out)
{
    char *end = NULL;

    *out = strtod(oct_tree_text(t), &end);
    if (t->kind != OCT_TREE_SCALAR || end == oct_tree_text(t) || *end || !(*out > 0 && *out < 1e9))
        return oct_recipe_fail(a->r, a->source, t, "'%s' wants a number above 0", t->key);
    return OCT_OK;
}

static oct_status apply(oct_adapter *a, const struct rule *rule, const oct_tree *t,
                        const oct_tree *hyper)
{
    const oct_tree *base = rule->base ? oct_tree_get(hyper, rule->base) : NULL;
    double v, from = rule->usual;
    char text[40], meaning[96];

    OCT_TRY(read_number(a, t, &v));
    if (base && !oct_tree_is_null(base)) OCT_TRY(read_number(a, base, &from));
    if (rule->change == DIVIDE) v = from / v;
    if (rule->change == MULTIPLY) v = from * v;
    if (rule->is_whole) v = fmax(1, floor(v));
    (void)snprintf(text, sizeof(text), "%.9g", v);
    (void)snprintf(meaning, sizeof(meaning), "%s %s", rule->path, text);
    OCT_TRY(oct_adapter_set(a, t, rule->path, text));
    return oct_adapter_done(a, t->key, t, meaning);
}

static oct_status read_key(oct_adapter *a, const oct_tree *t, const oct_tree *hyper)
{
    for (size_t i = 0; i < OCT_COUNT(rules); i++)
        if (!strcmp(t->key, rules[i].key)) return apply(a, &rules[i], t, hyper);
    if (!strcmp(t->key, "disable_augmentations")) {
        if (strcasecmp(oct_tree_text(t), "true") != 0)
            return oct_adapter_done(a, t->key, t, "as the family is trained");
        OCT_TRY(oct_adapter_set(a, t, "train.augment", "none"));
        return oct_adapter_done(a, t->key, t, "train.augment none");
    }
    return oct_adapter_left_out(a, t->key, "octet has nothing like it");
}

oct_status oct_super_gradients_qat(oct_adapter *a, const oct_tree *map, const oct_tree *qat,
                                   const oct_tree *learn_amax)
{
    const oct_tree *hyper = oct_tree_get(map, "training_hyperparams");

    if (oct_tree_is_null(qat)) return OCT_OK;
    if (qat->kind != OCT_TREE_MAP)
        return oct_recipe_fail(a->r, a->source, qat, "'qat_params' wants keys with values");
    OCT_TRY(oct_adapter_set(a, qat, "train.preset", "super_gradients"));
    if (learn_amax && !strcasecmp(oct_tree_text(learn_amax), "true"))
        OCT_TRY(oct_adapter_set(a, qat, "qat.scale_rate", "1"));
    for (const oct_tree *t = qat->first; t; t = t->next)
        if (!oct_tree_is_null(t)) OCT_TRY(read_key(a, t, hyper));
    return OCT_OK;
}
