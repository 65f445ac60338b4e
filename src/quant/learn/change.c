/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that can be taken out again: see change.h. */
#include "quant/learn/change.h"

#include <string.h>

static oct_status copy_layer(oct_ctx *ctx, const oct_learned_layer *from, oct_arena *a,
                             oct_layer_change *out)
{
    *out = (oct_layer_change){.node = from->node, .n_shift = from->n_shift};
    OCT_TRY(oct_tensor_make(ctx, &from->node->in[1]->type, &out->other));
    memcpy(out->other->data, from->weight, (size_t)oct_tensor_len(out->other) * sizeof(float));
    if (!from->shift) return OCT_OK;
    out->shift = oct_arena_array(a, (size_t)from->n_shift + 1, sizeof(float));
    if (!out->shift) return OCT_ERR_MEMORY;
    memcpy(out->shift, from->shift, (size_t)from->n_shift * sizeof(float));
    return OCT_OK;
}

oct_status oct_change_make(oct_ctx *ctx, const oct_learned *from, oct_arena *a, oct_change *out)
{
    *out = (oct_change){0};
    out->layers = oct_arena_array(a, (size_t)from->n_layers + 1, sizeof(*out->layers));
    out->scales = oct_arena_array(a, (size_t)from->n_scales + 1, sizeof(*out->scales));
    if (!out->layers || !out->scales) return OCT_ERR_MEMORY;
    for (; out->n_layers < from->n_layers; out->n_layers++)
        OCT_TRY(copy_layer(ctx, &from->layers[out->n_layers], a, &out->layers[out->n_layers]));
    for (; out->n_scales < from->n_scales; out->n_scales++)
        out->scales[out->n_scales] = (oct_scale_change){.point = from->scales[out->n_scales].point,
                                                        .other = from->scales[out->n_scales].scale};
    return OCT_OK;
}

void oct_change_fini(oct_change *c)
{
    for (int32_t i = 0; i < c->n_layers; i++)
        oct_tensor_unref(c->layers[i].other);
    *c = (oct_change){0};
}

static oct_status swap_layer(oct_layer_change *l, oct_qmap *m, oct_graph *bound)
{
    oct_value *v = bound->values[l->node->in[1]->id];
    oct_tensor *t = v->data;

    v->data = l->other;
    l->other = t;
    if (!l->shift) return OCT_OK;
    OCT_TRY(oct_qmap_shift(m, l->node, l->shift, l->n_shift));
    for (int64_t i = 0; i < l->n_shift; i++)
        l->shift[i] = -l->shift[i];
    return OCT_OK;
}

static oct_status swap_scale(oct_scale_change *s, oct_qmap *m)
{
    oct_qpoint *p = &m->points[s->point];
    const float was = p->scale[0];
    const char *by = p->scale_by;

    OCT_TRY(oct_qpoint_set(m, s->point, &s->other, p->zero, 1, s->by ? NULL : "learned"));
    if (s->by) p->scale_by = s->by;
    s->other = was;
    s->by = by;
    return OCT_OK;
}

oct_status oct_change_swap(oct_change *c, oct_qmap *m, oct_graph *bound)
{
    for (int32_t i = 0; i < c->n_layers; i++)
        OCT_TRY(swap_layer(&c->layers[i], m, bound));
    for (int32_t i = 0; i < c->n_scales; i++)
        OCT_TRY(swap_scale(&c->scales[i], m));
    c->is_in = !c->is_in;
    return OCT_OK;
}
