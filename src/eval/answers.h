/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a network answers to each item of a dataset: its detections or best classes, and numbers of
 * its outputs. Kept for the float network; another network's are compared with them.
 *
 * Boxes are in pixels of the network's input: overlaps are the same there, whatever the pictures'
 * sizes.
 */
#ifndef OCT_EVAL_ANSWERS_H
#define OCT_EVAL_ANSWERS_H

#include <octet/eval.h>

#include "base/mem.h"
#include "feed/feed.h"
#include "stat/distance.h"

enum { OCT_ANSWER_TOP = 5 };

typedef struct oct_answer {
    oct_detection *found; /* best first */
    int32_t n_found;
    int32_t top[OCT_ANSWER_TOP], n_top; /* classes, best first */
    int64_t *lengths;                   /* of each output */
    float *samples;                     /* oct_answers.cap of each output */
} oct_answer;

typedef struct oct_answers {
    oct_ctx *ctx;
    oct_compared kind;
    oct_answer *items;
    int64_t n;
    int32_t n_classes; /* that the network tells apart; 0: no family is known */
    int32_t n_outputs;
    const char **names; /* of outputs */
    int64_t cap;        /* samples of an output and item; 0: none are kept */
} oct_answers;

/* How a network is asked. */
typedef struct oct_asking {
    oct_plan_options plan;
    oct_preprocess preprocess;
    bool has_preprocess;
    const char *family; /* NULL: auto; "none" */
    oct_nms_options nms;
    int64_t limit;
    const char *what; /* for progress */

    /* Of the network compared with, whose samples those of this one are compared with. NULL: this
     * one's samples are kept. */
    const oct_answers *exact;
    oct_distance *distances; /* exact->n_outputs */
} oct_asking;

/* Runs the network over the dataset. */
oct_status oct_answers_new(const oct_graph *g, const oct_dataset *d, const oct_asking *how,
                           oct_answers **out);
void oct_answers_free(oct_answers *a); /* accepts NULL */

/* The best classes, best first; NaN comes last. Returns how many. */
int32_t oct_answer_best(const float *scores, int32_t n, int32_t *top);

/* Figures of two networks' answers (compare.c). Fields of noise are not touched. */
oct_status oct_answers_compare(const oct_answers *exact, const oct_answers *other, double sure,
                               double iou, oct_compare_result *r);

#endif
