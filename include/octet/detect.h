/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Boxes out: which kind of detector a network is, how its outputs are read, non-maximum
 * suppression, drawing.
 */
#ifndef OCTET_DETECT_H
#define OCTET_DETECT_H

#include <octet/data.h>
#include <octet/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One found box, in picture pixels. Its size is fixed: it is an element of arrays. */
typedef struct oct_detection {
    float x, y, width, height;
    float score;
    int32_t category;  /**< from 0, as the network counts */
    float reserved[2]; /**< 0 */
} oct_detection;

typedef struct oct_nms_options {
    size_t struct_size;     /**< set by oct_nms_options_init() */
    float score;            /**< keep scores above this (default 0.01) */
    float iou;              /**< suppress above this overlap (default 0.65) */
    int32_t agnostic;       /**< 1: across classes (default 0) */
    int32_t top_k;          /**< candidates looked at, best first (default 30000) */
    int32_t max_detections; /**< of a picture (default 100) */
    float soft_sigma;       /**< > 0: soft suppression with this width (default 0: hard) */
} oct_nms_options;

OCT_API void oct_nms_options_init_sized(oct_nms_options *o, size_t struct_size);

static inline void oct_nms_options_init(oct_nms_options *o)
{
    oct_nms_options_init_sized(o, sizeof(*o));
}

/**
 * A recognised network: how to feed it and how to read it. Of one thread; what it returns is
 * borrowed from it.
 */
typedef struct oct_detector oct_detector;

/**
 * Recognises the network from its inputs and outputs. `family` names one ("yolov8", "yolox", ...)
 * or is NULL or "auto". Wrong or ambiguous shapes fail, listing the choices. The graph may be freed
 * afterwards.
 */
OCT_API oct_status oct_detector_new(const oct_graph *g, const char *family, oct_detector **out);

/**
 * The same for another thread, which works in `ctx`: a detector belongs to one thread. Both are
 * freed, in any order. `d` must not be in use meanwhile.
 */
OCT_API oct_status oct_detector_copy(oct_ctx *ctx, const oct_detector *d, oct_detector **out);
OCT_API void oct_detector_free(oct_detector *d); /**< accepts NULL */

OCT_API const char *oct_detector_family(const oct_detector *d);
OCT_API const char *oct_detector_why(const oct_detector *d); /**< one sentence */
OCT_API int32_t oct_detector_is_classifier(const oct_detector *d);
OCT_API int32_t oct_detector_n_classes(const oct_detector *d); /**< 0: nothing tells */

/**
 * What class k is called: by names that were set, else by the file's metadata (`names`), else by
 * COCO's names if there are 80 classes, or if nothing tells how many. NULL: not known.
 */
OCT_API const char *oct_detector_class_name(const oct_detector *d, int32_t k);
OCT_API const char *oct_detector_names_from(
    const oct_detector *d); /**< "labels" (set), "metadata", "COCO"; NULL: nowhere */

/** Names the classes; copied. Fails if there are more or fewer classes. */
OCT_API oct_status oct_detector_set_names(oct_detector *d, const oct_class_names *names);

/** The family's preprocessing, with the network's input size filled in; p->struct_size is set. */
OCT_API void oct_detector_preprocess(const oct_detector *d, oct_preprocess *p);

/**
 * How pictures are made fit for a network: what its family wants, or where no family knows it what
 * its input says (size, layout, grey), with the changes that `words` asks for (may be NULL: then
 * the family must be known). A size other than that of an input of fixed size is an error. *p is
 * initialised first. The graph is needed during the call only.
 */
OCT_API oct_status oct_graph_preprocess(const oct_graph *g, const char *family, const char *words,
                                        oct_preprocess *p);

/**
 * Reads the outputs of a run for picture `index` of the batch, suppresses, maps back to the
 * picture and clips. At most max_detections are written to `out`, the caller's array; *n is their
 * number. `options` may be NULL. On the thread of the run.
 */
OCT_API oct_status oct_detector_decode(oct_detector *d, oct_run *r, int32_t index,
                                       const oct_mapping *map, const oct_nms_options *options,
                                       oct_detection *out, int32_t *n);

/** Classifiers: the scores of picture `index`, borrowed until the next run. */
OCT_API oct_status oct_detector_scores(oct_detector *d, oct_run *r, int32_t index,
                                       const float **scores, int32_t *n);

/** \name Pre- and postprocessing inside the network */
/**@{*/
typedef struct oct_attach_options {
    size_t struct_size;     /**< set by oct_attach_options_init() */
    const char *family;     /**< as oct_detector_new() takes it; NULL: recognised (default) */
    const char *preprocess; /**< "auto" (default): the input takes uint8 RGB pictures of its size,
                                 and the family's scaling, channel order and casts are nodes;
                                 "none": the input stays; else words of oct_preprocess_parse() over
                                 the family's */
    int32_t layout;         /**< oct_image_layout of the uint8 input (default OCT_IMAGE_NCHW) */
    const char *nms;        /**< "onnx" (default): NonMaxSuppression and standard operators;
                                 "tensorrt": EfficientNMS_TRT; "none": outputs stay */
    const char *format;     /**< "batch" (default): a count, boxes, scores, classes of max_det
                                 places; "flat": rows of picture, corners, score, class */
    float score;            /**< keep scores above this (default 0.25) */
    float iou;              /**< suppress above this overlap (default 0.65) */
    int32_t max_det;        /**< boxes of a picture (default 300) */
    int32_t pre_nms;        /**< anchors that take part, best first (default 1000) */
    int32_t batch;          /**< pictures of a run; 0 (default): as the network has it */
} oct_attach_options;

OCT_API void oct_attach_options_init_sized(oct_attach_options *o, size_t struct_size);

/** Sets every option to its default. */
static inline void oct_attach_options_init(oct_attach_options *o)
{
    oct_attach_options_init_sized(o, sizeof(*o));
}

/**
 * A network with more of the work inside: pictures of bytes in, boxes out, for float networks and
 * quantized ones, of every family whose outputs octet reads. Resizing stays outside. Outputs are
 * those of super-gradients' export, rows of a picture best first. `options` may be NULL; the caller
 * frees *out.
 */
OCT_API oct_status oct_graph_attach(const oct_graph *g, const oct_attach_options *options,
                                    oct_graph **out);
/**@}*/

/** \name Networks that are fed with codes, or give codes */
/**@{*/
/**
 * The same network with float inputs and outputs, where it says itself what the codes mean: a
 * DequantizeLinear reads the input, a QuantizeLinear makes the output. *out is NULL if there are no
 * such inputs and outputs, else one to free. Evaluating does this by itself.
 */
OCT_API oct_status oct_graph_float_io(const oct_graph *g, oct_graph **out);

/** What the codes of an input or output mean: value = (code - zero_point) * scale.
 * OCT_ERR_STATE, without a text: it has no codes, or nothing tells. */
OCT_API oct_status oct_graph_codes(const oct_graph *g, int32_t is_output, int32_t i, float *scale,
                                   int32_t *zero_point);
/**@}*/

/** The families there are: NULL beyond the end. Borrowed for ever; any thread. */
OCT_API const char *oct_family_name(int32_t i);
OCT_API const char *oct_family_help(const char *name);

/** The names of the 80 classes of COCO; NULL beyond the end. Borrowed for ever; any thread. */
OCT_API const char *oct_coco_name(int32_t i);

/**
 * Draws boxes with labels onto a picture, which is changed in place. `names` may be NULL (COCO's if
 * there are 80). A score below 0 is not written.
 */
OCT_API oct_status oct_detections_draw(oct_ctx *ctx, oct_image *im, const oct_detection *found,
                                       int32_t n, const char *const *names, int32_t n_names);

/**
 * Which boxes of two networks on one picture are the same thing: boxes of one class that overlap by
 * `iou` or more. Boxes of `a` choose in their order (best score first, as decoding leaves them),
 * each the free one of `b` that it overlaps most. partner[i] is its index in `b`, or -1: it went.
 * What is nobody's partner came.
 */
OCT_API void oct_detections_match(const oct_detection *a, int32_t n_a, const oct_detection *b,
                                  int32_t n_b, float iou, int32_t *partner);

/** Shared area over joined area of two boxes; 0 if both are empty. */
OCT_API float oct_detections_iou(const oct_detection *a, const oct_detection *b);

#ifdef __cplusplus
}
#endif

#endif
