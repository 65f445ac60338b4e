/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an analysis: filled by its stages, read by the public functions. */
#ifndef OCT_ANALYZE_ANALYSIS_H
#define OCT_ANALYZE_ANALYSIS_H

#include <octet/analyze.h>

#include "base/mem.h"

typedef struct oct_analyzed_output {
    const char *name;
    oct_error error;
} oct_analyzed_output;

struct oct_analysis {
    oct_ctx *ctx;
    oct_arena *arena; /* of all arrays and strings here */
    oct_analyzed_layer *layers;
    int32_t n_layers;
    oct_analyzed_point *points;
    int32_t n_points;
    oct_advice *advice;
    int32_t n_advice;
    oct_analyzed_output *outputs;
    int32_t n_outputs;
    int64_t images;
    double layerwise_seconds;
};

/* Empty; freed with oct_analysis_free(). */
oct_status oct_analysis_new(oct_ctx *ctx, oct_analysis **out);

#endif
