/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches to train on: pictures of a labelled dataset, shuffled and augmented, with their labels,
 * made ahead on threads.
 *
 * Everything random depends on (seed, epoch, position in the epoch) only: the same batches for any
 * number of threads, and after oct_batches_seek().
 *
 * An epoch has every picture once, as the first picture of a sample; mosaic and mixup draw their
 * other pictures from the whole dataset. If the pictures do not fill the last batch, it is filled
 * up with pictures of a further permutation (or is left out, with drop_last).
 */
#ifndef OCT_AUGMENT_BATCHES_H
#define OCT_AUGMENT_BATCHES_H

#include <octet/data.h>

#include "augment/augment.h"

typedef struct oct_batches oct_batches;

typedef struct oct_batches_options {
    int32_t batch;                    /* pictures of a batch */
    const oct_preprocess *preprocess; /* copied: size, fit, colours, scale, mean, std, layout */
    const oct_augment *augment;       /* copied; NULL: none */
    uint64_t seed;
    bool shuffle;
    bool drop_last;    /* leave an incomplete last batch out (if there is a complete one) */
    bool classes;      /* labels are classes of pictures; else boxes */
    bool no_labels;    /* pictures alone: all rows of labels are unused ones */
    int64_t n_epochs;  /* of the training, for the setting `close`; 0: not known, it never closes */
    int32_t max_boxes; /* rows of labels for each picture; 0: chosen, see oct_batches_max_boxes() */
    /* Network's class of each category of the dataset, -1: it has none. NULL: the same numbers.
     * Copied. */
    const int32_t *class_map;
    int32_t n_class_map; /* entries of class_map; 0: oct_dataset_n_categories() */
    int32_t n_classes;   /* of the network: a larger class is an error; 0: not checked */
    bool skip_unknown;   /* boxes and pictures whose class is -1 are left out; else an error */
    int32_t n_threads;   /* that decode and augment; 0: 1 */
    int32_t depth;       /* batches made ahead; 0: 2 */
    int64_t cache_bytes; /* decoded pictures to keep at most; 0: 256 MiB, -1: none */
} oct_batches_options;

/* Facts about one batch. */
typedef struct oct_batch_info {
    int64_t epoch, batch; /* which one it is */
    int64_t n_boxes;      /* used rows of labels, of all its pictures */
    int64_t n_dropped;    /* boxes for which there was no row */
} oct_batch_info;

/*
 * Checks all labels and starts the threads. The dataset must outlive it. Fails for datasets of
 * tensors, without labels of the wanted kind, with labels that are not numbers, with unknown
 * classes. Boxes without area and crowds are left out.
 */
oct_status oct_batches_new(oct_ctx *ctx, const oct_dataset *d, const oct_batches_options *options,
                           oct_batches **out);
void oct_batches_free(oct_batches *b); /* accepts NULL; stops and joins its threads */

int64_t oct_batches_count(const oct_batches *b); /* of an epoch; at least 1 */

/*
 * Rows M of the labels [B, M, 5]. Unless the caller chose it: the most boxes of a picture, times
 * what mosaic and mixup can bring together, but at most 300. The smallest boxes have no row then,
 * and are counted.
 */
int32_t oct_batches_max_boxes(const oct_batches *b);

size_t oct_batches_image_size(const oct_batches *b); /* floats of the images of a batch */
int64_t oct_batches_bytes(const oct_batches *b);     /* memory it will hold at most */
const oct_preprocess *oct_batches_preprocess(const oct_batches *b);

/* What was left out of the labels, in sentences; NULL beyond the last. Valid until the next call.
 */
const char *oct_batches_note(oct_batches *b, int32_t i);

/* The next batch will be this one of this epoch (both from 0), as if it was reached one by one. */
oct_status oct_batches_seek(oct_batches *b, int64_t epoch, int64_t batch);

/*
 * The next batch, into the caller's memory; after the last batch of an epoch comes the first one of
 * the next. images: f32 [B, C, H, W], or [B, H, W, C] if the preprocessing says so. labels: f32 [B,
 * M, 5] of class, x1, y1, x2, y2 in pixels of the input, class -1 in unused rows, which come last;
 * or int64 [B] of classes. `info` may be NULL. A broken picture is an error; of a dataset opened
 * with skip_bad, another picture takes its place and it is noted in the dataset.
 */
oct_status oct_batches_next(oct_batches *b, float *images, void *labels, oct_batch_info *info);

/*
 * Draws a batch that oct_batches_next() gave, with its boxes, as one JPEG or PNG file: what the
 * network sees. names[0..n_names) are those of the network's classes; NULL: COCO's.
 */
oct_status oct_batches_draw(const oct_batches *b, const float *images, const void *labels,
                            const char *const *names, int32_t n_names, const char *path);

#endif
