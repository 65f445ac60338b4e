/* SPDX-License-Identifier: Apache-2.0 */
/* SuperGradients' selective_quantizer_params and calib_params. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "recipe/recipe.h"

static oct_status skip_modules(oct_adapter *a, const oct_tree *t)
{
    int n = 0;

    for (const oct_tree *e = t->kind == OCT_TREE_LIST ? t->first : t; e;
         e = t->kind == OCT_TREE_LIST ? e->next : NULL, n++) {
        if (e->kind != OCT_TREE_SCALAR)
            return oct_recipe_fail(a->r, a->source, e, "'skip_modules' wants names of modules");
        OCT_TRY(oct_adapter_scope(a, e, "ignored_scope", e->text));
    }
    return oct_recipe_add_note(a->r, "skip_modules: ignored_scope, %d entr%s", n,
                               n == 1 ? "y" : "ies");
}

static oct_status read_selective(oct_adapter *a, const oct_tree *t)
{
    const char *text = oct_tree_text(t);

    if (!strcmp(t->key, "skip_modules")) return skip_modules(a, t);
    if (!strcmp(t->key, "per_channel")) {
        if (!strcasecmp(text, "false")) OCT_TRY(oct_adapter_override(a, t, "per_tensor", "true"));
        return oct_adapter_done(a, t->key, t,
                                strcasecmp(text, "false") ? "as the target does"
                                                          : "an override for all layers");
    }
    if (!strcmp(t->key, "calibrator_w")) {
        const char *kind = strcmp(text, "max") ? "mse" : "max";

        OCT_TRY(oct_adapter_set(a, t, "ranges.weights", kind));
        return oct_adapter_done(a, t->key, t,
                                strcmp(kind, "max") ? "ranges.weights mse" : "ranges.weights max");
    }
    if (!strcmp(t->key, "calibrator_i")) {
        if (strcmp(text, "max") != 0) return oct_adapter_done(a, t->key, t, "see calib_params");
        OCT_TRY(oct_adapter_set(a, t, "ranges.activations", "minmax"));
        return oct_adapter_done(a, t->key, t, "ranges.activations minmax");
    }
    return oct_adapter_left_out(a, t->key, "only training needs it");
}

static oct_status calib_method(oct_adapter *a, const oct_tree *t)
{
    static const char *const names[][2] = {
        {"percentile", "percentile"}, {"entropy", "kl"}, {"mse", "mse"}};
    char meaning[64];

    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (!strcmp(oct_tree_text(t), names[i][0])) {
            OCT_TRY(oct_adapter_set(a, t, "ranges.activations", names[i][1]));
            (void)snprintf(meaning, sizeof(meaning), "ranges.activations %s", names[i][1]);
            return oct_adapter_done(a, t->key, t, meaning);
        }
    return oct_recipe_fail(a->r, a->source, t, "'%s' is percentile, entropy or mse, not '%.40s'",
                           t->key, oct_tree_text(t));
}

static oct_status calib_batches(oct_adapter *a, const oct_tree *t)
{
    const long n = strtol(oct_tree_text(t), NULL, 10);
    char text[32], meaning[96];

    if (n < 1 || n > 1000000)
        return oct_recipe_fail(a->r, a->source, t, "'%s' wants a number above 0", t->key);
    (void)snprintf(text, sizeof(text), "%ld", n * OCT_ADAPTER_BATCH);
    (void)snprintf(meaning, sizeof(meaning), "data.subset_size %s, batches of %d", text,
                   OCT_ADAPTER_BATCH);
    OCT_TRY(oct_adapter_set(a, t, "data.subset_size", text));
    return oct_adapter_done(a, t->key, t, meaning);
}

static oct_status read_calib(oct_adapter *a, const oct_tree *t)
{
    if (!strcmp(t->key, "histogram_calib_method")) return calib_method(a, t);
    if (!strcmp(t->key, "num_calib_batches")) return calib_batches(a, t);
    if (!strcmp(t->key, "percentile")) {
        OCT_TRY(oct_adapter_set(a, t, "ranges.percentile", oct_tree_text(t)));
        return oct_adapter_done(a, t->key, t, "ranges.percentile");
    }
    return oct_adapter_left_out(a, t->key, "nothing depends on it");
}

static oct_status each_key(oct_adapter *a, const oct_tree *map, const char *what,
                           oct_status (*read)(oct_adapter *a, const oct_tree *t))
{
    if (oct_tree_is_null(map)) return OCT_OK;
    if (map->kind != OCT_TREE_MAP)
        return oct_recipe_fail(a->r, a->source, map, "'%s' wants keys with values", what);
    for (const oct_tree *t = map->first; t; t = t->next)
        if (!oct_tree_is_null(t)) OCT_TRY(read(a, t));
    return OCT_OK;
}

oct_status oct_super_gradients_read(oct_adapter *a, const oct_tree *params)
{
    const char *const selective = "selective_quantizer_params", *const calib = "calib_params";

    OCT_TRY(each_key(a, oct_tree_get(params, selective), selective, read_selective));
    return each_key(a, oct_tree_get(params, calib), calib, read_calib);
}
