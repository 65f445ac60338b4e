/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Pictures in: decoding, preprocessing, datasets, and a loader that works ahead.
 */
#ifndef OCTET_DATA_H
#define OCTET_DATA_H

#include <octet/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A decoded picture: 8-bit RGB, row by row, no padding. Freed with oct_image_free(). */
typedef struct oct_image oct_image;

/** How to decode a picture. */
typedef struct oct_image_options {
    size_t struct_size; /**< set by oct_image_options_init() */
    int32_t exif;       /**< 1: turn it as its EXIF orientation says (default, as OpenCV does) */
    int64_t max_pixels; /**< refuse larger pictures (default 178,956,970, as Pillow warns) */
} oct_image_options;

OCT_API void oct_image_options_init_sized(oct_image_options *o, size_t struct_size);

static inline void oct_image_options_init(oct_image_options *o)
{
    oct_image_options_init_sized(o, sizeof(*o));
}

/**
 * Reads a JPEG, PNG, WebP, BMP or TIFF file, whatever its extension. `options` may be NULL. The
 * caller frees *out.
 */
OCT_API oct_status oct_image_load(oct_ctx *ctx, const char *path, const oct_image_options *options,
                                  oct_image **out);

/** The same from memory, needed during the call only; `name` is for error texts. */
OCT_API oct_status oct_image_decode(oct_ctx *ctx, const char *name, const void *data, size_t size,
                                    const oct_image_options *options, oct_image **out);

/** A black picture, which the caller frees. */
OCT_API oct_status oct_image_new(oct_ctx *ctx, int32_t width, int32_t height, oct_image **out);
OCT_API void oct_image_free(oct_image *im); /**< accepts NULL */
OCT_API int32_t oct_image_width(const oct_image *im);
OCT_API int32_t oct_image_height(const oct_image *im);
OCT_API uint8_t *oct_image_rgb(oct_image *im); /**< width * height * 3 bytes, the picture's */

/** Writes a JPEG (quality 92) or PNG by the extension; to a temporary name, renamed when whole. */
OCT_API oct_status oct_image_save(oct_ctx *ctx, const oct_image *im, const char *path);

/** How a picture is brought to the network's size. */
typedef enum oct_fit {
    OCT_FIT_LETTERBOX = 0,          /**< keep proportions, pad both sides */
    OCT_FIT_LETTERBOX_TOP_LEFT = 1, /**< keep proportions, pad right and below */
    OCT_FIT_STRETCH = 2,            /**< ignore proportions */
    OCT_FIT_CROP = 3                /**< short side to `crop_resize`, then the centre */
} oct_fit;

typedef enum oct_interpolation {
    OCT_INTERPOLATION_LINEAR = 0,   /**< as OpenCV's INTER_LINEAR */
    OCT_INTERPOLATION_ANTIALIAS = 1 /**< as Pillow's BILINEAR */
} oct_interpolation;

typedef enum oct_color { OCT_COLOR_RGB = 0, OCT_COLOR_BGR = 1, OCT_COLOR_GRAY = 2 } oct_color;

typedef enum oct_image_layout { OCT_IMAGE_NCHW = 0, OCT_IMAGE_NHWC = 1 } oct_image_layout;

/** One struct for recipe, command line and API. value = (pixel / scale - mean[c]) / std[c]. */
typedef struct oct_preprocess {
    size_t struct_size;    /**< set by oct_preprocess_init() */
    int32_t width, height; /**< of the network's input */
    int32_t fit;           /**< oct_fit (default OCT_FIT_LETTERBOX) */
    int32_t interpolation; /**< oct_interpolation (default OCT_INTERPOLATION_ANTIALIAS) */
    int32_t color;         /**< oct_color (default OCT_COLOR_RGB) */
    int32_t layout;        /**< oct_image_layout (default OCT_IMAGE_NCHW) */
    int32_t crop_resize;   /**< OCT_FIT_CROP: short side before cropping; 0: size / 0.875 */
    float pad;             /**< grey level of the padding, before scale and mean (default 114) */
    float scale;           /**< default 255 */
    float mean[3], std[3]; /**< in the order of `color` (default 0 and 1) */
    int32_t inner_width, inner_height; /**< OCT_FIT_LETTERBOX: the part of the input that pictures
                                          are fitted to, the rest is padding; 0: all of it */
} oct_preprocess;

OCT_API void oct_preprocess_init_sized(oct_preprocess *p, size_t struct_size);

static inline void oct_preprocess_init(oct_preprocess *p)
{
    oct_preprocess_init_sized(p, sizeof(*p));
}

/**
 * Changes fields by words: "size=640x640,fit=letterbox,pad=114,color=rgb,scale=255,
 * mean=.485:.456:.406,std=.229:.224:.225,interpolation=linear,layout=nhwc,crop_resize=256,
 * inner=636x636".
 * An unknown word fails, naming the nearest.
 */
OCT_API oct_status oct_preprocess_parse(oct_ctx *ctx, oct_preprocess *p, const char *text);

/** The words that oct_preprocess_parse() would need to get this, into `text`, which it returns. */
OCT_API const char *oct_preprocess_text(const oct_preprocess *p, char *text, size_t size);

/** Network pixel = picture pixel * scale + offset. Its size is fixed: others may contain it. */
typedef struct oct_mapping {
    float scale_x, scale_y, offset_x, offset_y;
    int32_t image_width, image_height;
    int32_t reserved[2]; /**< 0 */
} oct_mapping;

/**
 * Decoded bytes to the network's input in one pass: dst holds 3 (or 1) * width * height values of
 * `dtype` (OCT_DTYPE_F32, or OCT_DTYPE_U8 without scale, mean and std). `map` may be NULL. Several
 * threads may share `p` and `im`, each with its own context.
 */
OCT_API oct_status oct_preprocess_run(oct_ctx *ctx, const oct_preprocess *p, const oct_image *im,
                                      oct_dtype dtype, void *dst, oct_mapping *map);

/** \name Names of classes, by the numbers that a network uses */
/**@{*/
/** Names in the order of the network's classes; read-only, so any number of threads may look. */
typedef struct oct_class_names oct_class_names;

/**
 * Reads a text with a name a line (the first one is class 0), or the `names` of a .yaml or .json
 * file, as Ultralytics' data.yaml has them: a list, or a map from numbers. The caller frees *out.
 */
OCT_API oct_status oct_class_names_load(oct_ctx *ctx, const char *path, oct_class_names **out);
OCT_API void oct_class_names_free(oct_class_names *c); /**< accepts NULL */
OCT_API int32_t oct_class_names_size(const oct_class_names *c);
OCT_API const char *oct_class_names_at(const oct_class_names *c, int32_t i); /**< NULL: none */
/**@}*/

/** \name Datasets */
/**@{*/
/** Pictures or tensors, with their labels. What it returns is borrowed until it is closed. */
typedef struct oct_dataset oct_dataset;

/**
 * One labelled box, in picture pixels. Doubles, as the file's decimals are read everywhere else:
 * an overlap that sits on a threshold must fall on the same side. Its size is fixed: it is an
 * element of arrays.
 */
typedef struct oct_label {
    double x, y, width, height;
    double area;      /**< for COCO's area ranges; width * height where the file has none */
    int32_t category; /**< index into the dataset's categories, from 0 */
    int32_t is_crowd;
    double reserved[2]; /**< 0 */
} oct_label;

typedef struct oct_dataset_options {
    size_t struct_size;      /**< set by oct_dataset_options_init() */
    const char *images;      /**< a picture, a folder, a list, a data.yaml, a pattern ("a/?*.jpg"),
                                  a video, "-" (names on standard input), .npz, a folder of .npy;
                                  NULL: only the annotations are read, no picture is needed */
    const char *annotations; /**< COCO .json, VOC folder, YOLO folder, `name class` list; NULL */
    int32_t limit;           /**< at most this many, the first ones; 0: all (default) */
    int32_t subset_size;     /**< at most this many, picked evenly; 0: all (default) */
    int32_t random;          /**< 1: the subset is picked at random by `seed` (default 0) */
    uint64_t seed;
    int32_t skip_bad;   /**< 1: broken entries are left out and counted (default 0) */
    int32_t need_files; /**< 1: pictures that are not there are an error that counts them, or left
                             out with skip_bad; 0: found out when they are decoded (default) */
    const char *const *more_images; /**< after `images`, where several are given */
    int32_t n_more_images;          /**< default 0 */
    int32_t every;                  /**< of a video, every n-th picture; 0 and 1: all (default 0) */
} oct_dataset_options;

OCT_API void oct_dataset_options_init_sized(oct_dataset_options *o, size_t struct_size);

static inline void oct_dataset_options_init(oct_dataset_options *o)
{
    oct_dataset_options_init_sized(o, sizeof(*o));
}

/**
 * Recognises what it is given; oct_dataset_kind() says what it took it for. The caller closes it,
 * after everything that works with it. Paths, labels and categories do not change: while a loader
 * or an evaluation uses it, other threads may read them, but not notes and counts.
 */
OCT_API oct_status oct_dataset_open(oct_ctx *ctx, const oct_dataset_options *options,
                                    oct_dataset **out);
OCT_API void oct_dataset_close(oct_dataset *d); /**< accepts NULL */

OCT_API const char *oct_dataset_kind(const oct_dataset *d); /**< "COCO", "VOC", "YOLO", ... */
OCT_API int64_t oct_dataset_size(const oct_dataset *d);
OCT_API int32_t oct_dataset_n_categories(const oct_dataset *d);
OCT_API const char *oct_dataset_category_name(const oct_dataset *d, int32_t i);
OCT_API int64_t oct_dataset_category_id(const oct_dataset *d, int32_t i); /**< as in the file */
OCT_API const char *oct_dataset_path(const oct_dataset *d, int64_t i);    /**< of picture i */
OCT_API int64_t oct_dataset_image_id(const oct_dataset *d, int64_t i);    /**< COCO's id, or i */
OCT_API const oct_label *oct_dataset_labels(const oct_dataset *d, int64_t i, int32_t *n);
OCT_API int32_t oct_dataset_class(const oct_dataset *d, int64_t i); /**< -1: none */
OCT_API int64_t oct_dataset_skipped(const oct_dataset *d);          /**< entries left out */

/**
 * What was left out, why, and the first names, as in "2 files are no pictures and were left out
 * (notes.txt, a.csv)". NULL beyond the last; valid until the next call. There may be more after a
 * loader, an evaluation or a calibration worked through a dataset opened with skip_bad.
 */
OCT_API const char *oct_dataset_note(const oct_dataset *d, int32_t i);

/**
 * Item i of a dataset of tensors: the tensor for the network's input `name`. *out is a reference of
 * the caller's, for oct_tensor_unref().
 */
OCT_API oct_status oct_dataset_tensor(const oct_dataset *d, int64_t i, const char *name,
                                      oct_tensor **out);
OCT_API int32_t oct_dataset_is_tensors(const oct_dataset *d);

/**
 * Decodes picture i, which the caller frees; frames of a video are best read in order. One thread
 * at a time.
 */
OCT_API oct_status oct_dataset_load(oct_dataset *d, int64_t i, oct_image **out);

/** Which picture of the video at oct_dataset_path() it is, from 0; -1: a file of its own. */
OCT_API int64_t oct_dataset_frame(const oct_dataset *d, int64_t i);
/**@}*/

/** \name Datasets of the caller's own: for data that octet cannot read */
/**@{*/
/**
 * Gives item `index`, from 0, as one tensor for each of the source's inputs: tensors[k] (NULL when
 * called) becomes a reference that octet drops. Returns OCT_ERR_STATE if there is no such item,
 * another status if it cannot be had, which ends the work with that status. An item may be asked
 * for again, and must then be the same. Called from threads of octet's, but never by two at a time.
 */
typedef oct_status (*oct_next_fn)(void *user, int64_t index, oct_tensor **tensors);

typedef struct oct_source_options {
    size_t struct_size; /**< set by oct_source_options_init() */
    oct_next_fn next;
    void *user;                /**< for `next`; must outlive the dataset */
    const char *const *inputs; /**< names of the network's inputs, in the order of tensors[] */
    int32_t n_inputs;
    int64_t size;     /**< items; -1 (default): not known. Then all are asked for once, to count */
    const char *name; /**< for messages; NULL (default): "the callback" */
} oct_source_options;

OCT_API void oct_source_options_init_sized(oct_source_options *o, size_t struct_size);

/** Sets every option to its default. */
static inline void oct_source_options_init(oct_source_options *o)
{
    oct_source_options_init_sized(o, sizeof(*o));
}

/**
 * A dataset of tensors that a function gives: to quantize and to analyze with. Options are copied.
 * The tensors may be made in the same context or in another one. Closed with oct_dataset_close(),
 * which drops the last item.
 */
OCT_API oct_status oct_dataset_from_source(oct_ctx *ctx, const oct_source_options *options,
                                           oct_dataset **out);
/**@}*/

/** \name The loader: decodes and preprocesses ahead on its own threads, with bounded memory */
/**@{*/
/** Decodes ahead on threads of its own. The dataset must outlive it. */
typedef struct oct_loader oct_loader;

/** One picture ready for the network: the loader's, until it is given back. */
typedef struct oct_loaded {
    int64_t index;    /**< in the dataset */
    const void *data; /**< the network's input, one picture */
    oct_mapping map;
    oct_status status; /**< not OCT_OK: the picture is broken, `error` says why */
    const char *error;
    int64_t decode_ns, preprocess_ns;
} oct_loaded;

typedef struct oct_loader_options {
    size_t struct_size;               /**< set by oct_loader_options_init() */
    const oct_preprocess *preprocess; /**< copied; NULL is an error, as the size is not known */
    int32_t dtype;     /**< oct_dtype of the network's input (default OCT_DTYPE_F32) */
    int32_t n_threads; /**< that decode (default 1) */
    int32_t depth;     /**< pictures kept ready; 0 (default): 4 for each thread */
} oct_loader_options;

OCT_API void oct_loader_options_init_sized(oct_loader_options *o, size_t struct_size);

/** Sets every option to its default. */
static inline void oct_loader_options_init(oct_loader_options *o)
{
    oct_loader_options_init_sized(o, sizeof(*o));
}

/** Starts the threads of a loader. Fails for a dataset of tensors, which needs none. */
OCT_API oct_status oct_loader_new(oct_ctx *ctx, const oct_dataset *d,
                                  const oct_loader_options *options, oct_loader **out);
OCT_API void oct_loader_free(oct_loader *l); /**< accepts NULL; stops and joins its threads */

/** The next picture in order; OCT_ERR_STATE after the last. Give it back with oct_loader_done(). */
OCT_API oct_status oct_loader_next(oct_loader *l, const oct_loaded **out);
OCT_API void oct_loader_done(oct_loader *l, const oct_loaded *item);
/**@}*/

#ifdef __cplusplus
}
#endif

#endif
