/* SPDX-License-Identifier: Apache-2.0 */
/* SuperGradients' selective_quantizer_params and calib_params. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "recipe/recipe.h"

/* Their histogram methods in octet's words; weights have no divergence. */
static const struct {
    const char *theirs, *ours, *of_weights;
} methods[] = {
    {"percentile", "percentile", "percentile"}, {"entropy", "kl", "mse"}, {"mse", "mse", "mse"}};

/* What both parts need to know of each other. */
typedef struct gradients {
    oct_adapter *a;
    const oct_tree *method; /* histogram_calib_method */
    bool uses_histograms;   /* for activations: calibrator_i is not max */
} gradients;

static int method_of(const gradients *s)
{
    for (size_t i = 0; i < OCT_COUNT(methods); i++)
        if (!strcmp(oct_tree_text(s->method), methods[i].theirs)) return (int)i;
    return -1;
}

static oct_status calibrator_w(const gradients *s, const oct_tree *t)
{
    const int m = method_of(s);
    const char *kind = !strcmp(oct_tree_text(t), "max") ? "max"
                       : m >= 0                         ? methods[m].of_weights
                                                        : "mse";
    char meaning[64];

    OCT_TRY(oct_adapter_set(s->a, t, "ranges.weights", kind));
    (void)snprintf(meaning, sizeof(meaning), "ranges.weights %s", kind);
    return oct_adapter_done(s->a, t->key, t, meaning);
}

static oct_status read_selective(const gradients *s, const oct_tree *t)
{
    oct_adapter *a = s->a;
    const char *text = oct_tree_text(t);

    if (!strcmp(t->key, "skip_modules") || !strcmp(t->key, "skip_patterns"))
        return oct_adapter_scopes(a, t, t->key, "ignored_scope");
    if (!strcmp(t->key, "per_channel")) {
        if (!strcasecmp(text, "false")) OCT_TRY(oct_adapter_override(a, t, "per_tensor", "true"));
        return oct_adapter_done(a, t->key, t,
                                strcasecmp(text, "false") ? "as the target does"
                                                          : "an override for all layers");
    }
    if (!strcmp(t->key, "calibrator_w")) return calibrator_w(s, t);
    if (!strcmp(t->key, "calibrator_i")) {
        if (s->uses_histograms) return oct_adapter_done(a, t->key, t, "see calib_params");
        OCT_TRY(oct_adapter_set(a, t, "ranges.activations", "minmax"));
        return oct_adapter_done(a, t->key, t, "ranges.activations minmax");
    }
    if (!strcmp(t->key, "learn_amax"))
        return oct_adapter_done(a, t->key, t, "of qat: whether scales are learned");
    return oct_adapter_left_out(a, t->key, "only training needs it");
}

static oct_status calib_method(const gradients *s, const oct_tree *t)
{
    const int m = method_of(s);
    char meaning[64];

    if (m < 0)
        return oct_recipe_fail(s->a->r, s->a->source, t,
                               "'%s' is percentile, entropy or mse, not '%.40s'", t->key,
                               oct_tree_text(t));
    if (!s->uses_histograms)
        return oct_adapter_left_out(s->a, t->key, "calibrator_i is max: there are no histograms");
    OCT_TRY(oct_adapter_set(s->a, t, "ranges.activations", methods[m].ours));
    (void)snprintf(meaning, sizeof(meaning), "ranges.activations %s", methods[m].ours);
    return oct_adapter_done(s->a, t->key, t, meaning);
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

static oct_status read_calib(const gradients *s, const oct_tree *t)
{
    oct_adapter *a = s->a;

    if (!strcmp(t->key, "histogram_calib_method")) return calib_method(s, t);
    if (!strcmp(t->key, "num_calib_batches")) return calib_batches(a, t);
    if (!strcmp(t->key, "percentile")) {
        const bool is_used = !s->method || !strcmp(oct_tree_text(s->method), "percentile");

        OCT_TRY(oct_adapter_set(a, t, "ranges.percentile", oct_tree_text(t)));
        return oct_adapter_done(a, t->key, t,
                                is_used ? "ranges.percentile"
                                        : "ranges.percentile, of no effect: "
                                          "histogram_calib_method is another");
    }
    return oct_adapter_left_out(a, t->key, "nothing depends on it");
}

static oct_status each_key(const gradients *s, const oct_tree *map, const char *what,
                           oct_status (*read)(const gradients *s, const oct_tree *t))
{
    if (oct_tree_is_null(map)) return OCT_OK;
    if (map->kind != OCT_TREE_MAP)
        return oct_recipe_fail(s->a->r, s->a->source, map, "'%s' wants keys with values", what);
    for (const oct_tree *t = map->first; t; t = t->next)
        if (!oct_tree_is_null(t)) OCT_TRY(read(s, t));
    return OCT_OK;
}

/* False asks for training after calibration. */
static oct_status read_ptq_only(oct_adapter *a, const oct_tree *t)
{
    if (oct_tree_is_null(t)) return OCT_OK;
    if (!strcasecmp(oct_tree_text(t), "false"))
        return oct_adapter_left_out(a, "ptq_only False",
                                    "octet qat trains; octet quantize gives what calibration "
                                    "alone gives");
    return oct_adapter_done(a, t->key, t, "what octet does");
}

static oct_status read_params(oct_adapter *a, const oct_tree *map, const oct_tree *params,
                              const oct_tree *only)
{
    const oct_tree *selective = oct_tree_get(params, "selective_quantizer_params");
    const oct_tree *calib = oct_tree_get(params, "calib_params");
    const oct_tree *inputs = oct_tree_get(selective, "calibrator_i");
    const oct_tree *qat = oct_tree_get(params, "qat_params");
    gradients s = {a, oct_tree_get(calib, "histogram_calib_method"),
                   strcmp(oct_tree_text(inputs), "max") != 0};

    if (oct_tree_is_null(s.method)) s.method = NULL;
    OCT_TRY(read_ptq_only(a, only ? only : oct_tree_get(map, "ptq_only")));
    OCT_TRY(each_key(&s, selective, "selective_quantizer_params", read_selective));
    OCT_TRY(each_key(&s, calib, "calib_params", read_calib));
    return oct_super_gradients_qat(a, map, qat ? qat : oct_tree_get(map, "qat_params"),
                                   oct_tree_get(selective, "learn_amax"));
}

/* The class says the target; what is in it, the rest. */
static oct_status read_quantizer(oct_adapter *a, const oct_tree *params, const oct_tree **inner)
{
    const oct_tree *quantizer = oct_tree_get(params, "quantizer");

    *inner = params;
    if (oct_tree_is_null(quantizer)) return OCT_OK;
    OCT_TRY(oct_super_gradients_quantizer(a, quantizer, inner));
    return oct_super_gradients_quantizer_params(a, oct_tree_get(*inner, "quantizer_params"));
}

oct_status oct_super_gradients_read(oct_adapter *a, const oct_tree *map, const oct_tree *outer)
{
    const oct_tree *params = NULL;

    OCT_TRY(read_quantizer(a, outer, &params));
    OCT_TRY(read_params(a, map, params, oct_tree_get(outer, "ptq_only")));
    if (oct_tree_get(map, "defaults"))
        OCT_TRY(oct_adapter_left_out(a, "defaults",
                                     "Hydra would add other files, which octet does not look for"));
    return oct_super_gradients_export(a, map, outer);
}
