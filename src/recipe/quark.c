/* SPDX-License-Identifier: Apache-2.0 */
/* AMD Quark's configurations: of torch (specs of tensors), and of ONNX (calibrate_method, ..). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "recipe/recipe.h"

typedef struct quark {
    oct_adapter *a;
    bool is_pow2, has_channels; /* of weights */
} quark;

static bool has_word(const oct_tree *t, const char *word)
{
    return t && strcasestr(oct_tree_text(t), word);
}

/* --- torch: {weight: spec, input_tensors: spec, output_tensors: spec, bias: spec} --- */

static oct_status check_dtype(const quark *q, const oct_tree *spec, const char *name, bool is_bias)
{
    const oct_tree *dtype = oct_tree_get(spec, "dtype");
    const char *word = oct_adapter_word(dtype);

    if (oct_tree_is_null(dtype) || !strcasecmp(word, "int8") || !strcasecmp(word, "uint8"))
        return OCT_OK;
    if (is_bias && (!strcasecmp(word, "int16") || !strcasecmp(word, "int32"))) return OCT_OK;
    return oct_recipe_fail(q->a->r, q->a->source, dtype, "'%s' of type %.40s is not there; int8 is",
                           name, word);
}

/* How ranges are found: the observer's name says it. */
static oct_status read_observer(const quark *q, const oct_tree *spec, const char *name,
                                bool is_weights)
{
    static const struct {
        const char *word, *ours, *of_weights;
    } kinds[] = {{"MSE", "mse", "mse"},
                 {"Percentile", "percentile", "percentile"},
                 {"Histogram", "kl", "mse"},
                 {"MinMax", "minmax", "max"}};
    const oct_tree *observer = oct_tree_get(spec, "observer_cls");
    const char *path = is_weights ? "ranges.weights" : "ranges.activations";
    char what[96], meaning[64];

    if (oct_tree_is_null(observer)) return OCT_OK;
    (void)snprintf(what, sizeof(what), "%s.observer_cls", name);
    for (size_t i = 0; i < OCT_COUNT(kinds); i++) {
        const char *ours = is_weights ? kinds[i].of_weights : kinds[i].ours;

        if (!has_word(observer, kinds[i].word)) continue;
        OCT_TRY(oct_adapter_set(q->a, observer, path, ours));
        (void)snprintf(meaning, sizeof(meaning), "%s %s%s", path, ours,
                       has_word(observer, "PowOf2") ? ", scales are powers of two" : "");
        return oct_adapter_done(q->a, what, observer, meaning);
    }
    return oct_adapter_left_out(q->a, what, "no such way to find ranges; the target's is taken");
}

static oct_status read_spec(quark *q, const oct_tree *spec, const char *name)
{
    const bool is_weights = !strcmp(name, "weight"), is_bias = !strcmp(name, "bias");
    const oct_tree *dynamic = oct_tree_get(spec, "is_dynamic");
    const oct_tree *symmetric = oct_tree_get(spec, "symmetric");
    const oct_tree *rounding = oct_tree_get(spec, "round_method");

    if (oct_tree_is_null(spec)) return OCT_OK;
    if (spec->kind != OCT_TREE_MAP)
        return oct_recipe_fail(q->a->r, q->a->source, spec, "'%s' wants a specification", name);
    OCT_TRY(check_dtype(q, spec, name, is_bias));
    if (dynamic && !strcasecmp(oct_tree_text(dynamic), "true"))
        return oct_recipe_fail(q->a->r, q->a->source, dynamic,
                               "'%s': scales found at run time are "
                               "not there",
                               name);
    if (has_word(oct_tree_get(spec, "qscheme"), "per_group"))
        return oct_recipe_fail(q->a->r, q->a->source, oct_tree_get(spec, "qscheme"),
                               "'%s': scales for groups are not there", name);
    if (rounding && strcasecmp(oct_adapter_word(rounding), "half_even") != 0)
        OCT_TRY(oct_adapter_left_out(q->a, "round_method", "the target's; half to even for most"));
    if (is_weights) q->has_channels = has_word(oct_tree_get(spec, "qscheme"), "per_channel");
    if (!strcmp(name, "output_tensors") || is_bias) return OCT_OK; /* as the target does */
    if (has_word(oct_tree_get(spec, "observer_cls"), "PowOf2") ||
        has_word(oct_tree_get(spec, "scale_type"), "pof2"))
        q->is_pow2 = true;
    if (!is_weights && symmetric) {
        const bool is_true = !strcasecmp(oct_tree_text(symmetric), "true");

        OCT_TRY(oct_adapter_set(q->a, symmetric, "preset", is_true ? "performance" : "mixed"));
        OCT_TRY(oct_adapter_done(q->a, "input_tensors.symmetric", symmetric,
                                 is_true ? "preset performance" : "preset mixed"));
    }
    return read_observer(q, spec, name, is_weights);
}

static oct_status read_bias(const quark *q, const oct_tree *spec)
{
    const char *word = oct_adapter_word(oct_tree_get(spec, "dtype"));
    const char *bits = !strcasecmp(word, "int16") ? "16" : !strcasecmp(word, "int32") ? "32" : "8";
    char meaning[32];

    if (oct_tree_is_null(spec)) return OCT_OK;
    if (!q->is_pow2) return oct_adapter_left_out(q->a, "bias", "biases are as the target has them");
    OCT_TRY(oct_adapter_set(q->a, spec, "bias_bits", bits));
    (void)snprintf(meaning, sizeof(meaning), "bias_bits %s", bits);
    return oct_adapter_done(q->a, "bias", spec, meaning);
}

static oct_status set_target(const quark *q, const oct_tree *at)
{
    const char *target = q->has_channels ? "npu-pow2-pc" : "npu-pow2";

    if (!q->is_pow2) return OCT_OK;
    OCT_TRY(oct_adapter_set(q->a, at, "target", target));
    return oct_recipe_add_note(q->a->r, "power-of-two scales: target %s", target);
}

static oct_status read_torch(oct_adapter *a, const oct_tree *global)
{
    static const char *const names[] = {"weight", "input_tensors", "output_tensors", "bias"};
    quark q = {.a = a};

    for (size_t i = 0; i < OCT_COUNT(names); i++)
        OCT_TRY(read_spec(&q, oct_tree_get(global, names[i]), names[i]));
    OCT_TRY(set_target(&q, global));
    return read_bias(&q, oct_tree_get(global, "bias"));
}

/* --- ONNX --- */

static oct_status read_options(oct_adapter *a, const oct_tree *t, bool is_npu)
{
    static const oct_adapter_rule pow2[] = {
        {"Int32Bias", "true", "bias_bits", "32", NULL, false},
        {"Int16Bias", "true", "bias_bits", "16", NULL, false},
        {"ConvertSigmoidToHardSigmoid", "true", "hard_activations", "true", NULL, false},
        {"SimulateDPU", "true", NULL, NULL, "what npu-pow2 does", true},
        {"NPULimitationCheck", "true", NULL, NULL, "what npu-pow2 does", true},
        {"Percentile", NULL, "ranges.percentile", NULL, NULL, false},
        {"SmoothAlpha", NULL, "smooth_quant", NULL, NULL, false},
        {0}};
    static const oct_adapter_rule others[] = {
        {"ActivationSymmetric", "true", "preset", "performance", NULL, false},
        {"ActivationSymmetric", "false", "preset", "mixed", NULL, false},
        {"WeightSymmetric", "true", NULL, NULL, "what octet does", true},
        {"Percentile", NULL, "ranges.percentile", NULL, NULL, false},
        {"CalibPercentile", NULL, "ranges.percentile", NULL, NULL, false},
        {"SmoothAlpha", NULL, "smooth_quant", NULL, NULL, false},
        {0}};

    return oct_adapter_rules(a, t, "extra_options", is_npu ? pow2 : others, NULL,
                             "octet has nothing like it");
}

static oct_status read_onnx(oct_adapter *a, const oct_tree *c)
{
    static const oct_adapter_rule rules[] = {
        {"calibrate_method", "MinMax", "ranges.activations", "minmax", NULL, false},
        {"calibrate_method", "MinMSE", "ranges.activations", "mse", NULL, false},
        {"calibrate_method", "NonOverflow", "ranges.activations", "minmax", NULL, false},
        {"calibrate_method", "Percentile", "ranges.activations", "percentile", NULL, false},
        {"calibrate_method", "LayerwisePercentile", "ranges.activations", "percentile", NULL,
         false},
        {"calibrate_method", "Entropy", "ranges.activations", "kl", NULL, false},
        {"calibrate_method", NULL, NULL, NULL, "no such way to find ranges; the target's is taken",
         false},
        {"include_cle", "true", "equalize", "true", NULL, false},
        {"include_cle", NULL, NULL, NULL, "what octet does", true},
        {"include_fast_ft", "true", "adaround", "true", NULL, false},
        {"include_fast_ft", NULL, NULL, NULL, "what octet does", true},
        {"include_sq", "true", "smooth_quant", "0.5", NULL, false},
        {"include_sq", NULL, NULL, NULL, "what octet does", true},
        {"quant_format", "QDQ", NULL, NULL, "what octet writes", true},
        {"optimize_model", NULL, NULL, NULL, "octet always simplifies", true},
        {"activation_type", NULL, NULL, NULL, "the target decides", false},
        {"weight_type", NULL, NULL, NULL, "the target decides", false},
        {"enable_npu_cnn", "false", NULL, NULL, "what octet does", true},
        {0}};
    static const char *const read[] = {"extra_options", "nodes_to_exclude",     "enable_npu_cnn",
                                       "per_channel",   "op_types_to_quantize", NULL};
    const oct_tree *method = oct_tree_get(c, "calibrate_method");
    const oct_tree *channels = oct_tree_get(c, "per_channel");
    quark q = {.a = a, .has_channels = channels && !strcasecmp(oct_tree_text(channels), "true")};

    q.is_pow2 = !strcasecmp(oct_tree_text(oct_tree_get(c, "enable_npu_cnn")), "true") ||
                has_word(method, "PowerOfTwo");
    OCT_TRY(set_target(&q, c));
    if (channels)
        OCT_TRY(oct_adapter_done(a, "per_channel", channels,
                                 q.is_pow2 ? "see target" : "as the target does"));
    OCT_TRY(oct_adapter_rules(a, c, "", rules, read, "octet has nothing like it"));
    OCT_TRY(oct_adapter_scopes(a, oct_tree_get(c, "nodes_to_exclude"), "nodes_to_exclude",
                               "ignored_scope"));
    if (!oct_tree_is_null(oct_tree_get(c, "op_types_to_quantize")) &&
        oct_tree_get(c, "op_types_to_quantize")->first)
        OCT_TRY(oct_adapter_left_out(a, "op_types_to_quantize",
                                     "the target says what is computed in integers"));
    return read_options(a, oct_tree_get(c, "extra_options"), q.is_pow2);
}

/* --- both --- */

oct_status oct_quark_read(oct_adapter *a, const oct_tree *map)
{
    static const oct_adapter_rule rules[] = {
        {"quant_method", "quark", NULL, NULL, "AMD Quark", true},
        {"quant_mode", NULL, NULL, NULL, "octet works on the graph", true},
        {"algo_config", NULL, NULL, NULL,
         "algorithms have settings of their own: --equalize, "
         "--smooth-quant, --adaround",
         false},
        {0}};
    static const char *const read[] = {"global_quant_config", "global_config",           "exclude",
                                       "layer_quant_config",  "layer_type_quant_config", NULL};
    const oct_tree *global = oct_tree_get(map, "global_quant_config");

    if (!global) global = oct_tree_get(map, "global_config");
    if (global->kind != OCT_TREE_MAP)
        return oct_recipe_fail(a->r, a->source, global,
                               "'global_quant_config' wants keys with "
                               "values");
    if (oct_tree_get(global, "calibrate_method") || oct_tree_get(global, "enable_npu_cnn"))
        OCT_TRY(read_onnx(a, global));
    else
        OCT_TRY(read_torch(a, global));
    OCT_TRY(oct_adapter_scopes(a, oct_tree_get(map, "exclude"), "exclude", "ignored_scope"));
    for (int i = 3; read[i]; i++) {
        const oct_tree *t = oct_tree_get(map, read[i]);

        if (!oct_tree_is_null(t) && t->first)
            OCT_TRY(oct_adapter_left_out(a, read[i], "overrides set single layers"));
    }
    return oct_adapter_rules(a, map, "", rules, read, "octet has nothing like it");
}
