/* SPDX-License-Identifier: Apache-2.0 */
/* Other numbers of bits than the target's, for all layers at once. */
#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "quant/place/place_parts.h"

/* Below 8 bits rounding is coarse: clipping the few largest weights costs less. */
#define COARSE_RANGES "mse"

enum { USUAL_BITS = 8 };
static const double USUAL_RATIO = .8;

static bool is_layer(const oct_qmap *m, const oct_node *n)
{
    const int32_t w = n->n_in > 1 && n->in[1] ? oct_qmap_at(m, n, 1) : -1;

    return w >= 0 && m->points[w].role == OCT_QROLE_WEIGHT;
}

/* Marks, by value id, what depends on a layer. */
static void find_after(const oct_qmap *m, uint8_t *after)
{
    for (const oct_node *n = m->g->first; n; n = n->next) {
        bool any = is_layer(m, n);

        for (int32_t i = 0; i < n->n_in && !any; i++)
            any = n->in[i] && after[n->in[i]->id];
        for (int32_t k = 0; k < n->n_out && any; k++)
            if (n->out[k]) after[n->out[k]->id] = 1;
    }
}

/* Marks, by value id, what a layer depends on. */
static void find_before(const oct_qmap *m, uint8_t *before)
{
    for (const oct_node *n = m->g->last; n; n = n->prev) {
        bool any = is_layer(m, n);

        for (int32_t k = 0; k < n->n_out && !any; k++)
            any = n->out[k] && before[n->out[k]->id];
        for (int32_t i = 0; i < n->n_in && any; i++)
            if (n->in[i]) before[n->in[i]->id] = 1;
    }
}

/* A layer's weights. */
typedef struct layer_weights {
    oct_qpoint *point;
    int64_t n;
    int32_t index;
} layer_weights;

static int by_count(const void *a, const void *b)
{
    const layer_weights *x = a, *y = b;

    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

double oct_weight_bits_spared(const oct_quantize_options *o)
{
    return 1 - (o->weight_bits_ratio > 0 ? o->weight_bits_ratio : USUAL_RATIO);
}

void oct_weight_bits(oct_qpoint *p, const oct_target *t, const oct_quantize_options *o, int bits)
{
    p->spec.bits = bits;
    p->spec.is_narrow = bits >= USUAL_BITS && t->weight.is_narrow;
    p->observer = bits < USUAL_BITS && !o->weight_ranges ? COARSE_RANGES : NULL;
}

/* Layers between others get the bits, but for the smallest of them. */
static oct_status set_few_bits(oct_placer *p, const oct_quantize_options *o)
{
    const size_t n_values = (size_t)p->g->root->n_value_ids + 1;
    uint8_t *after = oct_arena_alloc(p->a, n_values), *before = oct_arena_alloc(p->a, n_values);
    layer_weights *layer = oct_arena_array(p->a, (size_t)p->m->n_points + 1, sizeof(*layer));
    int32_t n = 0;
    double all = 0, kept = 0;
    const double spared = oct_weight_bits_spared(o);

    if (!after || !before || !layer) return OCT_ERR_MEMORY;
    find_after(p->m, after);
    find_before(p->m, before);
    for (int32_t i = 0; i < p->m->n_points; i++) {
        oct_qpoint *q = &p->m->points[i];

        if (q->role != OCT_QROLE_WEIGHT || !q->node) continue;
        all += (double)oct_type_len(&q->value->type);
        if (after[q->node->in[0]->id] && before[q->node->out[0]->id])
            layer[n++] = (layer_weights){q, oct_type_len(&q->value->type), i};
    }
    qsort(layer, (size_t)n, sizeof(*layer), by_count);
    for (int32_t i = 0; i < n; i++) {
        kept += (double)layer[i].n;
        layer[i].point->may_have_8_bits = true;
        if (kept > spared * all) oct_weight_bits(layer[i].point, p->t, o, o->weight_bits);
    }
    return OCT_OK;
}

static oct_status set_weights(oct_placer *p, const oct_quantize_options *o)
{
    if (o->weight_bits < USUAL_BITS) return set_few_bits(p, o);
    for (int32_t i = 0; i < p->m->n_points; i++)
        if (p->m->points[i].role == OCT_QROLE_WEIGHT && p->m->points[i].node)
            p->m->points[i].spec.bits = o->weight_bits;
    return OCT_OK;
}

/* Of the devices that OpenVINO runs on, these may be CPUs without VNNI. */
static bool may_saturate(const char *device)
{
    return !device || strcmp(device, "ANY") == 0 || strcmp(device, "CPU") == 0;
}

/*
 * What is done if nothing was said. Files for OpenVINO may come to any CPU, and pictures are where
 * sums saturate most: they use all codes, and weights of first layers are large. Other layers keep
 * 8 bits, since 7 cost accuracy where nothing saturates. For ONNX Runtime first layers are float.
 */
static const char *usual_fix(const oct_target *t, const oct_quantize_options *o)
{
    const bool is_openvino = strcmp(t->name, "openvino") == 0;

    return is_openvino && may_saturate(o->target_device) ? "first_layer_only" : "disable";
}

/*
 * CPUs without VNNI add two products of bytes in 16 bits, which saturate: with weights of 7 bits
 * the sums fit. octet's own kernels are exact there too, and other targets are no such CPUs.
 */
static oct_status fix_overflow(oct_placer *p, const oct_quantize_options *o)
{
    const char *const name = p->t->name;
    const char *const which = o->overflow_fix ? o->overflow_fix : usual_fix(p->t, o);
    const bool all = strcmp(which, "enable") == 0;
    const size_t n = (size_t)p->g->root->n_value_ids + 1;
    uint8_t *after;

    if (strcmp(which, "disable") == 0) return OCT_OK;
    if (strcmp(name, "ort") != 0 && strcmp(name, "openvino") != 0) return OCT_OK;
    if (!(after = oct_arena_alloc(p->a, n))) return OCT_ERR_MEMORY;
    find_after(p->m, after);
    for (int32_t i = 0; i < p->m->n_points; i++) {
        oct_qpoint *q = &p->m->points[i];

        if (q->role != OCT_QROLE_WEIGHT || !q->node || q->spec.bits != USUAL_BITS) continue;
        if (all || !after[q->node->in[0]->id]) q->spec.bits = USUAL_BITS - 1;
    }
    return OCT_OK;
}

/* Pictures have 8 bits: fewer would blur them before the first layer. */
static void set_activations(oct_placer *p, int bits)
{
    for (int32_t i = 0; i < p->m->n_points; i++) {
        oct_qpoint *q = &p->m->points[i];

        if (q->role != OCT_QROLE_ACT || q->only_given) continue;
        if (bits < USUAL_BITS && oct_qmap_root(p->m, i)->value->is_input) continue;
        q->spec.bits = bits;
    }
}

oct_status oct_placer_bits(oct_placer *p, const oct_quantize_options *o)
{
    const int a = o->activation_bits, w = o->weight_bits;

    if (!(o->weight_bits_ratio >= 0 && o->weight_bits_ratio <= 1))
        return oct_fail(p->m->ctx, OCT_ERR_ARG, "weight_bits_ratio %g: a share of 0 to 1",
                        o->weight_bits_ratio);
    if (w && (w < 2 || w > USUAL_BITS))
        return oct_fail(p->m->ctx, OCT_ERR_ARG, "weights of %d bits: 2 to 8 are possible", w);
    if (a && a != 4 && a != 6 && a != 8 && a != 16)
        return oct_fail(p->m->ctx, OCT_ERR_ARG,
                        "activations of %d bits: 4, 6, 8 and 16 are possible", a);
    if (a) set_activations(p, a);
    if (w) OCT_TRY(set_weights(p, o));
    return fix_overflow(p, o);
}
