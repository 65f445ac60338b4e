/* SPDX-License-Identifier: Apache-2.0 */
/* Layerwise the plain way: a network for each layer, run as a whole beside the float one. */
#include "analyze/analyze_parts.h"

#include "base/machine.h"
#include "stat/noise.h"

/*
 * By value id of the exact network: what units read and make. All of it is kept in both networks,
 * so that no plan fuses what another cannot: float rounding would differ.
 */
static void mark_kept(const oct_pair *p, uint8_t *is_kept)
{
    for (int32_t i = 0; i < p->n_units; i++) {
        const oct_pair_layer *u = &p->units[i];

        for (int32_t k = 0; u->is_integer && k < u->last->n_out; k++)
            if (u->last->out[k]) is_kept[u->last->out[k]->id] = 1;
        for (int32_t k = 0; u->is_integer && k < u->n_cone; k++)
            for (int32_t j = 0; j < u->cone[k]->n_in; j++) {
                const oct_value *v = u->cone[k]->in[j];

                if (v && p->twin[v->id]) is_kept[p->twin[v->id]->id] = 1;
            }
    }
}

/* The outlets, and the values to keep, of which one number will do. */
static int32_t list_values(const oct_pair *p, const uint8_t *is_kept, oct_noise *values)
{
    int32_t n = 0;

    for (; n < p->n_outlets; n++)
        oct_output_slice_noise(&p->outlets[n], &values[n]);
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
    for (int32_t i = 1; i < p->n_outlets; i++)
        if (values[i].error.noise > out->noise) *out = values[i].error;
    return OCT_OK;
}

oct_status oct_analyze_plain_loop(oct_analysis *a, const oct_pair *p)
{
    const int64_t start = oct_time_ns();
    const size_t n = (size_t)p->exact->n_value_ids + 1;
    uint8_t *is_kept = oct_calloc(p->ctx, n, 1);
    oct_noise *values = oct_calloc(p->ctx, (size_t)p->n_outlets + n, sizeof(*values));
    oct_status st = values && is_kept ? OCT_OK : OCT_ERR_MEMORY;

    if (!st) mark_kept(p, is_kept);
    for (int32_t i = 0; i < p->n_units && !st; i++)
        if (p->units[i].is_integer)
            st = measure(p, &p->units[i], is_kept, values, &a->layers[i].alone);
    oct_free(p->ctx, values);
    oct_free(p->ctx, is_kept);
    a->layerwise_seconds = (double)(oct_time_ns() - start) * 1e-9;
    return st;
}
