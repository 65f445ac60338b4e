/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded pictures for several threads, with a cache that holds as many as memory allows. */
#ifndef OCT_AUGMENT_PICTURES_H
#define OCT_AUGMENT_PICTURES_H

#include "data/dataset.h"

typedef struct oct_pictures oct_pictures;

/* `most`: bytes of pictures to keep; 0: none. The dataset must outlive it. */
oct_status oct_pictures_new(oct_ctx *ctx, const oct_dataset *d, int64_t most, oct_pictures **out);

/* Before the contexts of the threads that read from it. Accepts NULL. */
void oct_pictures_free(oct_pictures *p);

enum { OCT_PICTURES_HELD = 16 }; /* that one thread can hold at a time */

/* Of one thread. */
typedef struct oct_picture_user {
    oct_pictures *pictures;
    oct_ctx *ctx;
    oct_picture_reader reader;
    oct_image *held[OCT_PICTURES_HELD]; /* not in the cache */
    int n_held;
} oct_picture_user;

/*
 * Picture i, until oct_picture_user_done(). A broken one is an error, or with skip_bad noted once
 * in the dataset: *out is NULL then.
 */
oct_status oct_picture_get(oct_picture_user *u, int64_t i, const oct_image **out);
void oct_picture_user_done(oct_picture_user *u);
void oct_picture_user_close(oct_picture_user *u);

#endif
