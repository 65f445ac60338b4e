/* SPDX-License-Identifier: Apache-2.0 */
/* How far the values of a quantized network are from the float ones. */
#ifndef OCT_QUANT_NOISE_H
#define OCT_QUANT_NOISE_H

#include "quant/feed.h"

/* Error and signal of one value, summed over pictures. */
typedef struct oct_noise {
    const char *name; /* of the value, in both networks */
    double error, signal;
} oct_noise;

/* error power / signal power; < 0: nothing was seen */
static inline double oct_noise_ratio(const oct_noise *n)
{
    return n->signal > 0 ? n->error / n->signal : n->error > 0 ? 1.0 : -1.0;
}

/* Runs both networks (which have the same names) over the first `images` items of the feed and
 * compares the named values, at some of their places if they are large. */
oct_status oct_noise_measure(const oct_graph *exact, const oct_graph *quantized, oct_feed *f,
                             int64_t images, oct_noise *values, int32_t n);

#endif
