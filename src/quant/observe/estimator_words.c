/* SPDX-License-Identifier: Apache-2.0 */
/* NNCF's range estimators in words: "quantile:mean:0.001" is a statistic and an aggregator. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/observe/observer.h"

static const char *const statistics[] = {
    [OCT_STAT_MIN] = "min",         [OCT_STAT_MAX] = "max",
    [OCT_STAT_ABS_MAX] = "abs_max", [OCT_STAT_QUANTILE] = "quantile",
    [OCT_STAT_MEAN] = "mean",       [OCT_STAT_ABS_QUANTILE] = "abs_quantile",
};
static const char *const rules[] = {
    [OCT_GATHER_MIN] = "min",
    [OCT_GATHER_MAX] = "max",
    [OCT_GATHER_MEAN] = "mean",
    [OCT_GATHER_MEDIAN] = "median",
    [OCT_GATHER_MEAN_NO_OUTLIERS] = "mean_no_outliers",
    [OCT_GATHER_MEDIAN_NO_OUTLIERS] = "median_no_outliers",
};

static int index_of(const char *const *words, size_t n, const char *text, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(words[i]) == len && !strncmp(words[i], text, len)) return (int)i;
    return -1;
}

static bool read_number(const char **at, double *out)
{
    char *end = NULL;

    if (**at != ':') return **at == '\0';
    *out = strtod(*at + 1, &end);
    if (end == *at + 1 || !isfinite(*out)) return false;
    *at = end;
    return true;
}

oct_status oct_estimator_end_parse(oct_ctx *ctx, const char *text, oct_estimator_end *out)
{
    const char *at = text;
    size_t len = strcspn(at, ":");
    int k = index_of(statistics, OCT_COUNT(statistics), at, len);

    if (k < 0)
        return oct_fail(ctx, OCT_ERR_ARG,
                        "range '%.60s': the statistic is min, max, abs_max, quantile, "
                        "abs_quantile or mean",
                        text);
    out->stat = (oct_stat)k;
    at += len;
    if (*at) {
        len = strcspn(++at, ":");
        if ((k = index_of(rules, OCT_COUNT(rules), at, len)) < 0)
            return oct_fail(ctx, OCT_ERR_ARG,
                            "range '%.60s': pictures are put together by min, max, mean, median, "
                            "mean_no_outliers or median_no_outliers",
                            text);
        out->gather = (oct_gather)k;
        at += len;
    }
    if (!read_number(&at, &out->quantile_outlier_prob) || !read_number(&at, &out->clipping_value) ||
        *at)
        return oct_fail(ctx, OCT_ERR_ARG,
                        "range '%.60s': STATISTIC:AGGREGATOR:PROBABILITY:CLIP, as in "
                        "quantile:mean:0.001",
                        text);
    return OCT_OK;
}
