/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Scores: COCO and VOC box metrics, top-1 and top-5, the evaluation of a whole network, and how
 * well one network repeats another.
 */
#ifndef OCTET_EVAL_H
#define OCTET_EVAL_H

#include <octet/detect.h>
#include <octet/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Box metrics of a set of pictures. One is of one thread; several may be filled on several threads
 * and merged.
 */
typedef struct oct_box_eval oct_box_eval;

/**
 * The twelve numbers of COCO; -1 where there is nothing to measure. The size of this struct is
 * fixed, so that others may contain it: figures to come take the place of reserved ones.
 */
typedef struct oct_box_metrics {
    double ap, ap50, ap75, ap_small, ap_medium, ap_large;
    double ar1, ar10, ar100, ar_small, ar_medium, ar_large;
    double voc_map50;   /**< VOC style: area under the precision envelope at IoU 0.5 */
    double reserved[7]; /**< -1 */
} oct_box_metrics;

/** The dataset's labels are the truth; it must outlive *out, which the caller frees. */
OCT_API oct_status oct_box_eval_new(oct_ctx *ctx, const oct_dataset *truth, oct_box_eval **out);
OCT_API void oct_box_eval_free(oct_box_eval *e); /**< accepts NULL */

/**
 * Only these pictures count from now on, by their ids (all again if n is 0); what is seen of others
 * is left aside.
 */
OCT_API oct_status oct_box_eval_select(oct_box_eval *e, const int64_t *image_ids, int64_t n);

/**
 * The detections of picture i of the dataset, all at once, in any order (equal scores: earlier ones
 * first); categories as the dataset counts. The best 100 of each category count. Numbers that are
 * not finite, negative sizes and unknown categories fail.
 */
OCT_API oct_status oct_box_eval_see(oct_box_eval *e, int64_t i, const oct_detection *found,
                                    int32_t n);

/**
 * Adds what `other` saw (of other pictures); the result is the same to the last bit. `other` is not
 * changed, may be of another context, and must not be in use by another thread.
 */
OCT_API oct_status oct_box_eval_merge(oct_box_eval *e, const oct_box_eval *other);

/**
 * May be called again after more was seen. Pictures never seen count as empty if `all`. What was
 * borrowed of curves is not valid any more.
 */
OCT_API oct_status oct_box_eval_finish(oct_box_eval *e, int32_t all, oct_box_metrics *out);

/** After finish: AP and AP at IoU 0.5 of one category, -1 if it has no boxes. */
OCT_API void oct_box_eval_category(const oct_box_eval *e, int32_t category, double *ap,
                                   double *ap50);

/**
 * After finish: precision at 101 recall points for one category at IoU 0.5, borrowed until the next
 * finish, or NULL.
 * Category -1: the mean of all that have boxes.
 */
OCT_API const double *oct_box_eval_curve(const oct_box_eval *e, int32_t category);

/** The same as the mean over IoU 0.50, 0.55 .. 0.95: the mean of its points is AP. */
OCT_API const double *oct_box_eval_mean_curve(const oct_box_eval *e, int32_t category);

/** The dataset whose labels are the truth, borrowed: it has the categories' names. */
OCT_API const oct_dataset *oct_box_eval_truth(const oct_box_eval *e);

/** After finish: boxes of one category that count. */
OCT_API int64_t oct_box_eval_labels(const oct_box_eval *e, int32_t category);

/** How much AP depends on which pictures happened to be scored: halves of 95 % intervals. */
typedef struct oct_box_noise {
    size_t struct_size; /**< set by the caller: sizeof(oct_box_noise) */
    int64_t images;     /**< that took part */
    int32_t resamples;
    double ap;         /**< AP +- this; < 0: not known (one picture, no labels) */
    double other_ap;   /**< the same of the other network; < 0: none */
    double difference; /**< of the other's AP and AP on the same pictures, which is smaller */
} oct_box_noise;

/**
 * The bootstrap: pictures are drawn with replacement `resamples` times (0: 200), and AP is taken of
 * each draw. `other` (NULL: none) saw the same dataset; both get the same draws, so that the
 * difference is paired. The same seed gives the same numbers. `all` as for oct_box_eval_finish().
 */
OCT_API oct_status oct_box_eval_noise(const oct_box_eval *e, const oct_box_eval *other, int32_t all,
                                      int32_t resamples, uint64_t seed, oct_box_noise *out);

/**
 * Reads a COCO results file and scores it against the dataset (one opened with COCO labels). An
 * entry that is broken, or of a picture or category that the dataset does not have, fails, naming
 * it; then nothing of the file was seen.
 */
OCT_API oct_status oct_box_eval_see_file(oct_box_eval *e, const char *path);

/** Which category of a dataset each class of a network is. Needs neither of them afterwards. */
typedef struct oct_class_map oct_class_map;

/**
 * Finds out. YOLO's labels have the network's own numbers. Others are matched by name where the
 * network's names are known; without names, COCO's ids by their order if there are as many, or by
 * COCO's 80 names. It fails where that would be a guess: VOC's names alone say nothing of an order.
 */
OCT_API oct_status oct_class_map_new(const oct_detector *net, const oct_dataset *d,
                                     oct_class_map **out);
OCT_API void oct_class_map_free(oct_class_map *m);             /**< accepts NULL */
OCT_API const char *oct_class_map_how(const oct_class_map *m); /**< "by name", .. */
OCT_API int32_t oct_class_map_size(const oct_class_map *m);    /**< classes of the network */
OCT_API int32_t oct_class_map_category(const oct_class_map *m, int32_t k); /**< -1: none */

/** 1: nothing that a user should look at. 0: names differ, or are not known on one side. */
OCT_API int32_t oct_class_map_is_clear(const oct_class_map *m);

/** What evaluating a network gave: numbers only. */
typedef struct oct_eval_result {
    size_t struct_size; /**< set by the caller: sizeof(oct_eval_result) */
    int64_t images, skipped;
    oct_box_metrics box; /**< detectors */
    double top1, top5;   /**< classifiers; top5 is -1 unless there are more than five classes */
    double seconds;
    double network_seconds, decode_seconds, preprocess_seconds, post_seconds, score_seconds;
} oct_eval_result;

/** How to evaluate. All it points to is needed during the call only. */
typedef struct oct_eval_options {
    size_t struct_size;               /**< set by oct_eval_options_init() */
    const oct_plan_options *plan;     /**< NULL: default */
    const oct_preprocess *preprocess; /**< NULL: the family's */
    const char *family;               /**< NULL: auto */
    const oct_nms_options *nms;       /**< NULL: default */
    int32_t batch;                    /**< default 1 */
    int32_t loader_threads;           /**< 0: one (default) */
    const char *results;              /**< COCO results file to write; NULL: none */
    const int32_t *category_map;      /**< network's class to dataset's category, -1: none; NULL: as
                                           oct_class_map_new() finds out */
    const oct_class_names *names;     /**< of the network's classes; NULL: as the file says */
} oct_eval_options;

OCT_API void oct_eval_options_init_sized(oct_eval_options *o, size_t struct_size);

static inline void oct_eval_options_init(oct_eval_options *o)
{
    oct_eval_options_init_sized(o, sizeof(*o));
}

/**
 * Runs the network over the dataset and scores it, on threads of its own; progress goes to the
 * context's callback, on the caller's thread. If `eval` is not NULL it receives the accumulator
 * (for per-class figures), which the caller frees before the dataset. Neither graph nor options are
 * needed afterwards. `options` may be NULL.
 */
OCT_API oct_status oct_eval_run(const oct_graph *g, const oct_dataset *d,
                                const oct_eval_options *options, oct_eval_result *result,
                                oct_box_eval **eval);

/** \name Without labels: how well a network repeats the one it was made from */
/**@{*/
/** What two networks were compared by. */
typedef enum oct_compared {
    OCT_COMPARED_OUTPUTS = 0, /**< noise alone: no family reads their outputs */
    OCT_COMPARED_BOXES = 1,
    OCT_COMPARED_CLASSES = 2
} oct_compared;

/** How to compare. All it points to is needed during the call only. */
typedef struct oct_compare_options {
    size_t struct_size;               /**< set by oct_compare_options_init() */
    const oct_plan_options *plan;     /**< NULL: default */
    const oct_preprocess *preprocess; /**< NULL: the family's */
    const char *family;               /**< NULL: auto; "none": noise alone */
    const oct_nms_options *nms;       /**< NULL: default */
    double sure;   /**< float detections with a higher score are the truth (default 0.3) */
    double iou;    /**< overlap from which a box is repeated (default 0.5) */
    int64_t limit; /**< only the first so many items; 0: all (default) */
} oct_compare_options;

OCT_API void oct_compare_options_init_sized(oct_compare_options *o, size_t struct_size);

static inline void oct_compare_options_init(oct_compare_options *o)
{
    oct_compare_options_init_sized(o, sizeof(*o));
}

/** What comparing gave; -1: there was nothing to measure. */
typedef struct oct_compare_result {
    size_t struct_size; /**< set by the caller: sizeof(oct_compare_result) */
    int64_t images;
    int32_t kind; /**< oct_compared */
    int64_t sure; /**< detections of the float network that are the truth */
    double ap;    /**< COCO's AP against them, boxes of all classes in one list; 1: the same */
    double ap50;
    double repeat; /**< share of them that the other network has too: of the same class, with at
                        least half the score they need; classifiers: top1 */
    double added;  /**< share of the other's detections, found in the same way, that are new */
    double top1;   /**< classifiers: share of pictures with the same best class */
    double top5;   /**< mean share of the five best classes that both have; -1: there are no more
                        than five */
    double noise;  /**< error power / signal power at the worst output */
    double cosine; /**< at the output where it is lowest */
} oct_compare_result;

/** A network with its answers to all items of a dataset: others are compared with it. */
typedef struct oct_comparison oct_comparison;

/**
 * Runs the float network over the items. Graph and options are not needed afterwards; the dataset,
 * of pictures or tensors, must outlive *out, which the caller frees. `options` may be NULL. At most
 * 16384 numbers of each output are kept of an item, and fewer where there are many items.
 */
OCT_API oct_status oct_comparison_new(const oct_graph *exact, const oct_dataset *d,
                                      const oct_compare_options *options, oct_comparison **out);
OCT_API void oct_comparison_free(oct_comparison *c); /**< accepts NULL */

/** Runs another network over the same items, prepared in the same way. May be called repeatedly. */
OCT_API oct_status oct_comparison_run(oct_comparison *c, const oct_graph *other,
                                      oct_compare_result *result);

/** Error at output i in the last run; returns 0 beyond the end. The name is borrowed from `c`. */
OCT_API int32_t oct_comparison_output(const oct_comparison *c, int32_t i, const char **name,
                                      oct_error *error);

/** Both at once, where one network is compared. */
OCT_API oct_status oct_compare(const oct_graph *exact, const oct_graph *other, const oct_dataset *d,
                               const oct_compare_options *options, oct_compare_result *result);
/**@}*/

#ifdef __cplusplus
}
#endif

#endif
