/* SPDX-License-Identifier: Apache-2.0 */
/* One float pass over the images: ranges of values, and means of their channels. */
#ifndef OCT_QUANT_OBSERVE_CALIBRATE_H
#define OCT_QUANT_OBSERVE_CALIBRATE_H

#include "feed/feed.h"
#include "quant/observe/observer.h"
#include "quant/qmap.h"

/* What is recorded of one value. */
typedef struct oct_watch {
    const oct_value *value;
    oct_observer *range; /* NULL: not asked for */
    double *sum;         /* of channel means, one for each image; NULL: not asked for */
    double *square;      /* of mean squares, likewise */
    int64_t channels;
} oct_watch;

typedef struct oct_calibration {
    oct_ctx *ctx;
    oct_watch *watch;
    int32_t n, cap;
    int32_t *of_value; /* by value id of the graph: index of its watch, or -1 */
    int64_t images;
    double seconds, hook_seconds; /* of the pass, and what watching took of it */
} oct_calibration;

oct_status oct_calibration_new(const oct_graph *g, oct_calibration **out);
void oct_calibration_free(oct_calibration *c); /* accepts NULL */

/* Asks for a range (options not NULL) or for the means of the value's channels. */
oct_status oct_calibration_watch(oct_calibration *c, const oct_value *v,
                                 const oct_observer_options *range, bool means);

/* Asks for means and variances of the value's channels. */
oct_status oct_calibration_watch_spread(oct_calibration *c, const oct_value *v);

/* Runs the network over all items of the feed. `bound` has the same ids as the calibration's
 * graph. NaN or infinity: an error that names value and image. */
oct_status oct_calibrate(oct_calibration *c, const oct_graph *bound, oct_feed *f);

/* NULL: not watched. */
const oct_watch *oct_calibration_of(const oct_calibration *c, const oct_value *v);

/* Mean of channel i over all images. */
static inline double oct_watch_mean(const oct_calibration *c, const oct_watch *w, int64_t i)
{
    return w->sum[i] / (double)(c->images > 0 ? c->images : 1);
}

/* Variance of channel i, of all pixels of all images. */
static inline double oct_watch_variance(const oct_calibration *c, const oct_watch *w, int64_t i)
{
    const double mean = oct_watch_mean(c, w, i);
    const double variance = w->square[i] / (double)(c->images > 0 ? c->images : 1) - mean * mean;

    return variance > 0 ? variance : 0;
}

#endif
