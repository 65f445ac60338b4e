/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of an evaluation: several runs of one plan in parallel, each on its own thread, fed
 * by one loader; results are taken in the order of the dataset.
 *   loader ──▶ worker 0 ─┐
 *          ──▶ worker 1 ─┼──▶ ring of finished parts ──▶ scores, results file
 *          ──▶ ...      ─┘
 *
 * Runs with few threads each need no barriers between them, so decoding pictures and scoring fill
 * the gaps instead of stalling a whole team of threads.
 */
#ifndef OCT_EVAL_WORKERS_H
#define OCT_EVAL_WORKERS_H

#include <pthread.h>

#include <octet/eval.h>

#include "base/threads.h"
#include "eval/results.h"
#include "eval/topk.h"

/* The result of one picture. */
typedef struct oct_eval_item {
    int64_t index; /* in the dataset */
    oct_mapping map;
    int32_t n_found;
    oct_topk topk;        /* classifiers */
    oct_detection *found; /* detectors: max_detections */
} oct_eval_item;

/* Pictures of one batch. */
typedef struct oct_eval_part {
    oct_eval_item *items; /* `batch` of them */
    int32_t n;
    bool is_ready;
} oct_eval_part;

/* Nanoseconds, summed over threads. */
typedef struct oct_eval_times {
    int64_t decode, preprocess, network, post, score;
} oct_eval_times;

typedef struct oct_eval_job {
    oct_ctx *ctx;
    const oct_dataset *d;
    const oct_plan *plan;
    const oct_detector *detector;
    oct_nms_options nms;
    int32_t batch, n_workers;
    const char *input;
    size_t item_size;           /* bytes of one picture in the network's input */
    const int32_t *to_category; /* by the network's class; -1: none */
    int32_t n_to_category;
    oct_box_eval *boxes;  /* NULL: a classifier */
    oct_results *results; /* NULL: none asked for */
    oct_topk topk;

    pthread_mutex_t feed; /* guards what follows */
    oct_loader *loader;
    int64_t n_parts_taken;
    bool is_fed; /* the loader has no more */

    pthread_mutex_t lock; /* guards all that follows, and scores and results */
    pthread_cond_t moved; /* next_part advanced, or the work stops */
    oct_eval_part *ring;
    int32_t n_ring;
    int64_t next_part; /* the first one not scored */
    int64_t n_done;    /* pictures that were scored */
    int64_t n_seen;    /* of the dataset, with those left out */
    oct_eval_times times;
    bool is_stopped; /* a worker failed */
    char what[64];   /* for the progress callback */
    int64_t next_metric;
} oct_eval_job;

/* Runs all of the dataset. The fields above the mutexes, `loader`, and the ring's size are set. */
oct_status oct_eval_work(oct_eval_job *j);

#endif
