/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of oct_batches: a ring of batches that threads fill, sample by sample. */
#ifndef OCT_AUGMENT_RING_H
#define OCT_AUGMENT_RING_H

#include <pthread.h>

#include "augment/sample.h"
#include "augment/to_input.h"

enum { OCT_BATCH_ERROR_SIZE = 512 };

/* A batch being made. */
typedef struct oct_ring_slot {
    uint8_t *rgb;     /* [B, height, width, 3] */
    float *labels;    /* [B, M, 5], or NULL .. */
    int64_t *classes; /* .. and then [B] */
    int32_t n_done;   /* samples */
    int64_t n_boxes, n_dropped;
    oct_status status; /* of the first sample that failed .. */
    int32_t failed_at; /* .. which was this one */
    char error[OCT_BATCH_ERROR_SIZE];
} oct_ring_slot;

typedef struct oct_ring_worker {
    oct_batches *b;
    oct_ctx *ctx; /* its own */
    oct_scratch scratch;
    pthread_t thread;
    bool started;
} oct_ring_worker;

struct oct_batches {
    oct_ctx *ctx;
    const oct_dataset *d;
    oct_preprocess p;
    oct_to_input to_input;
    oct_train_labels labels;
    oct_sampler sampler;
    oct_pictures *pictures;
    int64_t cache_bytes;
    uint64_t seed;
    bool shuffle;
    int32_t batch, depth;
    int64_t count, n_epochs;
    int64_t n_dropped; /* boxes without a row, in all batches given */
    char note[160];

    oct_ring_worker *workers;
    int32_t n_workers;
    oct_ring_slot *slots;

    bool has_lock;
    pthread_mutex_t lock; /* of all below, and of what the slots count */
    pthread_cond_t changed_work, changed_done;
    int64_t next_sample; /* to be made, counted from the first of epoch 0 */
    int64_t next_batch;  /* to be given, counted from the first of epoch 0 */
    int32_t n_working;
    bool is_paused, stop;
    int64_t *order; /* permutation number `order_of` of the usable pictures */
    uint64_t order_of;
    bool has_order;
};

oct_status oct_ring_start(oct_batches *b);
void oct_ring_stop(oct_batches *b); /* joins the threads, if they were started */

/* Waits for batch next_batch: the slot is the caller's until oct_ring_done(). */
oct_ring_slot *oct_ring_wait(oct_batches *b);
void oct_ring_done(oct_batches *b, oct_ring_slot *slot);

/* Throws away what was made ahead and goes on there. */
void oct_ring_seek(oct_batches *b, int64_t batch);

#endif
