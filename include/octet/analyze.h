/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Where a quantized network loses accuracy, and what to do about it.
 */
#ifndef OCTET_ANALYZE_H
#define OCTET_ANALYZE_H

#include <octet/error.h>
#include <octet/quant.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A node that reads or makes integers, or has weights, in the order the network computes them. */
typedef struct oct_analyzed_layer {
    size_t struct_size; /**< set by the caller: sizeof(oct_analyzed_layer) */
    const char *name, *op;
    const char *reason;   /**< why it is float; NULL: it works on integers */
    int32_t in_tail;      /**< 1: part of the tail, which stays float */
    int32_t weight_bits;  /**< 0: no integer weights */
    int32_t input_bits;   /**< of the widest integer operand; 0: none */
    int64_t macs, params; /**< multiply-adds; elements of its weights */
    double weight_noise;  /**< of its weights alone; < 0: none */
    oct_error alone;      /**< layerwise: worst output of the network, only this layer quantized */
    oct_error all;        /**< graphwise: output of this layer, everything quantized */
    int32_t why;          /**< oct_float_reason: the reason, for programs */
} oct_analyzed_layer;

/** A place where integers stand: what the float network has there, and what codes can hold. */
typedef struct oct_analyzed_point {
    size_t struct_size; /**< set by the caller: sizeof(oct_analyzed_point) */
    const char *value;  /**< its name in the network */
    const char *layer;  /**< the node that makes it; "" for an input of the network */
    const char *type;   /**< "uint8", "int8", .. */
    int32_t n_scales;   /**< 1, or one for each channel */
    double scale, zero; /**< of the widest channel */
    double min, max;    /**< seen */
    double low, high;   /**< the numbers that codes can hold (widest channel) */
    double clipped;     /**< share of numbers outside it */
    int32_t levels;     /**< codes there are */
    int32_t used;       /**< codes that were seen, of all channels together */
    double kurtosis;    /**< 3 for a normal distribution, large for long tails */
    double spread;      /**< widest channel's range over the median channel's; 0: no channels */
    double noise;       /**< error power / signal power of rounding and clipping here alone */
    const int64_t *histogram; /**< of [histogram_low, histogram_high] in n_bins parts */
    int32_t n_bins;
    double histogram_low, histogram_high;
} oct_analyzed_point;

/** What would help, best first. */
typedef struct oct_advice {
    size_t struct_size; /**< set by the caller: sizeof(oct_advice) */
    const char *text;   /**< one or two sentences for people */
    const char *option; /**< the words to add to `octet quantize`: "--ignore-name /a/b"; or "" */
    const char *layer;  /**< the node it is about, or NULL */
    double gain;        /**< share of the error at the outputs that would go; < 0: not known */
} oct_advice;

typedef struct oct_analyze_options {
    size_t struct_size; /**< set by oct_analyze_options_init() */
    int64_t images;     /**< pictures to use, from the start of the set (default 16) */
    int32_t layerwise;  /**< 1: quantize one layer at a time (default 1) */
    int32_t graphwise;  /**< 1: compare inner values with everything quantized (default 1) */
    int32_t statistics; /**< 1: look at the numbers at each point (default 1) */
    int32_t plain_loop; /**< 1: layerwise without sharing work, to check it (default 0) */
    const oct_preprocess *preprocess; /**< NULL: the family's */
    const char *family;               /**< NULL: auto */
} oct_analyze_options;

OCT_API void oct_analyze_options_init_sized(oct_analyze_options *o, size_t struct_size);

static inline void oct_analyze_options_init(oct_analyze_options *o)
{
    oct_analyze_options_init_sized(o, sizeof(*o));
}

/** What analysing gave: read-only, so several threads may look at it. */
typedef struct oct_analysis oct_analysis;

/**
 * Compares a float network with a quantized form of it (QuantizeLinear and DequantizeLinear, or
 * QOperator, made by whomever, as long as the names of values were kept). Both graphs must outlive
 * the result; the dataset is needed during the call only. On the thread of the graphs' context;
 * octet's own threads run the networks. Memory does not depend on the number of pictures. The
 * caller frees *out.
 */
OCT_API oct_status oct_analyze(const oct_graph *exact, const oct_graph *quantized,
                               const oct_dataset *images, const oct_analyze_options *options,
                               oct_analysis **out);
OCT_API void oct_analysis_free(oct_analysis *a); /**< accepts NULL */

/** \name Results: each returns 0 beyond the end; strings and arrays are borrowed from `a` */
/**@{*/
OCT_API int32_t oct_analysis_layer(const oct_analysis *a, int32_t i, oct_analyzed_layer *layer);
OCT_API int32_t oct_analysis_point(const oct_analysis *a, int32_t i, oct_analyzed_point *point);
OCT_API int32_t oct_analysis_advice(const oct_analysis *a, int32_t i, oct_advice *advice);
OCT_API int32_t oct_analysis_output(const oct_analysis *a, int32_t i, const char **name,
                                    oct_error *error); /**< of the network, all quantized */
/**@}*/

OCT_API int64_t oct_analysis_images(const oct_analysis *a);
OCT_API double oct_analysis_layerwise_seconds(const oct_analysis *a);

#ifdef __cplusplus
}
#endif

#endif
