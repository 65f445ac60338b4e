/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the box metrics.
 *
 * A picture is matched when it is seen; one small record for each detection is kept: its score, and
 * whether it is right or wrong at each overlap threshold and area range. Nothing else is
 * accumulated before the end, so parts can be merged in any order: finishing walks over the
 * pictures by their ids.
 */
#ifndef OCT_EVAL_BOX_EVAL_H
#define OCT_EVAL_BOX_EVAL_H

#include <octet/eval.h>

#include "base/mem.h"
#include "eval/stable_sort.h"

enum {
    OCT_BOX_AREAS = 4,       /* all, small, medium, large */
    OCT_BOX_THRESHOLDS = 10, /* IoU 0.50, 0.55 .. 0.95 */
    OCT_BOX_RECALLS = 101,   /* 0, 0.01 .. 1 */
    OCT_BOX_MAX_FOUND = 100, /* of one category in one picture */
};

/* One detection as the metric sees it. */
typedef struct oct_box_found {
    double x, y, width, height, score;
    int32_t category;
    uint32_t image; /* where several pictures are mixed; else unused */
} oct_box_found;

typedef enum oct_voc_hit { OCT_VOC_IGNORED, OCT_VOC_RIGHT, OCT_VOC_WRONG } oct_voc_hit;

/* Result of matching a detection. Bit t of a mask: at threshold t. In neither mask: it is
 * ignored. */
typedef struct oct_box_hit {
    double score;
    uint16_t right[OCT_BOX_AREAS], wrong[OCT_BOX_AREAS];
    int32_t category;
    uint8_t rank; /* in its picture and category, best is 0 */
    uint8_t voc;  /* oct_voc_hit */
} oct_box_hit;

/* Where the records of a picture are. */
typedef struct oct_box_image {
    size_t first;
    uint32_t n;
    bool seen, left_out;
} oct_box_image;

/* An id from a file and its index in the dataset; sorted by id. */
typedef struct oct_box_id {
    int64_t id, index;
} oct_box_id;

/* State of one label while its picture is matched. */
typedef struct oct_box_truth {
    uint16_t taken[OCT_BOX_AREAS]; /* bit t: it is matched at threshold t */
    uint8_t ignored;               /* bit a: does not count in area range a */
    bool voc_taken;
} oct_box_truth;

struct oct_box_eval {
    oct_ctx *ctx;
    const oct_dataset *truth;
    int64_t n_images;
    int32_t n_categories;
    oct_box_image *images;
    oct_box_id *image_ids, *category_ids; /* n_images, n_categories */
    oct_box_hit *hits;
    size_t n_hits, hits_cap;

    /* Scratch memory of matching one picture. */
    oct_ranked *rank, *labels, *work;
    size_t rank_cap, labels_cap, work_cap;
    oct_box_truth *states;
    size_t states_cap;
    oct_box_found *found;
    size_t found_cap;

    /* Results of finishing; NULL before. */
    double *ap, *ap50; /* of each category */
    double *curves;    /* OCT_BOX_RECALLS of each category and of their mean, at IoU 0.5 .. */
    double *means;     /* .. and as the mean over the thresholds */
    int64_t *n_labels; /* of each category */
};

/* As numpy's linspace makes them: the same doubles. */
void oct_box_thresholds(double out[OCT_BOX_THRESHOLDS]);
void oct_box_recalls(double out[OCT_BOX_RECALLS]);

/* Area range a is [lo, hi]; both ends belong to it. */
bool oct_box_in_area(int a, double area);

/* Index of an id, or -1. */
int64_t oct_box_find_id(const oct_box_id *ids, int64_t n, int64_t id);

/* The text of a results file; failures do not name it. */
oct_status oct_box_eval_see_results(oct_box_eval *e, const void *data, size_t size);

/* Matches the detections of picture i and adds their records. Nothing is changed on failure. */
oct_status oct_box_match(oct_box_eval *e, int64_t i, const oct_box_found *found, size_t n);

/* An accumulator whose pictures can be counted several times, or not at all. */
typedef struct oct_box_weighing oct_box_weighing;

oct_status oct_box_weighing_new(const oct_box_eval *e, oct_box_weighing **out);
void oct_box_weighing_free(oct_box_weighing *w); /* accepts NULL */

/* AP if picture i of the dataset were there weights[i] times; -1: no labels. */
double oct_box_weighing_ap(oct_box_weighing *w, const uint32_t *weights);

#endif
