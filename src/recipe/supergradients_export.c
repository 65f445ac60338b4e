/* SPDX-License-Identifier: Apache-2.0 */
/* SuperGradients' files with a quantizer and an exporter: which they are, and export_params. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "recipe/recipe.h"

static const struct {
    const char *name, *target, *words; /* words: what is to be known of it; NULL: nothing */
} quantizers[] = {
    {"OpenVinoQuantizer", "openvino", NULL},
    {"TRTQuantizer", "tensorrt", NULL},
    {"TRTPTQQuantizer", "tensorrt", NULL},
    {"TRTQATQuantizer", "tensorrt", "octet qat trains; octet quantize only calibrates"}};

oct_status oct_super_gradients_quantizer(oct_adapter *a, const oct_tree *quantizer,
                                         const oct_tree **params)
{
    const oct_tree *t = quantizer->first;
    char meaning[96];

    if (quantizer->kind != OCT_TREE_MAP || !t || t->next)
        return oct_recipe_fail(a->r, a->source, quantizer, "'quantizer' wants one quantizer");
    for (size_t i = 0; i < OCT_COUNT(quantizers); i++) {
        if (strcmp(quantizers[i].name, t->key) != 0) continue;
        *params = t;
        OCT_TRY(oct_adapter_set(a, t, "target", quantizers[i].target));
        (void)snprintf(meaning, sizeof(meaning), "target %s%s%s", quantizers[i].target,
                       quantizers[i].words ? "; " : "",
                       quantizers[i].words ? quantizers[i].words : "");
        return oct_recipe_add_note(a->r, "quantizer %s: %s", t->key, meaning);
    }
    return oct_recipe_fail(a->r, a->source, t,
                           "no quantizer '%.60s'; OpenVinoQuantizer, TRTQuantizer, "
                           "TRTPTQQuantizer and TRTQATQuantizer are known",
                           t->key);
}

oct_status oct_super_gradients_quantizer_params(oct_adapter *a, const oct_tree *t)
{
    static const oct_adapter_rule rules[] = {
        {"target_device", NULL, "target_device", NULL, NULL, false},
        {"preset", NULL, "preset", NULL, NULL, false},
        {"fast_bias_correction", "true", "bias_correction", "fast", NULL, false},
        {"fast_bias_correction", "false", "bias_correction", "full", NULL, false},
        {"subset_size", NULL, "data.subset_size", NULL, NULL, false},
        {"model_type", NULL, "model_type", NULL, NULL, false},
        {0}};

    return oct_adapter_rules(a, t, "quantizer_params", rules, NULL, "octet has nothing like it");
}

/* "exporter": {OpenVinoExporter: {output_path: net.xml}} */
static oct_status read_exporter(oct_adapter *a, const oct_tree *t)
{
    const oct_tree *kind = t && t->kind == OCT_TREE_MAP ? t->first : NULL, *path;

    if (oct_tree_is_null(t)) return OCT_OK;
    if (!kind || kind->next)
        return oct_recipe_fail(a->r, a->source, t, "'exporter' wants one exporter");
    path = oct_tree_get(kind, "output_path");
    if (oct_tree_is_null(path)) return oct_adapter_left_out(a, kind->key, "no output_path");
    if (strstr(oct_tree_text(path), "${"))
        return oct_adapter_left_out(a, "output_path",
                                    "Hydra would fill it in; -o says where to write");
    OCT_TRY(oct_adapter_set(a, path, "output", oct_tree_text(path)));
    return oct_adapter_done(a, "output_path", path, "output");
}

static oct_status read_export_params(oct_adapter *a, const oct_tree *t)
{
    static const oct_adapter_rule rules[] = {
        {"preprocessing", "true", "attach.preprocess", "auto", NULL, false},
        {"preprocessing", "false", "attach.preprocess", "none", NULL, false},
        {"postprocessing", "false", "attach.nms", "none", NULL, false},
        {"postprocessing_use_tensorrt_nms", "true", "attach.nms", "tensorrt", NULL, false},
        {"postprocessing_use_tensorrt_nms", "false", NULL, NULL, "attach.nms onnx", true},
        {"confidence_threshold", NULL, "attach.score", NULL, NULL, false},
        {"detection_nms_iou_threshold", NULL, "attach.iou", NULL, NULL, false},
        {"nms_threshold", NULL, "attach.iou", NULL, NULL, false},
        {"detection_max_predictions_per_image", NULL, "attach.max_det", NULL, NULL, false},
        {"max_predictions_per_image", NULL, "attach.max_det", NULL, NULL, false},
        {"detection_num_pre_nms_predictions", NULL, "attach.pre_nms", NULL, NULL, false},
        {"num_pre_nms_predictions", NULL, "attach.pre_nms", NULL, NULL, false},
        {"detection_predictions_format", "flat", "attach.format", "flat", NULL, false},
        {"detection_predictions_format", "batch", "attach.format", "batch", NULL, false},
        {"output_predictions_format", "flat", "attach.format", "flat", NULL, false},
        {"output_predictions_format", "batch", "attach.format", "batch", NULL, false},
        {"batch_size", "1", NULL, NULL, "the network's own batch", true},
        {"batch_size", NULL, NULL, NULL, "the network's own batch is kept", false},
        {"onnx_simplify", NULL, NULL, NULL, "octet always simplifies", true},
        {"onnx_export_kwargs", NULL, NULL, NULL, "they are about torch.onnx.export", false},
        {0}};
    static const char *const read[] = {"postprocessing", "input_image_shape", "output_path", NULL};
    const oct_tree *post = oct_tree_get(t, "postprocessing"),
                   *path = oct_tree_get(t, "output_path");
    const oct_tree *trt = oct_tree_get(t, "postprocessing_use_tensorrt_nms");
    const oct_tree *shape = oct_tree_get(t, "input_image_shape");

    if (oct_tree_is_null(t)) return OCT_OK;
    OCT_TRY(oct_adapter_rules(a, t, "export_params", rules, read, "octet has nothing like it"));
    if (!oct_tree_is_null(path) && !strstr(oct_tree_text(path), "${")) {
        OCT_TRY(oct_adapter_set(a, path, "output", oct_tree_text(path)));
        OCT_TRY(oct_adapter_done(a, "export_params.output_path", path, "output"));
    }
    if (!oct_tree_is_null(shape))
        OCT_TRY(oct_adapter_left_out(a, "export_params.input_image_shape",
                                     "the network's own size is kept; --input-shape fixes open "
                                     "ones"));
    if (oct_tree_is_null(post)) return OCT_OK;
    if (!strcasecmp(oct_tree_text(post), "true")) {
        const char *kind = strcasecmp(oct_tree_text(trt), "true") ? "onnx" : "tensorrt";

        OCT_TRY(oct_adapter_set(a, post, "attach.nms", kind));
        return oct_recipe_add_note(a->r, "export_params.postprocessing true: attach.nms %s", kind);
    }
    OCT_TRY(oct_adapter_set(a, post, "attach.nms", "none"));
    return oct_adapter_done(a, "export_params.postprocessing", post, "attach.nms none");
}

oct_status oct_super_gradients_export(oct_adapter *a, const oct_tree *map, const oct_tree *params)
{
    const oct_tree *exporter = oct_tree_get(map, "exporter");
    const oct_tree *export_params = oct_tree_get(map, "export_params");

    if (!exporter) exporter = oct_tree_get(params, "exporter");
    if (!export_params) export_params = oct_tree_get(params, "export_params");
    OCT_TRY(read_exporter(a, exporter));
    return read_export_params(a, export_params);
}
