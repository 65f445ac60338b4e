/* SPDX-License-Identifier: Apache-2.0 */
/* Graphwise: how far every layer's output is from the float one with everything quantized. */
#include "analyze/analyze_parts.h"

#include "stat/noise.h"

typedef struct listing {
    oct_noise *values;
    int32_t n;
    int32_t *of_value; /* by value id of the exact network: index + 1 */
} listing;

static void add(listing *l, const oct_value *v)
{
    if (l->of_value[v->id]) return;
    l->values[l->n++] = (oct_noise){.name = v->name};
    l->of_value[v->id] = l->n;
}

static bool is_comparable(const oct_pair *p, const oct_value *v)
{
    return v && v->type.dtype == OCT_DTYPE_F32 && p->quantized_of[v->id] != NULL;
}

static void list_values(const oct_pair *p, listing *l)
{
    for (int32_t i = 0; i < p->n_slices; i++)
        oct_output_slice_noise(&p->slices[i], &l->values[l->n++]);
    for (int32_t i = 0; i < p->n_layers; i++)
        if (is_comparable(p, p->layers[i].anchor->out[0])) add(l, p->layers[i].anchor->out[0]);
}

oct_status oct_analyze_graphwise(oct_analysis *a, const oct_pair *p)
{
    const size_t n_values = (size_t)p->n_slices + (size_t)p->n_layers + 1;
    listing l = {.values = oct_calloc(p->ctx, n_values, sizeof(*l.values)),
                 .of_value =
                     oct_calloc(p->ctx, (size_t)p->exact->n_value_ids + 1, sizeof(int32_t))};
    oct_status st = l.values && l.of_value ? OCT_OK : OCT_ERR_MEMORY;

    if (!st) {
        list_values(p, &l);
        st = oct_noise_measure(p->exact, p->quantized, p->feed, p->images, l.values, l.n);
    }
    for (int32_t i = 0; i < p->n_slices && !st; i++)
        a->outputs[i].error = l.values[i].error;
    for (int32_t i = 0; i < p->n_layers && !st; i++) {
        const oct_value *v = p->layers[i].anchor->out[0];
        const int32_t at = v ? l.of_value[v->id] : 0;

        if (at) a->layers[i].all = l.values[at - 1].error;
    }
    oct_free(p->ctx, l.values);
    oct_free(p->ctx, l.of_value);
    return st;
}
