/* SPDX-License-Identifier: Apache-2.0 */
/* How far the values of a quantized network are from the float ones. */
#ifndef OCT_STAT_NOISE_H
#define OCT_STAT_NOISE_H

#include "exec/run.h"
#include "feed/feed.h"
#include "stat/distance.h"

enum { OCT_NOISE_SAMPLES = 16384 }; /* of a value; they are spread over all of it */

/* One value that both networks have. */
typedef struct oct_noise {
    const char *name;
    int64_t most;          /* places to compare in a picture, at most; 0: OCT_NOISE_SAMPLES */
    const int64_t *places; /* to compare, in the order of ONNX; NULL: spread over all of it */
    int64_t n_places;
    oct_error error;       /* the result */
    oct_distance distance; /* while measuring */
} oct_noise;

/* Number i of a value as ONNX counts them, wherever it lies. */
float oct_seen_number(const oct_seen *s, int64_t i);

/* Runs both networks (which have the same names) over the first `images` items of the feed and
 * compares the named values, at some of their places if they are large. */
oct_status oct_noise_measure(const oct_graph *exact, const oct_graph *quantized, oct_feed *f,
                             int64_t images, oct_noise *values, int32_t n);

#endif
