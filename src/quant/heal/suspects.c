/* SPDX-License-Identifier: Apache-2.0 */
/* Layers at whose results the error jumps. Cheap: with everything quantized, in one run. */
#include "op/op.h"
#include "quant/heal/heal.h"

#define LEAST 0.1 /* of the largest jump: smaller ones are not tried */

/* The error that comes with each value: that of the last layer with weights upstream, the largest
 * of several. */
static oct_status carry_noise(const oct_probe *p, const double *noise, oct_arena *a, double **out)
{
    double *at = oct_arena_array(a, (size_t)p->bound->root->n_value_ids + 1, sizeof(*at));
    int32_t layer = 0;

    if (!(*out = at)) return OCT_ERR_MEMORY;
    for (const oct_node *n = p->bound->first; n; n = n->next) {
        const bool is_layer = layer < oct_probe_n_layers(p) && oct_probe_layer(p, layer) == n;
        double most = 0;

        for (int32_t i = 0; i < n->n_in && !is_layer; i++)
            if (n->in[i]) most = OCT_MAX(most, at[n->in[i]->id]);
        if (is_layer) most = noise[layer++];
        for (int32_t i = 0; i < n->n_out; i++)
            if (n->out[i]) at[n->out[i]->id] = most;
    }
    return OCT_OK;
}

static bool is_integer(const oct_qmap *m, const oct_node *n)
{
    const int32_t w = oct_qmap_at(m, n, 1);

    return w >= 0 && m->points[w].state == OCT_QSTATE_ACTIVE && !m->float_reason[n->id];
}

oct_status oct_heal_suspects(const oct_probe *p, const oct_qmap *m, const double *noise,
                             oct_arena *a, int32_t most, const oct_node **list, int32_t *n)
{
    const int32_t n_layers = oct_probe_n_layers(p);
    double *at, *jump = oct_arena_array(a, (size_t)n_layers + 1, sizeof(*jump)), largest = 0;

    *n = 0;
    if (!jump) return OCT_ERR_MEMORY;
    OCT_TRY(carry_noise(p, noise, a, &at));
    for (int32_t i = 0; i < n_layers; i++) {
        const oct_node *k = oct_probe_layer(p, i);

        if (is_integer(m, k)) jump[i] = noise[i] - at[k->in[0]->id];
        largest = OCT_MAX(largest, jump[i]);
    }
    while (*n < most) {
        int32_t best = -1;

        for (int32_t i = 0; i < n_layers; i++)
            if (jump[i] > LEAST * largest && (best < 0 || jump[i] > jump[best])) best = i;
        if (best < 0) break;
        list[(*n)++] = oct_probe_layer(p, best);
        jump[best] = 0;
    }
    return OCT_OK;
}
