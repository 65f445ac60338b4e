/* SPDX-License-Identifier: Apache-2.0 */
/* Measures of how good a network is, for promises. */
#include "control/control.h"

oct_status oct_measure_accuracy(void *user, const oct_graph *g, double *score)
{
    OCT_ENTER(g->ctx);
    oct_accuracy_measure *m = user;
    oct_eval_result r = {.struct_size = sizeof(r)};
    oct_box_eval *boxes = NULL;

    OCT_TRY(oct_eval_run(g, m->truth, m->options, &r, &boxes));
    m->is_classifier = boxes == NULL;
    m->images = r.images;
    *score = boxes ? r.box.ap : r.top1;
    oct_box_eval_free(boxes);
    if (*score >= 0) return OCT_OK;
    return oct_fail(g->ctx, OCT_ERR_ARG, "there is nothing to score: no labels for these pictures");
}

oct_status oct_measure_repeat(void *user, const oct_graph *g, double *score)
{
    OCT_ENTER(g->ctx);
    oct_compare_result r = {.struct_size = sizeof(r)};

    OCT_TRY(oct_comparison_run(user, g, &r));
    *score = r.repeat;
    if (*score >= 0) return OCT_OK;
    return oct_fail(g->ctx, OCT_ERR_ARG,
                    r.kind == OCT_COMPARED_OUTPUTS
                        ? "no family reads the outputs of this network, so there is nothing to "
                          "repeat; promise noise at most so large instead"
                        : "the float network is sure of nothing in these pictures, so there is "
                          "nothing to repeat");
}

oct_status oct_measure_noise(void *user, const oct_graph *g, double *score)
{
    OCT_ENTER(g->ctx);
    oct_compare_result r = {.struct_size = sizeof(r)};

    OCT_TRY(oct_comparison_run(user, g, &r));
    *score = r.noise;
    if (*score >= 0) return OCT_OK;
    return oct_fail(g->ctx, OCT_ERR_ARG,
                    "noise cannot be measured: no output has the same length in both networks");
}
