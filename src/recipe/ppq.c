/* SPDX-License-Identifier: Apache-2.0 */
/* PPQ: its QuantizationSetting as JSON, and the variables of its scripts (TARGET_PLATFORM, ..). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "recipe/recipe.h"

/* --- the variables of scripts --- */

static oct_status read_platform(oct_adapter *a, const oct_tree *t)
{
    const char *name = oct_adapter_word(t), *target = oct_platform_target(name);
    char meaning[64];

    if (oct_tree_is_null(t)) return OCT_OK;
    if (!target)
        return oct_recipe_fail(a->r, a->source, t,
                               "there is no target for platform '%.60s'; TRT_INT8, OPENVINO_INT8, "
                               "ONNXRUNTIME and FPGA_INT8 are known",
                               name);
    OCT_TRY(oct_adapter_set(a, t, "target", target));
    (void)snprintf(meaning, sizeof(meaning), "target %s", target);
    return oct_adapter_done(a, t->key, t, meaning);
}

static oct_status read_name(oct_adapter *a, const oct_tree *t, const char *path)
{
    if (oct_tree_is_null(t)) return OCT_OK;
    OCT_TRY(oct_adapter_set(a, t, path, oct_tree_text(t)));
    return oct_adapter_done(a, t->key, t, path);
}

static oct_status read_script(oct_adapter *a, const oct_tree *map)
{
    static const oct_adapter_rule rules[] = {
        {"MODEL_TYPE", "ONNX", NULL, NULL, "what octet reads", true},
        {"INPUT_LAYOUT", "chw", "preprocess.layout", "nchw", NULL, false},
        {"INPUT_LAYOUT", "hwc", "preprocess.layout", "nhwc", NULL, false},
        {"CALIBRATION_BATCHSIZE", NULL, NULL, NULL, "the result does not depend on it", false},
        {"EXECUTING_DEVICE", "cpu", NULL, NULL, "what octet does", true},
        {"EXECUTING_DEVICE", NULL, NULL, NULL, "octet calibrates on the CPU", false},
        {"REQUIRE_ANALYSE", NULL, NULL, NULL, "octet analyze shows errors", false},
        {"FINETUNE", "true", "lsq", "true", NULL, false},
        {"TRAINING_YOUR_NETWORK", "true", "lsq", "true", NULL, false},
        {"FINETUNE", NULL, NULL, NULL, "what octet does", true},
        {"TRAINING_YOUR_NETWORK", NULL, NULL, NULL, "what octet does", true},
        {0}};
    static const char *const read[] = {
        "TARGET_PLATFORM", "EXPORT_PLATFORM",  "NETWORK_INPUTSHAPE",  "ONNX_EXPORT_FILE",
        "DATA_DIRECTORY",  "ONNX_IMPORT_FILE", "QuantizationSetting", NULL};
    const oct_tree *type = oct_tree_get(map, "MODEL_TYPE");
    const oct_tree *target = oct_tree_get(map, "TARGET_PLATFORM");
    const oct_tree *folder = oct_tree_get(map, "ONNX_EXPORT_FILE");
    char path[512];

    if (type && strcasecmp(oct_adapter_word(type), "ONNX") != 0)
        return oct_recipe_fail(a->r, a->source, type, "MODEL_TYPE %.40s: octet reads ONNX",
                               oct_tree_text(type));
    OCT_TRY(read_platform(a, target ? target : oct_tree_get(map, "EXPORT_PLATFORM")));
    OCT_TRY(oct_adapter_shape(a, oct_tree_get(map, "NETWORK_INPUTSHAPE"), "NETWORK_INPUTSHAPE"));
    OCT_TRY(read_name(a, oct_tree_get(map, "ONNX_IMPORT_FILE"), "model"));
    OCT_TRY(read_name(a, oct_tree_get(map, "DATA_DIRECTORY"), "data.images"));
    if (!oct_tree_is_null(folder)) {
        const bool is_file = strstr(oct_tree_text(folder), ".onnx") != NULL;

        if (snprintf(path, sizeof(path), is_file ? "%s" : "%s/quantized.onnx",
                     oct_tree_text(folder)) >= (int)sizeof(path))
            return oct_recipe_fail(a->r, a->source, folder, "the name is too long");
        OCT_TRY(oct_adapter_set(a, folder, "output", path));
        OCT_TRY(oct_adapter_done(a, "ONNX_EXPORT_FILE", folder, path));
    }
    return oct_adapter_rules(a, map, "", rules, read, "no setting that octet knows");
}

/* --- QuantizationSetting --- */

/* lsq_optimization_setting and blockwise_reconstruction_setting: {steps, lr, block_size, ..} */
static oct_status read_learning(oct_adapter *a, const oct_tree *s, const char *name)
{
    static const oct_adapter_rule rules[] = {
        {"steps", NULL, "reconstruct.steps", NULL, NULL, false},
        {"block_size", NULL, "reconstruct.block_size", NULL, NULL, false},
        {"lr", NULL, NULL, NULL, "octet counts it in steps of the scale; --lr sets it", false},
        {"collecting_device", NULL, NULL, NULL, "the CPU", false},
        {"is_scale_trainable", NULL, "reconstruct.is_scale_trainable", NULL, NULL, false},
        {"gamma", NULL, "reconstruct.gamma", NULL, NULL, false},
        {"interested_layers", NULL, NULL, NULL, "all layers learn", false},
        {0}};
    char key[64];

    (void)snprintf(key, sizeof(key), "%s_setting", name);
    return oct_adapter_rules(a, oct_tree_get(s, key), key, rules, NULL,
                             "octet has nothing like it");
}

static oct_status read_algorithm(oct_adapter *a, const oct_tree *s)
{
    static const oct_adapter_rule acts[] = {
        {"calib_algorithm", "minmax", "ranges.activations", "minmax", NULL, false},
        {"calib_algorithm", "kl", "ranges.activations", "kl", NULL, false},
        {"calib_algorithm", "percentile", "ranges.activations", "percentile", NULL, false},
        {"calib_algorithm", "mse", "ranges.activations", "mse", NULL, false},
        {"calib_algorithm", NULL, NULL, NULL, "no such way to find ranges; the target's is taken",
         false},
        {"per_layer_calibration", NULL, NULL, NULL, "nothing depends on it", true},
        {0}};
    static const oct_adapter_rule weights[] = {
        {"calib_algorithm", "minmax", "ranges.weights", "max", NULL, false},
        {"calib_algorithm", "percentile", "ranges.weights", "percentile", NULL, false},
        {"calib_algorithm", "mse", "ranges.weights", "mse", NULL, false},
        {"calib_algorithm", NULL, NULL, NULL,
         "no such way to find ranges of weights; the "
         "target's is taken",
         false},
        {"quantize_passive_parameter", NULL, NULL, NULL, "as the target does", true},
        {"baking_parameter", NULL, NULL, NULL, "codes are written either way", true},
        {0}};

    OCT_TRY(oct_adapter_rules(a, oct_tree_get(s, "quantize_activation_setting"),
                              "quantize_activation_setting", acts, NULL,
                              "octet has nothing like it"));
    return oct_adapter_rules(a, oct_tree_get(s, "quantize_parameter_setting"),
                             "quantize_parameter_setting", weights, NULL,
                             "octet has nothing like it");
}

/* A name in front of its platform: 0 and FP32 are float. */
static oct_status read_dispatch(oct_adapter *a, const oct_tree *table)
{
    const oct_tree *inner = oct_tree_get(table, "dispatchings");
    int n = 0;

    if (inner) table = inner;
    if (oct_tree_is_null(table)) return OCT_OK;
    if (table->kind != OCT_TREE_MAP)
        return oct_recipe_fail(a->r, a->source, table,
                               "'dispatching_table' wants operators with "
                               "platforms");
    for (const oct_tree *t = table->first; t; t = t->next) {
        const oct_tree *platform = oct_tree_get(t, "platform");
        const char *name = oct_adapter_word(platform ? platform : t);

        if (!strncmp(t->key, "intro", 5)) continue; /* PPQ explains the table in entries of it */
        if (strcmp(name, "0") != 0 && strcasecmp(name, "FP32") != 0) {
            OCT_TRY(oct_adapter_left_out(a, t->key, "only FP32 can be given to single operators"));
            continue;
        }
        OCT_TRY(oct_adapter_append(a, t, "ignored_scope.names", t->key));
        n++;
    }
    if (!n) return OCT_OK;
    return oct_recipe_add_note(a->r, "dispatching_table: ignored_scope, %d operator%s in float", n,
                               n == 1 ? "" : "s");
}

static bool is_on(const oct_tree *s, const char *key)
{
    return !strcasecmp(oct_tree_text(oct_tree_get(s, key)), "true");
}

/* A setting of something that is switched off says nothing. */
static oct_status read_equalization(oct_adapter *a, const oct_tree *s)
{
    static const oct_adapter_rule rules[] = {
        {"opt_level", "1", NULL, NULL, "what octet does", true}, {0}};

    if (!is_on(s, "equalization")) return OCT_OK;
    return oct_adapter_rules(a, oct_tree_get(s, "equalization_setting"), "equalization_setting",
                             rules, NULL, "octet has no such setting");
}

static oct_status read_setting(oct_adapter *a, const oct_tree *s)
{
    static const oct_adapter_rule rules[] = {
        {"equalization", "true", "equalize", "true", NULL, false},
        {"lsq_optimization", "true", "lsq", "true", NULL, false},
        {"blockwise_reconstruction", "true", "adaround", "true", NULL, false},
        {"bias_correct", "true", "bias_correction", "full", NULL, false},
        {"ssd_equalization", "true", NULL, NULL, "equalization has the same purpose", false},
        {"weight_split", "true", NULL, NULL, "octet splits no weights", false},
        {"channel_split", "true", NULL, NULL, "octet splits no channels", false},
        {"matrix_factorization", "true", NULL, NULL, "octet splits no matrices", false},
        {"quantize_activation", "false", NULL, NULL, "activations are always quantized", false},
        {"quantize_parameter", "false", NULL, NULL, "weights are always quantized", false},
        {"fusion", "false", NULL, NULL, "the target says what is fused", false},
        {"dispatcher", NULL, NULL, NULL, "the target says what is computed in integers", false},
        {0}};
    static const char *const names[] = {
        "equalization",        "lsq_optimization",     "blockwise_reconstruction",
        "bias_correct",        "ssd_equalization",     "weight_split",
        "channel_split",       "matrix_factorization", "dispatcher",
        "quantize_activation", "quantize_parameter",   "fusion"};

    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        oct_tree one = {.kind = OCT_TREE_MAP}, *t = oct_tree_get(s, names[i]), copy;
        const bool is_plain_off = t && (!strcasecmp(oct_tree_text(t), "false"));
        const bool turns_off = i >= 9; /* those that say something when they are false */

        if (!t || oct_tree_is_null(t) || (is_plain_off && !turns_off)) continue;
        if (turns_off && !is_plain_off) continue;
        copy = *t;
        copy.next = NULL;
        one.first = one.last = &copy;
        OCT_TRY(oct_adapter_rules(a, &one, "", rules, NULL, "octet has nothing like it"));
    }
    OCT_TRY(read_algorithm(a, s));
    OCT_TRY(read_equalization(a, s));
    if (is_on(s, "lsq_optimization")) OCT_TRY(read_learning(a, s, "lsq_optimization"));
    if (is_on(s, "blockwise_reconstruction"))
        OCT_TRY(read_learning(a, s, "blockwise_reconstruction"));
    return read_dispatch(a, oct_tree_get(s, "dispatching_table"));
}

oct_status oct_ppq_read(oct_adapter *a, const oct_tree *map)
{
    const oct_tree *setting = oct_tree_get(map, "QuantizationSetting");

    if (!setting) setting = oct_tree_get(map, "quantize_activation_setting") ? map : NULL;
    if (!setting && oct_tree_get(map, "dispatching_table")) setting = map;
    if (setting && setting->kind != OCT_TREE_MAP)
        return oct_recipe_fail(a->r, a->source, setting,
                               "'QuantizationSetting' wants keys with "
                               "values");
    if (setting) OCT_TRY(read_setting(a, setting));
    return setting == map ? OCT_OK : read_script(a, map);
}
