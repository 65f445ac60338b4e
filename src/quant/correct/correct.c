/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the corrections of the float network that were asked for, in order. */
#include "quant/correct/correct.h"

#include <string.h>

#include "quant/correct/channel_factors.h"

#define TRANSFORMER_ALPHA 0.95

/* 0: not smoothed. A setting below 0 switches it off for transformers, too. */
static oct_status find_alpha(oct_ctx *ctx, const oct_quantize_options *o, double *alpha)
{
    const bool transformer = o->model_type && strcmp(o->model_type, "transformer") == 0;

    *alpha = o->smooth_quant == 0 && transformer ? TRANSFORMER_ALPHA : o->smooth_quant;
    if (o->model_type && !transformer)
        return oct_fail(ctx, OCT_ERR_ARG, "there is no model type '%s'; there is: transformer",
                        o->model_type);
    if (!(*alpha <= 1)) return oct_fail(ctx, OCT_ERR_ARG, "smooth_quant %g: from 0 to 1", *alpha);
    *alpha = OCT_MAX(*alpha, 0.0);
    return OCT_OK;
}

/* Each one sees the network as the previous one left it. */
static oct_status measured(oct_graph *g, const oct_dataset *images, const oct_quantize_options *o,
                           double alpha, int32_t *smoothed, int32_t *aligned)
{
    const oct_feed_options feeding = {.preprocess = o->preprocess, .family = o->family};
    oct_graph *bound = NULL;
    oct_feed *f = NULL;
    oct_status st;

    OCT_TRY(oct_feed_new(g, images, &feeding, &bound, &f));
    st = smoothed ? oct_smooth(g, bound, f, alpha, smoothed) : oct_align(g, bound, f, aligned);
    oct_feed_free(f);
    oct_graph_free(bound);
    return st;
}

oct_status oct_correct_graph(oct_graph *g, const oct_dataset *images, const oct_quantize_options *o,
                             oct_corrections *done)
{
    double alpha;

    *done = (oct_corrections){-1, -1, -1, -1, -1, 0};
    OCT_TRY(find_alpha(g->ctx, o, &alpha));
    OCT_TRY(oct_graph_set_metadata(g, OCT_MOVED_SMOOTH, NULL)); /* from an earlier quantization */
    OCT_TRY(oct_graph_set_metadata(g, OCT_MOVED_ALIGN, NULL));
    OCT_TRY(oct_graph_set_metadata(g, OCT_MOVED_LOGITS, NULL));
    if (o->hard_activations) OCT_TRY(oct_harden(g, o->tail, &done->hardened));
    if (o->equalize) OCT_TRY(oct_equalize(g, &done->equalized));
    if (alpha > 0) OCT_TRY(measured(g, images, o, alpha, &done->smoothed, NULL));
    if (o->align_channels) OCT_TRY(measured(g, images, o, alpha, NULL, &done->aligned));
    return OCT_OK;
}
