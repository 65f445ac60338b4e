/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Quantizing with a promise: accuracy stays within a limit, and as few layers as possible are
 * float for it.
 */
#ifndef OCTET_CONTROL_H
#define OCTET_CONTROL_H

#include <octet/eval.h>
#include <octet/quant.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What is promised of a quantized network. */
typedef enum oct_promise_kind {
    OCT_PROMISE_DROP = 0,          /**< its score is at most `limit` below the float network's */
    OCT_PROMISE_RELATIVE_DROP = 1, /**< the same, as a share of the float network's score */
    OCT_PROMISE_LEAST = 2,         /**< its score is at least `limit` */
    OCT_PROMISE_MOST = 3           /**< its score is at most `limit`: lower ones are better */
} oct_promise_kind;

/**
 * How good a network is. Called on the thread of oct_quantize_controlled(), with the float network
 * first where the promise is a drop, and then with one quantized network after the other.
 */
typedef oct_status (*oct_measure_fn)(void *user, const oct_graph *g, double *score);

/** \name Measures that are there */
/**@{*/
/** AP of detectors, top-1 of classifiers. Its size is fixed. */
typedef struct oct_accuracy_measure {
    const oct_dataset *truth;        /**< with labels */
    const oct_eval_options *options; /**< NULL: default */
    int64_t images;                  /**< set by measuring: pictures that counted */
    int32_t is_classifier;           /**< set by measuring */
    int32_t reserved;
} oct_accuracy_measure;

OCT_API oct_status oct_measure_accuracy(void *user, const oct_graph *g,
                                        double *score); /**< user: oct_accuracy_measure */
OCT_API oct_status oct_measure_repeat(void *user, const oct_graph *g,
                                      double *score); /**< user: oct_comparison */
OCT_API oct_status oct_measure_noise(void *user, const oct_graph *g,
                                     double *score); /**< the same; lower is better */
/**@}*/

/** What one score of the search was about. */
typedef enum oct_control_move {
    OCT_CONTROL_START = 0,    /**< all layers as the settings have them */
    OCT_CONTROL_RESTORE = 1,  /**< layers became float */
    OCT_CONTROL_GIVE_BACK = 2 /**< float layers went back to integers */
} oct_control_move;

/** A network that was scored. Strings are borrowed from the result. */
typedef struct oct_control_step {
    size_t struct_size; /**< set by the caller: sizeof(oct_control_step) */
    int32_t move;       /**< oct_control_move */
    const char *layer;  /**< the most harmful of those that changed, or NULL */
    int32_t changed;    /**< layers that changed */
    int32_t restored;   /**< layers that are float for the promise */
    double score;
    int32_t holds;               /**< 1: the promise */
    int32_t is_kept;             /**< 1: the result so far */
    double macs_quantized_share; /**< of the work: what is left in integers */
    int64_t weight_bytes;        /**< of all layers with weights, about */
} oct_control_step;

typedef struct oct_control_options {
    size_t struct_size;     /**< set by oct_control_options_init() */
    int32_t promise;        /**< oct_promise_kind (default OCT_PROMISE_DROP) */
    double limit;           /**< default 0.01 */
    oct_measure_fn measure; /**< needed */
    void *user;             /**< for `measure` */
    const char *name;       /**< of what is measured, for the file's metadata; NULL: "score" */
    int64_t ranking_images; /**< that layers are ranked by (default 16; 0: the default) */
    int32_t max_scores;     /**< networks to measure, at most (default 40; 0: the default) */
    void (*on_step)(void *user, const oct_control_step *step); /**< NULL, or called after each */
    void *on_step_user;
} oct_control_options;

OCT_API void oct_control_options_init_sized(oct_control_options *o, size_t struct_size);

static inline void oct_control_options_init(oct_control_options *o)
{
    oct_control_options_init_sized(o, sizeof(*o));
}

/** What came of a search. */
typedef struct oct_control oct_control;

typedef struct oct_control_summary {
    size_t struct_size; /**< set by the caller: sizeof(oct_control_summary) */
    int32_t holds;      /**< 1: the promise is kept */
    double float_score; /**< NaN: not measured */
    double first_score; /**< of the network as the settings have it */
    double score;       /**< of the result */
    double need;        /**< the score that keeps the promise */
    int32_t candidates; /**< layers that could be restored */
    int32_t restored;   /**< layers that are float for the promise */
    int32_t scores;     /**< quantized networks that were measured */
    double seconds;
} oct_control_summary;

/**
 * Quantizes as oct_quantize() does, measures, and restores layers to float until the promise holds;
 * then gives back those that are not needed. *out is what oct_quantize() gives with the restored
 * layers among options->ignored.names, and its metadata say what was promised and measured. If the
 * promise cannot be kept, *out is the network with the best score, and oct_control_summary.holds is
 * 0. The caller frees *out and *result (NULL: not wanted).
 */
OCT_API oct_status oct_quantize_controlled(const oct_graph *g, const oct_dataset *images,
                                           const oct_quantize_options *options,
                                           const oct_control_options *control, oct_quantized **out,
                                           oct_control **result);
OCT_API void oct_control_free(oct_control *c); /**< accepts NULL */
OCT_API void oct_control_get_summary(const oct_control *c, oct_control_summary *s);

/** Score i, in order; returns 0 beyond the end. */
OCT_API int32_t oct_control_step_at(const oct_control *c, int32_t i, oct_control_step *step);

/** Name of layer i that is float for the promise; NULL beyond the end. */
OCT_API const char *oct_control_restored(const oct_control *c, int32_t i);

/** What the metadata of a file say of its promise. Strings are the graph's. */
typedef struct oct_promise {
    size_t struct_size; /**< set by the caller: sizeof(oct_promise) */
    int32_t kind;       /**< oct_promise_kind */
    double limit;
    const char *measure; /**< "AP", "top-1", "repeat", "noise", or the caller's */
    double float_score;  /**< NaN: not measured */
    double score;        /**< that was measured when it was made */
    double need;         /**< the score that keeps it */
    int32_t held;        /**< 1: it was kept then */
    int32_t restored;    /**< layers that are float for it */
    const char *layers;  /**< their names, split by commas */
} oct_promise;

/** Returns 0 if the file promises nothing, or nothing that can be read. */
OCT_API int32_t oct_graph_promise(const oct_graph *g, oct_promise *p);

/** The score that keeps a promise, where the float network has this one. */
OCT_API double oct_promise_need(int32_t kind, double limit, double float_score);

/** In one line: "AP drops by at most 0.002: .4233 float, .4221 INT8, 2 layers float for it".
 * Written to `text`, which it returns; "" if there is none. */
OCT_API const char *oct_graph_promise_text(const oct_graph *g, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
