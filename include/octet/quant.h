/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * The main job: a float network and some pictures in, an INT8 network out.
 */
#ifndef OCTET_QUANT_H
#define OCTET_QUANT_H

#include <octet/data.h>
#include <octet/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A part of the graph: all nodes on paths from the inputs to the outputs, both included. Grows at
 * its end: oct_scope says how large the elements of an array are. */
typedef struct oct_subgraph {
    const char *const *inputs; /**< node names */
    int32_t n_inputs;
    const char *const *outputs;
    int32_t n_outputs;
} oct_subgraph;

/**
 * Which nodes: names (also module paths, "heads.head1.reg_convs"), patterns, types, subgraphs. All
 * zero means none. Its size is fixed, so that others may contain it.
 */
typedef struct oct_scope {
    const char *const *names;
    int32_t n_names;
    const char *const *patterns; /**< PCRE, anchored at the start as Python's re.match */
    int32_t n_patterns;
    const char *const *types; /**< operators: "Softmax" */
    int32_t n_types;
    const oct_subgraph *subgraphs;
    int32_t n_subgraphs;
    int32_t allow_unmatched; /**< 1: what matches nothing is no error (default 0) */
    size_t subgraph_size;    /**< sizeof(oct_subgraph); 0: that of the library */
    const void *reserved[4]; /**< NULL */
} oct_scope;

/** Other settings for some layers. Fields that are 0 or NULL leave things as they are. Grows at its
 * end: oct_quantize_options says how large the elements of an array are. */
typedef struct oct_quant_override {
    const char *name;    /**< a node's name, or NULL */
    const char *pattern; /**< PCRE, or NULL */
    int32_t weight_bits, activation_bits;
    int32_t symmetric;  /**< activations: 1: symmetric, -1: asymmetric */
    int32_t per_tensor; /**< 1: one scale for weights and activations */
    const char *activation_ranges, *weight_ranges;
} oct_quant_override;

/** What oct_quantize() is asked for. Strings and arrays are needed during the call only. */
typedef struct oct_quantize_options {
    size_t struct_size;            /**< set by oct_quantize_options_init() */
    const char *target;            /**< "octet" (default), or another of oct_target_name() */
    const char *preset;            /**< "performance", "mixed"; NULL: what the target does best */
    const char *model_type;        /**< NULL or "transformer" */
    const char *target_device;     /**< NNCF's: ANY, CPU, GPU, NPU, CPU_SPR; see overflow_fix */
    const char *tail;              /**< "auto" (default), "off", or node names with commas */
    const char *activation_ranges; /**< one of oct_observer_name(); NULL: the target's */
    const char *channel_ranges;    /**< the same for points per channel; NULL: the target's */
    const char *weight_ranges;     /**< "max", "mse", "percentile"; NULL: the target's */
    double percentile;             /**< of the percentile observer (default 99.99) */
    const char *bias_correction;   /**< "fast", "full", "none"; NULL: "fast" */
    int32_t equalize;              /**< 1: cross-layer equalization (default 0) */
    int32_t align_channels;        /**< 1: channel alignment (default 0) */
    double smooth_quant;           /**< alpha; 0: off (default), but 0.95 for transformers */
    oct_scope ignored;             /**< stay float */
    oct_scope only;                /**< if anything is named: all others stay float */
    const oct_quant_override *overrides;
    int32_t n_overrides;
    int32_t int8_io;                  /**< 1: integer inputs and outputs (default 0) */
    const oct_preprocess *preprocess; /**< NULL: the family's */
    const char *family;               /**< NULL: auto */
    uint64_t seed;                    /**< for what is random (nothing is so far); reported */
    const char *source;      /**< path of the float file: its name and SHA-256 go into the result */
    const char *settings;    /**< goes into the result: how it was made, see oct_recipe_line() */
    size_t override_size;    /**< sizeof(oct_quant_override), by oct_quantize_options_init() */
    int32_t weight_bits;     /**< 2 to 8; below 8 not of the first, the last and the most
                                  sensitive layers (weight_bits_ratio); 0: the target's */
    int32_t activation_bits; /**< 4, 6, 8, 16; 0: the target's */
    int32_t bias_bits;       /**< 8, 16 or 32, of power-of-two targets; 0: the target's */
    int32_t hard_activations;  /**< 1: HardSwish and HardSigmoid in place of SiLU and Sigmoid */
    int32_t adaround;          /**< 1: learn which weights are rounded up, block by block */
    int32_t lsq;               /**< 1: learn weights and biases through rounding, block by block */
    int32_t reconstruct_steps; /**< of learning, for each block; 0: 500 */
    double reconstruct_rate;   /**< of learning, in steps of the scale for lsq; 0: the usual */
    int32_t block_size;        /**< how many layers deep a block is, about; 0: 4 */
    const char *range_low, *range_high; /**< of ranges "estimator", which they imply:
                                           "quantile:mean:0.001"; NULL: min:min, max:max */
    const char *overflow_fix; /**< weights of 7 bits for ort and openvino on CPUs without VNNI:
                                 "enable", "first_layer_only", "disable"; NULL: first_layer_only
                                 for openvino, unless target_device is GPU, NPU or CPU_SPR */
    int32_t reconstruct_fix_scales; /**< 1: scales of activations are not learned */
    double reconstruct_gamma;       /**< lsq: weight of the distance of weights from their codes */
    const char *heal; /**< "on", "off": layers that alone make most of the error at the outputs are
                         found and mended; NULL: on */
    double weight_bits_ratio; /**< 0 to 1: share of the weights that get weight_bits below 8, the
                                   rest being where these hurt most; 0: 0.8 */
    double reconstruct_drop;  /**< 0 to 1: share of what blocks read while they learn that is as the
                                   float network has it (QDrop); 0: none */
} oct_quantize_options;

OCT_API void oct_quantize_options_init_sized(oct_quantize_options *o, size_t struct_size);

static inline void oct_quantize_options_init(oct_quantize_options *o)
{
    oct_quantize_options_init_sized(o, sizeof(*o));
    o->override_size = sizeof(oct_quant_override);
    o->ignored.subgraph_size = o->only.subgraph_size = sizeof(oct_subgraph);
}

/** The result of quantizing. What its functions return is borrowed from it. Of one thread. */
typedef struct oct_quantized oct_quantized;

/** Figures for a summary. */
typedef struct oct_quantize_summary {
    size_t struct_size;                     /**< set by the caller */
    int32_t layers_total, layers_quantized; /**< with weights */
    double macs_quantized_share, weights_quantized_share;
    int64_t images;
    double seconds, float_pass_seconds;
    const char *tail;     /**< one sentence, or NULL */
    const char *best_for; /**< the runtime the file is best for */
    int32_t equalized;    /**< pairs of layers that equalization changed; -1: not asked for */
    int32_t smoothed;     /**< the same of products and SmoothQuant */
    int32_t aligned;      /**< the same of pairs and channel alignment */
    int32_t hardened;     /**< activations that became hard ones; -1: not asked for */
    int32_t learned;      /**< layers that learned, block by block; -1: not asked for */
    int64_t learned_from; /**< pictures */
    double learned_before, learned_after; /**< error power / signal power of what the last layers
                                             give, on pictures that were not learned from */
    int32_t scales_kept;    /**< of a network that was quantized already: scales that are still
                               the file's; -1: it was float */
    int32_t scales_fitted;  /**< that are new, since the target cannot hold the file's */
    int32_t scales_missing; /**< of activations that the file has in float */
} oct_quantize_summary;

/** Why a layer is computed in float. More may be added at the end. */
typedef enum oct_float_reason {
    OCT_FLOAT_NONE,       /**< it is quantized, or is no candidate (shape arithmetic, constants) */
    OCT_FLOAT_TAIL,       /**< it belongs to the tail: see oct_quantize_summary */
    OCT_FLOAT_IGNORED,    /**< the settings name it, or do not name it among those to quantize */
    OCT_FLOAT_MODEL_TYPE, /**< operators that stay float in networks of this type */
    OCT_FLOAT_TARGET,     /**< the target does not compute the operator in integers */
    OCT_FLOAT_WEIGHTS,    /**< its weights are no float32 constant, or on the wrong side */
    OCT_FLOAT_DIVISOR,    /**< something is divided by its result, or it is an inverse */
    OCT_FLOAT_INPUT,      /**< its input is float */
    OCT_FLOAT_CONSUMER,   /**< no integer consumer: rounding would gain nothing */
    OCT_FLOAT_OUTPUT,     /**< outputs of the network are not rounded */
    OCT_FLOAT_ERROR,      /**< rounding would cost too much accuracy */
    OCT_FLOAT_SLOWER,     /**< float is faster in the target's runtime */
    OCT_FLOAT_DYNAMIC,    /**< the file quantizes its input at run time */
    OCT_FLOAT_OTHER       /**< for a reason the sentence alone says */
} oct_float_reason;

/** A layer: why it is float, or how large its error is. */
typedef struct oct_quantize_layer {
    size_t struct_size; /**< set by the caller: sizeof(oct_quantize_layer) */
    const char *name, *op;
    const char *reason; /**< NULL: quantized */
    double noise;       /**< error power / signal power at its output; < 0: not measured */
    int32_t why;        /**< oct_float_reason: the reason, for programs */
} oct_quantize_layer;

/** A block of layers that learned (adaround, lsq): its error power / signal power on pictures that
 * it did not learn from. */
typedef struct oct_quantize_block {
    size_t struct_size;       /**< set by the caller: sizeof(oct_quantize_block) */
    const char *first, *last; /**< nodes */
    int32_t layers;           /**< that learned; 0: there was nothing to learn */
    double before, after;
    int32_t was_put_back; /**< 1: what was learned was worse; before and after are the same */
    int32_t was_undone;   /**< 1: put back since the whole network was worse with it */
} oct_quantize_block;

/** The targets there are, the default first: NULL beyond the end. Borrowed for ever; any thread. */
OCT_API const char *oct_target_name(int32_t i);
OCT_API const char *oct_target_help(const char *name); /**< NULL: there is none of that name */

/** The ways to find ranges of activations, for activation_ranges and channel_ranges: NULL beyond
 * the end. Borrowed for ever; any thread. */
OCT_API const char *oct_observer_name(int32_t i);
OCT_API const char *oct_observer_help(const char *name); /**< NULL: there is none of that name */

/**
 * Quantizes. The graph is not changed, and like the dataset needed during the call only, on the
 * thread of its context; octet's own threads run the network. Progress goes to the context's
 * callback. `options` may be NULL. The caller frees *out, before the graph's context.
 *
 * A network that is quantized already is made for another target: scales and codes are the file's
 * wherever the target can hold them. `images` may be NULL then; otherwise activations that have no
 * scale in the file are calibrated.
 */
OCT_API oct_status oct_quantize(const oct_graph *g, const oct_dataset *images,
                                const oct_quantize_options *options, oct_quantized **out);
OCT_API void oct_quantized_free(oct_quantized *q); /**< accepts NULL */

/**
 * The network with QuantizeLinear and DequantizeLinear nodes, borrowed: save it with
 * oct_onnx_save(), or make a plan of it.
 */
OCT_API const oct_graph *oct_quantized_graph(const oct_quantized *q);

/** Fills in what the caller's struct_size has room for; strings are the result's. */
OCT_API void oct_quantized_summary(const oct_quantized *q, oct_quantize_summary *s);

/** Layers with weights, in order; returns 0 beyond the end. Strings are the result's. */
OCT_API int32_t oct_quantized_layer(const oct_quantized *q, int32_t i, oct_quantize_layer *layer);

/** An exponent that was changed to fit the shifters of an NPU: a scale is 2^-exponent. */
typedef struct oct_quantize_move {
    size_t struct_size; /**< set by the caller: sizeof(oct_quantize_move) */
    const char *value;  /**< the tensor */
    const char *node;   /**< where the limit would have been broken */
    const char *limit;  /**< which: "shift cut" */
    int32_t from, to;   /**< of the channel that moved most */
} oct_quantize_move;

/** What was changed to fit an NPU, in order; returns 0 beyond the end. Strings are the result's. */
OCT_API int32_t oct_quantized_move(const oct_quantized *q, int32_t i, oct_quantize_move *move);

/** The network as it was before anything was moved, borrowed, for comparing; NULL: nothing was. */
OCT_API const oct_graph *oct_quantized_unaligned(const oct_quantized *q);

/** A layer that alone made most of the error at the outputs, and what was done about it. */
typedef struct oct_quantize_mend {
    size_t struct_size; /**< set by the caller: sizeof(oct_quantize_mend) */
    const char *node;   /**< the layer */
    const char *kind;   /**< "equalized", "channels", "range" (its input's scales), "float" */
    const char *text;   /**< one sentence */
    double error_share; /**< of the error at the outputs, that the layer alone made; < 0: unknown */
    double work_share;  /**< the layer's part of all multiply-adds */
    double before, after; /**< error power / variance at the outputs, measured; < 0: not measured */
} oct_quantize_mend;

/** What was mended, in order; returns 0 beyond the end. Strings are the result's. */
OCT_API int32_t oct_quantized_mend(const oct_quantized *q, int32_t i, oct_quantize_mend *mend);

/** Blocks that learned, in order; returns 0 beyond the end. Strings are the result's. */
OCT_API int32_t oct_quantized_block(const oct_quantized *q, int32_t i, oct_quantize_block *block);

/** Writes the qmap (octet's own JSON), and PPQ's quant_cfg.json. */
OCT_API oct_status oct_quantized_save_qmap(const oct_quantized *q, const char *path);
OCT_API oct_status oct_quantized_save_ppq(const oct_quantized *q, const char *path);

/** Writes ranges of activations for TensorRT to build an engine of the float network with: its
 * calibration cache, or the JSON that PPQ writes. Tensors with a scale for each channel get the
 * largest. */
OCT_API oct_status oct_quantized_save_tensorrt(const oct_quantized *q, const char *path,
                                               int32_t as_json);

/**
 * A float network and a qmap file: the graph to simulate or run. The caller frees *out; g is not
 * changed and may be freed.
 */
OCT_API oct_status oct_qmap_apply(const oct_graph *g, const char *qmap_path, oct_graph **out);

/** What is quantized in a network, and what octet wrote into it; NULL: it says nothing of that.
 * Strings are the graph's. */
typedef struct oct_quant_info {
    size_t struct_size; /**< set by the caller */
    int32_t quantizers; /**< nodes that make, read or compute with integer codes; 0: all float */
    int32_t layers_total, layers_quantized; /**< with constant weights; of them integer ones */
    int32_t layers_half;                    /**< of them those with float16 weights */
    const char *version;                    /**< of the octet that made it */
    const char *target;
    const char *settings;          /**< a recipe in one line */
    const char *source;            /**< name of the float file, without folders */
    const char *source_sha256;     /**< as sha256sum prints it */
    const char *original_producer; /**< who had made that file */
} oct_quant_info;

/** Fills in what the caller's struct_size has room for. */
OCT_API void oct_graph_quant_info(const oct_graph *g, oct_quant_info *out);

/** In one line: "INT8 by octet 0.1.0 for target ort: 63 of 64 layers quantized, from net.onnx".
 * Written to `text`, at most `size` bytes with its end, which it returns. */
OCT_API const char *oct_graph_quant_text(const oct_graph *g, char *text, size_t size);

/** Faults of a quantized network, one sentence each. */
typedef struct oct_fault_list oct_fault_list;

/**
 * Finds what is wrong with the integers of a network that is quantized already (by whomever), from
 * its scales alone: boxes and scores concatenated under one scale. A float network has no faults.
 * The caller frees *out; the graph is needed during the call only.
 */
OCT_API oct_status oct_graph_diagnose(const oct_graph *g, oct_fault_list **out);
OCT_API void oct_fault_list_free(oct_fault_list *f); /**< accepts NULL */

/** Fault i as a sentence, which lives as long as `f`; NULL beyond the last. */
OCT_API const char *oct_fault_list_at(const oct_fault_list *f, int32_t i);

/** A limit of an NPU with power-of-two scales that a quantized network breaks. */
typedef struct oct_limit_info {
    size_t struct_size;       /**< set by the caller: sizeof(oct_limit_info) */
    const char *limit;        /**< which: "shift cut" */
    const char *what;         /**< what it is about: a node, or a tensor */
    const char *quantity;     /**< what is limited: "input + weight - result" */
    int32_t value, low, high; /**< as it is; as it may be */
    const char *right;        /**< what would be right, in a few words */
} oct_limit_info;

typedef struct oct_limit_list oct_limit_list;

/**
 * Checks a quantized network (by whomever) against the limits of NPUs that shift instead of
 * multiply: those of target npu-pow2, or of npu-pow2-pc if octet made the file for that. The caller
 * frees *out; the graph is needed during the call only.
 */
OCT_API oct_status oct_graph_npu_check(const oct_graph *g, oct_limit_list **out);
OCT_API void oct_limit_list_free(oct_limit_list *l); /**< accepts NULL */

/** Returns 0 beyond the end: all limits are kept if i is 0. Strings live as long as `l`. */
OCT_API int32_t oct_limit_list_at(const oct_limit_list *l, int32_t i, oct_limit_info *out);

/** A quantized tensor of a network: a value, or a value as one node reads it. */
typedef struct oct_scale_info {
    size_t struct_size; /**< set by the caller */
    const char *value;
    const char *node;            /**< the consumer it is quantized for; NULL: all of them */
    const char *kind;            /**< "activation", "weight" or "bias" */
    oct_dtype type;              /**< of the codes */
    int64_t n_scales;            /**< 1, or one for each channel */
    double scale_min, scale_max; /**< over the channels; the same for one scale */
    int32_t zero_min, zero_max;  /**< zero points, likewise */
    double low, high;            /**< the range that codes represent, over the channels */
    int32_t has_seen;            /**< 1: the next two are known */
    double seen_low, seen_high;  /**< smallest and largest value in calibration, or weight */
    const char *observer;        /**< how the range was found; NULL: not known */
    const char *scale_by;        /**< how the scales came about; NULL: not known */
} oct_scale_info;

/** The scales of a network. */
typedef struct oct_scale_list oct_scale_list;

/**
 * Reads the scales of a network that is quantized already (by whomever); there are none of a float
 * one. `qmap_path`: the file that oct_quantized_save_qmap() wrote with it, or NULL; it tells what
 * calibration saw and how the scales came about. The caller frees *out; the graph is needed during
 * the call only.
 */
OCT_API oct_status oct_graph_scales(const oct_graph *g, const char *qmap_path,
                                    oct_scale_list **out);
OCT_API void oct_scale_list_free(oct_scale_list *s); /**< accepts NULL */

/** Returns 0 beyond the end. Strings live as long as `s`. */
OCT_API int32_t oct_scale_list_at(const oct_scale_list *s, int32_t i, oct_scale_info *out);

/** \name Networks in half precision */
/**@{*/
typedef struct oct_half_options {
    size_t struct_size; /**< set by oct_half_options_init() */
    int32_t bf16;       /**< 1: weights are kept as bfloat16, and computing stays float32; 0
                             (default): computing in float16 up to the last layers with weights */
    int32_t half_io;    /**< 1: inputs and outputs too; 0 (default): they stay float32 */
    const char *family; /**< how pictures are fed, as in oct_quantize_options */
    const oct_preprocess *preprocess;
    int32_t limit; /**< pictures to measure on; 0 (default): all */
    /** Called for each node that stays float32 because numbers would not fit; may be NULL. */
    void (*kept)(void *user, const char *node, const char *why);
    void *user;
} oct_half_options;

OCT_API void oct_half_options_init_sized(oct_half_options *o, size_t struct_size);

/** Sets every option to its default. */
static inline void oct_half_options_init(oct_half_options *o)
{
    oct_half_options_init_sized(o, sizeof(*o));
}

/**
 * The network in half precision, which the caller frees. Weights above 65504 stay float32 with the
 * layers that read them; `images` (may be NULL) also shows which activations are. What is quantized
 * stays as it is.
 */
OCT_API oct_status oct_graph_half(const oct_graph *g, const oct_dataset *images,
                                  const oct_half_options *options, oct_graph **out);
/**@}*/

#ifdef __cplusplus
}
#endif

#endif
