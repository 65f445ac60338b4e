/* SPDX-License-Identifier: Apache-2.0 */
/* Extremes of a value, exact zeros, and whether all elements are finite. */
#ifndef OCT_STAT_SCAN_H
#define OCT_STAT_SCAN_H

#include "stat/value_view.h"

typedef struct oct_scan {
    float low, high; /* of this view alone; +Inf and -Inf if it is empty */
    int64_t zeros;
} oct_scan;

/* Over all channels. False: there is a NaN or Inf, *out is not to be used. */
bool oct_scan_all(const oct_value_view *s, oct_scan *out);

/* Each channel: out[channels]. */
bool oct_scan_channels(const oct_value_view *s, oct_scan *out);

#endif
