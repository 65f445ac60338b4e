/* SPDX-License-Identifier: Apache-2.0 */
/* Quantization-aware training: see qat.h. */
#include "train/qat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ctx.h"
#include "quant/learn/fake.h"
#include "quant/quantize.h"
#include "quant/solve/solve.h"

/* A zero point is a code, a scale a logarithm: what is a small change of one is none of the other.
 */
#define ZERO_RATE 10.0

struct oct_qat {
    oct_ctx *ctx;
    oct_quantized *quantized;
    oct_graph *as_it_came; /* before learning changed weights and biases */
    oct_fake *fake;
    double freeze_scales; /* share of the steps */
};

static oct_status quantize(oct_qat *q, const oct_graph *g, const oct_dataset *images,
                           const oct_train_options *o)
{
    oct_quantize_options all = *o->quantize;

    if (!all.preprocess) all.preprocess = o->preprocess;
    if (!all.family) all.family = o->family;
    return oct_quantize(g, images, &all, &q->quantized);
}

oct_status oct_qat_new(const oct_graph *g, const oct_dataset *images, const oct_train_options *o,
                       const oct_train_settings *s, oct_qat **out)
{
    const oct_fake_options fake = {.fix_scales = s->fix_scales,
                                   .learn_zeros = o->learn_zeros != 0,
                                   .clips_only = o->pact != 0};
    oct_qat *q = oct_calloc(g->ctx, 1, sizeof(*q));
    oct_status st;

    if (!q) return OCT_ERR_MEMORY;
    q->ctx = g->ctx;
    q->freeze_scales = s->freeze_scales;
    st = quantize(q, g, images, o);
    if (!st) st = oct_graph_clone(oct_quantized_unlearned(q->quantized), &q->as_it_came);
    if (!st)
        st = oct_fake_new(oct_quantized_float(q->quantized), oct_quantized_map(q->quantized), &fake,
                          &q->fake);
    if (st) {
        oct_qat_free(q);
        return st;
    }
    *out = q;
    return OCT_OK;
}

void oct_qat_free(oct_qat *q)
{
    if (!q) return;
    oct_fake_free(q->fake);
    oct_graph_free(q->as_it_came);
    oct_quantized_free(q->quantized);
    oct_free(q->ctx, q);
}

const oct_quantized *oct_qat_quantized(const oct_qat *q)
{
    return q->quantized;
}

const oct_graph *oct_qat_network(const oct_qat *q)
{
    return oct_quantized_float(q->quantized);
}

const oct_graph *oct_qat_as_it_came(const oct_qat *q)
{
    return q->as_it_came;
}

void oct_qat_hook(oct_qat *q, oct_train_net_options *net)
{
    net->rewrite = oct_fake_insert;
    net->rewrite_arg = q->fake;
    net->prepare.freeze_statistics = true; /* the file's: rounding is learned with what it has */
}

/* --- scales --- */

static bool is_scale(const oct_param *p)
{
    return p->kind == OCT_PARAM_STEP_SIZE || p->kind == OCT_PARAM_ZERO_POINT;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/*
 * Adam moves all weights by about the rate, and what counts is how many steps of their codes that
 * is. The rate is for the median layer's weights with 8 bits; others go as much faster or slower as
 * their steps are wider or narrower, and so do biases that are rounded.
 */
static oct_status rate_by_steps(const oct_qat *q, oct_params *p)
{
    double *of_8_bits = oct_calloc(q->ctx, (size_t)p->n + 1, sizeof(*of_8_bits)), median;
    int32_t n = 0;

    if (!of_8_bits) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->n; i++) {
        const oct_fake_grid g = oct_fake_grid_of(q->fake, p->v[i].value);

        if (g.step > 0 && p->v[i].kind == OCT_PARAM_WEIGHT) of_8_bits[n++] = g.step_of_8_bits;
    }
    qsort(of_8_bits, (size_t)n, sizeof(*of_8_bits), by_size);
    median = n ? of_8_bits[n / 2] : 0;
    for (int32_t i = 0; i < p->n && median > 0; i++) {
        const oct_fake_grid g = oct_fake_grid_of(q->fake, p->v[i].value);

        if (g.step > 0) p->v[i].rate = g.step / median;
    }
    oct_free(q->ctx, of_8_bits);
    return OCT_OK;
}

oct_status oct_qat_set_rates(const oct_qat *q, const oct_train_settings *s, oct_params *p)
{
    for (int32_t i = 0; i < p->n; i++)
        if (is_scale(&p->v[i]))
            p->v[i].rate = s->scale_rate * (p->v[i].kind == OCT_PARAM_ZERO_POINT ? ZERO_RATE : 1.0);
    return s->preset->rate_by_steps ? rate_by_steps(q, p) : OCT_OK;
}

/* The first update without scales; there is none if the share is all of them. */
static int64_t freezes_at(const oct_qat *q, int64_t total)
{
    return q->freeze_scales < 1 ? (int64_t)ceil(q->freeze_scales * (double)total) : total;
}

/* The qmap with what was learned; `fit`: its powers of two such that shifters can do them. */
static oct_status take(oct_qat *q, const oct_graph *learned, bool fit)
{
    oct_qmap *m = oct_quantized_map(q->quantized);
    oct_status st;

    OCT_TRY(oct_fake_take(q->fake, learned));
    if (!fit) return OCT_OK;
    m->stage = "NPU shifts after learning";
    m->may_write = OCT_QWRITES_SCALES;
    st = oct_npu_shifts(m);
    m->stage = NULL;
    m->may_write = 0;
    return st;
}

/* Weights go on with the scales that the file will have. */
static oct_status align(oct_qat *q, oct_train_net *net)
{
    oct_params *p = oct_train_net_params(net);
    float *weights = oct_train_net_weights(net);
    oct_graph *now = NULL;
    oct_status st = oct_train_net_export(net, weights, oct_train_net_running(net), &now);

    if (!st) st = take(q, now, true);
    for (int32_t i = 0; i < p->n && !st; i++)
        if (p->v[i].kind == OCT_PARAM_STEP_SIZE)
            oct_fake_step(q->fake, p->v[i].name, weights + p->v[i].offset, p->v[i].len);
    oct_graph_free(now);
    return st;
}

oct_status oct_qat_freeze(oct_qat *q, oct_train_net *net, int64_t step, int64_t total)
{
    const int64_t at = freezes_at(q, total);
    oct_params *p = oct_train_net_params(net);

    if (step < at) return OCT_OK;
    if (step == at) OCT_TRY(align(q, net));
    for (int32_t i = 0; i < p->n; i++)
        if (is_scale(&p->v[i])) p->v[i].frozen = true;
    return OCT_OK;
}

void oct_qat_keep_scales(const oct_qat *q, const oct_params *p, const float *live, float *average,
                         int64_t step, int64_t total)
{
    if (step <= freezes_at(q, total)) return;
    for (int32_t i = 0; i < p->n; i++)
        if (is_scale(&p->v[i]))
            memcpy(average + p->v[i].offset, live + p->v[i].offset,
                   (size_t)p->v[i].len * sizeof(*live));
}

oct_status oct_qat_graph(oct_qat *q, const oct_graph *learned, bool fit, oct_graph **out)
{
    OCT_TRY(take(q, learned, fit));
    return oct_quantized_lower(q->quantized, out);
}

/* --- statistics of normalizations --- */

oct_status oct_adapt_norms(const oct_graph *g, const oct_train_net_options *net, int64_t steps,
                           oct_next_batch next, void *arg, oct_graph **out)
{
    oct_train_net *t = NULL;
    oct_status st = oct_train_net_new(g, net, &t);

    for (int64_t i = 0; i < steps && !st; i++) {
        st = oct_progress(g->ctx, "estimating statistics", i, steps);
        if (!st) st = next(arg, t);
        if (!st) st = oct_train_net_step(t);
        if (!st) oct_train_net_keep_stats(t);
    }
    if (!st) st = oct_train_net_export(t, oct_train_net_weights(t), oct_train_net_running(t), out);
    oct_train_net_free(t);
    return st;
}
