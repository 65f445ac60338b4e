/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of nncf.quantize() as a file, with advanced_parameters. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "recipe/recipe.h"

/* --- range estimators --- */

/* One end of RangeEstimatorParameters, as far as it is said. */
typedef struct estimator_end {
    char stat[32], rule[32], probability[32], clip[32];
} estimator_end;

static void lower(const char *word, char *out, size_t size)
{
    size_t i = 0;

    for (; word[i] && i + 1 < size; i++)
        out[i] = (char)tolower((unsigned char)word[i]);
    out[i] = '\0';
}

/* NNCF's named sets; an end of them has the same rule as the other. */
static bool named_set(const char *name, bool is_low, estimator_end *e)
{
    static const struct {
        const char *name, *stat[2], *rule[2];
    } sets[] = {
        {"MINMAX", {"min", "max"}, {"min", "max"}},
        {"MEAN_MINMAX", {"min", "max"}, {"mean", "mean"}},
        {"MEDIAN_MINMAX", {"min", "max"}, {"median", "median"}},
        {"MEAN_NO_OUTLIERS_MINMAX", {"min", "max"}, {"mean_no_outliers", "mean_no_outliers"}},
        {"MEAN_QUANTILE", {"quantile", "quantile"}, {"mean", "mean"}},
        {"HISTOGRAM", {"raw", "raw"}, {"histogram", "histogram"}}};

    for (size_t i = 0; i < OCT_COUNT(sets); i++)
        if (!strcasecmp(sets[i].name, name)) {
            (void)snprintf(e->stat, sizeof(e->stat), "%s", sets[i].stat[!is_low]);
            (void)snprintf(e->rule, sizeof(e->rule), "%s", sets[i].rule[!is_low]);
            return true;
        }
    return false;
}

static oct_status read_end(oct_adapter *a, const oct_tree *t, estimator_end *e)
{
    static const char *const keys[] = {"statistics_type", "aggregator_type",
                                       "quantile_outlier_prob", "clipping_value"};
    char *const to[] = {e->stat, e->rule, e->probability, e->clip};

    if (oct_tree_is_null(t)) return OCT_OK;
    if (t->kind != OCT_TREE_MAP)
        return oct_recipe_fail(a->r, a->source, t,
                               "a range estimator has min and max, each with "
                               "statistics_type and aggregator_type");
    for (const oct_tree *f = t->first; f; f = f->next) {
        size_t i = 0;

        while (i < OCT_COUNT(keys) && strcmp(keys[i], f->key) != 0)
            i++;
        if (i == OCT_COUNT(keys))
            OCT_TRY(oct_adapter_left_out(a, f->key, "no part of a range estimator"));
        else if (!oct_tree_is_null(f))
            lower(oct_adapter_word(f), to[i], sizeof(e->stat));
    }
    return OCT_OK;
}

static oct_status set_end(oct_adapter *a, const oct_tree *at, const char *path,
                          const estimator_end *e, const char *probability)
{
    char text[160];

    (void)snprintf(text, sizeof(text), "%s:%s:%s%s%s", e->stat, e->rule,
                   e->probability[0] ? e->probability : probability, e->clip[0] ? ":" : "",
                   e->clip);
    OCT_TRY(oct_adapter_set(a, at, path, text));
    return oct_recipe_add_note(a->r, "activations_range_estimator_params: %s %s", path, text);
}

static oct_status read_activation_ranges(oct_adapter *a, const oct_tree *t)
{
    /* what NNCF takes where a file says nothing */
    estimator_end low = {"min", "mean", "", ""}, high = {"max", "mean", "", ""};

    if (oct_tree_is_null(t)) return OCT_OK;
    if (t->kind == OCT_TREE_SCALAR) {
        if (!named_set(oct_adapter_word(t), true, &low) ||
            !named_set(oct_adapter_word(t), false, &high))
            return oct_recipe_fail(a->r, a->source, t, "no range estimator '%.60s'",
                                   oct_tree_text(t));
    } else {
        OCT_TRY(read_end(a, oct_tree_get(t, "min"), &low));
        OCT_TRY(read_end(a, oct_tree_get(t, "max"), &high));
    }
    if (!strcmp(low.rule, "histogram") || !strcmp(high.rule, "histogram")) {
        OCT_TRY(oct_adapter_set(a, t, "ranges.activations", "mse"));
        return oct_recipe_add_note(a->r, "activations_range_estimator_params histogram: "
                                         "ranges.activations mse");
    }
    OCT_TRY(oct_adapter_set(a, t, "ranges.activations", "estimator"));
    OCT_TRY(set_end(a, t, "ranges.low", &low, "0.0001"));
    return set_end(a, t, "ranges.high", &high, "0.0001");
}

/* Weights are there all at once: what is put together is nothing, and quantiles are percentiles. */
static oct_status read_weight_ranges(oct_adapter *a, const oct_tree *t)
{
    estimator_end high = {"max", "max", "", ""};
    const char *what = "weights_range_estimator_params";
    char percentile[32];
    double p;

    if (oct_tree_is_null(t)) return OCT_OK;
    if (t->kind == OCT_TREE_SCALAR) {
        if (!named_set(oct_adapter_word(t), false, &high))
            return oct_recipe_fail(a->r, a->source, t, "no range estimator '%.60s'",
                                   oct_tree_text(t));
    } else {
        OCT_TRY(read_end(a, oct_tree_get(t, "max"), &high));
    }
    if (!strcmp(high.stat, "raw")) {
        OCT_TRY(oct_adapter_set(a, t, "ranges.weights", "mse"));
        return oct_recipe_add_note(a->r, "%s: ranges.weights mse", what);
    }
    if (!strstr(high.stat, "quantile")) {
        OCT_TRY(oct_adapter_set(a, t, "ranges.weights", "max"));
        return oct_recipe_add_note(a->r, "%s: ranges.weights max", what);
    }
    p = high.probability[0] ? strtod(high.probability, NULL) : 1e-4;
    if (!(p >= 0 && p < 0.5))
        return oct_recipe_fail(a->r, a->source, t, "quantile_outlier_prob is 0 to less than 0.5");
    (void)snprintf(percentile, sizeof(percentile), "%.9g", 100 * (1 - p));
    OCT_TRY(oct_adapter_set(a, t, "ranges.weights", "percentile"));
    OCT_TRY(oct_adapter_set(a, t, "ranges.percentile", percentile));
    return oct_recipe_add_note(a->r, "%s: ranges.weights percentile %s", what, percentile);
}

/* --- the others --- */

static oct_status read_kind(oct_adapter *a, const oct_tree *t, bool is_weights)
{
    static const oct_adapter_rule rules[] = {
        {"per_channel", "true", NULL, NULL, "as the target does", true},
        {"signedness_to_force", NULL, NULL, NULL, "the target decides", false},
        {"narrow_range", NULL, NULL, NULL, "the target decides", false},
        {0}};
    static const char *const read[] = {"num_bits", "mode", "destination_type", NULL};
    const char *name =
        is_weights ? "weights_quantization_params" : "activations_quantization_params";
    const oct_tree *bits = oct_tree_get(t, "num_bits"), *mode = oct_tree_get(t, "mode");
    char what[96];

    if (oct_tree_get(t, "destination_type"))
        return oct_recipe_fail(a->r, a->source, t, "'%s': 8-bit floats are not there", name);
    if (!oct_tree_is_null(bits)) {
        const char *path = is_weights ? "weight_bits" : "activation_bits";

        (void)snprintf(what, sizeof(what), "%s.num_bits", name);
        OCT_TRY(oct_adapter_set(a, bits, path, oct_tree_text(bits)));
        OCT_TRY(oct_adapter_done(a, what, bits, path));
    }
    (void)snprintf(what, sizeof(what), "%s.mode", name);
    if (!oct_tree_is_null(mode) && is_weights) {
        OCT_TRY(oct_adapter_left_out(a, what, "the target decides"));
    } else if (!oct_tree_is_null(mode)) {
        OCT_TRY(oct_adapter_override(a, mode, "symmetric",
                                     strcasecmp(oct_adapter_word(mode), "symmetric") ? "false"
                                                                                     : "true"));
        OCT_TRY(oct_adapter_done(a, what, mode, "an override for all layers"));
    }
    if (is_weights && !strcasecmp(oct_tree_text(oct_tree_get(t, "per_channel")), "false")) {
        static const char *const all[] = {"num_bits", "mode", "per_channel", NULL};

        OCT_TRY(oct_adapter_override(a, t, "per_tensor", "true"));
        OCT_TRY(
            oct_recipe_add_note(a->r, "%s.per_channel false: an override for all layers", name));
        return oct_adapter_rules(a, t, name, rules, all, "the target decides");
    }
    return oct_adapter_rules(a, t, name, rules, read, "the target decides");
}

static oct_status read_alphas(oct_adapter *a, const oct_tree *t)
{
    const oct_tree *product = oct_tree_get(t, "matmul");
    static const oct_adapter_rule rules[] = {
        {"convolution", "-1", NULL, NULL, "what octet does", true},
        {"convolution", "-1.0", NULL, NULL, "what octet does", true},
        {"convolution", NULL, NULL, NULL,
         "octet smooths products only; --equalize is for "
         "convolutions",
         false},
        {0}};
    static const char *const read[] = {"matmul", NULL};

    if (!oct_tree_is_null(product)) {
        const double alpha = strtod(oct_tree_text(product), NULL);

        OCT_TRY(
            oct_adapter_set(a, product, "smooth_quant", alpha < 0 ? "0" : oct_tree_text(product)));
        OCT_TRY(oct_adapter_done(a, "smooth_quant_alphas.matmul", product,
                                 alpha < 0 ? "smooth_quant 0" : "smooth_quant"));
    }
    return oct_adapter_rules(a, t, "smooth_quant_alphas", rules, read, "octet has nothing like it");
}

oct_status oct_nncf_advanced(oct_adapter *a, const oct_tree *t)
{
    static const oct_adapter_rule rules[] = {
        {"overflow_fix", "first_layer", "overflow_fix", "first_layer_only", NULL, false},
        {"overflow_fix", NULL, "overflow_fix", NULL, NULL, false},
        {"quantize_outputs", "false", NULL, NULL, "what octet does", true},
        {"quantize_outputs", NULL, NULL, NULL,
         "outputs stay float; int8_io makes them integer tensors", false},
        {"inplace_statistics", NULL, NULL, NULL, "nothing depends on it", true},
        {"disable_channel_alignment", "false", "align_channels", "true", NULL, false},
        {"disable_channel_alignment", NULL, NULL, NULL, "what octet does", true},
        {"disable_bias_correction", "true", "bias_correction", "none", NULL, false},
        {"disable_bias_correction", NULL, NULL, NULL, "what octet does", true},
        {"batchwise_statistics", "false", NULL, NULL, "what octet does", true},
        {"batchwise_statistics", NULL, NULL, NULL, "every picture is a sample of its own", false},
        {"quantizer_propagation_rule", NULL, NULL, NULL,
         "where quantizers stand follows from the target", false},
        {"smooth_quant_alpha", NULL, "smooth_quant", NULL, NULL, false},
        {"bias_correction_params", NULL, NULL, NULL, "octet has no threshold", false},
        {"backend_params", NULL, NULL, NULL, "they are about NNCF's own files", false},
        {0}};
    static const char *const read[] = {"activations_quantization_params",
                                       "weights_quantization_params",
                                       "activations_range_estimator_params",
                                       "weights_range_estimator_params",
                                       "smooth_quant_alphas",
                                       NULL};
    oct_tree *kinds[] = {oct_tree_get(t, read[0]), oct_tree_get(t, read[1])};

    OCT_TRY(
        oct_adapter_rules(a, t, "advanced_parameters", rules, read, "octet has nothing like it"));
    for (int i = 0; i < 2; i++)
        if (!oct_tree_is_null(kinds[i])) OCT_TRY(read_kind(a, kinds[i], i == 1));
    OCT_TRY(read_activation_ranges(a, oct_tree_get(t, read[2])));
    OCT_TRY(read_weight_ranges(a, oct_tree_get(t, read[3])));
    if (oct_tree_is_null(oct_tree_get(t, read[4]))) return OCT_OK;
    return read_alphas(a, oct_tree_get(t, read[4]));
}

/* Of quantize_with_accuracy_control(); max_drop is octet's own word. */
static oct_status read_drop_type(oct_adapter *a, const oct_tree *t)
{
    char word[32];

    if (oct_tree_is_null(t)) return OCT_OK;
    lower(oct_adapter_word(t), word, sizeof(word)); /* DropType.ABSOLUTE, or the word */
    OCT_TRY(oct_adapter_set(a, t, "drop_type", word));
    return oct_adapter_done(a, "drop_type", t, "drop_type");
}

static oct_status read_restorer(oct_adapter *a, const oct_tree *map)
{
    if (oct_tree_is_null(map)) return OCT_OK;
    if (map->kind != OCT_TREE_MAP)
        return oct_recipe_fail(a->r, a->source, map,
                               "'advanced_accuracy_restorer_parameters' wants keys with values");
    for (const oct_tree *t = map->first; t; t = t->next) {
        if (oct_tree_is_null(t)) continue;
        if (!strcmp(t->key, "ranking_subset_size") || !strcmp(t->key, "max_num_iterations")) {
            OCT_TRY(oct_adapter_set(a, t, t->key, oct_tree_text(t)));
            OCT_TRY(oct_adapter_done(a, t->key, t, t->key));
        } else if (!strcmp(t->key, "tune_hyperparams")) {
            OCT_TRY(oct_adapter_left_out(a, t->key, "octet tune searches for settings"));
        } else {
            OCT_TRY(oct_adapter_left_out(a, t->key, "of no meaning here"));
        }
    }
    return OCT_OK;
}

oct_status oct_nncf_arguments(oct_adapter *a, const oct_tree *map)
{
    const oct_tree *subset = oct_tree_get(map, "subset_size"), *mode = oct_tree_get(map, "mode");
    const oct_tree *advanced = oct_tree_get(map, "advanced_parameters");

    if (!advanced) advanced = oct_tree_get(map, "advanced_quantization_parameters");
    if (!oct_tree_is_null(mode))
        return oct_recipe_fail(a->r, a->source, mode, "'mode' %.40s: 8-bit floats are not there",
                               oct_tree_text(mode));
    if (!oct_tree_is_null(subset)) {
        OCT_TRY(oct_adapter_set(a, subset, "data.subset_size", oct_tree_text(subset)));
        OCT_TRY(oct_adapter_done(a, "subset_size", subset, "data.subset_size"));
    }
    OCT_TRY(read_drop_type(a, oct_tree_get(map, "drop_type")));
    OCT_TRY(read_restorer(a, oct_tree_get(map, "advanced_accuracy_restorer_parameters")));
    return oct_nncf_advanced(a, advanced);
}
