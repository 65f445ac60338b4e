/* SPDX-License-Identifier: Apache-2.0 */
/* Layerwise without sharing work: a network for each layer, run as a whole beside the float one. */
#include "analyze/analyze_parts.h"

#include "base/machine.h"
#include "stat/noise.h"

/*
 * By value id of the exact network: operands and results of layers. All of them are kept in both
 * networks, so that both plans fuse the same: float rounding would differ otherwise.
 */
static void mark_kept(const oct_pair *p, uint8_t *is_kept)
{
    for (int32_t i = 0; i < p->n_layers; i++) {
        const oct_pair_layer *u = &p->layers[i];

        for (int32_t k = 0; u->is_integer && k < u->last->n_out; k++)
            if (u->last->out[k]) is_kept[u->last->out[k]->id] = 1;
        for (int32_t k = 0; u->is_integer && k < u->n_subgraph; k++)
            for (int32_t j = 0; j < u->subgraph[k]->n_in; j++) {
                const oct_value *v = u->subgraph[k]->in[j];

                if (v && p->exact_of[v->id]) is_kept[p->exact_of[v->id]->id] = 1;
            }
    }
}

/* The output slices, and the values to keep, of which one element is enough. */
static int32_t list_values(const oct_pair *p, const uint8_t *is_kept, oct_noise *values)
{
    int32_t n = 0;

    for (; n < p->n_slices; n++)
        oct_output_slice_noise(&p->slices[n], &values[n]);
    for (int32_t i = 0; i < p->exact->n_value_ids; i++)
        if (is_kept[i]) values[n++] = (oct_noise){.name = p->exact->values[i]->name, .most = 1};
    return n;
}

static oct_status measure(const oct_pair *p, const oct_pair_layer *u, const uint8_t *is_kept,
                          oct_noise *values, oct_error *out)
{
    const int32_t n = list_values(p, is_kept, values);
    oct_graph *g = NULL;
    oct_status st;

    OCT_TRY(oct_pair_splice(p, u, &g));
    st = oct_noise_measure(p->exact, g, p->feed, p->images, values, n);
    oct_graph_free(g);
    if (st) return st;
    *out = values[0].error;
    for (int32_t i = 1; i < p->n_slices; i++)
        if (values[i].error.noise > out->noise) *out = values[i].error;
    return OCT_OK;
}

oct_status oct_analyze_plain_loop(oct_analysis *a, const oct_pair *p)
{
    const int64_t start = oct_time_ns();
    const size_t n = (size_t)p->exact->n_value_ids + 1;
    uint8_t *is_kept = oct_calloc(p->ctx, n, 1);
    oct_noise *values = oct_calloc(p->ctx, (size_t)p->n_slices + n, sizeof(*values));
    oct_status st = values && is_kept ? OCT_OK : OCT_ERR_MEMORY;

    if (!st) mark_kept(p, is_kept);
    for (int32_t i = 0; i < p->n_layers && !st; i++)
        if (p->layers[i].is_integer)
            st = measure(p, &p->layers[i], is_kept, values, &a->layers[i].alone);
    oct_free(p->ctx, values);
    oct_free(p->ctx, is_kept);
    a->layerwise_seconds = (double)(oct_time_ns() - start) * 1e-9;
    return st;
}
