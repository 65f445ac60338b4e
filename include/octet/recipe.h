/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Recipes: all settings of a job in one file, YAML or JSON, in the words of the command line.
 *
 * Files of other tools are read as they are: NNCF's `nncf_config` and arguments of its quantize(),
 * SuperGradients' quantization parameters, PPQ's settings, AMD Quark's configurations.
 */
#ifndef OCTET_RECIPE_H
#define OCTET_RECIPE_H

#include <octet/quant.h>
#include <octet/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Settings as they were given, of one thread. */
typedef struct oct_recipe oct_recipe;

/** An empty recipe, everything at its default, which the caller frees. */
OCT_API oct_status oct_recipe_new(oct_ctx *ctx, oct_recipe **out);
OCT_API void oct_recipe_free(oct_recipe *r); /**< accepts NULL */

/** Reads a file over what is set already. Errors begin with FILE:LINE:COLUMN. */
OCT_API oct_status oct_recipe_load(oct_recipe *r, const char *path);

/** The same from memory, needed during the call only; `name` is for error texts. */
OCT_API oct_status oct_recipe_load_memory(oct_recipe *r, const char *name, const void *data,
                                          size_t size);

/**
 * Sets one field by its path ("data.subset_size") or option ("subset-size"), as typed on the
 * command line; switches take "true" or "false". Lists grow by each call, but the first call
 * replaces what a file said.
 */
OCT_API oct_status oct_recipe_set(oct_recipe *r, const char *field, const char *value);

/**
 * The recipe as YAML: only what is set. Reading it gives the same recipe. Borrowed until the recipe
 * is freed.
 */
OCT_API oct_status oct_recipe_text(oct_recipe *r, const char **text);

/**
 * What decides the numbers of the result, as a recipe of one line without names of files and
 * folders: "{target: ort, ranges: {activations: kl}}". Borrowed until the recipe is
 * freed.
 */
OCT_API oct_status oct_recipe_line(oct_recipe *r, const char **text);

/** The same with a setting a line, "train.rate: 0.01": for comparing. Borrowed as above. */
OCT_API oct_status oct_recipe_lines(oct_recipe *r, const char **text);

/**
 * What was understood of a foreign file, and what was left out and why; NULL beyond the end.
 * Borrowed from the recipe.
 */
OCT_API const char *oct_recipe_note(const oct_recipe *r, int32_t i);

/** What belongs to no other struct. NULL and 0: not set. Strings live as long as the recipe. */
typedef struct oct_recipe_job {
    size_t struct_size; /**< set by the caller */
    const char *model, *output;
    const char *preprocess; /**< for oct_preprocess_parse() on top of the family's; NULL: auto */
    const char *save_qmap, *quant_cfg;
    const char *const *input_shapes; /**< "NAME:DIMS", or "DIMS" for the only input */
    int32_t n_input_shapes;
    int32_t eval; /**< 1: asked for, or there are annotations */
    int32_t threads;
    const char *labels;            /**< for oct_class_names_load() */
    const char *report;            /**< the folder of a report */
    const char *outputs;           /**< for oct_graph_keep_outputs(); NULL: all are kept */
    const char *calibration_cache; /**< for oct_quantized_save_tensorrt() */
    const char *sample_size; /**< "DIMS" of the only input, where the network leaves it open */
    const char *attach_preprocess, *attach_nms, *attach_format; /**< of octet attach */
    double attach_score, attach_iou;
    int32_t attach_max_det, attach_pre_nms;
    const char *unpruned;      /**< a network, for the report */
    const char *attach_layout; /**< "nchw" or "nhwc" */
    const char *compress;      /**< "prune,quantize": jobs in their order; NULL: not said */
    double max_drop, min_repeat, max_noise; /**< what is promised, see oct_control_options */
    const char *drop_type;                  /**< "absolute", "relative" */
    int32_t ranking_subset_size, max_num_iterations;
} oct_recipe_job;

OCT_API void oct_recipe_get_job(const oct_recipe *r, oct_recipe_job *job);

/** What a recipe says of training beside the options. NULL and 0: not set. Strings live as long as
 * the recipe. */
typedef struct oct_recipe_train_job {
    size_t struct_size; /**< set by the caller */
    const char *const *images;
    int32_t n_images;
    const char *annotations;
    int32_t limit, skip_bad;
    const char *eval_images, *eval_annotations;
    int32_t eval_limit, eval_every, patience;
    const char *checkpoints, *tensorboard; /**< folders */
    int32_t prune_bn_adapt;         /**< pictures that norms of a pruned network are adapted to */
    const char *teacher;            /**< a network to learn from; NULL: none */
    const char *resume, *load_from; /**< checkpoints */
    double max_drop, max_relative_drop; /**< of accuracy; the latter in percent */
    int32_t qat_epochs;                 /**< of the quantization-aware part of a job */
    const char *refit; /**< pictures that a pruned network's layers are fitted on; NULL: none */
} oct_recipe_train_job;

OCT_API void oct_recipe_get_train_job(const oct_recipe *r, oct_recipe_train_job *job);

/**
 * Change initialised options where the recipe says something; strings and arrays are borrowed
 * from the recipe, until it is freed or set again. `preprocess` of the options is left alone.
 */
OCT_API void oct_recipe_get_quantize(const oct_recipe *r, oct_quantize_options *o);
OCT_API void oct_recipe_get_train(const oct_recipe *r, oct_train_options *o);
OCT_API void oct_recipe_get_prune(const oct_recipe *r, oct_prune_options *o);
OCT_API void oct_recipe_get_pruning(const oct_recipe *r, oct_train_pruning *o); /**< not `prune` */
OCT_API void oct_recipe_get_sparsity(const oct_recipe *r, oct_sparsity_options *o);
OCT_API void oct_recipe_get_data(const oct_recipe *r, oct_dataset_options *o); /**< to calibrate */
OCT_API void oct_recipe_get_eval_data(const oct_recipe *r, oct_dataset_options *o);

/** A row of the table of fields; strings are borrowed for ever. */
typedef struct oct_recipe_field {
    size_t struct_size;               /**< set by the caller: sizeof(oct_recipe_field) */
    const char *path;                 /**< "data.subset_size" */
    const char *option;               /**< "subset-size"; "" if it has none of its own */
    const char *metavar, *def, *help; /**< metavar and def may be NULL */
} oct_recipe_field;

/** Field i of the table; returns 0 beyond the end. Any thread. */
OCT_API int32_t oct_recipe_field_at(int32_t i, oct_recipe_field *out);

#ifdef __cplusplus
}
#endif

#endif
