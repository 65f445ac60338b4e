/* SPDX-License-Identifier: Apache-2.0 */
/* An analysis from end to end: both networks side by side, then one stage after the other. */
#include <string.h>

#include <octet/detect.h>

#include "analyze/analyze_parts.h"

#define DEFAULT_IMAGES 16

void oct_analyze_options_init_sized(oct_analyze_options *o, size_t struct_size)
{
    const oct_analyze_options all = {.struct_size = struct_size,
                                     .images = DEFAULT_IMAGES,
                                     .layerwise = 1,
                                     .graphwise = 1,
                                     .statistics = 1};

    memset(o, 0, struct_size);
    memcpy(o, &all, OCT_MIN(struct_size, sizeof(all)));
}

static oct_status run_stages(oct_analysis *a, const oct_pair *p, const oct_analyze_options *o)
{
    a->images = p->images;
    OCT_TRY(oct_analyze_layers(a, p));
    if (o->statistics) OCT_TRY(oct_analyze_statistics(a, p));
    if (o->graphwise) OCT_TRY(oct_analyze_graphwise(a, p));
    if (o->layerwise)
        OCT_TRY(o->plain_loop ? oct_analyze_plain_loop(a, p) : oct_analyze_layerwise(a, p));
    return oct_analyze_advice(a, p);
}

oct_status oct_analyze(const oct_graph *exact, const oct_graph *quantized,
                       const oct_dataset *images, const oct_analyze_options *options,
                       oct_analysis **out)
{
    OCT_ENTER(exact->ctx);
    oct_analyze_options o;
    oct_analysis *a = NULL;
    oct_graph *opened = NULL;
    oct_pair *p = NULL;
    oct_status st;

    oct_analyze_options_init(&o);
    if (options) memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    OCT_TRY(oct_graph_float_io(quantized, &opened)); /* both get the same inputs */
    st = oct_pair_new(exact, opened ? opened : quantized, images, &o, &p);
    if (!st) st = oct_analysis_new(p->ctx, &a);
    if (!st) st = run_stages(a, p, &o);
    oct_pair_free(p);
    oct_graph_free(opened);
    if (st) {
        oct_analysis_free(a);
        return st;
    }
    *out = a;
    return OCT_OK;
}
