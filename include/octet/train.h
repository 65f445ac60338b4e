/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Training: a network and labelled pictures in, the same network with better weights out.
 *
 * A job is made, runs epoch by epoch, and can be saved after any of its steps and continued later,
 * bit for bit, on the same kind of machine with the same number of threads.
 */
#ifndef OCTET_TRAIN_H
#define OCTET_TRAIN_H

#include <octet/eval.h>
#include <octet/prune.h>
#include <octet/quant.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Pruning while training: channels that matter least are set to zero, more of them in each epoch,
 * and the others learn to do without. oct_prune_run() with `zeros` cuts them out in the end. */
typedef struct oct_train_pruning {
    size_t struct_size;             /**< set by the caller */
    const oct_prune_options *prune; /**< a target of flops, params or channels, and what goes */
    const char *schedule;           /**< one of oct_prune_schedule_name(); NULL: the first */
    int32_t steps;  /**< epochs in which it grows to the target; later ones change nothing */
    int32_t start;  /**< epochs before that */
    double initial; /**< share that is pruned in the first of the steps */
} oct_train_pruning;

/** What oct_train_new() is asked for. Numbers that are 0 and strings that are NULL are taken from
 * `preset`. Strings and arrays are needed during the call only. */
typedef struct oct_train_options {
    size_t struct_size; /**< set by oct_train_options_init() */
    const char *preset; /**< how a family is usually trained: one of oct_train_preset_name(); NULL:
                             that of the network's family */
    const char *family; /**< NULL: recognised */
    const char *loss;   /**< one of oct_loss_name(); NULL: the family's */
    const char *const *loss_settings; /**< "name=value" */
    int32_t n_loss_settings;
    int32_t epochs;     /**< default 50 */
    int32_t batch;      /**< pictures of a step (default 8) */
    int32_t accumulate; /**< steps whose gradients are summed before weights change (default 1) */
    const char *optimizer; /**< one of oct_optimizer_name() */
    double rate;           /**< learning rate, at its highest */
    double momentum;       /**< of SGD; beta 1 of Adam */
    double weight_decay;   /**< < 0: none */
    int32_t decay_all;     /**< 1: norms and biases decay too (default 0) */
    const char *schedule;  /**< one of oct_schedule_name() */
    double final_rate;     /**< at the end, as a part of `rate`; < 0: 0 */
    double warmup_epochs;  /**< < 0: none */
    double clip_norm;      /**< of all gradients together; < 0: not clipped */
    const char *ema;       /**< average of the weights: one of oct_ema_name(), "none" */
    const char *augment;   /**< one of oct_augment_name(), "none" */
    const char *const *augment_settings; /**< "name=value" */
    int32_t n_augment_settings;
    oct_scope freeze; /**< layers whose parameters do not change */
    int32_t
        freeze_statistics; /**< 1: BatchNormalization keeps its running statistics (default 0) */
    double norm_momentum;  /**< of running statistics, weight of the old value; 0: the file's */
    const oct_preprocess *preprocess; /**< NULL: the family's */
    const oct_class_names *names;     /**< of the network's classes; NULL: as the file says */
    int32_t max_boxes;                /**< of a picture; 0: as many as the data can have */
    int32_t loader_threads;           /**< that decode and augment (default 1) */
    int32_t from_scratch; /**< 1: weights start at random (He), norms at 1 and 0 (default 0) */
    uint64_t seed;
    const char *tensorboard; /**< folder for event files; NULL: none */
    const char *settings;    /**< recorded in checkpoints, compared on resuming; NULL: none */
    const char *memory; /**< what oct_train_info.bytes may be at most, as "2G" or "800M" (of 10^9
                           and 10^6 bytes): values are computed again rather than kept; NULL: any
                             number. Results are the same bytes */
    /** Quantization-aware training: the network is quantized with these options first, and then
     * learns through the rounding of weights and activations. NULL: float training. */
    const oct_quantize_options *quantize;
    const oct_dataset *calibration; /**< pictures for that; NULL: those of the training */
    int32_t fix_scales;    /**< 1: scales stay as calibration found them (default 0: learned) */
    int32_t learn_zeros;   /**< 1: zero points of activations are learned too (default 0) */
    double scale_rate;     /**< learning rate of scales, as a factor of `rate` */
    double freeze_scales;  /**< scales are fixed after this share of the steps; 1: never */
    int32_t norm_pictures; /**< statistics of BatchNormalization are first estimated anew on so
                                many pictures; 0: as the file says */
    const char
        *precision; /**< of convolutions: "f32" (default), "bf16": their operands are rounded to
                         bfloat16, and kept so; sums, statistics, loss and weights are float32 */
    const oct_train_pruning *prune; /**< NULL: no channels are pruned */
    /** A network of the same form, usually before it was pruned, whose predictions are learned
     * beside the labels (or by loss "distill" instead of the network as it came). Needed during
     * the call only; NULL: none. */
    const oct_graph *teacher;
    double teacher_weight; /**< of that part of the loss (default 1); < 0: no teacher */
    const oct_sparsity_options *sparsity; /**< NULL: no weights are set to zero */
    int32_t pact; /**< 1: scales of activations learn from what is clipped alone, as PACT's limits
                       do (default 0: from rounding too, LSQ) */
} oct_train_options;

OCT_API void oct_train_options_init_sized(oct_train_options *o, size_t struct_size);

static inline void oct_train_options_init(oct_train_options *o)
{
    oct_train_options_init_sized(o, sizeof(*o));
    o->freeze.subgraph_size = sizeof(oct_subgraph);
}

/** A training job. Of one thread; its work uses the context's threads. */
typedef struct oct_train oct_train;

/**
 * Compiles forward, loss, backward and memory. The graph is needed during the call only, the
 * dataset until the job is freed, which the caller does. `options` may be NULL.
 */
OCT_API oct_status oct_train_new(const oct_graph *g, oct_dataset *data,
                                 const oct_train_options *options, oct_train **out);
OCT_API void oct_train_free(oct_train *t); /**< accepts NULL */

/** What a job is. Strings are the job's. */
typedef struct oct_train_info {
    size_t struct_size;   /**< set by the caller */
    const char *loss;     /**< its name */
    const char *why;      /**< which values of the network it reads */
    const char *parts[8]; /**< names of its parts; NULL at the end */
    const char *preset;   /**< what was not set came from it */
    const char *optimizer, *schedule, *ema, *augment;
    double rate, weight_decay;
    int32_t epochs, batch, accumulate;
    int64_t batches;             /**< of an epoch */
    int64_t n_params, n_trained; /**< tensors; of them those that change */
    int64_t n_weights;           /**< elements of the latter */
    uint64_t bytes;              /**< of memory that a step uses, known before the first one */
    int32_t max_boxes;
    const char *precision; /**< of convolutions, and how this CPU computes with it */
} oct_train_info;

OCT_API void oct_train_describe(const oct_train *t, oct_train_info *out);

/** What an epoch gave: means over its steps. */
typedef struct oct_train_epoch {
    size_t struct_size; /**< set by the caller */
    int32_t epoch;      /**< from 1 */
    int64_t step;       /**< updates of the weights so far */
    double loss, parts[8];
    double rate;                  /**< at its end */
    double grad_norm;             /**< mean, before clipping */
    double seconds, data_seconds; /**< of the latter the time spent waiting for pictures */
} oct_train_epoch;

/**
 * Trains until the end of an epoch (the first call after resuming: of the one that was begun).
 * Progress goes to the context's callback, which may cancel: then the job is between two steps, and
 * may be saved or go on. A loss or gradient that is not finite ends it, naming the step and the
 * tensor; weights are those before the step.
 */
OCT_API oct_status oct_train_run(oct_train *t, oct_train_epoch *out);
OCT_API int32_t oct_train_is_done(const oct_train *t); /**< 1: all epochs were trained */

/** The network as it is now, which the caller frees; with averaged weights if there are such.
 * Quantization-aware: the quantized one, with the codes that the last step computed with. */
OCT_API oct_status oct_train_graph(const oct_train *t, oct_graph **out);

/** The same before powers of two were made to fit the shifters of an NPU, to see what that costs.
 * Only of quantization-aware jobs; the caller frees it. */
OCT_API oct_status oct_train_unaligned(const oct_train *t, oct_graph **out);

/** What a quantization-aware job began with: the network after calibration alone. Borrowed from the
 * job; NULL: float training. */
OCT_API const oct_quantized *oct_train_quantized(const oct_train *t);

/** \name Gradients for importance "taylor" of oct_prune_run() */
/**@{*/
/** Runs some of the pictures, by default 16 batches (0); weights do not change. */
OCT_API oct_status oct_train_measure_gradients(oct_train *t, int32_t n_pictures);

/** An oct_prune_gradient_fn whose `user` is the job: means of absolute gradients. */
OCT_API oct_status oct_train_gradient(void *train, const char *weight, const float **gradient,
                                      int64_t *n);
/**@}*/

/** Which epoch was the best so far, by the caller's measure: checkpoints keep it. */
OCT_API void oct_train_set_best(oct_train *t, int32_t epoch, double accuracy);
OCT_API int32_t oct_train_best(const oct_train *t, double *accuracy); /**< 0: none was told */

/** \name Checkpoints: everything a job needs to go on, in one safetensors file */
/**@{*/
OCT_API oct_status oct_train_save(const oct_train *t, const char *path);

/** Continues from a file; fails if it is of another network or of other settings, naming the first
 * difference. The job must be new. */
OCT_API oct_status oct_train_resume(oct_train *t, const char *path);

/** Takes the weights, scales and statistics of a checkpoint of the same network, and nothing else:
 * epochs are counted from the start. The job must be new. */
OCT_API oct_status oct_train_begin_with(oct_train *t, const char *path);

/** The network inside a checkpoint, which the caller frees: quantized if it was trained so, without
 * the channels that pruning has set to zero. */
OCT_API oct_status oct_checkpoint_load(oct_ctx *ctx, const char *path, oct_graph **out);

/** The same, and what was cut out, which the caller frees; NULL: nothing was pruned. */
OCT_API oct_status oct_checkpoint_load_pruned(oct_ctx *ctx, const char *path, oct_graph **out,
                                              oct_prune_result **result);

/** What a checkpoint is. */
typedef struct oct_checkpoint_info {
    size_t struct_size;   /**< set by the caller */
    int64_t epoch;        /**< whole epochs that were trained */
    int32_t is_quantized; /**< 1: of quantization-aware training */
    int32_t is_pruned;    /**< 1: channels were pruned; 2: more were to go */
    int32_t is_sparse;    /**< 1: weights were set to zero */
} oct_checkpoint_info;

OCT_API oct_status oct_checkpoint_describe(oct_ctx *ctx, const char *path,
                                           oct_checkpoint_info *out);
/**@}*/

/** Writes a number to the event file, at the current step; nothing if there is none. */
OCT_API oct_status oct_train_log(oct_train *t, const char *tag, double value);

/** Draws the batch that comes next, with its boxes, as a JPEG or PNG. */
OCT_API oct_status oct_train_draw_batch(oct_train *t, const char *path);

/** \name What there is to choose from: NULL beyond the end. Borrowed for ever; any thread */
/**@{*/
OCT_API const char *oct_train_preset_name(int32_t i);
OCT_API const char *oct_loss_name(int32_t i);
OCT_API const char *oct_optimizer_name(int32_t i);
OCT_API const char *oct_schedule_name(int32_t i);
OCT_API const char *oct_ema_name(int32_t i);
OCT_API const char *oct_augment_name(int32_t i);
/**@}*/

#ifdef __cplusplus
}
#endif

#endif
