/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Pruning: removes channels of a network that matter least, so that fewer are computed.
 *
 * The network that comes out has smaller weights and otherwise the same nodes, inputs and outputs.
 * Channels that can only go together (of layers whose results are added, of a depthwise convolution
 * and what it reads) go together; those that cannot be followed stay, and the result says why.
 */
#ifndef OCTET_PRUNE_H
#define OCTET_PRUNE_H

#include <octet/data.h>
#include <octet/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The gradient of a weight, by its name: `*n` elements, borrowed until the next call; `*gradient`
 * NULL: there is none. */
typedef oct_status (*oct_prune_gradient_fn)(void *user, const char *weight, const float **gradient,
                                            int64_t *n);

/** How much goes, and what. One of the targets is set; shares lie in (0, 1). Strings are needed
 * during the call only. */
typedef struct oct_prune_options {
    size_t struct_size;     /**< set by oct_prune_options_init() */
    double flops_target;    /**< share of the multiply-adds to remove; 0: not this */
    double params_target;   /**< share of the weights to remove */
    double channels;        /**< share of the channels of each layer to remove */
    double time_target;     /**< share of the time of a run to remove, measured here */
    const char *importance; /**< one of oct_prune_importance_name() (default "l2") */
    int32_t global;         /**< 1: layers compete (default 0: the same share of each) */
    double most;            /**< of a layer's channels, at most this share goes (default .9) */
    int32_t multiple;       /**< channels that stay are a multiple of this (default 8) */
    const char *keep;       /**< PCRE: layers whose name matches keep their channels; NULL: none */
    int32_t mask;           /**< 1: channels are set to zero, not cut (default 0) */
    oct_prune_gradient_fn gradient; /**< for importance "taylor" */
    void *gradient_user;
    int32_t zeros; /**< 1: instead of a target, channels go that are zero already: all weights that
                        make or read them are, as in a masked network (default 0) */
    const char *only;   /**< PCRE: layers whose name does not match keep theirs; NULL: all match */
    int32_t keep_first; /**< 1: layers that read the network's inputs keep theirs (default 0) */
    int32_t keep_strided; /**< 1: convolutions with a stride keep theirs (default 0) */
    /** \name Fitting: weights that read channels change so that layers give what they gave */
    /**@{*/
    const oct_dataset *pictures; /**< no labels needed; NULL: weights stay as they are. Importance
                                      "reconstruction" needs them */
    const oct_preprocess *preprocess; /**< of them; NULL: as the network's family has it */
    const char *family;               /**< NULL: recognised */
    int64_t n_pictures;               /**< at most so many; 0: all */
    /**@}*/
} oct_prune_options;

OCT_API void oct_prune_options_init_sized(oct_prune_options *o, size_t struct_size);

static inline void oct_prune_options_init(oct_prune_options *o)
{
    oct_prune_options_init_sized(o, sizeof(*o));
}

/** What became of a network. */
typedef struct oct_prune_result oct_prune_result;

/**
 * Prunes a copy of a graph, which the caller frees; shapes of the copy are folded. `result`, which
 * the caller frees too, may be NULL. Fails if the target cannot be met, saying how far one can go.
 */
OCT_API oct_status oct_prune_run(const oct_graph *g, const oct_prune_options *options,
                                 oct_graph **out, oct_prune_result **result);
OCT_API void oct_prune_result_free(oct_prune_result *r); /**< accepts NULL */

/** What became of `before` in `after`, where layers have the same names: what the caller frees. */
OCT_API oct_status oct_prune_compare(const oct_graph *before, const oct_graph *after,
                                     oct_prune_result **result);

/** The whole network, before and after. */
typedef struct oct_prune_totals {
    size_t struct_size; /**< set by the caller */
    int64_t macs, macs_left;
    int64_t params, params_left;
    int64_t channels, channels_left; /**< that layers make */
    int32_t n_groups, n_protected;   /**< of channels that go together; those that had to stay */
    double time_ms, time_ms_left;    /**< with `time_target`; else 0 */
} oct_prune_totals;

OCT_API void oct_prune_get_totals(const oct_prune_result *r, oct_prune_totals *out);

/** A layer, before and after. Strings are the result's. */
typedef struct oct_prune_layer {
    size_t struct_size; /**< set by the caller */
    const char *name, *op;
    int64_t channels, channels_left; /**< that it makes */
    int64_t inputs, inputs_left;     /**< that it reads */
    int64_t macs, macs_left;
    int64_t params, params_left;
    const char *why; /**< why its channels had to stay; NULL: some could go */
    const char *at;  /**< the node where that was found; NULL: none */
} oct_prune_layer;

/** Layer i, in the order of the network; returns 0 beyond the end. */
OCT_API int32_t oct_prune_get_layer(const oct_prune_result *r, int32_t i, oct_prune_layer *out);

/** What there is to choose from: NULL beyond the end. Borrowed for ever; any thread. */
OCT_API const char *oct_prune_importance_name(int32_t i);
OCT_API const char *oct_prune_importance_help(int32_t i);
OCT_API const char *oct_prune_schedule_name(int32_t i);

/** Sparsity: single weights become zero, those that matter least, and layers keep their size. No
 * kernel of octet is faster for it; files get smaller when they are packed. Strings are needed
 * during the call only. */
typedef struct oct_sparsity_options {
    size_t struct_size; /**< set by oct_sparsity_options_init() */
    const char *level;  /**< "0.5": the share that becomes zero; "2:4": of each 4 weights along the
                             input channels 2 do; NULL with `levels` or `zeros` */
    int32_t local;      /**< 1: the same share of each layer (default 0: layers compete, by weights
                             divided by their layer's norm) */
    const char *keep;   /**< PCRE: layers whose name matches keep their weights; NULL: none */
    const char *only;   /**< PCRE: only layers whose name matches lose weights; NULL: all */
    int32_t zeros;      /**< 1: instead, what is zero already stays so in training (default 0) */
    /** \name While training: how the share grows */
    /**@{*/
    const char *schedule; /**< one of oct_sparsity_schedule_name() (default "polynomial") */
    int32_t steps;        /**< epochs in which it grows to the level (default 10) */
    double initial;       /**< share in the first of them (default 0) */
    double power;         /**< of "polynomial" (default .9) */
    const char *levels;   /**< instead: "0:0.3,40:0.5": shares from these epochs on */
    /**@}*/
} oct_sparsity_options;

OCT_API void oct_sparsity_options_init_sized(oct_sparsity_options *o, size_t struct_size);

static inline void oct_sparsity_options_init(oct_sparsity_options *o)
{
    oct_sparsity_options_init_sized(o, sizeof(*o));
}

/** What became of the weights. */
typedef struct oct_sparsity_result {
    size_t struct_size; /**< set by the caller */
    int64_t weights, zeros;
    int32_t n_layers, n_dense; /**< layers with weights; those that lost none */
} oct_sparsity_result;

/**
 * A copy of a graph with zeros, which the caller frees; its metadata say so (key
 * "octet.sparsity"). `result` may be NULL.
 */
OCT_API oct_status oct_sparsify(const oct_graph *g, const oct_sparsity_options *options,
                                oct_graph **out, oct_sparsity_result *result);

OCT_API const char *oct_sparsity_schedule_name(int32_t i); /**< NULL beyond the end */

#ifdef __cplusplus
}
#endif

#endif
