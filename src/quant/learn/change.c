/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that can be taken out again: see change.h. */
#include "quant/learn/change.h"

#include <string.h>

static oct_status copy_floats(const float *from, int64_t n, oct_arena *a, float **out)
{
    *out = NULL;
    if (!from) return OCT_OK;
    if (!(*out = oct_arena_array(a, (size_t)n + 1, sizeof(float)))) return OCT_ERR_MEMORY;
    memcpy(*out, from, (size_t)n * sizeof(float));
    return OCT_OK;
}

static oct_status copy_layer(oct_ctx *ctx, const oct_learned_layer *from, oct_arena *a,
                             oct_layer_change *out)
{
    *out =
        (oct_layer_change){.node = from->node, .n_shift = from->n_shift, .n_scale = from->n_scale};
    OCT_TRY(oct_tensor_make(ctx, &from->node->in[1]->type, &out->other));
    memcpy(out->other->data, from->weight, (size_t)oct_tensor_len(out->other) * sizeof(float));
    OCT_TRY(copy_floats(from->shift, from->n_shift, a, &out->shift));
    return copy_floats(from->scale, from->n_scale, a, &out->scale);
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

static oct_status swap_weight_scales(oct_layer_change *l, oct_qmap *m)
{
    const int32_t point = oct_qmap_at(m, l->node, 1);
    oct_qpoint *p = &m->points[point];
    const char *by = p->scale_by;
    float *was = NULL;
    oct_status st;

    if (!l->scale) return OCT_OK;
    if (!(was = oct_alloc(m->ctx, (size_t)l->n_scale * sizeof(*was)))) return OCT_ERR_MEMORY;
    memcpy(was, p->scale, (size_t)l->n_scale * sizeof(*was));
    st = oct_qpoint_set(m, point, l->scale, p->zero, l->n_scale, l->scale_by ? NULL : "learned");
    if (l->scale_by) p->scale_by = l->scale_by;
    memcpy(l->scale, was, (size_t)l->n_scale * sizeof(*was));
    l->scale_by = by;
    oct_free(m->ctx, was);
    return st;
}

static oct_status swap_layer(oct_layer_change *l, oct_qmap *m, oct_graph *bound)
{
    oct_value *v = bound->values[l->node->in[1]->id];
    oct_tensor *t = v->data;

    v->data = l->other;
    l->other = t;
    OCT_TRY(swap_weight_scales(l, m));
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
