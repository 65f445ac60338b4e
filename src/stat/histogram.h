/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram whose bins are 2^k wide and start at multiples of 2^k. k is the smallest for which
 * all that was seen fits into the slots, so it depends on the smallest and largest number alone:
 * the order in which numbers come, and merging, change nothing. (Except for numbers so near to 0
 * that x / 2^k is no normal float: they may count as 0.)
 *
 * Bin i, from i * 2^k to (i + 1) * 2^k, is in slot i - base; the smallest number is in slot 0.
 */
#ifndef OCT_STAT_HISTOGRAM_H
#define OCT_STAT_HISTOGRAM_H

#include "stat/scan.h"

typedef struct oct_histogram {
    int32_t n_slots; /* a power of two: at least half of them are used, unless numbers are equal */
    int32_t k;
    int64_t base;
    float low, high; /* seen; low > high: nothing yet */
    uint64_t zeros;  /* exactly 0: also counted in bin 0 */
    uint64_t *count; /* n_slots; borrowed */
} oct_histogram;

/* `bins` are asked for: 16 to 65536. */
int32_t oct_histogram_slots(int32_t bins);

/* count: n_slots zeros that live as long as the histogram. */
void oct_histogram_init(oct_histogram *h, int32_t n_slots, uint64_t *count);
void oct_histogram_reset(oct_histogram *h);

/* All elements of a view; scan is what oct_scan_all() found. */
void oct_histogram_see(oct_histogram *h, const oct_value_view *s, const oct_scan *scan);

/* One histogram for each channel; scan[channels] is what oct_scan_channels() found. If the view
 * has some of the pixels only, each counts `by` times, and the extremes that the scan found are
 * counted too. */
void oct_histograms_see(oct_histogram *h, const oct_value_view *s, const oct_scan *scan,
                        int64_t by);

/* Both have the same number of slots. */
void oct_histogram_merge(oct_histogram *h, const oct_histogram *other);

static inline bool oct_histogram_is_empty(const oct_histogram *h)
{
    return h->low > h->high;
}

/* Slots from the smallest to the largest number. */
int64_t oct_histogram_used(const oct_histogram *h);

#endif
