/* SPDX-License-Identifier: Apache-2.0 */
/* Layerwise the plain way: a network for each layer, run as a whole beside the float one. */
#include "analyze/stages.h"

#include "base/machine.h"
#include "quant/noise.h"

static oct_status measure(const oct_pair *p, const oct_unit *u, oct_noise *values, oct_error *out)
{
    oct_graph *g = NULL;
    oct_status st;

    OCT_TRY(oct_pair_splice(p, u, &g));
    st = oct_noise_measure(p->exact, g, p->feed, p->images, values, p->n_outlets);
    oct_graph_free(g);
    if (st) return st;
    *out = values[0].error;
    for (int32_t i = 1; i < p->n_outlets; i++)
        if (values[i].error.noise > out->noise) *out = values[i].error;
    return OCT_OK;
}

oct_status oct_analyze_plain_loop(oct_analysis *a, const oct_pair *p)
{
    const int64_t start = oct_time_ns();
    oct_noise *values = oct_calloc(p->ctx, (size_t)p->n_outlets + 1, sizeof(*values));
    oct_status st = values ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t i = 0; i < p->n_units && !st; i++) {
        if (!p->units[i].is_integer) continue;
        for (int32_t k = 0; k < p->n_outlets; k++)
            oct_outlet_noise(&p->outlets[k], &values[k]);
        st = measure(p, &p->units[i], values, &a->layers[i].alone);
    }
    oct_free(p->ctx, values);
    a->layerwise_seconds = (double)(oct_time_ns() - start) * 1e-9;
    return st;
}
