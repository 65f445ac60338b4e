/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observers: what is recorded of a value over all images, and the range that follows from it.
 *
 * One pass, bounded memory, mergeable: seeing images on several threads and merging gives the
 * same range as seeing them one after the other.
 */
#ifndef OCT_QUANT_OBSERVE_OBSERVER_H
#define OCT_QUANT_OBSERVE_OBSERVER_H

#include "quant/spec.h"
#include "stat/scan.h"

/* NNCF's range estimator: what is taken of each sample, and how samples are put together. */
typedef enum oct_stat {
    OCT_STAT_MIN,
    OCT_STAT_MAX,
    OCT_STAT_ABS_MAX,
    OCT_STAT_QUANTILE,
    OCT_STAT_ABS_QUANTILE,
    OCT_STAT_MEAN
} oct_stat;
typedef enum oct_gather {
    OCT_GATHER_MIN,
    OCT_GATHER_MAX,
    OCT_GATHER_MEAN,
    OCT_GATHER_MEDIAN,
    OCT_GATHER_MEAN_NO_OUTLIERS,
    OCT_GATHER_MEDIAN_NO_OUTLIERS
} oct_gather;

/* One end of a range. */
typedef struct oct_estimator_end {
    oct_stat stat;
    oct_gather gather;
    double quantile_outlier_prob; /* 1e-4 */
    double clipping_value;        /* 0: none */
} oct_estimator_end;

typedef struct oct_observer_options {
    const char *kind; /* the name of a row of observers.def */
    bool per_channel;
    double percentile; /* percentile: 99.99 */
    int32_t bins;      /* histogram kinds: at least this many over the range seen (2048) */
    oct_estimator_end low, high; /* estimator */
    /* mse: the function that is the only consumer of the values (the activation after a
     * pre-activation). Errors are then those of its result. NULL: none. */
    float (*follow)(const void *user, float x);
    const void *follow_user;
} oct_observer_options;

typedef struct oct_observer oct_observer;
struct oct_density;

/* One kind. Each is one file. */
typedef struct oct_observer_row {
    const char *name, *help;
    size_t size;       /* of its state */
    bool has_channels; /* can be per channel */
    oct_status (*init)(oct_observer *o);
    void (*see)(oct_observer *o,
                const oct_value_view *s); /* must not fail: memory is there since init */
    oct_status (*merge)(oct_observer *o, const oct_observer *other);
    /* n ranges: 1, or one for each channel. `spec` is what the range is for. */
    oct_status (*solve)(const oct_observer *o, const oct_qspec *spec, float *low, float *high);
    /* kinds that keep histograms: one range, of what is distributed so */
    oct_status (*solve_density)(const oct_observer *o, const oct_qspec *spec,
                                const struct oct_density *d, float *low, float *high);
    void (*fini)(oct_observer *o);
} oct_observer_row;

struct oct_observer {
    const oct_observer_row *row;
    oct_ctx *ctx;
    oct_observer_options options;
    int64_t channels; /* what the value has */
    int64_t n_samples;
    bool has_bad;              /* NaN or Inf was seen */
    float seen_low, seen_high; /* of all samples; +Inf and -Inf before the first */
    void *state;
};

#define OCT_OBSERVER(sym) extern const oct_observer_row oct_observer_##sym;
#include "quant/observe/observers.def"
#undef OCT_OBSERVER

const oct_observer_row *oct_observer_at(int i); /* NULL beyond the end */
const oct_observer_row *oct_observer_find(const char *kind);

void oct_observer_options_init(oct_observer_options *o);
oct_status oct_observer_new(oct_ctx *ctx, const oct_observer_options *o, int64_t channels,
                            oct_observer **out); /* an unknown kind: error with the nearest */
void oct_observer_free(oct_observer *o);         /* accepts NULL */
void oct_observer_see(oct_observer *o, const oct_value_view *s);
/* Scans what the observer keeps ranges of: the whole value, or each channel. A NaN or Inf is noted
 * in the observer: false. */
bool oct_observer_scan(oct_observer *o, const oct_value_view *s, oct_scan *out);
oct_status oct_observer_merge(oct_observer *o, const oct_observer *other);
int64_t oct_observer_n_ranges(const oct_observer *o);
oct_status oct_observer_solve(const oct_observer *o, const oct_qspec *spec, float *low,
                              float *high);

/* "quantile:mean:0.001:6": statistic, how samples are put together, quantile_outlier_prob,
 * clipping_value; what is not there stays as it is (estimator_words.c). */
oct_status oct_estimator_end_parse(oct_ctx *ctx, const char *text, oct_estimator_end *out);

/* The range of constants, for weights: "max", "mse", "percentile" over n values with a stride. */
oct_status oct_weight_range(oct_ctx *ctx, const char *kind, const oct_qspec *spec, const float *w,
                            int64_t n, int64_t step, float *low, float *high);

#endif
