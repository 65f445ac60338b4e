/* SPDX-License-Identifier: Apache-2.0 */
/* The result of an analysis: making, reading, freeing it. */
#include "analyze/analysis.h"

#include <string.h>

oct_status oct_analysis_new(oct_ctx *ctx, oct_analysis **out)
{
    oct_analysis *a = oct_calloc(ctx, 1, sizeof(*a));

    if (!a) return OCT_ERR_MEMORY;
    a->ctx = ctx;
    if (!(a->arena = oct_arena_new(ctx))) {
        oct_free(ctx, a);
        return OCT_ERR_MEMORY;
    }
    *out = a;
    return OCT_OK;
}

void oct_analysis_free(oct_analysis *a)
{
    if (!a) return;
    oct_arena_free(a->arena);
    oct_free(a->ctx, a);
}

/* Copies as much of a row as the caller's header knows. */
#define COPY_ROW(to, rows, n, i)                                                                   \
    do {                                                                                           \
        const size_t known = (to)->struct_size;                                                    \
                                                                                                   \
        if ((i) < 0 || (i) >= (n)) return 0;                                                       \
        memcpy((to), &(rows)[i], OCT_MIN(known, sizeof((rows)[0])));                               \
        (to)->struct_size = known;                                                                 \
        return 1;                                                                                  \
    } while (0)

int32_t oct_analysis_layer(const oct_analysis *a, int32_t i, oct_analyzed_layer *layer)
{
    COPY_ROW(layer, a->layers, a->n_layers, i);
}

int32_t oct_analysis_point(const oct_analysis *a, int32_t i, oct_analyzed_point *point)
{
    COPY_ROW(point, a->points, a->n_points, i);
}

int32_t oct_analysis_advice(const oct_analysis *a, int32_t i, oct_advice *advice)
{
    COPY_ROW(advice, a->advice, a->n_advice, i);
}

int32_t oct_analysis_output(const oct_analysis *a, int32_t i, const char **name, oct_error *error)
{
    if (i < 0 || i >= a->n_outputs) return 0;
    *name = a->outputs[i].name;
    *error = a->outputs[i].error;
    return 1;
}

int64_t oct_analysis_images(const oct_analysis *a)
{
    return a->images;
}

double oct_analysis_layerwise_seconds(const oct_analysis *a)
{
    return a->layerwise_seconds;
}
